"""Schemes of real engines behind the push interface, written from what is publicly known of them: a few lines each.

All of them leave what is behind a barrier in its channel; nothing is buffered, so that nothing is drained.
"""

from __future__ import annotations

from typing import Any

from barrierlab.impl import CancelBarrier, CheckpointBarrier, EndOfInput, Event, SnapshotFailedError, Watermark
from barrierlab.impl.messages import UNALIGNED_FLAG
from barrierlab.model.checkpoint.capabilities import Capabilities


class LeavesInChannel:
    """All inputs of a task; an input that waits is not read."""

    capabilities = Capabilities(timeout=False, leaves_in_channel=True)

    def __init__(self, port: Any, config: Any) -> None:
        self.port, self.inputs = port, range(config.num_inputs)
        self.waits = [False] * config.num_inputs
        self.ended = [False] * config.num_inputs
        self.current: CheckpointBarrier | None = None
        self.done = 0  # the highest id that is completed or aborted

    def can_take(self, input_id: int) -> bool:
        return not self.ended[input_id] and not self.waits[input_id]

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        if not self.can_take(input_id):
            return False
        if isinstance(message, Event | Watermark):
            self.port.deliver(input_id, message)
        elif isinstance(message, EndOfInput):
            self.ended[input_id] = True
            self.port.end_input(input_id)
            self.on_end()
        elif message.checkpoint_id <= self.done:
            self.port.ignore(input_id, message)
        elif isinstance(message, CancelBarrier):
            self.abort_checkpoint(message.checkpoint_id)
        else:
            self.on_barrier(input_id, message)
        return True

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier) -> None:
        if self.current is not None and barrier.checkpoint_id > self.current.checkpoint_id:
            self.abort_checkpoint(self.current.checkpoint_id)
        self.port.block(input_id, barrier.checkpoint_id)
        self.waits[input_id], self.current = True, self.current or barrier
        self.look()

    def on_end(self) -> None:
        self.look()

    def look(self) -> None:
        """Cut when every input that is open waits."""
        if self.current is not None and all(self.waits[i] or self.ended[i] for i in self.inputs):
            self.cut()

    def cut(self) -> None:
        barrier = self.current
        assert barrier is not None
        try:
            self.port.snapshot(barrier)
        except SnapshotFailedError as error:
            self.port.decline(barrier.checkpoint_id, error.reason)
            self.port.cancel(barrier.checkpoint_id)
        else:
            self.port.forward(barrier)
            self.port.complete(barrier)
        self.go_on(barrier.checkpoint_id)

    def go_on(self, checkpoint_id: int) -> None:
        self.port.resume(checkpoint_id if self.current is None else self.current.checkpoint_id)
        self.done, self.current = checkpoint_id, None
        self.waits = [False] * len(self.inputs)

    def abort_checkpoint(self, checkpoint_id: int) -> None:
        self.port.cancel(checkpoint_id)
        self.go_on(checkpoint_id)

    def abort(self, checkpoint_id: int, reason: Any, now_ns: int) -> None:
        is_older = self.current is not None and checkpoint_id < self.current.checkpoint_id
        if checkpoint_id > self.done and not is_older and not all(self.ended):
            self.abort_checkpoint(checkpoint_id)

    def _state(self) -> list[str]:
        return [name for name in vars(self) if name not in ("port", "inputs", "unaligned", "may_switch")]

    def capture(self) -> Any:
        fields = (getattr(self, name) for name in self._state())
        return tuple([tuple(each) if isinstance(each, list) else each for each in fields])

    def restore(self, value: Any) -> None:
        for name, each in zip(self._state(), value, strict=True):
            setattr(self, name, list(each) if isinstance(getattr(self, name), list) else each)


class Jet(LeavesInChannel):
    """Hazelcast Jet: the received barriers are compared with the inputs that are open, also after an end."""


