"""The inputs of a join: what each owes to an output, how far its stream has come, and when it is stale.

An input knows its rule and answers for itself: whether it has what it owes, whether it is stale, what an attempt is to
read of it. `SequenceInput`, `TimestampInput` and `LatestInput` differ in these answers; a barrier differs in what it
makes of a map, and in what it observes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from barrierlab.impl.join.merge_map import MAX_U64, NULL_U64, TimestampSource, check_range

UNOBSERVED = -(2**66)
"""Minus infinity: less than anything that can be required."""
NEVER = 2**80
"""Plus infinity: more than any output, and longer than any time."""
_NO_OUTPUT = -1


class Read(NamedTuple):
    """One read of an attempt at one input: the newest valid frame from `first` to `last`, both included.

    Attributes
    ----------
    stream_id, epoch : int
    source : TimestampSource or None
        By which timestamps; None is by sequence number.
    first, last : int
        Sequence numbers, or nanoseconds.
    """

    stream_id: int
    epoch: int
    source: TimestampSource | None
    first: int
    last: int


class JoinInput:
    """One rule of the map, and the progress of its stream.

    Attributes
    ----------
    stream_id : int
    source : TimestampSource or None
    aim, slack : int
        The rule as numbers: an output calls for `output + aim`, and `slack` less than that is enough.
    below : int
        How far down from `output` a window reaches; -1 where the rule is no window.
    shift, first_output, most_output : int
        It is ready from `output + shift` on, but only for outputs from the first to the most.
    timeout_ns : int
        It is stale when nothing of it came for longer.
    epoch : int or None
        Of the input stream; None until it is known.
    observed, processed, reached : int
        The cursors; `reached` is what gates: the observed one, or the lesser of both. A rejected input has observed
        plus infinity and reached minus infinity.
    fresh_ns : int
        When the last frame that counted was observed; at first when the map was applied.
    failed_tick : int
        The output for which the newest frame could not be read.
    """

    __slots__ = (
        "aim",
        "below",
        "epoch",
        "failed_tick",
        "first_output",
        "fresh_ns",
        "most_output",
        "observed",
        "processed",
        "reached",
        "shift",
        "slack",
        "source",
        "stream_id",
        "timeout_ns",
    )

    def __init__(
        self,
        stream_id: int,
        source: TimestampSource | None,
        now_ns: int,
        timeout_ns: int | None,
        aim: int = 0,
        slack: int = 0,
        below: int = -1,
        first_output: int = 0,
    ) -> None:
        self.stream_id = stream_id
        self.source = source
        self.timeout_ns = NEVER if timeout_ns is None else timeout_ns
        self.aim = aim
        self.slack = slack
        self.below = below
        self.first_output = first_output
        self.most_output = MAX_U64 - max(0, aim)
        self.shift = aim - slack
        self.epoch: int | None = None
        self.fresh_ns = now_ns
        self.forget()

    def forget(self) -> None:
        """Forget what was observed."""
        self.observed = self.processed = self.reached = UNOBSERVED
        self.failed_tick = _NO_OUTPUT

    def has(self, out: int, now_ns: int) -> bool:
        """Return whether it has what it owes to `out` (sections 7.1 and 8.1)."""
        return self.first_output <= out <= self.most_output and self.reached >= out + self.shift

    def is_stale(self, now_ns: int) -> bool:
        """Return whether the last frame is older than the timeout, not just as old (section 7.4). A clock that went
        back counts as no time.
        """
        return now_ns - self.fresh_ns > self.timeout_ns

    def read_for(self, out: int) -> Read:
        """Return where an attempt at `out` looks."""
        raise NotImplementedError

    @property
    def rule(self) -> tuple[int, int, int, int, int]:
        """Return what never changes, as `__init__` takes it behind the time."""
        return self.timeout_ns, self.aim, self.slack, self.below, self.first_output

    def capture(self) -> Hashable:
        """Return the state for `restore`, without the rule."""
        return self.epoch, self.observed, self.processed, self.reached, self.fresh_ns, self.failed_tick

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self.epoch, self.observed, self.processed, self.reached, self.fresh_ns, self.failed_tick = value  # type: ignore[misc]


class SequenceInput(JoinInput):
    """An input by number: exactly the frame that the rule names, or those of the window that ends there."""

    __slots__ = ()

    def read_for(self, out: int) -> Read:
        """Return where an attempt at `out` looks."""
        assert self.epoch is not None
        last = out + self.aim
        return Read(self.stream_id, self.epoch, None, last - max(0, self.below), last)


class TimestampInput(JoinInput):
    """An input by time: a window as it is; with an offset, the newest frame that is not newer than required."""

    __slots__ = ()

    def read_for(self, out: int) -> Read:
        """Return where an attempt at `out` looks."""
        assert self.epoch is not None
        first = out - self.below if self.below >= 0 else 0
        return Read(self.stream_id, self.epoch, self.source, first, out + self.aim)


class LatestInput(JoinInput):
    """An input of which the newest frame is taken, unless it is stale or could not be read."""

    __slots__ = ()

    def has(self, out: int, now_ns: int) -> bool:
        """Return whether there is a frame that this tick can have (section 9.1)."""
        return self.reached >= 0 and self.failed_tick != out and not self.is_stale(now_ns)

    def read_for(self, out: int) -> Read:
        """Return where an attempt looks: at the newest."""
        assert self.epoch is not None
        return Read(self.stream_id, self.epoch, self.source, self.observed, self.observed)


class JoinInputs:
    """The inputs of the map in force, in the order of its rules, and each stream's.

    Attributes
    ----------
    all : tuple of JoinInput
    of_stream : dict of int to tuple of JoinInput
    by_number, by_frame, by_slot : dict of int to JoinInput
        By stream, the input that goes by sequence numbers, or by times of the one or the other source.
    """

    __slots__ = ("all", "by_frame", "by_number", "by_slot", "of_stream")

    def __init__(self) -> None:
        self.use(())

    def use(self, inputs: Iterable[JoinInput]) -> None:
        """Take these in place of those before."""
        self.all = tuple(inputs)
        self.of_stream: dict[int, tuple[JoinInput, ...]] = {}
        for each in self.all:
            self.of_stream[each.stream_id] = (*self.of_stream.get(each.stream_id, ()), each)
        self.by_number = self._by(None)
        self.by_frame = self._by(TimestampSource.FRAME_DESCRIPTOR)
        self.by_slot = self._by(TimestampSource.SLOT_HEADER)

    def __iter__(self) -> Iterator[JoinInput]:
        return iter(self.all)

    def enter_epoch(self, stream_id: int, epoch: int) -> bool:
        """Enter the epoch of a frame that is not the known one; return False if it is an older one (rule 31)."""
        check_range("epoch", epoch, 0, NULL_U64 - 1)
        inputs = self.of_stream[stream_id]
        known = inputs[0].epoch
        if known is not None and epoch < known:
            return False
        for each in inputs:
            each.epoch = epoch
            each.forget()
        return True

    def epoch_of(self, stream_id: int) -> int | None:
        """Return the epoch that an input is in; None if nothing of it is known, or it is no input."""
        inputs = self.of_stream.get(stream_id)
        return inputs[0].epoch if inputs else None

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return tuple((type(each), each.stream_id, each.source, each.rule, each.capture()) for each in self.all)

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self.use(kind(stream, source, 0, *rule) for kind, stream, source, rule, _ in value)  # type: ignore[attr-defined]
        for each, (*_, state) in zip(self.all, value, strict=True):  # type: ignore[call-overload]
            each.restore(state)

    def _by(self, source: TimestampSource | None) -> dict[int, JoinInput]:
        return {each.stream_id: each for each in self.all if each.source is source}
