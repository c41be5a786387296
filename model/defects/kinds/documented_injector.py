"""The injector of F-DCKP-001 to the letter, for the entries about it: one word, loaded, cleared and stored.

It takes whatever it is given: nothing is compared with what came before, and what does not fit is cut off. In periodic
mode it has a counter of its own. That load and store are two steps does not show here: see entry P-01.
"""

from __future__ import annotations

from barrierlab.impl.checkpoint.injector import (
    BarrierInjectorConfig,
    BarrierInjectorHandle,
    CheckpointBarrierInjector,
    InjectBarrierCommand,
    InjectOutcome,
    PackedBarrierCmd,
)
from barrierlab.impl.messages import UNALIGNED_FLAG, CheckpointBarrier

EPOCH_MASK = 0xFFFF_FFFF_FFFF


class DocumentedInjector(CheckpointBarrierInjector):
    """``CheckpointBarrierInjector`` of the document."""

    def __init__(self, config: BarrierInjectorConfig | None = None, now_ns: int = 0) -> None:
        super().__init__(config, now_ns)
        self.next_checkpoint_id = 1
        self.current_epoch = 0
        self.last_injection_ns = now_ns
        self.word = 0

    def coordinator_handle(self) -> BarrierInjectorHandle:
        return DocumentedHandle(self)

    def poll_barrier(self, now_ns: int) -> CheckpointBarrier | None:
        polled = self.polled(now_ns)
        return None if polled is None else CheckpointBarrier(*polled)

    def polled(self, now_ns: int) -> tuple[int, int, int] | None:
        """Id, epoch and flags of the barrier that is due, in range or not."""
        packed = PackedBarrierCmd(self.word)
        if packed.word:
            self.word = 0
            self.current_epoch = packed.epoch
            self.last_injection_ns = now_ns
            return packed.checkpoint_id, packed.epoch, UNALIGNED_FLAG if packed.is_unaligned else 0
        interval_ns = self.config.periodic_interval_ns
        if interval_ns is not None and now_ns - self.last_injection_ns >= interval_ns:
            checkpoint_id = self.next_checkpoint_id
            self.next_checkpoint_id += 1
            self.current_epoch += 1
            self.last_injection_ns = now_ns
            return checkpoint_id, self.current_epoch, 0
        return None


class DocumentedHandle(BarrierInjectorHandle):
    """``BarrierInjectorHandle`` of the document: the latest wins."""

    def __init__(self, injector: DocumentedInjector) -> None:
        super().__init__(injector.cell)
        self.injector = injector

    def inject(self, cmd: InjectBarrierCommand) -> InjectOutcome:
        self.injector.word = cmd.checkpoint_id << 64 | (cmd.epoch & EPOCH_MASK) << 16 | cmd.is_unaligned << 15
        return InjectOutcome.ACCEPTED