class FlinkCount(LeavesInChannel):
    """Flink's aligned gate since FLINK-1775: barriers and ends are counted, and an end looks at the count, too."""

    def look(self) -> None:
        if self.current is not None and sum(self.waits) + sum(self.ended) == len(self.inputs):
            self.cut()


class EndForgets(LeavesInChannel):
    """As reported in FLINK-1775: nobody looks again when an input ends."""

    def on_end(self) -> None: ...


class OneSide(LeavesInChannel):
    """As reported in RisingWave #2243: the barrier goes on as soon as one side has it."""

    def look(self) -> None:
        if self.current is not None:
            self.cut()


class Tuples(LeavesInChannel):
    """Storm's checkpoint tuples (storm PR 984): nothing waits for them, which is enough for at least once alone."""

    def can_take(self, input_id: int) -> bool:
        return not self.ended[input_id]


class EpochMerge(LeavesInChannel):
    """RisingWave's merge: every input gives its barrier of the same epoch before any goes on."""

    def __init__(self, port: Any, config: Any) -> None:
        super().__init__(port, config)
        self.epochs = [0] * config.num_inputs

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier) -> None:
        self.epochs[input_id] = barrier.epoch
        super().on_barrier(input_id, barrier)

    def look(self) -> None:
        epochs = {epoch for epoch, is_over in zip(self.epochs, self.ended, strict=True) if not is_over}
        if self.current is not None and epochs <= {self.current.epoch}:
            self.cut()


class NoTombstone(LeavesInChannel):
    """As reviewed in SeaTunnel #11559: an abort clears the alignment, and remembers nothing."""

    def abort(self, checkpoint_id: int, reason: Any, now_ns: int) -> None:
        if self.current is not None and self.current.checkpoint_id <= checkpoint_id:
            done = self.done
            super().abort(checkpoint_id, reason, now_ns)
            self.done = done


class Stash(LeavesInChannel):
    """As reported in Hazelcast PR 22207: the last barrier waits in a stash, and its inputs wait no more."""

    capabilities = Capabilities(timeout=False)

    def __init__(self, port: Any, config: Any) -> None:
        super().__init__(port, config)
        self.is_stashed = False

    @property
    def can_drain(self) -> bool:
        return self.is_stashed

    def drain_next(self, now_ns: int) -> None:
        if self.is_stashed:
            self.is_stashed = False
            waits = self.waits
            super().cut()
            self.waits = waits

    def cut(self) -> None:
        self.is_stashed, self.waits = True, [False] * len(self.inputs)

    def go_on(self, checkpoint_id: int) -> None:
        self.is_stashed = False
        super().go_on(checkpoint_id)


