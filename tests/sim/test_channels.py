"""Both forms of the timed channel: in order, nothing lost, every buffer and credit accounted for."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barrierlab.impl import CheckpointBarrier, EndOfInput, Event, Watermark
from barrierlab.sim.channels.input_gate import Inbox
from barrierlab.sim.channels.network import BufferPool, NetworkChannel, ReceiverPool
from barrierlab.sim.channels.spsc import SpscChannel


class Clock:
    """Time in the test's hands."""

    def __init__(self) -> None:
        self.now = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, delay_ns: int, action: Callable[[], None]) -> None:
        """As the engine's: equal times in the order in which they were asked for."""
        assert delay_ns >= 0
        self._count += 1
        heapq.heappush(self._due, (self.now + delay_ns, self._count, action))

    def advance(self, by_ns: int) -> None:
        """Go on, and do what falls due."""
        until = self.now + by_ns
        while self._due and self._due[0][0] <= until:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = until

    def rest(self) -> None:
        """Go on until nothing is due."""
        while self._due:
            self.advance(self._due[0][0] - self.now)


def event(sequence: int, size: int = 100) -> Event:
    """The event of that number."""
    return Event("a", sequence, size_bytes=size)


# The documents' queue.


def test_a_full_queue_takes_nothing() -> None:
    """A bounded queue would grow, and there would be no backpressure."""
    clock = Clock()
    channel = SpscChannel(2, clock)
    told: list[str] = []
    channel.on_arrival, channel.on_room = lambda: told.append("arrival"), lambda: told.append("room")
    for sequence in (1, 2):
        assert channel.accepts(event(sequence))
        channel.push(event(sequence))
    assert not channel.accepts(event(3))
    assert channel.open() == [event(1)]
    assert channel.accepts(event(3))
    assert told == ["arrival", "arrival", "room"]


def test_what_is_on_its_way_counts() -> None:
    """A slow link would hold any number of messages, so that the capacity says nothing."""
    clock = Clock()
    channel = SpscChannel(2, clock, lambda: 10)
    channel.push(event(1))
    channel.push(event(2))
    assert not channel.accepts(event(3))
    assert not channel.readable()
    clock.advance(9)
    assert not channel.readable()
    clock.advance(1)
    assert channel.readable()
    assert (channel.queued, channel.accepts(event(3))) == (2, False)


@pytest.mark.parametrize("latencies", [[9, 1, 5, 0, 7], [0, 0, 3, 2, 1], [5] * 5])
def test_latencies_of_all_lengths_keep_the_order(latencies: list[int]) -> None:
    """A message with a short latency would pass one with a long: the barrier an event, for one."""
    for channel, open_all in (_spsc(latencies), _network(latencies)):
        for sequence in range(5):
            channel.push(event(sequence))
            channel.flush()
        channel_clock.rest()
        assert [message.sequence for message in open_all()] == list(range(5))


channel_clock = Clock()


def _spsc(latencies: list[int]) -> Any:
    channel = SpscChannel(10, channel_clock, iter(latencies).__next__)
    return channel, lambda: [message for _ in range(5) for message in channel.open()]


def _network(latencies: list[int]) -> Any:
    draws = deque(latencies * 20)
    channel = NetworkChannel(
        BufferPool(20), 1000, 20, channel_clock, ReceiverPool(20), exclusive=20, latency=draws.popleft
    )
    return channel, lambda: _read(channel)


def _read(channel: NetworkChannel) -> list[Any]:
    """All that may be read now."""
    messages = []
    while channel.readable():
        messages += channel.open()
        channel.close()
    return messages


# The network form, by hand.


def network(
    pool: int = 4,
    segment: int = 300,
    most: int = 10,
    floating: int = 0,
    exclusive: int = 2,
    local: bool = False,
    overdraft: int = 0,
    **own: Any,
) -> tuple[NetworkChannel, BufferPool, Clock]:
    """One channel with its pool, on a link that takes no time unless `own` says otherwise."""
    clock, buffers = Clock(), BufferPool(pool, overdraft)
    gate = None if local else ReceiverPool(floating)
    return NetworkChannel(buffers, segment, most, clock, gate, exclusive, **own), buffers, clock


