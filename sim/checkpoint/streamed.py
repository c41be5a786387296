"""A run whose journal is not kept: judged as it goes, and given away piece by piece.

Memory is then in proportion to what is in flight, and to the number of checkpoints, of which the records stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property

from barrierlab.model.checkpoint.components import SOUND
from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.history import Entry, entry_count, expanded
from barrierlab.model.spec.invariants import Verdict
from barrierlab.model.spec.settled import RunningJudge
from barrierlab.sim.checkpoint.critical_path import Journal
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.checkpoint.result import Result, fold_of, guarantees_of, limits_of, lines_of_rows
from barrierlab.sim.core.collector import collector_paused
from barrierlab.sim.scenario.file import ScenarioError
from barrierlab.sim.scenario.settings import Scenario

Write = Callable[[list[Entry]], None]


class Stream:
    """The reader of a journal that comes piece by piece.

    Parameters
    ----------
    scenario : Scenario
    write : callable, optional
        Gets the entries, too.

    Attributes
    ----------
    judge : RunningJudge
    journal : Journal
        For the critical paths.
    entry_count : int
    """

    def __init__(self, scenario: Scenario, write: Write | None) -> None:
        self.judge = RunningJudge(scenario.topology, limits_of(scenario), fold_of(scenario), guarantees_of(scenario))
        self.journal = Journal((), scenario.topology)
        self.entry_count = 0
        self._write = write
        self._digest = hashlib.blake2b(digest_size=16)

    def take(self, rows: list[Entry]) -> None:
        """Read the next rows."""
        if not rows:
            return
        self.judge.read(rows)
        self.journal.read(rows)
        self._digest.update((("\n" if self.entry_count else "") + lines_of_rows(rows)).encode())
        self.entry_count += entry_count(rows)
        if self._write is not None:
            self._write(list(expanded(rows)))

    @property
    def digest(self) -> str:
        """The digest of what has been read: that of `Result.digest`."""
        return self._digest.hexdigest()


class StreamedResult(Result):
    """The result of a run whose journal is not kept: all but what would need it.

    Raises
    ------
    ScenarioError
        By what would need the journal.
    """

    def __init__(self, scenario: Scenario, seed: int, engine: Engine, stream: Stream) -> None:
        self._stream = stream
        super().__init__(scenario, seed, engine)

    def judge(self, engine: Engine) -> Verdict:
        """Judge what is left of the run."""
        self.limits = limits_of(self.scenario)
        return self._stream.judge.verdict(engine.cut_off)

    @cached_property
    def attempts(self) -> Run:
        """The part of the journal that no checkpoint has settled."""
        return Run.single(self._stream.judge.history)

    @cached_property
    def entries(self) -> list[Entry]:
        """None: they were given away."""
        raise ScenarioError(f"{self.scenario.name}: the journal of this run was given away: run it without --events")

    @property
    def entry_count(self) -> int:
        """Return how many entries the journal has."""
        return self._stream.entry_count

    @cached_property
    def digest(self) -> str:
        """A digest of the journal, made as it went by."""
        return self._stream.digest

    @cached_property
    def journal(self) -> Journal:
        """The journal as the critical paths ask it, read as it went by."""
        return self._stream.journal


def run_streamed(scenario: Scenario, seed: int | None = None, write: Write | None = None) -> StreamedResult:
    """Simulate `scenario` once and judge it as it goes; `write` gets the journal's entries, in order.

    The verdict, the findings, the figures and the digest are those of `run`.

    Raises
    ------
    ScenarioError
        If the job may be restored: what comes before a restore is asked for behind it.
    """
    chosen = scenario.seed if seed is None else seed
    stream = Stream(scenario, write)
    with collector_paused():
        engine = Engine(scenario, chosen, SOUND, stream.take)
        if engine.storage.keeps_bytes:
            raise ScenarioError(
                f"{scenario.name}: the job may be restored, by a fault or by tolerable_failures, so that its journal "
                "is kept whole: leave those out, or --events"
            )
        engine.run()
        return StreamedResult(scenario, chosen, engine, stream)
