"""Any schedule on one to five inputs, with barriers that overtake, timers and aborts: state and record are the cut."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl import CheckpointBarrier, Event, Gate, Reason, StreamMessage, Watermark
from tests.breadth import examples
from tests.impl.support import END, barrier, cancel, flagged, unaligned

THRESHOLD_NS, TIMEOUT_NS = 5, 12


class Job(NamedTuple):
    """The messages of each channel, the order of what is done, and the settings of the task."""

    channels: list[list[StreamMessage]]
    moves: list[tuple[str, int, int]]
    settings: dict
    limits: dict
    is_sink: bool


@st.composite
def jobs(draw) -> Job:
    """Ids increase on each channel, some barriers flagged; events are numbered; nothing follows an end."""
    channels = []
    for name in "abcde"[: draw(st.integers(1, 5))]:
        messages: list[StreamMessage] = []
        newest, count = 0, 0
        for kind in draw(st.lists(st.sampled_from("eeeebbbfffwx"), max_size=12)):
            if kind == "e":
                count += 1
                messages.append(Event(name, count))
            elif kind == "w":
                messages.append(Watermark(count))
            elif kind == "x":
                messages.append(cancel(newest + 1))
                newest += 1
            else:
                newest += draw(st.sampled_from([1, 1, 1, 2]))
                messages.append(barrier(newest) if kind == "b" else flagged(newest))
        channels.append([*messages, END] if draw(st.booleans()) else messages)
    kinds = st.sampled_from(["read"] * 6 + ["overtake"] * 3 + ["time", "abort", "restored"])
    moves = draw(st.lists(st.tuples(kinds, st.integers(0, 4), st.integers(1, 6)), max_size=80))
    limits = {
        "max_buffer_per_input": draw(st.sampled_from([1, 2, 100])),
        "max_buffer_memory_bytes": draw(st.sampled_from([30, 1000])),
        "alignment_timeout_ns": TIMEOUT_NS,
    }
    settings_ = {
        "enabled": draw(st.sampled_from([True, True, True, False])),
        "force_unaligned": draw(st.booleans()),
        "alignment_timeout_threshold_ns": THRESHOLD_NS,
        "max_inflight_buffer_bytes": draw(st.sampled_from([2, 1000])),
    }
    return Job(channels, moves, settings_, limits, draw(st.sampled_from([False, False, False, True])))


class Book:
    """A port that books what took effect by input, what each snapshot had, and what was recorded for it."""

    def __init__(self, num_inputs: int) -> None:
        self.applied: list[list[StreamMessage]] = [[] for _ in range(num_inputs)]
        self.cuts: dict[int, list[list[StreamMessage]]] = {}
        self.records: dict[int, list[list[StreamMessage]]] = {}
        self.completed: list[int] = []
        self.cancelled: list[int] = []

    def deliver(self, input_id, message):
        self.applied[input_id].append(message)

    def end_input(self, input_id):
        self.applied[input_id].append(END)

    def snapshot(self, cut):
        assert cut.checkpoint_id not in self.cuts
        self.cuts[cut.checkpoint_id] = [list(messages) for messages in self.applied]
        self.records[cut.checkpoint_id] = [[] for _ in self.applied]

    def record(self, input_id, message, checkpoint_id):
        self.records[checkpoint_id][input_id].append(message)

    def complete(self, cut):
        self.completed.append(cut.checkpoint_id)

    def cancel(self, checkpoint_id):
        self.cancelled.append(checkpoint_id)

    def _nothing(self, *_):
        """Not asked."""

    forward = decline = buffer = block = resume = ignore = _nothing


def new_gate(job: Job, book: Book) -> Gate:
    """A gate for the job's task."""
    return Gate(unaligned(len(job.channels), job.is_sink, job.limits, **job.settings), book)


