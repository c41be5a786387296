"""The order of effects at a gate: protocol rules 6 to 13."""

from __future__ import annotations

import pytest

from barrierlab.impl import BarrierAligner, BarrierAlignerConfig, CheckpointBarrier, Gate, Reason, Watermark
from tests.impl.support import END, Recorder, barrier, cancel, event, gate


def feed(machine, *arrivals, now_ns=0):
    """Offer each, and release in between; what `offer` answered."""
    answers = []
    for input_id, message in arrivals:
        answers.append(machine.offer(input_id, message, now_ns))
        machine.drain_all(now_ns)
    return answers


def test_barrier_leaves_before_what_waited_behind_it():
    """If it fails, post-barrier outputs are in the next task's snapshot and not in this one's (rule 8, A-04)."""
    machine, port = gate()
    feed(machine, (0, barrier(1)), (0, event("a2")), (1, event("b1")), (1, barrier(1)))
    assert port.lines == [
        "block 0 1",
        "buffer 0 a2",
        "deliver 1 b1",
        "block 1 1",
        "snapshot 1",
        "forward barrier 1",
        "complete 1",
        "resume 1",
        "deliver 0 a2",
    ]


def test_only_input_blocks_too():
    """If it fails, a history of a chain shows barriers that never took effect."""
    machine, port = gate(1)
    feed(machine, (0, barrier(1)))
    assert port.lines == ["block 0 1", "snapshot 1", "forward barrier 1", "complete 1", "resume 1"]


def test_failed_snapshot_declines_and_cancels_in_the_barriers_place():
    """If it fails, the next task waits for a barrier that will not come (rule 9, A-17)."""
    machine, port = gate()
    port.fails = {1}
    feed(machine, (0, barrier(1)), (0, event("a2")), (1, barrier(1)))
    assert port.take() == [
        "block 0 1",
        "buffer 0 a2",
        "block 1 1",
        "decline 1 snapshot failed",
        "cancel 1",
        "resume 1",
        "deliver 0 a2",
    ]
    feed(machine, (0, barrier(2)), (1, barrier(2)))
    assert "complete 2" in port.lines


def test_subsumed_checkpoint_ends_before_the_newer_begins():
    """If it fails, a newer barrier is taken up before the older checkpoint is aborted (rule 6)."""
    machine, port = gate()
    feed(machine, (0, barrier(1)), (0, event("a1")), (1, barrier(2)))
    assert port.lines == [
        "block 0 1",
        "buffer 0 a1",
        "decline 1 subsumed",
        "cancel 1",
        "resume 1",
        "block 1 2",
        "deliver 0 a1",
    ]


@pytest.mark.parametrize(
    "other", [CheckpointBarrier(1, 2), CheckpointBarrier(1, 1, 1)], ids=["another epoch", "another flag"]
)
@pytest.mark.parametrize("input_id", [0, 1], ids=["on the blocked input", "on the other input"])
def test_barriers_that_disagree(other, input_id):
    """If it fails, two attempts under one id are taken for one (rule 6, A-16)."""
    machine, port = gate()
    feed(machine, (0, barrier(1)), (input_id, other))
    assert port.lines == [
        "block 0 1",
        "decline 1 barrier mismatch",
        "cancel 1",
        "resume 1",
        f"ignore {input_id} barrier 1{' unaligned' if other.flags else ''}",
    ]
    assert feed(machine, (1, barrier(1))) == [True]
    assert port.lines[-1] == "ignore 1 barrier 1"


def test_cancel_is_forwarded_once():
    """If it fails, cancels multiply at every task, or stop at the first (rule 10)."""
    machine, port = gate()
    feed(machine, (0, barrier(1)), (0, event("a1")), (1, cancel(1)), (0, cancel(1)))
    assert port.lines == ["block 0 1", "buffer 0 a1", "cancel 1", "resume 1", "deliver 0 a1", "ignore 0 cancel 1"]


def test_coordinators_abort_acts_like_a_cancel():
    """If it fails, a task that the coordinator tells to abort stays blocked, or declines what is known (rule 10)."""
    machine, port = gate()
    feed(machine, (0, barrier(1)), (0, event("a1")))
    assert machine.abort(1, Reason.EXPIRED, 9) is True
    machine.drain_all(9)
    assert port.lines == ["block 0 1", "buffer 0 a1", "cancel 1", "resume 1", "deliver 0 a1"]
    assert machine.abort(1, Reason.EXPIRED, 9) is False
    feed(machine, (1, barrier(1)), (1, event("b1")))
    assert port.lines[-2:] == ["ignore 1 barrier 1", "deliver 1 b1"]


def test_abort_of_an_older_checkpoint_leaves_the_current_one():
    """If it fails, a late abort of a failed attempt kills the next."""
    machine, port = gate()
    feed(machine, (0, barrier(2)))
    assert machine.abort(1, Reason.EXPIRED, 0) is False
    assert port.lines == ["block 0 2"]


