"""An alignment that ends well loses what it buffered.

Source
    F-DCKP-006, `handle_barrier`, "all inputs aligned normally": the state with its buffers is replaced by `Idle`, and
    the action that it answers carries an empty list. Entry U-09.
What goes wrong
    Events that waited behind a barrier are never processed, without any failure and without any switch. The run shows
    it where the next message of that input takes effect: another was next (FIFO).
Repair
    Forward, then release what was buffered, round robin (protocol rule 8).
"""

from __future__ import annotations

from dataclasses import replace

from barrierlab.impl import Event
from barrierlab.model.checkpoint.tables.actions import close, complete, forward, resume
from barrierlab.model.checkpoint.tables.aligned_with_timeout import ALIGNED_WITH_TIMEOUT
from barrierlab.model.checkpoint.tables.gate import GateState
from barrierlab.model.checkpoint.tables.stimuli import Effect, Stimulus
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components, driven_by


def drop_what_is_held(gate: GateState, stimulus: Stimulus) -> tuple[GateState, tuple[Effect, ...]]:
    """The buffers hold events, and nothing else."""
    buffered = tuple(tuple(each for each in queue if type(each) is not Event) for queue in gate.buffered)
    return replace(gate, buffered=buffered), ()


DEFECT = BarrierDefect(
    breaks="FIFO",
    bounds=Bounds("a->s b->s", mode="aligned_with_timeout", events=2),
    components=Components(
        gate=driven_by(
            ALIGNED_WITH_TIMEOUT.changed("aligned image", then=(forward, complete, drop_what_is_held, resume, close))
        )
    ),
    title="a1 waits behind a's barrier. b's barrier comes in time, and a1 is gone: a2 is taken next.",
)
