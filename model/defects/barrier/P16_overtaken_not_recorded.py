"""A barrier overtakes what is queued, and nobody records that.

Source
    F-DCKP-006, "Summary": barriers overtake in-flight data, and what is captured are the buffers of "channels that have
    not yet delivered their barrier". The channel in which this one goes ahead has delivered. Entry P-16; the other
    reading is `P16_flagged_barrier_waits`.
What goes wrong
    What was overtaken was sent before the cut and takes effect behind it: it is in no snapshot, and after a restore
    nobody makes it again.
Repair
    What a barrier passes is recorded where it passes it (protocol rule 16).
"""

from barrierlab.impl import Event, UnalignedCheckpointer
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class PassesUnrecorded(UnalignedCheckpointer):
    """The barrier goes ahead, and that is all."""

    def take_overtaken(self) -> tuple[int, list[Event]]:
        super().take_overtaken()
        return -1, []


DEFECT = BarrierDefect(
    kind="contradiction",
    breaks="CUT",
    bounds=Bounds("a->x x->s", mode="unaligned", events=1),
    components=with_aligner(PassesUnrecorded),
    title="The barrier goes ahead of a1 in the channel to x. Neither x's state nor what is in flight has a1.",
)
