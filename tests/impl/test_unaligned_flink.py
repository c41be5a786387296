"""Flink's barrier handler as an oracle, unaligned: rules R5, R7-R9b, vectors B-U1 to B-U6 and B-T1 to B-T12.

Restated from the tests of apache/flink (`UnalignedCheckpointsTest`, `AlternatingCheckpointsTest`). An announcement is
here a driver that asks `wants_overtaking` of a barrier in its queue. Two rules have no counterpart: R11 (there are no
savepoints), and that a blocked channel stays blocked after the switch (R9): rule 16 drains what was buffered.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import pytest

from barrierlab.impl import CheckpointBarrier, SourceTask
from barrierlab.impl.checkpoint.injector import InjectBarrierCommand
from tests.impl.support import barrier, cancel, event, flagged, unaligned_gate
from tests.impl.vectors import read

MS = 1_000_000


class Step(NamedTuple):
    """The messages fed, the checkpoints acknowledged by then, and what the newest snapshot has in flight."""

    feed: str
    completed: list[int]
    in_flight: list[str]


# `B` is an unaligned barrier here; of the events, the n-th is ``d<n>``, counted in each step anew.
VECTORS: dict[str, tuple[int, list[Step]]] = {
    "B-U1 trailing in-flight data": (3, [Step("D0 D2 D0 B(1,1) B(1,2) D2 D1 D0 B(1,0)", [1], ["0 d6"])]),
    "B-U2 nothing in flight": (
        3,
        [
            Step("B(1,0) B(1,1) B(1,2)", [1], []),
            Step("D2 D2 B(3,2) D2 D2 B(3,0) B(3,1)", [1, 3], []),
            Step("B(4,1) B(4,2) B(4,0)", [1, 3, 4], []),
        ],
    ),
    "B-U4 closed channels": (
        4,
        [
            Step("E2 E1 D0 D0 D3 B(2,3) B(2,0)", [2], []),
            Step("D3 D0 B(3,3) D3 D0 B(3,0)", [2, 3], ["0 d4"]),
            Step("B(4,0) B(4,3)", [2, 3, 4], []),
            Step("D0 D0 D3 E0", [2, 3, 4], []),
            Step("D3 B(5,3) D3 E3", [2, 3, 4, 5], []),
        ],
    ),
    "B-U5 the end closes the record": (
        3,
        [
            Step("B(1,0) B(1,1) B(1,2)", [1], []),
            Step("D0 D0 D2 B(2,2) B(2,0) D0 D2 D1 E2 E1 D0 E0", [1, 2], ["1 d6"]),
        ],
    ),
    "B-U6 missing cancels": (2, [Step("B(1,0) X(2,0) X(3,0) X(3,1) D0 E0 E1", [], [])]),
}


@pytest.mark.parametrize(("channels", "steps"), VECTORS.values(), ids=VECTORS)
def test_vector(channels, steps):
    """If it fails, tasks here record otherwise than Flink's on the same sequence."""
    gate, port = unaligned_gate(channels, force_unaligned=True)
    for step in steps:
        del port.lines[:]
        for channel, message in read(step.feed, channels):
            assert gate.offer(channel, message, 0)
            gate.drain_all(0)
        step_completed = step.completed[len(step.completed) - len(port.of("complete")) :]
        assert port.of("complete") == [str(n) for n in step_completed]
        assert gate.aligner.metrics().alignments_completed == len(step.completed)
        assert port.of("record") == step.in_flight
        assert len(port.of("deliver")) == sum(str(arrival.message)[0] == "d" for arrival in read(step.feed, channels))
    assert not any(gate.is_blocked(channel) for channel in range(channels))


def test_u6_starts_once_and_cancels_up_to_3():
    """If it fails, a cancel is lost, or starts something (B-U6)."""
    gate, port = unaligned_gate(2, force_unaligned=True)
    for channel, message in read("B(1,0) X(2,0) X(3,0) X(3,1) D0 E0 E1", 2):
        gate.offer(channel, message, 0)
        gate.drain_all(0)
    assert port.of("snapshot") == ["1"]
    assert gate.aligner.last_terminated_id == 3
    assert port.of("cancel") == ["3"]
    assert port.of("complete") == []


