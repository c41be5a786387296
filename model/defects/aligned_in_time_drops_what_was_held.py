"""An alignment that ends well loses what it held.

Source
    F-DCKP-006, `handle_barrier`, "all inputs aligned normally": the state with its buffers is replaced by `Idle`, and
    the action that it answers carries an empty list. Entry U-09.
What goes wrong
    Events that waited behind a barrier are never processed, without any failure and without any switch. The run shows
    it where the next message of that input takes effect: another was next (FIFO).
Repair
    Forward, then release what was held, round robin (protocol rule 8).
"""

from __future__ import annotations

from dataclasses import replace

from barrierlab.impl.messages import Event
from barrierlab.model.checkpoint.components import Parts
from barrierlab.model.checkpoint.scope import Setup
from barrierlab.model.checkpoint.tables.actions import close, complete, forward, resume
from barrierlab.model.checkpoint.tables.driven import driven_by
from barrierlab.model.checkpoint.tables.fallback import FALLBACK
from barrierlab.model.checkpoint.tables.gate import Gate
from barrierlab.model.checkpoint.tables.stimuli import Effect, Stimulus
from barrierlab.model.defects.barrier_kind import BarrierDefect


def drop_what_is_held(gate: Gate, stimulus: Stimulus) -> tuple[Gate, tuple[Effect, ...]]:
    """The buffers hold events, and nothing else."""
    held = tuple(tuple(each for each in queue if type(each) is not Event) for queue in gate.held)
    return replace(gate, held=held), ()


DEFECT = BarrierDefect(
    entry="U-09",
    kind="safety",
    breaks="FIFO",
    setup=Setup("a->s b->s", mode="fallback", events=2),
    parts=Parts(
        gate=driven_by(FALLBACK.changed("aligned image", then=(forward, complete, drop_what_is_held, resume, close)))
    ),
    title="a1 waits behind a's barrier. b's barrier comes in time, and a1 is gone: a2 is taken next.",
)
