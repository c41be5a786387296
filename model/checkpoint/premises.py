"""The cases that an exploration of a world judged: how often each premise was met, and which faults could strike.

The counts are of distinct steps. A step is worked out once (`model.checkpoint.task_transitions`), however many runs it
is part of; so a count says that there was something to judge, and of how many kinds, and not how often it came about.
What each counts is said in `model.spec.invariants.PREMISES`: of a run it is how often, of an exploration how many
different ones. What an aligner leaves in its channel is not buffered (`SITUATIONS`), though it waits behind a barrier.
"""

from __future__ import annotations

from collections.abc import Callable

from barrierlab.impl.messages import Event, Watermark
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import World
from barrierlab.model.spec.invariants import PREMISES, SITUATIONS

FAULTS: dict[str, Callable[[Bounds], bool]] = {
    "abort": lambda bounds: bounds.cancels > 0,
    "timeout": lambda bounds: bounds.expiries > 0,
    "closed input": lambda bounds: bounds.closes,
    "crash": lambda bounds: bounds.crashes > 0,
}
"""By name, as a scope has it, whether bounds has that fault."""


def premises_of(world: World) -> dict[str, int]:
    """Count, by invariant, the different things that there were to judge in a world that has been explored."""
    counts = dict.fromkeys((*PREMISES, *SITUATIONS), 0)
    decisions = [decision for _, decision in world.coordinator.decisions()]
    triggers = sum(note[0] == ">trigger" for decision in decisions for note in decision.notes)
    completed = sum(is_complete for decision in decisions for _, is_complete in decision.ends)
    sent: set[tuple[str | None, object]] = set()
    counts["REC"] = world.restores
    counts["ONCE"] = completed * len(world.tables)
    counts["ID"] = counts["LIVE"] = triggers
    for table in world.tables:
        has_inputs = bool(table.monitor.inputs)
        counts["CUT"] += sum(bool(events) for part in table.judged_parts() for events in part.sent)
        for cell, taken, step in table.steps():
            counts["NOLOSS"] += type(taken) is Event
            behind_a_barrier = has_inputs and table.infos[cell].newest > 0
            for verb, _, channel, subject in step.notes:
                is_data = type(subject) in (Event, Watermark)
                counts["WM"] += verb == "deliver" and type(subject) is Watermark
                counts["ID"] += verb == "block"
                counts["FWD"] += verb == "send" and is_data and behind_a_barrier
                counts["BOUND"] += verb in ("buffer", "capture")
                counts["buffered"] += verb == "buffer"
                counts["in flight"] += verb == "capture"
                counts["LIVE"] += verb == "end" and not table.monitor.outputs
                if verb == "send":
                    sent.add((channel, str(subject)))
    channels = [channel for channel, _ in sent]
    counts["BOUND"] += len(set(channels))
    counts["FIFO"] = sum(channels.count(channel) > 1 for channel in set(channels))
    return counts


def asked_for(bounds: Bounds) -> tuple[str, ...]:
    """Return the invariants that bounds sets something for, in the order of `PREMISES`."""
    topology = bounds.graph()
    asked = {"FIFO", "NOLOSS"} if bounds.events else set()
    if bounds.checkpoints:
        asked |= {"ID", "LIVE", "ONCE"}
        if bounds.events:
            asked.add("CUT")
        if bounds.events and any(topology.inputs(name) and topology.outputs(name) for name in topology.tasks):
            asked.add("FWD")
    if bounds.watermarks:
        asked.add("WM")
    if bounds.crashes:
        asked.add("REC")
    return tuple(name for name in PREMISES if name in asked)


def struck(bounds: Bounds, world: World) -> dict[str, int]:
    """Count, by fault that bounds has, the different places at which it could strike in what was explored."""
    places = {
        "abort": sum(bool(asked and decision.ends) for asked, decision in world.coordinator.decisions()),
        "timeout": sum(table.deadlines() for table in world.tables),
        "closed input": sum(table.ends_early() for table in world.tables),
        "crash": world.restores,
    }
    return {name: places[name] for name, has in FAULTS.items() if has(bounds)}