def play(job: Job, restored_in_flight: bool = True):
    """Do the moves, then read on until nothing moves; the gate and its book."""
    book = Book(len(job.channels))
    gate = new_gate(job, book)
    queues = [deque(messages) for messages in job.channels]
    now_ns = 0

    def read(i: int) -> bool:
        gate.drain_all(now_ns)
        if queues[i] and gate.can_take(i) and gate.offer(i, queues[i][0], now_ns):
            queues[i].popleft()
            return True
        return False

    for kind, i, n in job.moves:
        i %= len(job.channels)
        if kind == "read":
            read(i)
        elif kind == "overtake":  # any barrier, wanted or not, also while something is to be drained
            places = [at for at, message in enumerate(queues[i]) if type(message) is CheckpointBarrier]
            if places:
                at = places[n % len(places)]
                if gate.offer_overtaking(i, queues[i][at], list(queues[i])[:at], now_ns):
                    del queues[i][at]
        elif kind == "time":
            now_ns += n
            gate.on_time(now_ns)
        elif kind == "abort":
            gate.abort(n, Reason.EXPIRED, now_ns)
        elif restored_in_flight:
            value = gate.capture()
            hash(value)
            gate = new_gate(job, book)
            gate.restore(value)
            assert gate.capture() == value
    for _ in range(100):
        moved = [read(i) for i in range(len(queues))]
        if not any(moved):
            if not any(queues):
                break
            now_ns += TIMEOUT_NS  # barriers that never come
            gate.on_time(now_ns)
    gate.abort(99, Reason.EXPIRED, now_ns)
    gate.drain_all(now_ns)
    assert not any(queues)
    return gate, book


def events(messages) -> list[str]:
    """The events among them, readable."""
    return [str(message) for message in messages if type(message) is Event]


@given(jobs())
@settings(max_examples=examples(400), deadline=None)
def test_state_and_record_are_what_came_before_the_barriers(job):
    """If it fails, an event in flight is lost to a checkpoint, doubled, or out of order (CUT)."""
    _, book = play(job)
    for n in book.completed:
        for i, messages in enumerate(job.channels):
            ids = [message.checkpoint_id if type(message) is CheckpointBarrier else 0 for message in messages]
            before = messages[: ids.index(n)] if n in ids else messages
            assert events(book.cuts[n][i]) + events(book.records[n][i]) == events(before), (n, i)
            assert n in ids or END in messages
    assert book.completed == sorted(set(book.completed))
    assert not set(book.completed) & set(book.cancelled)
    if job.is_sink or not job.settings["enabled"]:
        assert not any(any(record) for record in book.records.values())


@given(jobs())
@settings(max_examples=examples(300), deadline=None)
def test_nothing_is_lost_or_reordered_live(job):
    """If it fails, a message in flight is processed twice, never, or before its turn (NOLOSS, FIFO, WM)."""
    gate, book = play(job)
    for i, messages in enumerate(job.channels):
        kept = [m for m in messages if type(m) is Event or type(m) is Watermark or m is END]
        assert book.applied[i] == kept
    machine = gate.unaligned
    assert (machine.buffered_bytes(), machine.inflight_bytes, machine.inflight_data()) == (0, 0, ())
    ended = all(END in messages for messages in job.channels)
    assert ended or machine.free == {i for i, messages in enumerate(job.channels) if END not in messages}


@given(jobs())
@settings(max_examples=examples(200), deadline=None)
def test_a_gate_is_what_it_captured(job):
    """If it fails, a task that is restored in the middle of recording goes on otherwise."""
    gate, book = play(job)
    other, other_book = play(job, restored_in_flight=False)
    assert book.__dict__ == other_book.__dict__
    assert gate.capture() == other.capture()


@given(st.integers(1, 5), st.integers(1, 4), st.booleans(), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_all_barriers_in_means_all_checkpoints_complete(num_inputs, checkpoints, in_turn, data):
    """If it fails, a checkpoint whose barriers all came does not complete, whether they overtook or not (LIVE)."""
    book = Book(num_inputs)
    gate = Gate(unaligned(num_inputs), book)
    queues = [
        deque(m for n in range(1, checkpoints + 1) for m in (Event("abcde"[i], n), flagged(n)))
        for i in range(num_inputs)
    ]
    while any(queues):
        i = data.draw(st.sampled_from([i for i in range(num_inputs) if queues[i]]))
        if not in_turn:
            at = next((at for at, message in enumerate(queues[i]) if type(message) is CheckpointBarrier), None)
            if at is not None and gate.wants_overtaking(i, queues[i][at], 0):
                assert gate.offer_overtaking(i, queues[i][at], list(queues[i])[:at], 0)
                del queues[i][at]
                continue
        gate.drain_all(0)
        assert gate.offer(i, queues[i].popleft(), 0)
    gate.drain_all(0)
    assert not any(gate.is_blocked(i) for i in range(num_inputs))
    assert book.completed == list(range(1, checkpoints + 1))