def test_a_partial_buffer_waits_for_the_flush() -> None:
    """Records would arrive one by one: below saturation, checkpoints would be faster than Flink's."""
    for local in (False, True):
        channel, _, _ = network(local=local)
        channel.push(event(1))
        assert not channel.readable()
        channel.flush()
        assert _read(channel) == [event(1)]
        channel.push(event(2))  # into the same buffer
        assert not channel.readable()
        channel.flush()
        assert _read(channel) == [event(2)]


def test_a_full_buffer_waits_for_the_next_or_the_flush() -> None:
    """A buffer would leave when its last record is written, which Flink notices only with the next one."""
    channel, _, _ = network()
    for sequence in (1, 2, 3):
        channel.push(event(sequence))
    assert not channel.readable() or _read(channel) == []
    channel.push(event(4))
    assert _read(channel) == [event(1), event(2), event(3)]


def test_a_barrier_takes_along_what_is_before_it() -> None:
    """A barrier would wait for the flush timer, or overtake the records of a partial buffer."""
    for local in (False, True):
        channel, _, _ = network(local=local)
        channel.push(event(1))
        channel.push(CheckpointBarrier(1, 1))
        assert channel.open() == [event(1)]
        channel.close()
        assert channel.open() == [CheckpointBarrier(1, 1)]


@pytest.mark.parametrize("local", [False, True])
def test_a_barrier_that_overtakes_ends_the_buffer_as_well(local: bool) -> None:
    """Messages behind it would wait for the flush timer, and buffers would not restart from the initial state at every
    barrier."""
    channel, _, _ = network(local=local)
    channel.push(event(1))
    passed = channel.overtake(CheckpointBarrier.new_unaligned(1, 1))
    barrier, at_receiver = channel.take_overtaking([])
    assert barrier.is_unaligned
    if local:
        assert (passed, at_receiver) == ([], [event(1)])
    else:
        assert passed == [event(1)]
    assert channel.open() == [event(1)]
    channel.close()
    for sequence in (2, 3, 4):
        channel.push(event(sequence))
    channel.flush()
    assert channel.open() == [event(2), event(3), event(4)]  # a whole buffer


@pytest.mark.parametrize("local", [False, True])
def test_a_late_barrier_leaves_the_buffer_behind_it_alone(local: bool) -> None:
    """A barrier that turns to overtaking has ended its buffer already; what came since would leave in bits."""
    channel, _, _ = network(local=local, exclusive=1)
    channel.push(event(1))
    if not local:
        channel.flush()  # takes the only credit
    channel.push(event(2))
    channel.push(CheckpointBarrier(1, 1))
    channel.push(event(3))
    assert channel.prioritise_barrier(CheckpointBarrier.new_unaligned(1, 1)) == ([] if local else [event(2)])
    channel.push(event(4))
    assert _read(channel)[-1] == event(2)
    channel.flush()
    assert channel.open() == [event(3), event(4)]


def test_a_barrier_needs_neither_buffer_nor_credit() -> None:
    """A barrier would be stuck behind missing credit although nothing is ahead of it."""
    channel, pool, _ = network(pool=2, exclusive=2)
    for sequence in range(6):
        channel.push(event(sequence))
    channel.push(CheckpointBarrier(1, 1))
    assert _read(channel)[:3] == [event(0), event(1), event(2)]
    channel, pool, _ = network(pool=1)
    assert channel.accepts(CheckpointBarrier(1, 1))
    pool.free = 0
    assert channel.accepts(CheckpointBarrier(1, 1))
    assert not channel.accepts(event(1))


def test_without_credit_buffers_stay_at_the_sender() -> None:
    """The receiver would be flooded beyond its buffers."""
    channel, pool, _ = network(pool=5, exclusive=2)
    for sequence in range(12):
        channel.push(event(sequence))
    assert (channel.credit, pool.free) == (0, 3)  # two are at the receiver, two here
    channel.open()
    assert channel.credit == 0
    channel.close()  # read to its end: its buffer is free, and the next one comes
    assert pool.free == 4


def test_a_pool_without_buffers_holds_the_sender() -> None:
    """A sender would never be back-pressured."""
    channel, pool, _ = network(pool=1, exclusive=1)
    for sequence in range(3):
        channel.push(event(sequence))
    assert not channel.accepts(event(3))
    channel.flush()  # it is sent, and the buffer is free again
    assert (pool.free, channel.accepts(event(3))) == (1, True)


