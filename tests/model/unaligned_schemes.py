"""Aligners that go unaligned, of many kinds, sound and broken, put together from decisions as in `tests.model.schemes`.

None inherits anything of `impl`: they stand in for its gate as any external class does
(`model.checkpoint.external.parts_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import GatePort
from barrierlab.impl.messages import (
    UNALIGNED_FLAG,
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
)
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.capabilities import Capabilities


@dataclass(frozen=True)
class Scheme:
    """The decisions of an aligner that goes unaligned; as they are by default, it is sound.

    Attributes
    ----------
    keeps : str
        Of the inputs that have delivered: a ``"set"``; or a ``"count"``, with the last id of each input beside it.
    overtakes : bool
        Whether a barrier ever goes ahead of its place.
    waits_on : bool
        Whether an input that has delivered waits until all have, also when recording has begun.
    records : str
        ``"all"`` that is in flight; nothing of the ``"first only"``, that is of no input but the first; nothing that is
        ``"not passed"`` by a barrier, that is what comes before it in its turn; nothing ``"passed"``; what comes
        ``"behind"`` the barrier as well; or each event ``"twice"``.
    drops : bool
        Whether a checkpoint that is aborted ends the recording.
    remembers : bool
        Whether an id that is aborted is done with.
    forwards : str
        ``"at once"`` when it goes unaligned, or ``"late"``: when its part is complete.
    converts : str
        ``"once"``; or ``"twice"``: every further barrier, and the deadline, make the snapshot again.
    looks_at_ends : bool
        Whether an end may complete a part.
    declines : bool
        Whether a deadline that passes is reported.
    """

    keeps: str = "set"
    overtakes: bool = True
    waits_on: bool = False
    records: str = "all"
    drops: bool = True
    remembers: bool = True
    forwards: str = "at once"
    converts: str = "once"
    looks_at_ends: bool = True
    declines: bool = True


CHOICES: dict[str, tuple[object, ...]] = {
    "keeps": ("set", "count"),
    "overtakes": (True, False),
    "waits_on": (False, True),
    "records": ("all", "first only", "not passed", "passed", "behind", "twice"),
    "drops": (True, False),
    "remembers": (True, False),
    "forwards": ("at once", "late"),
    "converts": ("once", "twice"),
    "looks_at_ends": (True, False),
    "declines": (True, False),
}
"""The choices of each decision, the sound one first."""


def class_of(scheme: Scheme) -> type:
    """The aligner that decides so."""
    declared = Capabilities(limits=False, leaves_in_channel=True, keeps_blocked_after_switch=scheme.waits_on)
    return type("Composed", (_Composed,), {"scheme": scheme, "capabilities": declared})


class _Composed:
    """Leaves in its channel what waits, so that nothing is ever buffered."""

    scheme: Scheme
    _LISTS = ("waits", "ended", "last")
    _KEPT = (*_LISTS, "count", "current", "done", "is_unaligned", "was_threshold_triggered", "triggers")

    def __init__(self, port: GatePort, config: BarrierAlignerConfig, unaligned: Any, is_sink: bool) -> None:
        self.port, self.config, self.unaligned = port, config, unaligned
        self.may_switch = unaligned is not None and unaligned.enabled and not is_sink
        n = config.num_inputs
        self.waits, self.ended = [False] * n, [False] * n
        self.last = [0] * n  # the last id that each input has delivered
        self.count = 0  # of barriers of the current checkpoint
        self.current: CheckpointBarrier | None = None
        self.done = 0
        self.is_unaligned = self.was_threshold_triggered = False
        self.triggers: tuple[tuple[int, int], ...] = ()

    def capture(self) -> Any:
        values = ((name, getattr(self, name)) for name in self._KEPT)
        return tuple(tuple(value) if name in self._LISTS else value for name, value in values)

    def restore(self, value: Any) -> None:
        for name, each in zip(self._KEPT, value, strict=True):
            setattr(self, name, list(each) if name in self._LISTS else each)

    # Reading.

    def can_take(self, i: int) -> bool:
        return not self.ended[i] and not self.waits[i]

    def offer(self, i: int, message: StreamMessage, now_ns: int) -> bool:
        if not self.can_take(i) or self._is_for_later(i, message):
            return False
        if isinstance(message, Event):
            self._record(i, (message,), is_passed=False)
            self.port.deliver(i, message)
        elif isinstance(message, Watermark):
            self.port.deliver(i, message)
        elif isinstance(message, EndOfInput):
            self.ended[i] = True
            self.port.end_input(i)
            if self.scheme.looks_at_ends:
                self._look()
        elif message.checkpoint_id <= self.done:
            self.port.ignore(i, message)
        elif isinstance(message, CancelBarrier):
            self._abort(message.checkpoint_id)
        else:
            self._barrier(i, message, None)
        return True

    def _is_for_later(self, i: int, message: StreamMessage) -> bool:
        """A barrier of a newer checkpoint waits behind the end of the part, on an input that has delivered."""
        is_news = isinstance(message, CheckpointBarrier | CancelBarrier)
        return self._has_delivered(i) and is_news and message.checkpoint_id > self.last[i]

    def _has_delivered(self, i: int) -> bool:
        return self.current is not None and self.last[i] == self.current.checkpoint_id

    def _are_all_in(self) -> bool:
        if self.scheme.keeps == "count":
            over = sum(is_over and not self._has_delivered(i) for i, is_over in enumerate(self.ended))
            return self.count + over == len(self.ended)
        return all(is_over or self._has_delivered(i) for i, is_over in enumerate(self.ended))

    # Barriers.

    def _barrier(self, i: int, barrier: CheckpointBarrier, passed: tuple[Event, ...] | None) -> None:
        if self.current is not None and barrier.checkpoint_id > self.current.checkpoint_id:
            self.port.decline(self.current.checkpoint_id, Reason.SUBSUMED)
            self._abort(self.current.checkpoint_id)
        self.current = self.current or barrier
        self.port.block(i, barrier.checkpoint_id)
        self.last[i], self.waits[i] = barrier.checkpoint_id, True
        self.count += 1
        asks = self.may_switch and (passed is not None or barrier.is_unaligned)
        if not self.is_unaligned and not asks:
            self._look()
            return
        if not self.is_unaligned or self.scheme.converts == "twice":
            self._convert()
        self._record(i, passed or (), is_passed=True)
        self._go_on()

    def _convert(self) -> None:
        """Go unaligned: the image, and the barrier ahead of everything."""
        assert self.current is not None
        n, epoch, flags = self.current.checkpoint_id, self.current.epoch, self.current.flags
        self.current, self.is_unaligned = CheckpointBarrier(n, epoch, flags | UNALIGNED_FLAG), True
        self.port.snapshot(self.current)
        if self.scheme.forwards == "at once":
            self.port.forward(self.current)

    def _record(self, i: int, events: Sequence[Event], is_passed: bool) -> None:
        how = self.scheme.records
        if not self.is_unaligned or (how == "first only" and i) or how == ("passed" if is_passed else "not passed"):
            return
        if not is_passed and self._has_delivered(i) and how != "behind":
            return
        assert self.current is not None
        for event in events:
            for _ in range(2 if how == "twice" else 1):
                self.port.record(i, event, self.current.checkpoint_id)

    def _look(self) -> None:
        """Return whether an end, or a barrier in its turn, has completed the part."""
        if self.current is None or not self._are_all_in() or (not self.is_unaligned and all(self.ended)):
            return
        if self.is_unaligned:
            self._go_on()
            return
        self.port.snapshot(self.current)
        self.port.forward(self.current)
        self.port.complete(self.current)
        self._end(self.current.checkpoint_id)

    def _go_on(self) -> None:
        """Unaligned: nobody waits any more, and the part is complete if all are in."""
        assert self.current is not None
        if self._are_all_in():
            if self.scheme.forwards == "late":
                self.port.forward(self.current)
            self.port.complete(self.current)
            self._end(self.current.checkpoint_id)
        elif not self.scheme.waits_on:
            self.waits = [False] * len(self.waits)
            self.port.resume(self.current.checkpoint_id)

    def _end(self, n: int) -> None:
        self.port.resume(n)
        self.done, self.current, self.count = n, None, 0
        self.waits = [False] * len(self.waits)
        self.is_unaligned = self.was_threshold_triggered = False
        self.triggers = tuple(each for each in self.triggers if each[0] > n)

    def _abort(self, n: int) -> None:
        done, was_recording = self.done, self.is_unaligned
        self.port.cancel(n)
        if was_recording and not self.scheme.drops:
            return
        self._end(n)
        if not self.scheme.remembers:
            self.done = done

    def abort(self, checkpoint_id: int, reason: Any, now_ns: int) -> None:
        is_older = self.current is not None and checkpoint_id < self.current.checkpoint_id
        if checkpoint_id > self.done and not is_older and not all(self.ended):
            self._abort(checkpoint_id)

    # Time.

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        if checkpoint_id > self.done:
            self.triggers = tuple(sorted({*self.triggers, (checkpoint_id, triggered_ns)}))

    def _switches_ns(self, checkpoint_id: int) -> int:
        return dict(self.triggers).get(checkpoint_id, 0) + int(self.unaligned.alignment_timeout_threshold_ns)

    def _may_convert(self) -> bool:
        is_first = not self.is_unaligned or self.scheme.converts == "twice"
        return self.may_switch and self.scheme.overtakes and self.current is not None and is_first

    def next_deadline_ns(self) -> int | None:
        if self.current is None:
            return None
        n = self.current.checkpoint_id
        expires_ns = dict(self.triggers).get(n, 0) + self.config.alignment_timeout_ns
        return min(expires_ns, self._switches_ns(n)) if self._may_convert() else expires_ns

    def on_time(self, now_ns: int) -> None:
        if self.current is None:
            return
        n = self.current.checkpoint_id
        if now_ns >= dict(self.triggers).get(n, 0) + self.config.alignment_timeout_ns:
            if self.scheme.declines:
                self.port.decline(n, Reason.EXPIRED)
            self._abort(n)
        elif self._may_convert() and now_ns >= self._switches_ns(n):
            self.was_threshold_triggered = True
            self._convert()
            self._go_on()

    # Barriers ahead of their place.

    def wants_overtaking(self, i: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        n = barrier.checkpoint_id
        if not (self.may_switch and self.scheme.overtakes and self.can_take(i)) or n <= self.done:
            return False
        if self._has_delivered(i) or (self.current is not None and n < self.current.checkpoint_id):
            return False
        is_late = n in dict(self.triggers) and now_ns >= self._switches_ns(n)
        return barrier.is_unaligned or is_late or (self.is_unaligned and self.current is not None)

    def offer_overtaking(self, i: int, barrier: CheckpointBarrier, ahead: Sequence[StreamMessage], now_ns: int) -> bool:
        if not (self.may_switch and self.scheme.overtakes and self.can_take(i)) or self._has_delivered(i):
            return False
        if barrier.checkpoint_id <= self.done:
            self.port.ignore(i, barrier)
            return True
        flagged = CheckpointBarrier(barrier.checkpoint_id, barrier.epoch, barrier.flags | UNALIGNED_FLAG)
        self._barrier(i, flagged, tuple(each for each in ahead if isinstance(each, Event)))
        return True
