"""The scripted cases that come with the package: they are true, they can fail, and they can be read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import barrierlab.model
from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import Gate, GatePort
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.model.checkpoint.components import Components, sound_aligner
from barrierlab.model.checkpoint.external import parts_of
from barrierlab.model.checkpoint.protocols import EXACT as MODES
from barrierlab.model.checkpoint.scripted import FOLDER, cases, replay
from barrierlab.model.checkpoint.tables.driven import driven_by
from barrierlab.model.checkpoint.trace import COMMENT, TraceError, judged, read
from barrierlab.model.defects.catalogue import modules
from barrierlab.model.defects.engines.catalogue import reports
from barrierlab.model.suites.tables import TABLES
from tests.kept import keep
from tests.model.mutants import MUTANTS, MUTANTS_RECOVERING, MUTANTS_UNALIGNED

ROOT = Path(__file__).parents[2]
CASES = cases()
THEMES = sorted({name.partition("/")[0] for name in CASES})
MOST_LINES, MOST_COLUMNS = 60, 120

ALL_MUTANTS = {**MUTANTS, **MUTANTS_UNALIGNED, **MUTANTS_RECOVERING}
# Which machine spoils which scripted case.
SPOILT = [
    ("alignment/the_first_barrier_blocks_its_input", "SnapshotsAtTheFirst"),
    ("alignment/what_is_buffered_is_drained_in_order", "DropsWhatIsHeld"),
    ("alignment/a_watermark_waits_with_the_events", "WatermarkOvertakes"),
    ("alignment/a_barrier_behind_another_keeps_its_place", "ForgetsTheFirst"),
    ("alignment/a_barrier_behind_another_keeps_its_place", "SwallowsTheSecondBarrier"),
    ("alignment/the_first_barrier_blocks_its_input", "AppliesTwice"),
    ("abandoned/an_abort_reaches_a_task_that_aligns", "NeverGivesUp"),
    ("abandoned/a_cancel_goes_in_the_barriers_place", "NeverGivesUp"),
    ("end_of_input/an_end_completes_the_alignment", "SnapshotsAtTheFirst"),
    ("backpressure/an_input_that_buffers_enough_is_not_read", "HoldsWithoutLimit"),
    ("abandoned/an_abort_reaches_a_task_that_aligns", "SnapshotsAtTheFirst"),
    ("alignment/what_is_buffered_is_drained_in_order", "DrainsFirst"),
    ("backpressure/an_aligned_barrier_waits_for_room", "PositionsLate"),
    ("backpressure/an_aligned_barrier_waits_for_room", "SnapshotsLate"),
    ("unaligned/a_barrier_overtakes_what_is_queued", "PassesUnrecorded"),
    ("unaligned/a_barrier_overtakes_the_outbox", "LeavesTheOutboxUnrecorded"),
    ("unaligned/recording_goes_on_until_the_last_barrier", "RecordsNothing"),
    ("unaligned/more_is_in_flight_than_may_be", "RecordsWithoutLimit"),
    ("coordinator/a_checkpoint_is_complete_with_the_last_acknowledgement", "CompletesEarly"),
    ("coordinator/two_checkpoints_are_under_way", "CompletesTwice"),
    ("recovery/a_sink_commits_once", "CommitsAtOnce"),
    ("recovery/a_sink_commits_once", "NeverCommits"),
    ("recovery/a_sink_commits_once", "WritesTwice"),
    ("recovery/what_was_not_complete_is_rolled_back", "RollsNothingBack"),
    ("recovery/a_crash_goes_back_to_the_cut", "ForgetsItsState"),
    ("recovery/a_crash_goes_back_to_the_cut", "SkipsAnEvent"),
    ("recovery/what_was_in_flight_is_restored", "LosesWhatIsInFlight"),
    ("dataflows/a_diamond_aligns_where_it_meets", "SnapshotsAtTheFirst"),
    ("dataflows/a_join_promises_the_least", "PromisesTheMost"),
    ("dataflows/a_join_promises_the_least", "KeepsTheWatermark"),
]


def told(text: str, components: Components) -> str:
    """The scripted case as machines make it; or that they cannot make a move of it."""
    try:
        return replay(text, components)
    except TraceError as error:
        return f"{error}\n"


@pytest.mark.parametrize("name", CASES)
def test_a_scripted_case_replays_to_itself(name: str, rewrite: bool) -> None:
    """An example that people learn from, or try their own code on, would not be what the protocol does."""
    keep(FOLDER / f"{name}.trace", replay(CASES[name], name=name), rewrite)


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_broken_in_a_scripted_case(name: str) -> None:
    """An example of how it is to be would be one of how it is not to be."""
    verdict = judged(CASES[name], name)
    assert verdict.violations == ()
    assert verdict.verdict == "holds" or "\ncut_off: yes\n" in CASES[name]
    assert not re.search(r"^(    )?! ", CASES[name], re.MULTILINE)


@pytest.mark.parametrize("mode", MODES)
def test_the_tables_tell_the_same_scripted_cases(mode: str) -> None:
    """The scripted cases would be of one way to write the protocol down, and no measure for another."""

    def gate(
        port: GatePort, config: BarrierAlignerConfig, unaligned: UnalignedCheckpointConfig | None, is_sink: bool
    ) -> Gate:
        return driven_by(TABLES["aligned" if is_sink else mode])(port, config, unaligned, is_sink)

    assert [name for name, text in cases(mode).items() if told(text, Components(gate=gate)) != text] == []


class Theirs(Gate):
    """A gate as another team might bring one: told of port and configuration, and no more."""

    def __init__(
        self,
        port: GatePort,
        config: BarrierAlignerConfig,
        unaligned: UnalignedCheckpointConfig | None = None,
        is_sink: bool = False,
    ) -> None:
        super().__init__(sound_aligner(config, unaligned, is_sink), port)

    def recover(self, last_terminated_id: int, ended: Iterable[int]) -> None:
        """Go on from a cut."""
        self.aligner.recover(last_terminated_id, ended)


class TheirsNeverHolds(Theirs):
    """Nothing waits behind a barrier."""

    def offer(self, input_id: int, message: object, now_ns: int) -> bool:
        if type(message).__name__ == "Event" and self.is_blocked(input_id):
            self.port.deliver(input_id, message)  # type: ignore[arg-type]
            return True
        return super().offer(input_id, message, now_ns)  # type: ignore[arg-type]


def test_a_external_gate_is_held_against_the_scripted_cases() -> None:
    """Another team's sound gate would fail a scripted case, or a wrong one pass them all."""
    aligned = cases("aligned")
    for kind, spoils in ((Theirs, False), (TheirsNeverHolds, True)):
        components = parts_of(kind, "aligned")
        assert any(told(text, components) != text for text in aligned.values()) == spoils