def test_a_channel_may_not_hold_more_than_its_share() -> None:
    """One slow channel would take the whole pool from its neighbours at once."""
    channel, pool, _ = network(pool=10, most=2, exclusive=1)
    sequence = 0
    while pool.available():
        channel.push(event(sequence))
        sequence += 1
    assert pool.size - pool.free == 2


def test_a_step_that_has_begun_overdraws_its_pool() -> None:
    """A step of several records would be held back with the first of them sent (FLINK-26762)."""
    channel, pool, _ = network(pool=3, most=2, exclusive=1, overdraft=2)
    sequence = 0
    while channel.accepts(event(sequence, 300)):
        channel.push(event(sequence, 300))
        sequence += 1
    assert (sequence, pool.free, pool.available()) == (1 + 3 + 2, -2, False)  # one buffer is at the receiver
    while not pool.available():
        channel.open()
        channel.close()
        sequence -= 1
    assert (sequence, pool.free) == (2, 2)  # what was overdrawn is given back first, and what the channel has too many


@pytest.mark.parametrize("local", [False, True])
def test_it_stops_behind_a_barrier_and_goes_on(local: bool) -> None:
    """While a channel waits for the others' barriers, its records would go on to the receiver."""
    channel, _, clock = network(local=local, stops_behind_barriers=True, latency=None if local else lambda: 5)
    channel.push(event(1))
    channel.push(CheckpointBarrier(1, 1))
    channel.push(event(2))
    channel.push(CheckpointBarrier(2, 2))
    clock.rest()
    assert _read(channel) == [event(1), CheckpointBarrier(1, 1)]
    channel.flush()
    clock.rest()
    assert not channel.readable()
    channel.resume()
    assert channel.readable() == local
    clock.rest()
    assert _read(channel) == [event(2), CheckpointBarrier(2, 2)]


def test_a_link_has_a_speed() -> None:
    """Transfer would cost nothing, however many bytes."""
    channel, _, clock = network(ns_per_byte=2.0, latency=lambda: 50)
    channel.push(event(1))
    channel.push(EndOfInput())
    clock.advance(249)
    assert not channel.readable()
    clock.advance(1)  # 100 bytes at 2 ns, and the way
    assert channel.readable()
    clock.rest()
    assert _read(channel) == [event(1), EndOfInput()]


def test_a_barrier_takes_longer_than_a_buffer() -> None:
    """Buffers would be as slow as checkpoints are: receivers would wait for them, and their queues never be full."""
    channel, _, clock = network(latency=lambda: 10, barrier_latency=lambda _: 40)
    channel.push(event(1))
    channel.push(CheckpointBarrier(1, 1))
    channel.push(event(2))
    channel.flush()
    clock.advance(10)
    assert _read(channel) == [event(1)]
    clock.advance(39)
    assert not channel.readable()
    clock.advance(1)
    assert _read(channel) == [CheckpointBarrier(1, 1), event(2)]  # in order: nothing passes a barrier on its way


def test_a_barrier_that_overtakes_takes_its_time_too() -> None:
    """Unaligned barriers would reach the next task at once, and pass more there than they do."""
    channel, _, clock = network(latency=lambda: 10, barrier_latency=lambda barrier: 40 if barrier.is_unaligned else 20)
    told: list[int] = []
    channel.on_overtaking = lambda: told.append(clock.now)
    channel.push(event(1))
    assert channel.overtake(CheckpointBarrier.new_unaligned(1, 1)) == [event(1)]
    clock.rest()
    assert told == [50]


# The network form, by chance.