class Channels:
    """A gate behind queues, with a driver that moves barriers to the front when the gate wants it. Times in ms."""

    def __init__(self, channels: int, timeout: int) -> None:
        self.gate, self.port = unaligned_gate(channels, alignment_timeout_threshold_ns=timeout * MS)
        self.queues: list[deque] = [deque() for _ in range(channels)]
        self.now = 0

    def put(self, channel: int, *messages: object) -> Channels:
        """At the end of a queue."""
        self.queues[channel].extend(messages)
        return self

    def later(self, ms: int, timers: bool = True) -> Channels:
        """The clock moves; the timers may be late."""
        self.now += ms * MS
        if timers:
            self.timers()
        return self

    def timers(self) -> bool:
        """Deadlines, then the barriers that are to go ahead."""
        acted = self.gate.on_time(self.now)
        for channel, queue in enumerate(self.queues):
            for at, message in enumerate(queue):
                if type(message) is CheckpointBarrier and self.gate.wants_overtaking(channel, message, self.now):
                    del queue[at]
                    assert self.gate.offer_overtaking(channel, message, list(queue)[:at], self.now)
                    acted = True
                    break
        return acted

    def poll(self, channel: int) -> None:
        """The next message of a queue, and what may be drained."""
        assert self.gate.offer(channel, self.queues[channel].popleft(), self.now)
        self.gate.drain_all(self.now)

    def drain(self) -> Channels:
        """All queues, in turn; barriers that are to go ahead do so first."""
        while any(self.queues):
            for channel, queue in enumerate(self.queues):
                self.timers()
                if queue:
                    self.poll(channel)
        return self

    @property
    def kinds(self) -> list[str]:
        """Of each snapshot, by what was forwarded."""
        return ["unaligned" if line.endswith("unaligned") else "aligned" for line in self.port.of("forward")]


def data(names: str) -> list:
    """Events by name."""
    return [event(name) for name in names.split()]


def test_t1_an_unaligned_barrier_beside_an_announced_one():
    """If it fails, a flagged barrier waits for an aligned one in a queue (B-T1)."""
    driver = Channels(2, 10**6).put(0, barrier(1))
    assert driver.timers() is False
    assert driver.gate.offer(1, flagged(1), 0)
    assert driver.port.of("snapshot") == ["1"]
    assert driver.timers() is True  # and the other is converted
    assert driver.port.of("complete") == ["1"]


@pytest.mark.parametrize("wait", [20, 11, 10])
def test_t2_t3_the_active_timer(wait):
    """If it fails, barriers behind data wait though the timeout has passed; reached is enough (B-T2, B-T3, R7, R9)."""
    driver = Channels(2, 10).put(0, *data("a1 a2"), barrier(1)).put(1, *data("b1"), barrier(1))
    driver.gate.note_trigger(1, 0)
    driver.later(9)
    assert driver.port.lines == []
    driver.later(wait - 9)
    assert (driver.kinds, driver.port.of("complete")) == (["unaligned"], ["1"])
    assert driver.port.of("record") == ["0 a1", "0 a2", "1 b1"]
    assert driver.port.of("deliver") == []
    driver.drain()
    assert sorted(driver.port.of("deliver")) == ["0 a1", "0 a2", "1 b1"]
    assert driver.kinds == ["unaligned"]


def test_t3b_the_timer_is_late():
    """If it fails, an announcement after the timeout does something by itself, or the late timer nothing (B-T3b)."""
    driver = Channels(2, 10).put(0, *data("a1 a2"), barrier(1))
    driver.gate.note_trigger(1, 0)
    driver.later(11, timers=False).put(1, *data("b1"), barrier(1))
    assert driver.port.lines == []
    driver.timers()
    assert (driver.kinds, driver.port.of("complete")) == (["unaligned"], ["1"])
    assert len(driver.drain().port.of("deliver")) == 3


def test_t3c_the_passive_check():
    """If it fails, a barrier that is taken after the timeout does not switch; or the late timer does it again (R8)."""
    driver = Channels(2, 10).put(0, *data("a1 a2"), barrier(1))
    driver.gate.note_trigger(1, 0)
    driver.poll(0)
    driver.poll(0)
    driver.later(11, timers=False)
    driver.poll(0)
    assert driver.kinds == ["unaligned"]
    assert driver.gate.on_time(driver.now) is False
    driver.put(1, *data("b1"), barrier(1)).timers()
    assert driver.port.of("complete") == ["1"]
    assert driver.port.of("record") == ["1 b1"]
    assert driver.drain().port.of("deliver") == ["0 a1", "0 a2", "1 b1"]


@pytest.mark.parametrize(("late", "kinds"), [(100, []), (101, ["unaligned"])])
def test_t6_the_first_barrier_may_switch(late, kinds):
    """If it fails, the passive check is not strict, or needs a second barrier (B-T6, R8)."""
    driver = Channels(2, 100)
    driver.gate.note_trigger(1, 0)
    driver.later(late, timers=False).put(0, barrier(1)).poll(0)
    assert driver.kinds == kinds


def test_t7_deadlines_count_from_each_trigger():
    """If it fails, a checkpoint inherits the age of the one before (B-T7)."""
    driver = Channels(3, 100)
    driver.gate.note_trigger(1, driver.now)
    driver.put(0, barrier(1)).put(1, barrier(1)).put(2, barrier(1)).drain()
    assert driver.kinds == ["aligned"]
    driver.later(101, timers=False)
    driver.gate.note_trigger(2, driver.now)
    driver.put(0, barrier(2)).poll(0)
    assert driver.kinds == ["aligned"]
    driver.later(101, timers=False).put(1, barrier(2)).poll(1)
    assert driver.kinds == ["aligned", "unaligned"]


