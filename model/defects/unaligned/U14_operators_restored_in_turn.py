"""Channels are restored operator by operator, in the order of the flow.

Source
    F-DCKP-006, "Recovery Procedure", steps 3 to 5, are about one operator; nothing says that all channels are restored
    before any operator goes on. Entry U-14.
What goes wrong
    What a task gives off when it is restored - here what was on its way out, in the document what it makes of its own
    records as soon as it goes on - enters the channel before what the next task had recorded there, which is older.
Repair
    All states and channels are restored, receivers' records before senders', before anything runs (protocol rule 22).
"""

from dataclasses import replace

from barrierlab.impl import Checkpoint, Restore, StreamMessage, Wiring, plan
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


def one_by_one(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """Of each channel, what its sender had recorded, and then what its receiver had, which comes later in the flow."""
    outputs_only = tuple(replace(each, inputs=()) for each in checkpoint.snapshots)
    inputs_only = tuple(replace(each, outputs=()) for each in checkpoint.snapshots)
    first = plan(replace(checkpoint, snapshots=outputs_only), wiring).channels
    then = plan(replace(checkpoint, snapshots=inputs_only), wiring)
    channels: dict[str, tuple[StreamMessage, ...]] = {name: first[name] + then.channels[name] for name in first}
    return replace(then, channels=channels)


DEFECT = BarrierDefect(
    breaks="REC",
    bounds=Bounds(
        "a->x x->s",
        mode="unaligned",
        events=2,
        capacity=1,
        crashes=1,
        checkpoints_again=0,
        guarantee="exactly_once",
    ),
    components=Components(plan=one_by_one),
    title="a1 was in flight in a->x, as x recorded, and a2 behind it, as a did. a2 is restored first.",
)