def test_deadline_counts_from_the_trigger():
    """If it fails, each task of a chain waits its own full timeout (rule 11, A-10)."""
    machine, port = gate(alignment_timeout_ns=100)
    machine.note_trigger(1, 10)
    feed(machine, (0, barrier(1)), (0, event("a1")), now_ns=90)
    assert machine.next_deadline_ns() == 110
    assert machine.on_time(109) is False
    assert machine.on_time(110) is True
    assert machine.can_drain
    assert port.take()[-3:] == ["decline 1 expired", "cancel 1", "resume 1"]
    assert machine.drain_next(110) is True
    assert machine.drain_next(110) is False
    assert port.lines == ["deliver 0 a1"]
    assert machine.next_deadline_ns() is None


def test_message_over_the_byte_limit_is_not_taken():
    """If it fails, the limit is passed by a message, or the message overtakes what was buffered before it (A-12,
    A-13)."""
    machine, port = gate(max_buffer_memory_bytes=3)
    feed(machine, (0, barrier(1)), (0, event("a1", size_bytes=3)))
    assert machine.offer(0, event("a2"), 0) is False
    assert port.take()[-3:] == ["decline 1 buffer limit", "cancel 1", "resume 1"]
    machine.drain_all(0)
    assert machine.offer(0, event("a2"), 0) is True
    assert port.lines == ["deliver 0 a1", "deliver 0 a2"]


def test_full_input_is_not_read():
    """If it fails, an input holds more than its limit, or the checkpoint is aborted instead of waiting (rule 7)."""
    machine, port = gate(max_buffer_per_input=2)
    assert feed(machine, (0, barrier(1)), (0, event("a1")), (0, barrier(2)), (0, event("a2"))) == [True] * 3 + [False]
    assert not machine.can_take(0)
    assert machine.can_take(1)
    assert port.of("decline") == []
    feed(machine, (1, barrier(1)))
    assert machine.is_blocked(0)  # by 2, which was buffered
    assert machine.can_take(0)


def test_byte_limit_during_release_only_waits():
    """If it fails, a checkpoint that has just begun is aborted for a backlog that is about to go."""
    machine, port = gate(3, max_buffer_memory_bytes=30)
    feed(machine, (0, barrier(1)), (0, barrier(2)), (1, barrier(1)))
    feed(machine, (1, event("b1", size_bytes=3)), (1, event("b2", size_bytes=3)))
    machine.offer(2, barrier(1), 0)
    assert machine.drain_next(0)  # barrier 2 blocks input 0 again; b1 and b2 are still to go
    assert machine.offer(0, event("a1", size_bytes=25), 0) is False
    assert port.of("decline") == []
    machine.drain_all(0)
    assert machine.offer(0, event("a1", size_bytes=25), 0) is True
    assert machine.offer(0, event("a2", size_bytes=6), 0) is False
    assert port.of("decline") == ["2 buffer limit"]


def test_custom_size():
    """If it fails, a limit in bytes counts something else than the caller said (rule 7)."""
    config = BarrierAlignerConfig(max_buffer_memory_bytes=100)
    machine = Gate(BarrierAligner(config, size_of=lambda message: 40), Recorder())
    answers = feed(machine, (0, barrier(1)), (0, event("a1")), (0, Watermark(1)), (0, event("a2")))
    assert answers == [True, True, True, False]
    assert machine.aligner.buffered_bytes() == 0  # aborted, and drained


def test_exactly_the_limit_is_allowed():
    """If it fails, a limit means one thing for events and another for what else is buffered (rule 7: inclusive)."""
    machine, port = gate(max_buffer_memory_bytes=32)
    assert feed(machine, (0, barrier(1)), (0, barrier(2)), (0, Watermark(1))) == [True] * 3  # 24 and 8 bytes
    assert machine.aligner.buffered_bytes() == 32
    assert port.of("decline") == []
    assert feed(machine, (0, END)) == [False]
    assert port.of("decline") == ["1 buffer limit"]


def test_an_input_is_back_in_line_before_what_it_lets_go():
    """If it fails, an input that lets another go waits twice: for its turn, and for those that came after (rule 8)."""
    machine, port = gate(3)
    feed(machine, (0, barrier(1)), (0, barrier(2)), (0, event("a1")))
    feed(machine, (1, barrier(1)), (1, cancel(2)), (1, event("b1")))
    port.take()
    feed(machine, (2, barrier(1)))
    assert port.lines[-5:] == ["block 0 2", "cancel 2", "resume 2", "deliver 1 b1", "deliver 0 a1"]


def test_end_of_a_blocked_input_waits_its_turn():
    """If it fails, an input ends ahead of its last events (rule 7)."""
    machine, port = gate()
    feed(machine, (0, barrier(1)), (0, event("a1")), (0, END))
    assert port.of("end") == []
    feed(machine, (1, barrier(1)))
    assert port.lines[-2:] == ["deliver 0 a1", "end 0"]


def test_capture_in_the_middle():
    """If it fails, a gate that is restored resumes the wrong checkpoint."""
    machine, _ = gate()
    feed(machine, (0, barrier(1)), (0, event("a1")))
    twin, port = gate()
    twin.restore(machine.capture())
    feed(twin, (1, cancel(4)))
    assert port.lines == ["cancel 4", "resume 1", "deliver 0 a1"]
