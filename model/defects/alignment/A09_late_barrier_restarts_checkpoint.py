"""A barrier of a checkpoint that was aborted begins it again.

Source
    F-DCKP-002, "Timeout Handling": "Aligner discards alignment state and drains buffers as normal events", and
    remembers nothing of it. Entry A-09.
What goes wrong
    The barrier that was waited for comes after all, and blocks its input for a checkpoint of which the other barriers
    have gone by. (With A-01 the next one counts for it, and every later checkpoint bears a wrong number.)
Repair
    Remember the highest id that was completed or aborted; barriers up to it do nothing (protocol rule 6).
"""

from barrierlab.impl import BarrierAligner
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class ForgetsWhatItGaveUp(BarrierAligner):
    """Aborted is as if it had never been."""

    def terminate(self, checkpoint_id: int) -> None:
        completed, last_terminated_id = self.triggered, self.last_terminated_id
        super().terminate(checkpoint_id)
        if not completed:
            self.last_terminated_id = last_terminated_id


DEFECT = BarrierDefect(
    breaks="LIVE",
    bounds=Bounds("a->join b->join", events=0, expiries=1),
    components=with_aligner(ForgetsWhatItGaveUp),
    title="b's barrier is too late, and join aborts checkpoint 1. Then it comes, and b waits for a's, which is gone.",
)
