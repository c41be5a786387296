"""One answer says that an event is buffered, that an input waits from now on, and that a duplicate was dropped.

Source
    F-DCKP-002, `AlignmentAction::Buffered`: "The event has been buffered", and in `handle_barrier` "Signal that this
    input is now blocked", and what a second barrier gets. Entry A-19.
What goes wrong
    A caller that counts what is held by the answers, to stop reading in time, counts wrong.
Repair
    An answer for each: `BUFFERED`, `BLOCKED` and `IGNORED`.
"""

from barrierlab.impl import AlignerAction, AlignmentAction, BarrierAligner, CheckpointBarrier, Event, StreamMessage
from barrierlab.model.defects.kinds.witness import Witness


class HasOneWordForThree(BarrierAligner):
    """Whatever is not to be processed now is buffered."""

    def process_message(self, input_id: int, message: StreamMessage, now_ns: int = 0) -> AlignerAction:
        action = super().process_message(input_id, message, now_ns)
        nothing_to_do = action in (AlignmentAction.BLOCKED, AlignmentAction.IGNORED)
        return AlignmentAction.BUFFERED if nothing_to_do else action


def _run(aligner: BarrierAligner) -> tuple[str, ...]:
    barrier = CheckpointBarrier(1, 1)
    answers = [aligner.process_message(0, message).name for message in (barrier, Event("a", 1), barrier)]
    return (*answers, f"{answers.count('BUFFERED')} by the answers, {aligner.buffered_event_count()} buffered")


DEFECT = Witness(
    kind="value",
    broken=lambda: _run(HasOneWordForThree()),
    right=lambda: _run(BarrierAligner()),
    right_lines=("BLOCKED", "BUFFERED", "IGNORED", "1 by the answers, 1 buffered"),
)
