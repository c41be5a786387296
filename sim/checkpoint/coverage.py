"""Coverage of the verdict on a run: what it did not judge, which faults did nothing, whether the job got on.

An invariant whose premise was never met holds of nothing (`model.spec.invariants.PREMISES`). It is *asked for* where
the scenario sets what it is about: CUT, ONCE, ID, LIVE and FWD where checkpoints are to be taken (FWD besides where
there is an operator between source and sink), WM where a source makes watermarks, BOUND where a channel has a capacity,
REC where something is to crash; FIFO and NOLOSS always. With ``--strict`` a run *falls short* that holds, and judged
less than was asked for, has a fault that met nothing, or did not get on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barrierlab.model.spec.invariants import PREMISES, Verdict
from barrierlab.sim.checkpoint.failover import RecoveryRecord
from barrierlab.sim.checkpoint.faults import FaultEffect
from barrierlab.sim.checkpoint.metrics import CheckpointRecord
from barrierlab.sim.scenario.readers import FAULTS
from barrierlab.sim.scenario.settings import Fault, Scenario, ns

if TYPE_CHECKING:
    from barrierlab.sim.checkpoint.engine import Engine

GOES_ON, NONE_COMPLETED, RESTART_LOOP, STANDS_STILL = (
    "goes on",
    "no checkpoint completed",
    "restart loop",
    "stands still",
)
NO_OUTPUT, NO_SIGNAL = "no output", "no signal"
"""Of a join, and of control signals: nothing came about that could be judged."""
LOOP = 3
"""So many restarts from one checkpoint with none completed between are a loop: twice is bad luck."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The limits of a verdict.

    Attributes
    ----------
    vacuous : tuple of str
        Invariants that were never asked.
    asked_for : tuple of str
        Of those, the ones that the scenario asks for.
    premises : dict of str to int
        How often each was asked.
    idle_faults : tuple of str
        A line for each fault that never struck, or met nothing.
    progress : str
        `GOES_ON`, `NONE_COMPLETED`, `RESTART_LOOP` or `STANDS_STILL`: the last that applies.
    headline : str
        What to say behind the verdict at once; empty if nothing.
    notes : tuple of str
        What else there is to say, a line each.
    is_unmeasured : bool
        Whether the warm-up leaves no time to measure.
    restarts_in_a_row : int
        The most restarts from one checkpoint with none completed between.
    standstill_ns : int
        The longest time in which no sink took a record although events were overdue and nobody was at work. One that
        is over by the end is reported, and makes no verdict fall short: what came of it was judged.
    """

    vacuous: tuple[str, ...] = ()
    asked_for: tuple[str, ...] = ()
    premises: dict[str, int] = field(default_factory=dict)
    idle_faults: tuple[str, ...] = ()
    progress: str = GOES_ON
    headline: str = ""
    notes: tuple[str, ...] = ()
    is_unmeasured: bool = False
    restarts_in_a_row: int = 0
    standstill_ns: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "vacuous": list(self.vacuous),
            "vacuous_asked_for": list(self.asked_for),
            "premises": self.premises,
            "faults_without_effect": list(self.idle_faults),
            "progress": self.progress,
            "notes": list(self.notes),
            "falls_short": self.falls_short,
        }

    @property
    def falls_short(self) -> bool:
        """Return whether `--strict` makes a verdict that holds an exit status 3."""
        return bool(self.asked_for or self.idle_faults or self.is_unmeasured or self.progress != GOES_ON)


def coverage_of(scenario: Scenario, engine: Engine, judged: Verdict) -> Coverage:
    """Return the limits of the verdict `judged` on the run of `engine`."""
    asked = asked_for(scenario)
    asked_for_nothing = tuple(name for name in judged.vacuous if name in asked)
    records = list(engine.metrics.checkpoints.values())
    longest, open_loop = _restarts_in_a_row(engine.recovery.records, records)
    progress, headline = _progress(engine, records, open_loop)
    notes = []
    if progress != NONE_COMPLETED:  # the headline says it of all that wait for one
        notes += [f"{name} was asked for, and had nothing to judge ({PREMISES[name]}: 0)" for name in asked_for_nothing]
    if longest >= LOOP and progress != RESTART_LOOP:
        notes.append(f"the job was restarted {longest} times in a row from one checkpoint, with none completed between")
    stood = engine.standstill.longest_ns()
    if stood is not None and (progress != STANDS_STILL or stood[0] != engine.standstill.since_ns()):
        since_s, until_s = stood[0] / 1e9, stood[1] / 1e9
        notes.append(
            f"the job stood still for {until_s - since_s:.3f} s at the longest, from {since_s:.3f} to {until_s:.3f} s: "
            "no sink took a record, though events were overdue"
        )
    is_unmeasured = ns(scenario.warmup_s) >= max(engine.clock.now, 1)
    if is_unmeasured:
        notes.append(
            f"nothing is measured: the warm-up lasts {scenario.warmup_s:g} s, and the run {engine.clock.now / 1e9:g} s"
        )
    idle = tuple(_idle(scenario, engine.faults.effects, engine.clock.now))
    notes += [*idle, *_missed(scenario.faults, engine.faults.effects)]
    return Coverage(
        judged.vacuous,
        asked_for_nothing,
        dict(judged.premises),
        idle,
        progress,
        headline,
        tuple(notes),
        is_unmeasured,
        longest,
        0 if stood is None else stood[1] - stood[0],
    )


def asked_for(scenario: Scenario) -> set[str]:
    """Return the invariants that `scenario` sets something for."""
    asked = {"FIFO", "NOLOSS"}
    if scenario.checkpoint.interval_s is not None:
        asked |= {"CUT", "ONCE", "ID", "LIVE"}
        if len(scenario.topology.tasks) > len(scenario.topology.sources) + len(scenario.topology.sinks):
            asked.add("FWD")
    if any(source.watermark_interval_s is not None for source in scenario.sources.values()):
        asked.add("WM")
    if any(channel.form == "spsc" for channel in scenario.channels.values()):
        asked.add("BOUND")
    if any(fault.kind in ("crash", "coordinator_crash") for fault in scenario.faults):
        asked.add("REC")
    return asked


# Whether the job gets on.


def _progress(engine: Engine, records: Sequence[CheckpointRecord], loop: int) -> tuple[str, str]:
    """Return the word for it and the headline."""
    since_ns = engine.standstill.since_ns()
    if since_ns is not None:
        return STANDS_STILL, f"the job stands still: no sink has taken a record since {since_ns / 1e9:.3f} s"
    if loop >= LOOP:
        restored = engine.recovery.records[-1].checkpoint_id
        origin = f"checkpoint {restored}" if restored else "the beginning"
        return RESTART_LOOP, f"the job is in a restart loop: {loop} restarts from {origin}, no checkpoint since"
    if not any(record.status == "COMPLETED" for record in records):
        number = f" (of {len(records)})" if records else ""
        return NONE_COMPLETED, f"{NONE_COMPLETED}{number}: nothing was judged"
    return GOES_ON, ""


def _restarts_in_a_row(restarts: Sequence[RecoveryRecord], records: Sequence[CheckpointRecord]) -> tuple[int, int]:
    """Return the most restarts from one checkpoint with none completed between; and how many there are at the end."""
    ends_ns = [each.ended_ns for each in records if each.status == "COMPLETED" and each.ended_ns is not None]
    longest = current = since_ns = 0
    origin: int | None = None
    for restart in restarts:
        at_ns = restart.restored_ns
        if at_ns is not None:
            is_same = origin == restart.checkpoint_id and not any(since_ns < end_ns <= at_ns for end_ns in ends_ns)
            current = current + 1 if is_same else 1
            longest, since_ns, origin = max(longest, current), at_ns, restart.checkpoint_id
    return longest, 0 if any(end_ns > since_ns for end_ns in ends_ns) else current


# Faults.


def _idle(scenario: Scenario, effects: dict[str, FaultEffect], ended_ns: int) -> Iterator[str]:
    """A line for each fault that did nothing."""
    until_ns = ns(scenario.until_s)
    for fault in scenario.faults:
        effect = effects[fault.name]
        if effect.met:
            continue
        if effect.struck:
            times = "once" if effect.struck == 1 else f"{effect.struck} times"
            at = f"at {effect.last_ns / 1e9:.3f} s" if effect.struck == 1 else f"last at {effect.last_ns / 1e9:.3f} s"
            why = f"struck {times}, {at}, and met nothing: {FAULTS[fault.kind].met_nothing}"
        elif fault.rate_per_s is not None:
            why = f"never struck: at random, {fault.rate_per_s:g} a second, in {min(ended_ns, until_ns) / 1e9:g} s"
        else:
            first_s = next(s for s in (fault.at_s, fault.first_s, fault.every_s) if s is not None)
            end_s = scenario.until_s if ns(first_s) >= until_ns else ended_ns / 1e9
            why = f"never struck: it is due at {first_s:g} s, and the run ended at {end_s:g} s"
        yield f"fault {fault.name}: {why}"


def _missed(faults: Sequence[Fault], effects: dict[str, FaultEffect]) -> Iterator[str]:
    """Yield a line for each fault that struck at times only where there was nothing."""
    for fault in faults:
        effect = effects[fault.name]
        if effect.met and effect.missed:
            times = f"{effect.missed} of {effect.struck} strikes"
            yield f"fault {fault.name}: {times} met nothing: {FAULTS[fault.kind].met_nothing}"
