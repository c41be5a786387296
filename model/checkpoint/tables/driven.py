"""A table in the place of `impl.checkpoint.gate.Gate`: the same calls, the same port, the same capture and restore.

So a task runs by a table, and by a changed row of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import cast

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import Gate as Implementation
from barrierlab.impl.checkpoint.gate import GatePort
from barrierlab.impl.checkpoint.recorder import InFlightChannelData, channel_data
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.errors import SnapshotFailedError
from barrierlab.impl.messages import CheckpointBarrier, Event, StreamMessage
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.tables.stimuli import (
    Abort,
    Arrival,
    ClockReading,
    DrainOne,
    Effect,
    Failed,
    Forwarded,
    OutputPassed,
    Overtaking,
    SnapshotComplete,
    Stimulus,
    Taken,
    TriggerNoted,
)
from barrierlab.model.explore.table import Table


def driven_by(
    table: Table[GateState, Stimulus], blocks: bool = True
) -> Callable[[GatePort, BarrierAlignerConfig, UnalignedCheckpointConfig | None, bool], Implementation]:
    """Return a function that makes the gate of a task, which is its port, such that `table` says what it does.

    An input `blocks` behind its barrier. It is no `impl.checkpoint.gate.Gate`, but has all that a task and a driver ask
    of one.
    """

    def make(
        port: GatePort, config: BarrierAlignerConfig, unaligned: UnalignedCheckpointConfig | None, is_sink: bool
    ) -> Implementation:
        return cast(Implementation, TableGate(table, port, config, unaligned, is_sink, blocks))

    return make


class TableGate:
    """A gate that looks everything up in a table.

    Parameters
    ----------
    table : Table
    port : GatePort
    config : BarrierAlignerConfig
    unaligned : UnalignedCheckpointConfig, optional
        None for a gate that only aligns.
    is_sink : bool
        A sink always aligns.
    blocks : bool
        Whether an input waits behind its barrier.

    Attributes
    ----------
    value : GateState
        The gate as it is.
    unaligned : InHand or None
        What a task asks of an `UnalignedCheckpointer`.
    aligner : TableGate
        What is asked of an aligner is asked here.
    """

    __slots__ = ("_took", "config", "port", "unaligned", "value")

    def __init__(
        self,
        table: Table[GateState, Stimulus],
        port: GatePort,
        config: BarrierAlignerConfig,
        unaligned: UnalignedCheckpointConfig | None = None,
        is_sink: bool = False,
        blocks: bool = True,
    ) -> None:
        self.value = GateState.new(table, GateRules.of(config, unaligned, is_sink, blocks))
        self.port = port
        self.config = config
        self.unaligned = None if unaligned is None else InHand(self)
        self._took = True

    @property
    def aligner(self) -> TableGate:
        """This gate."""
        return self

    @property
    def last_terminated_id(self) -> int:
        """The last checkpoint that was completed or aborted here."""
        return self.value.last_terminated_id

    # What happens.

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        """`impl.checkpoint.gate.Gate.offer`."""
        return self._tell(Arrival(input_id, message, now_ns))

    def offer_overtaking(
        self, input_id: int, barrier: CheckpointBarrier, ahead: Sequence[StreamMessage], now_ns: int
    ) -> bool:
        """`impl.checkpoint.gate.Gate.offer_overtaking`."""
        return self._tell(Overtaking(input_id, barrier, tuple(ahead), now_ns))

    def note_output(self, size_bytes: int) -> None:
        """`impl.checkpoint.gate.Gate.note_output`."""
        self._tell(OutputPassed(size_bytes))

    def drain_next(self, now_ns: int) -> bool:
        """`impl.checkpoint.gate.Gate.drain_next`."""
        some = self.can_drain
        self._tell(DrainOne(now_ns))
        return some

    def drain_all(self, now_ns: int) -> int:
        """`impl.checkpoint.gate.Gate.drain_all`."""
        count = 0
        while self.drain_next(now_ns):
            count += 1
        return count

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> bool:
        """`impl.checkpoint.gate.Gate.abort`."""
        before = self.value.last_terminated_id
        self._tell(Abort(checkpoint_id))
        return self.value.last_terminated_id != before

    def on_time(self, now_ns: int) -> bool:
        """`impl.checkpoint.gate.Gate.on_time`."""
        before = self.value
        self._tell(ClockReading(now_ns))
        return self.value != before

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        """`impl.checkpoint.gate.Gate.note_trigger`."""
        self._tell(TriggerNoted(checkpoint_id, triggered_ns))

    def recover(self, last_terminated_id: int, ended: Iterable[int]) -> None:
        """Go on, as a new gate, from a cut: barriers up to `last_terminated_id` are stale, and these inputs have
        ended."""
        self.value = replace(self.value, last_terminated_id=last_terminated_id, ended=frozenset(ended))

    # What is asked.

    @property
    def can_drain(self) -> bool:
        """`impl.checkpoint.gate.Gate.can_drain`."""
        return bool(self.value.line)

    @property
    def may_overtake(self) -> bool:
        """`impl.checkpoint.gate.Gate.may_overtake`."""
        return self.value.rules.may_overtake

    @property
    def barrier(self) -> CheckpointBarrier | None:
        """The checkpoint under way."""
        return self.value.pending

    def is_aligning(self) -> bool:
        """Return whether a checkpoint is under way."""
        return self.value.pending is not None

    def wants_overtaking(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        """`impl.checkpoint.gate.Gate.wants_overtaking`."""
        return self.value.wants_overtaking(input_id, barrier, now_ns)

    def next_deadline_ns(self) -> int | None:
        """`impl.checkpoint.gate.Gate.next_deadline_ns`."""
        return self.value.next_deadline_ns()

    def can_take(self, input_id: int) -> bool:
        """`impl.checkpoint.gate.Gate.can_take`."""
        return self.value.can_take(input_id)

    def is_blocked(self, input_id: int) -> bool:
        """`impl.checkpoint.gate.Gate.is_blocked`."""
        return self.value.is_blocked(input_id)

    def capture(self) -> Hashable:
        """The value."""
        return self.value

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        assert isinstance(value, GateState)
        self.value = value

    # How it is carried out.

    def _tell(self, stimulus: Stimulus) -> bool:
        """Step, and carry the effects out; return whether an offered message was taken."""
        self._took = True
        self._step(stimulus)
        return self._took

    def _step(self, stimulus: Stimulus) -> None:
        self.value, effects = self.value.step(stimulus)
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        port, (verb, input_id, subject) = self.port, effect
        match verb, subject:
            case "snapshot", CheckpointBarrier():
                self._take_image(subject)
            case "complete", SnapshotComplete():
                if self.unaligned is not None:
                    self.unaligned.part = subject
                port.complete(subject.barrier)
                if self.unaligned is not None:
                    self.unaligned.part = None
            case "refuse", _:
                self._took = False
            case "end", _:
                port.end_input(input_id)
            case "record", (int(checkpoint_id), Event() as event):
                port.record(input_id, event, checkpoint_id)
            case "decline", (int(checkpoint_id), Reason() as reason):
                port.decline(checkpoint_id, reason)
            case (("forward" | "cancel" | "resume"), _):
                getattr(port, verb)(subject)
            case _:
                getattr(port, verb)(input_id, subject)

    def _take_image(self, barrier: CheckpointBarrier) -> None:
        """Take the port's answer as the next thing that happens; so is that an unaligned barrier is gone."""
        try:
            self.port.snapshot(barrier)
        except SnapshotFailedError as error:
            self._step(Failed(error.reason))
            return
        self._step(Taken())
        if self.value.taking:
            self._step(Forwarded())


class InHand:
    """The answers to a task about the part that it completes, or that is under way."""

    __slots__ = ("gate", "part")

    def __init__(self, gate: TableGate) -> None:
        self.gate = gate
        self.part: SnapshotComplete | None = None

    @property
    def is_unaligned(self) -> bool:
        """Return whether it is unaligned."""
        return self.gate.value.unaligned if self.part is None else self.part.is_unaligned

    @property
    def was_threshold_triggered(self) -> bool:
        """Return whether it began aligned."""
        return self.gate.value.switched if self.part is None else self.part.was_threshold_triggered

    def inflight_data(self) -> tuple[InFlightChannelData, ...]:
        """Return what is recorded for it."""
        record = self.gate.value.record if self.part is None else self.part.record
        return channel_data(dict(enumerate(record)), self.gate.value.rules.size_of)
