"""The injector of a source: the coordinator leaves a command, the source claims it and emits the barrier.

F-DCKP-001, sound by protocol rules 2 to 4. The cell between the two is a dict with at most one entry: ``pop`` and
``setdefault`` are one step each, so a command is claimed and cleared at once and none is lost between two steps
(defect P-01 of the document's load and store). One coordinator injects, from any thread; one source polls.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from barrierlab.impl.checks import check_flag, check_number
from barrierlab.impl.errors import CheckpointIdError, EpochError, RegressingIdError
from barrierlab.impl.messages import MAX_U64, UNALIGNED_FLAG, CheckpointBarrier

EPOCH_BITS = 48
MAX_EPOCH = (1 << EPOCH_BITS) - 1
_SLOT: Final = "pending"


@dataclass(frozen=True, slots=True)
class BarrierInjectorConfig:
    """The settings of an injector.

    Attributes
    ----------
    periodic_interval_ns : int or None
        How long after the last barrier to ask for the next checkpoint; None never asks.
    source_id : str
        Whose injector this is.

    Raises
    ------
    LimitError
        If the interval is less than 1 ns.
    """

    periodic_interval_ns: int | None = 10_000_000_000
    source_id: str = ""

    def __post_init__(self) -> None:
        check_number("periodic_interval_ns", self.periodic_interval_ns, 1, or_none="for never")


@dataclass(frozen=True, slots=True)
class InjectBarrierCommand:
    """The coordinator's command to emit a barrier with this id. `BarrierInjectorHandle.inject` checks it."""

    checkpoint_id: int
    epoch: int
    is_unaligned: bool = False


@dataclass(frozen=True, slots=True)
class PackedBarrierCmd:
    """A command in one 128-bit word: id 64 bits, epoch 48, unaligned 1, reserved 15 (F-DCKP-001, C8)."""

    EMPTY: ClassVar[PackedBarrierCmd]
    word: int

    @classmethod
    def new(cls, checkpoint_id: int, epoch: int, is_unaligned: bool = False) -> PackedBarrierCmd:
        """Pack a command; a field that does not fit is refused, never truncated (protocol rule 2).

        Raises
        ------
        CheckpointIdError
            If the id is 0 or does not fit 64 bits.
        EpochError
            If the epoch does not fit 48 bits.
        LimitError
            If the flag is none.
        """
        if type(checkpoint_id) is not int or not 1 <= checkpoint_id <= MAX_U64:
            raise CheckpointIdError(checkpoint_id)
        if type(epoch) is not int or not 0 <= epoch <= MAX_EPOCH:
            raise EpochError(epoch, f"0 to {MAX_EPOCH} ({EPOCH_BITS} bits)")
        check_flag("is_unaligned", is_unaligned)
        return cls(checkpoint_id << 64 | epoch << 16 | is_unaligned << 15)

    @property
    def checkpoint_id(self) -> int:
        """Bits 127 to 64."""
        return self.word >> 64

    @property
    def epoch(self) -> int:
        """Bits 63 to 16."""
        return (self.word >> 16) & MAX_EPOCH

    @property
    def is_unaligned(self) -> bool:
        """Bit 15."""
        return bool((self.word >> 15) & 1)

    @property
    def is_empty(self) -> bool:
        """Return whether there is no command: id 0 (protocol rule 2)."""
        return not self.word >> 64


PackedBarrierCmd.EMPTY = PackedBarrierCmd(0)


class InjectStatus(Enum):
    """The outcome of a command."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class InjectOutcome:
    """The outcome of a command, and the ids that it replaced unclaimed: the coordinator aborts those (rule 3)."""

    ACCEPTED: ClassVar[InjectOutcome]
    DUPLICATE: ClassVar[InjectOutcome]
    status: InjectStatus
    replaced: tuple[int, ...] = ()


InjectOutcome.ACCEPTED = InjectOutcome(InjectStatus.ACCEPTED)
InjectOutcome.DUPLICATE = InjectOutcome(InjectStatus.DUPLICATE)


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """A periodic injector asks the coordinator for a checkpoint; the id will be the coordinator's (rule 2)."""

    source_id: str
    requested_ns: int


class CommandCell:
    """The state that injector and handles share: the pending command, and the newest one ever accepted."""

    __slots__ = ("newest", "pending")

    def __init__(self) -> None:
        self.pending: dict[str, PackedBarrierCmd] = {}
        self.newest = PackedBarrierCmd.EMPTY