class Exchange(RuleBasedStateMachine):
    """Two channels of one sender's pool into one gate: any writes, reads, flushes and waits."""

    local = spans = False

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.pool, self.gate = BufferPool(6, overdraft=2), ReceiverPool(2)
        self.rooms = 0
        self.pool.on_room = self._room
        latencies = deque([3, 0, 7, 1, 5, 2] * 4000)
        self.channels = [
            NetworkChannel(
                self.pool,
                300,
                4,
                self.clock,
                None if self.local else self.gate,
                exclusive=2,
                latency=None if self.local else latencies.popleft,
                ns_per_byte=0.0 if self.local else 0.01,
                stops_behind_barriers=True,
                spans=self.spans,
            )
            for _ in range(2)
        ]
        self.sent: list[list[Any]] = [[], []]
        self.read: list[list[Any]] = [[], []]
        self.opened: list[deque[Any] | None] = [None, None]
        self.resumed = [0, 0]  # how much had been read when it was resumed last
        self.count = 0

    def _room(self) -> None:
        self.rooms += 1

    def _push(self, which: int, message: Any) -> None:
        if self.pool.unwritten is None and self.channels[which].accepts(message):
            self.channels[which].push(message)
            self.sent[which].append(message)

    @rule(which=st.integers(0, 1), size=st.sampled_from([1, 90, 150, 299, 300]))
    def write(self, which: int, size: int) -> None:
        self.count += 1
        self._push(which, event(self.count, size))

    @rule(which=st.integers(0, 1), kind=st.sampled_from([Watermark, lambda n: CheckpointBarrier(n, n)]))
    def write_control(self, which: int, kind: Callable[[int], Any]) -> None:
        self.count += 1
        self._push(which, kind(self.count))

    @rule()
    def flush(self) -> None:
        for channel in self.channels:
            channel.flush()

    @rule(by_ns=st.integers(0, 20))
    def wait(self, by_ns: int) -> None:
        self.clock.advance(by_ns)

    @precondition(lambda self: any(c.readable() for c in self.channels) or any(self.opened))
    @rule(which=st.integers(0, 1), many=st.booleans())
    def take(self, which: int, many: bool) -> None:
        """One message, or all of a buffer; the buffer is closed when the last one has been taken."""
        channel = self.channels[which]
        if self.opened[which] is None:
            if not channel.readable():
                return
            self.opened[which] = deque(channel.open())
        chunk = self.opened[which]
        assert chunk is not None
        assert chunk or self.spans
        while chunk:
            self.read[which].append(chunk.popleft())
            if not many:
                break
        if not chunk:
            self.opened[which] = None
            channel.close()

    @rule(which=st.integers(0, 1))
    def resume(self, which: int) -> None:
        """The receiver resumes once behind each barrier that it has read."""
        read = self.read[which]
        if read and type(read[-1]) is CheckpointBarrier and len(read) > self.resumed[which]:
            self.resumed[which] = len(read)
            self.channels[which].resume()

    @invariant()
    def nothing_is_lost_or_reordered(self) -> None:
        for sent, read in zip(self.sent, self.read, strict=True):
            assert read == sent[: len(read)]

    @invariant()
    def the_pool_is_conserved(self) -> None:
        used = [channel._used for channel in self.channels]
        assert -2 <= self.pool.free == self.pool.size - sum(used)
        assert all(each >= 0 for each in used)
        assert self.pool.at_most == sum(each >= 4 for each in used)

    @invariant()
    def credits_are_never_more_than_receiver_buffers(self) -> None:
        if self.local:
            return
        lent = 0
        for channel in self.channels:
            holders = [holder for _, holder, *_ in channel._received]
            taken = sum(holder != 0 for holder in holders) + (channel._opened in (1, 2))
            floating = holders.count(2) + (channel._opened == 2)
            lent += floating + channel._free_floating
            assert 0 <= channel._free_exclusive <= channel.exclusive
            assert channel._free_floating >= 0
            assert channel._free_exclusive + holders.count(1) + (channel._opened == 1) == 2
            # what the sender may send, plus what is on its way or here, is what the receiver has room for
            assert 0 <= channel.credit <= channel._free_exclusive + channel._free_floating
            assert taken <= 2 + 2
        assert self.gate.floating + lent == 2

    def teardown(self) -> None:
        """Read on, and everything arrives, and every buffer comes back."""
        for _ in range(3 * len(self.sent[0] + self.sent[1]) + 10):
            if self.pool.unwritten is not None:
                self.pool.unwritten.write_on()
            self.flush()
            self.clock.rest()
            for which in (0, 1):
                self.resume(which)
                while self.opened[which] is not None or self.channels[which].readable():
                    self.take(which, True)
                    self.resume(which)
        self.clock.rest()
        assert self.read == self.sent
        for channel in self.channels:
            if channel._tail() is None:
                assert channel._used == 0
        self.the_pool_is_conserved()
        self.credits_are_never_more_than_receiver_buffers()


class LocalExchange(Exchange):
    """The same within one process: read from the sender's buffers directly."""

    local = True


