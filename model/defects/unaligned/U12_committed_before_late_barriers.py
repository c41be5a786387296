"""A checkpoint is committed while barriers of it are missing.

Source
    F-DCKP-006, "Error Handling", `LateBarrierTimeout`: if late barriers never come, "checkpoint already committed";
    flow, step 5 (g): "just consume them (snapshot already taken)". Entry U-12.
What goes wrong
    What is in flight ahead of a late barrier is not recorded yet when the checkpoint is complete: it is lost in a
    recovery.
Repair
    The part is complete, and acknowledged, when the last barrier is in; a timeout or a cancel aborts it (protocol
    rule 17).
"""

from barrierlab.model.checkpoint.tables.actions import complete, resume, start_recording, tell_what_was_passed
from barrierlab.model.checkpoint.tables.unaligned import UNALIGNED
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components, driven_by

DEFECT = BarrierDefect(
    breaks="CUT",
    bounds=Bounds("a->join b->join join->s", mode="unaligned", events=1),
    components=Components(
        gate=driven_by(
            UNALIGNED.changed("barrier gone", then=(tell_what_was_passed, start_recording, complete, resume))
        )
    ),
    title="join acknowledges at its snapshot. Checkpoint 1 is complete while a1 is on its way, ahead of a's barrier.",
)