class Alternating(LeavesInChannel):
    """Flink's alternating controller since FLINK-22638: after the switch, who delivered waits until all have."""

    capabilities = Capabilities(limits=False, leaves_in_channel=True, keeps_blocked_after_switch=True)

    def __init__(self, port: Any, config: Any, unaligned: Any, is_sink: bool) -> None:
        super().__init__(port, config)
        self.unaligned, self.may_switch = unaligned, unaligned is not None and unaligned.enabled and not is_sink
        self.is_unaligned = self.was_threshold_triggered = False
        self.triggers: tuple[tuple[int, int], ...] = ()

    # Time.

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        if checkpoint_id > self.done:
            self.triggers = tuple(sorted({*self.triggers, (checkpoint_id, triggered_ns)}))

    def _switches_ns(self, checkpoint_id: int) -> int:
        return dict(self.triggers).get(checkpoint_id, 0) + int(self.unaligned.alignment_timeout_threshold_ns)

    def next_deadline_ns(self) -> int | None:
        if self.current is None or self.is_unaligned or not self.may_switch:
            return None
        return self._switches_ns(self.current.checkpoint_id)

    def on_time(self, now_ns: int) -> None:
        deadline_ns = self.next_deadline_ns()
        if deadline_ns is not None and now_ns >= deadline_ns:
            self.was_threshold_triggered = True
            self._switch(None, ())

    # Barriers.

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        in_flight = self.is_unaligned and self.current is not None and not self.waits[input_id]
        if in_flight and self.can_take(input_id) and isinstance(message, Event):
            assert self.current is not None
            self.port.record(input_id, message, self.current.checkpoint_id)
        return super().offer(input_id, message, now_ns)

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, passed: tuple[Event, ...] = ()) -> None:
        if self.current is not None and barrier.checkpoint_id > self.current.checkpoint_id:
            self.abort_checkpoint(self.current.checkpoint_id)
        self.port.block(input_id, barrier.checkpoint_id)
        self.waits[input_id], self.current = True, self.current or barrier
        if self.is_unaligned:
            self._record(input_id, passed)
        elif self.may_switch and (passed or barrier.is_unaligned):
            self._switch(input_id, passed)
            return
        self.look()

    def _switch(self, input_id: int | None, passed: tuple[Event, ...]) -> None:
        """The barrier goes out, ahead of everything; the inputs that wait go on waiting."""
        barrier = self.current
        assert barrier is not None
        flags = barrier.flags | UNALIGNED_FLAG
        self.current = CheckpointBarrier(barrier.checkpoint_id, barrier.epoch, flags)
        self.is_unaligned = True
        self.port.snapshot(self.current)
        self.port.forward(self.current)
        if input_id is not None:
            self._record(input_id, passed)
        self.look()

    def _record(self, input_id: int, events: tuple[Event, ...]) -> None:
        assert self.current is not None
        for event in events:
            self.port.record(input_id, event, self.current.checkpoint_id)

    def cut(self) -> None:
        if not self.is_unaligned:
            super().cut()
            return
        assert self.current is not None
        self.port.complete(self.current)
        self.go_on(self.current.checkpoint_id)

    def go_on(self, checkpoint_id: int) -> None:
        super().go_on(checkpoint_id)
        self.is_unaligned = self.was_threshold_triggered = False
        self.triggers = tuple(each for each in self.triggers if each[0] > self.done)

    # Barriers ahead of their place.

    def wants_overtaking(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        if not self.may_switch or not self.can_take(input_id) or barrier.checkpoint_id <= self.done:
            return False
        is_current = self.current is not None and barrier.checkpoint_id == self.current.checkpoint_id
        is_late = barrier.checkpoint_id in dict(self.triggers) and now_ns >= self._switches_ns(barrier.checkpoint_id)
        return barrier.is_unaligned or is_late or (is_current and self.is_unaligned)

    def offer_overtaking(self, input_id: int, barrier: CheckpointBarrier, ahead: Any, now_ns: int) -> bool:
        if not self.may_switch or not self.can_take(input_id):
            return False
        barrier = CheckpointBarrier(barrier.checkpoint_id, barrier.epoch, barrier.flags | UNALIGNED_FLAG)
        self.on_barrier(input_id, barrier, tuple(each for each in ahead if isinstance(each, Event)))
        return True


class ObsoleteBarrier(Alternating):
    """As reported in FLINK-21104: the barrier of an older checkpoint ends what is recorded for the newer one."""

    def __init__(self, port: Any, config: Any, unaligned: Any, is_sink: bool) -> None:
        super().__init__(port, config, unaligned, is_sink)
        self.is_over = [False] * config.num_inputs

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        if not self.can_take(input_id):
            return False
        if isinstance(message, CheckpointBarrier) and self.current is not None:
            self.is_over[input_id] |= message.checkpoint_id < self.current.checkpoint_id
        if isinstance(message, Event) and self.is_over[input_id]:
            self.port.deliver(input_id, message)
            return True
        return super().offer(input_id, message, now_ns)

    def go_on(self, checkpoint_id: int) -> None:
        super().go_on(checkpoint_id)
        self.is_over = [False] * len(self.inputs)
