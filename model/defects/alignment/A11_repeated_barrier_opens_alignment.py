"""A barrier that comes once more when its checkpoint is complete opens an alignment for it.

Source
    F-DCKP-002, "Error Handling", `DuplicateBarrier`: "Same input delivers barrier twice for same checkpoint: ignore
    duplicate", which the bits do during an alignment, and nothing after it. Entry A-11.
What goes wrong
    The other inputs have delivered theirs and will not do so again: the input waits for ever.
Repair
    Remember the highest id that was completed or aborted; barriers up to it do nothing (protocol rule 6).
"""

from barrierlab.impl import BarrierAligner, CheckpointBarrier, Event
from barrierlab.model.defects.kinds.witness import Witness


class ForgetsWhatIsComplete(BarrierAligner):
    """Between checkpoints there is nothing to remember."""

    def terminate(self, checkpoint_id: int) -> None:
        super().terminate(checkpoint_id)
        self.last_terminated_id = 0


def _run(aligner: BarrierAligner) -> tuple[str, ...]:
    barrier = CheckpointBarrier(7, 1)
    lines = [aligner.process_message(input_id, barrier).name for input_id in (0, 1)]
    aligner.complete_alignment()
    lines.append(aligner.process_message(0, barrier).name)
    lines.append(aligner.process_message(0, Event("a", 1)).name)
    return tuple(lines)


DEFECT = Witness(
    kind="liveness",
    broken=lambda: _run(ForgetsWhatIsComplete()),
    right=lambda: _run(BarrierAligner()),
    right_lines=("BLOCKED", "TRIGGER_SNAPSHOT", "IGNORED", "PASS_THROUGH"),
)
