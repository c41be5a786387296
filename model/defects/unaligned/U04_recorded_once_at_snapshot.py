"""The channels are read once, at the snapshot; what comes between that and the barrier is not recorded.

Source
    F-DCKP-006, "Threshold-Based Switching", step 5 (c) reads the channels once, (f) goes on without blocking; the
    waiting state passes every event through. Entry U-04.
What goes wrong
    An event that comes ahead of its input's barrier, after the snapshot, is in no state and no record, and its source
    has passed it: after a recovery it is lost.
Repair
    Record every event until that input's barrier (Chandy and Lamport; protocol rule 16).
"""

from barrierlab.model.checkpoint.tables.actions import deliver
from barrierlab.model.checkpoint.tables.unaligned import UNALIGNED
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components, driven_by

DEFECT = BarrierDefect(
    breaks="CUT",
    bounds=Bounds("a->join b->join join->s", mode="unaligned", events=1),
    components=Components(gate=driven_by(UNALIGNED.changed("event in flight", then=(deliver,)))),
    title="b's barrier cuts join. Then a1 comes, and then a's barrier: a1 is in flight, and nobody has recorded it.",
)