def test_t8_one_channel_alternates():
    """If it fails, one late checkpoint makes the next unaligned too (B-T8, R9b)."""
    driver = Channels(1, 100)
    driver.gate.note_trigger(1, 0)
    driver.put(0, *data("a1"), barrier(1)).later(101)
    driver.gate.note_trigger(2, driver.now)
    driver.put(0, barrier(2)).drain()
    assert driver.kinds == ["unaligned", "aligned"]
    assert driver.port.of("complete") == ["1", "2"]


def test_t10_to_t12_nothing_to_switch():
    """If it fails, a timer that is late switches what has ended (B-T10, B-T11, B-T12)."""
    driver = Channels(2, 100).put(0, barrier(1)).put(1, barrier(1)).drain().later(101)
    assert driver.kinds == ["aligned"]
    driver = Channels(2, 100).put(0, barrier(1), cancel(1)).put(1, cancel(1)).drain().later(101)
    assert (driver.kinds, driver.port.of("cancel")) == ([], ["1"])
    driver = Channels(2, 100).put(0, barrier(1)).drain()
    driver.gate.abort(1, "declined", 0)  # the task is closing
    assert driver.later(101).kinds == []


def test_r5_what_is_in_flight():
    """If it fails, a channel whose barrier was taken in its turn contributes, or an overtaken one does not (R5)."""
    driver = Channels(3, 10)
    driver.gate.note_trigger(1, 0)
    driver.put(0, *data("a1"), barrier(1), *data("a2")).put(1, *data("b1"), barrier(1), *data("b2"))
    for _ in range(3):
        driver.poll(0)  # a2 is buffered
    driver.later(10).put(2, *data("c1"), barrier(1), *data("c2"))
    driver.poll(2)
    driver.drain()
    assert sorted(driver.port.of("record")) == ["1 b1", "2 c1"]
    assert sorted(driver.port.of("deliver")) == ["0 a1", "0 a2", "1 b1", "1 b2", "2 c1", "2 c2"]


def test_r7_the_delay_counts_from_the_trigger():
    """If it fails, time on the way does not count (R7); if it is over, the deadline is at once."""
    gate, _ = unaligned_gate(2, alignment_timeout_threshold_ns=100)
    gate.note_trigger(1, 1000)
    gate.offer(0, barrier(1), 1070)
    assert gate.next_deadline_ns() == 1100
    gate, port = unaligned_gate(2, alignment_timeout_threshold_ns=100)
    gate.offer(0, barrier(1), 1070)  # nobody said when it was triggered
    assert gate.next_deadline_ns() == 1170
    assert gate.on_time(1170)
    assert port.of("snapshot") == ["1"]


def test_r8_an_end_is_checked_and_the_last_barrier_never_switches():
    """If it fails, a checkpoint that is whole goes unaligned, or an end of input hides that it is late (R8)."""
    driver = Channels(3, 10)
    driver.gate.note_trigger(1, 0)
    driver.put(0, barrier(1)).drain().later(11, timers=False)
    driver.gate.offer(1, read("E1", 3)[0].message, driver.now)
    assert driver.port.lines[-4:] == ["end 1", "snapshot 1", "forward barrier 1 unaligned", "resume 1"]
    driver = Channels(2, 10)
    driver.gate.note_trigger(1, 0)
    driver.put(0, barrier(1)).drain().later(11, timers=False).put(1, barrier(1)).poll(1)
    assert driver.kinds == ["aligned"]


def test_r9_the_switch_needs_a_barrier():
    """If it fails, a task takes its snapshot before anything of the checkpoint is there (R9, rule 15)."""
    driver = Channels(2, 10)
    driver.gate.note_trigger(1, 0)
    assert driver.gate.next_deadline_ns() is None
    assert driver.later(11).port.lines == []
    driver.put(0, *data("a1"), barrier(1)).timers()
    assert driver.kinds == ["unaligned"]


def test_r9b_an_unaligned_barrier_while_aligning():
    """If it fails, one flagged barrier is not enough, or everything stays unaligned afterwards (R9b)."""
    driver = Channels(3, 10**6).put(0, barrier(1), *data("a1")).drain()
    driver.put(1, flagged(1)).drain()
    assert driver.kinds == ["unaligned"]
    assert driver.gate.unaligned.was_threshold_triggered is False
    driver.put(2, *data("c1"), barrier(1)).drain()
    assert driver.port.of("complete") == ["1"]
    driver.put(0, barrier(2)).put(1, barrier(2)).put(2, barrier(2)).drain()
    assert driver.kinds == ["unaligned", "aligned"]


def test_r10_a_barrier_that_comes_from_the_coordinator_blocks_nothing():
    """If it fails, a source holds itself back (R10: such a barrier comes to sources alone)."""
    told: list[str] = []
    source = SourceTask("a", tell=lambda verb, *_: told.append(verb))
    source.injector.coordinator_handle().inject(InjectBarrierCommand(1, 1, True))
    source.poll(0)
    assert told == ["snapshot", "forward", "complete"]
