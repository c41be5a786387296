"""The aligner that never blocks: it counts the barriers of a checkpoint, and what comes meanwhile takes effect at once.

Invariant: a snapshot holds all that came before the barriers; it may buffer what came after one, too.

Flink's ``AT_LEAST_ONCE`` mode (`CheckpointBarrierTracker`), sound by protocol rules 6 and 8 to 13. An input that has
delivered its barrier is read on, so that no event waits for a slow input. The price is an orphan: an event behind a
barrier may be in the image of the state, and is sent again after a restore. So each record counts at least once.

An end of input behind a barrier is all that waits: a task that has ended could send no barrier any more. Unlike in
Flink, which counts up to 50 checkpoints side by side, a newer barrier ends the count of an older one (rule 6).
"""

from __future__ import annotations

from typing import ClassVar

from barrierlab.impl.checkpoint.alignment import AlignerAction, AlignmentAction, BarrierAligner
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, StreamMessage


class BarrierTracker(BarrierAligner):
    """Counts the barriers of one task's inputs; has the interface of `BarrierAligner`.

    Examples
    --------
    >>> from barrierlab.impl import Event
    >>> tracker = BarrierTracker()
    >>> tracker.process_message(0, CheckpointBarrier(1, 1)).name
    'BLOCKED'
    >>> tracker.process_message(0, Event("a", 1)).name
    'PASS_THROUGH'
    >>> tracker.process_message(1, CheckpointBarrier(1, 1)).name
    'TRIGGER_SNAPSHOT'
    >>> tracker.complete_alignment()
    """

    __slots__ = ()

    blocks: ClassVar[bool] = False

    def process_message(self, input_id: int, message: StreamMessage, now_ns: int = 0) -> AlignerAction:
        """As `BarrierAligner.process_message`; the end of an input that has delivered its barrier is buffered."""
        if type(message) is not EndOfInput or input_id not in self.inputs.blocked:
            return super().process_message(input_id, message, now_ns)
        action = self.buffer(input_id, message, now_ns)
        if action is AlignmentAction.BUFFERED:
            self.free.discard(input_id)
        return action

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignerAction:
        """Handle a barrier (protocol rule 6); the input stays unblocked, so a second barrier of one checkpoint comes
        here too.
        """
        current = self.barrier
        if current is not None and input_id in self.inputs.blocked and barrier.checkpoint_id <= current.checkpoint_id:
            return self.repeated(barrier, current)
        action = super().on_barrier(input_id, barrier, now_ns)
        self.free.add(input_id)
        return action

    def is_blocked(self, input_id: int) -> bool:
        """Return whether the end of this input waits.

        Raises
        ------
        InputIndexError
            If there is no such input.
        """
        return super().is_blocked(input_id) and bool(self.inputs.queues[input_id])