class BarrierInjectorHandle:
    """The coordinator's end of an injector."""

    __slots__ = ("cell",)

    def __init__(self, cell: CommandCell) -> None:
        self.cell = cell

    def inject(self, cmd: InjectBarrierCommand) -> InjectOutcome:
        """Leave a command for the source to claim.

        Returns
        -------
        InjectOutcome
            DUPLICATE if this very command was accepted before (nothing changes); REPLACED, with the id, if a
            command nobody had claimed gave way; else ACCEPTED.

        Raises
        ------
        CheckpointIdError, EpochError
            If id or epoch is out of range, or the epoch does not increase with the id. Nothing changes.
        RegressingIdError
            If a newer id was accepted before. Nothing changes.
        """
        packed = PackedBarrierCmd.new(cmd.checkpoint_id, cmd.epoch, cmd.is_unaligned)
        newest = self.cell.newest
        if packed == newest:
            return InjectOutcome.DUPLICATE
        if packed.checkpoint_id < newest.checkpoint_id:
            raise RegressingIdError(packed.checkpoint_id, newest.checkpoint_id)
        if not newest.is_empty and packed.epoch <= newest.epoch:
            raise EpochError(packed.epoch, f"more than {newest.epoch}, and a new id with it")
        if packed.checkpoint_id == newest.checkpoint_id:
            raise RegressingIdError(packed.checkpoint_id, newest.checkpoint_id)
        self.cell.newest = packed
        replaced = self.cell.pending.pop(_SLOT, None)
        self.cell.pending[_SLOT] = packed
        if replaced is None:
            return InjectOutcome.ACCEPTED
        return InjectOutcome(InjectStatus.REPLACED, (replaced.checkpoint_id,))


class CheckpointBarrierInjector:
    """The source's end: claims commands, and in periodic mode asks for checkpoints.

    Parameters
    ----------
    config : BarrierInjectorConfig
    now_ns : int
        When the first interval begins.
    """

    __slots__ = ("_since_ns", "barriers_injected", "cell", "config")

    def __init__(self, config: BarrierInjectorConfig | None = None, now_ns: int = 0) -> None:
        self.config = config or BarrierInjectorConfig()
        self.barriers_injected = 0
        self.cell = CommandCell()
        self._since_ns = now_ns

    def coordinator_handle(self) -> BarrierInjectorHandle:
        """Return a handle for the coordinator; all handles share one cell."""
        return BarrierInjectorHandle(self.cell)

    def poll_barrier(self, now_ns: int) -> CheckpointBarrier | None:
        """Return the barrier to emit now, if a command is pending. An idle source polls too (protocol rule 4)."""
        if not self.cell.pending:
            return None
        cmd = self.cell.pending.pop(_SLOT, None)
        if cmd is None:
            return None
        self.barriers_injected += 1
        self._since_ns = now_ns
        return CheckpointBarrier(cmd.checkpoint_id, cmd.epoch, UNALIGNED_FLAG if cmd.is_unaligned else 0)

    def due_request(self, now_ns: int) -> CheckpointRequest | None:
        """Return a request for a checkpoint, once an interval; an emitted barrier restarts the interval."""
        deadline_ns = self.next_deadline_ns()
        if deadline_ns is None or now_ns < deadline_ns:
            return None
        self._since_ns = now_ns
        return CheckpointRequest(self.config.source_id, now_ns)

    def next_deadline_ns(self) -> int | None:
        """Return when `due_request` next returns a request; None if never."""
        interval_ns = self.config.periodic_interval_ns
        return None if interval_ns is None else self._since_ns + interval_ns

    def capture(self) -> tuple[int, ...]:
        """Return the state for `restore`."""
        pending = self.cell.pending.get(_SLOT, PackedBarrierCmd.EMPTY)
        return pending.word, self.cell.newest.word, self._since_ns, self.barriers_injected

    def restore(self, value: tuple[int, ...]) -> None:
        """Restore what `capture` returned."""
        pending, newest, self._since_ns, self.barriers_injected = value
        self.cell.pending.clear()
        if pending:
            self.cell.pending[_SLOT] = PackedBarrierCmd(pending)
        self.cell.newest = PackedBarrierCmd(newest)