@pytest.mark.parametrize(("name", "bent"), SPOILT)
def test_a_mutant_tells_another_scripted_case(name: str, bent: str) -> None:
    """The scripted case would be true whatever the machines did."""
    assert told(CASES[name], ALL_MUTANTS[bent]) != CASES[name]


def test_every_theme_and_every_mutant_is_tried() -> None:
    """A whole theme could hold by itself, or a way to go wrong be seen by no scripted case."""
    assert {name.partition("/")[0] for name, _ in SPOILT} == set(THEMES)
    assert {bent for _, bent in SPOILT} == set(ALL_MUTANTS)


@pytest.mark.parametrize("name", CASES)
def test_a_scripted_case_can_be_read(name: str) -> None:
    """A reader would not learn what it shows, why, or which rule it stands for; or abort before its end."""
    lines = CASES[name].splitlines()
    header, _ = read(CASES[name], name)
    comment = header[COMMENT]
    assert lines[0].startswith("# ")
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= MOST_COLUMNS
    assert re.search(r"^(Protocol rules? \d+|Rule R\d+ of|Glossary: )", comment, re.MULTILINE)
    assert len(comment.split()) >= 20
    assert comment.endswith(".")
    assert re.fullmatch(r"[a-z]+(_[a-z]+){2,}", name.partition("/")[2])


def test_each_protocol_has_scripted_cases_of_its_own() -> None:
    """Whoever goes unaligned would be held against scripted cases of somebody else, or against none."""
    of_mode = {mode: cases(mode) for mode in MODES}
    assert min(map(len, of_mode.values())) > 0
    assert {name for scripted_cases in of_mode.values() for name in scripted_cases} == set(CASES)
    assert sum(map(len, of_mode.values())) == len(CASES) >= 30
    assert all("\nmode: unaligned\n" in text for text in of_mode["unaligned"].values())


def test_every_trace_in_the_repository_is_run() -> None:
    """A trace could lie about for years and be wrong."""
    assert Path(barrierlab.model.__file__).resolve().parent in FOLDER.resolve().parents, (
        "the package takes what stands beside its modules along"
    )
    run = {FOLDER.resolve() / f"{name}.trace" for name in CASES} | {*(ROOT / "tests" / "traces").glob("**/*.trace")}
    run.add(ROOT / "docs" / "aligner" / "planted.trace")  # tests/model/test_your_aligner.py
    engines = {ROOT / "model" / "defects" / "engines" / "traces" / f"{each.id}.trace" for each in reports()}
    for path in (
        path for package in ("impl", "model", "sim", "tests", "docs") for path in ROOT.glob(f"{package}/**/*.trace")
    ):
        is_of_the_catalogue = path in engines or (
            path.parent.parent == ROOT / "model" / "defects" and path.stem in dict(modules())
        )
        assert path in run or is_of_the_catalogue, path