class SpanningExchange(Exchange):
    """Records go on in the next buffer, whose size the gate may change; one may be larger than the whole pool."""

    spans = True

    @rule(which=st.integers(0, 1), size=st.sampled_from([301, 700, 5000]))
    def write_large(self, which: int, size: int) -> None:
        self.write(which, size)

    @rule()
    def write_on(self) -> None:
        if self.pool.unwritten is not None:
            self.pool.unwritten.write_on()

    @rule(which=st.integers(0, 1), size=st.integers(1, 300))
    def resize(self, which: int, size: int) -> None:
        self.channels[which].resize(size)

    @invariant()
    def a_buffer_holds_no_more_than_a_segment(self) -> None:
        for channel in self.channels:
            assert all(buffer.size <= 300 for buffer in channel._subpartition)


class LocalSpanningExchange(SpanningExchange):
    """The same within one process."""

    local = True


TestRemoteExchange, TestLocalExchange = Exchange.TestCase, LocalExchange.TestCase
TestSpanningExchange, TestLocalSpanningExchange = SpanningExchange.TestCase, LocalSpanningExchange.TestCase
for _case in (TestRemoteExchange, TestLocalExchange, TestSpanningExchange, TestLocalSpanningExchange):
    _case.settings = settings(max_examples=40, stateful_step_count=50, deadline=None)


# The gates of a task.


class Buffers:
    """A channel of so many buffers that wait, each of one message: the channel's number."""

    def __init__(self, number: int) -> None:
        self.number, self.waiting, self.opened_bytes, self.goes_on = number, 0, 0, False

    def readable(self) -> bool:
        return self.waiting > 0

    def open(self) -> list[int]:
        self.waiting -= 1
        return [self.number]

    def close(self) -> None:
        pass


def test_gates_in_line_are_served_in_the_order_in_which_they_got_data() -> None:
    """The gate that has waited longest would not be next; or one that got data twice would be served twice."""
    channels: Any = [Buffers(number) for number in range(3)]
    inbox = Inbox([[0], [1], [2]], channels, by_message=False, in_line=True)
    for index, buffers in ((2, 2), (0, 1), (1, 1)):
        for _ in range(buffers):
            channels[index].waiting += 1
            inbox.notify(index)
    taken = [inbox.take() for _ in range(5)]
    assert [None if each is None else each[0] for each in taken] == [2, 0, 1, 2, None]


def spanning(local: bool) -> NetworkChannel:
    """A channel with two records of 200 in two buffers of 300: behind the first one begins the second."""
    channel, _, _ = network(local=local, exclusive=1, spans=True)
    channel.push(event(1, 200))
    channel.push(event(2, 200))
    channel.flush()
    return channel


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(
    ("gates", "by_message", "in_line"),
    [([[0]], False, False), ([[0], [1]], False, False), ([[0], [1]], False, True), ([[0], [1]], True, False)],
    ids=["alone", "in turn", "in line", "by message"],
)
def test_a_buffer_in_which_a_record_begins_is_free_when_that_is_asked_for(
    local: bool, gates: list[list[int]], by_message: bool, in_line: bool
) -> None:
    """Ahead of a task at work would be a buffer more than there is: queues of large records would be too long."""
    channels = [spanning(local), spanning(local)][: len(gates)]
    first = channels[0]
    inbox = Inbox(gates, [*channels], by_message, in_line)
    first.on_arrival = lambda: inbox.notify(0)
    inbox.notify(0)
    assert inbox.take() == (0, event(1, 200))
    assert first._opened
    assert inbox.take() == (0, event(2, 200))  # a remote one comes when the first one's buffer is free
    assert not first._opened
    assert inbox.take() is None


@pytest.mark.parametrize("in_line", [False, True])
def test_a_union_reads_a_buffer_to_its_end_before_it_reads_one_of_another_gate(in_line: bool) -> None:
    """A gate would hold a buffer as long as others are read."""
    channels = [spanning(True), spanning(True)]
    inbox = Inbox([[0], [1]], [*channels], by_message=False, in_line=in_line)
    inbox.notify(0)
    inbox.notify(1)
    taken = [inbox.take(), inbox.take()]
    assert {each for each in taken if each} == {(0, event(1, 200)), (1, event(1, 200))}
    held = [index for index in (0, 1) if channels[index]._opened]
    assert [(index, event(1, 200)) for index in held] == taken[1:]
