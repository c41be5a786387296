"""A recovery puts the barrier back behind what was in flight.

Source
    F-DCKP-006, "Recovery Procedure", step 4 (c): "The re-injected events are followed by the barrier". Entry U-13.
What goes wrong
    The cut has been made. A task that sees the barrier on the one input that had something in flight begins an
    alignment for the finished checkpoint, and blocks this input for barriers that do not come. (A task that remembers
    which ids it is done with, rule 6, would ignore it; one of the document remembers none.)
Repair
    No barrier is restored (protocol rule 22).
"""

from dataclasses import replace

from barrierlab.impl import Checkpoint, CheckpointBarrier, Restore, Wiring, plan
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


def with_the_barrier(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """Whatever had something in flight gets the barrier behind it."""
    sound = plan(checkpoint, wiring)
    barrier = CheckpointBarrier.new_unaligned(sound.checkpoint_id, sound.checkpoint_id)
    channels = {name: (*there, barrier) if there else () for name, there in sound.channels.items()}
    return replace(sound, channels=channels)


DEFECT = BarrierDefect(
    breaks="REC",
    bounds=Bounds("a->x x->s", mode="unaligned", events=1, crashes=1, checkpoints_again=0, guarantee="exactly_once"),
    components=Components(plan=with_the_barrier),
    title="a1 was in flight and is restored, and behind it the barrier of the checkpoint that was completed.",
)
