"""F-DCKP-002, "Test Plan", unit tests: under the document's names, asserting the sound behaviour."""

from __future__ import annotations

from barrierlab.impl import AlignmentAction, Reason, Watermark
from tests.impl.support import ROOMY, aligner, barrier, drain, event

PASS = AlignmentAction.PASS_THROUGH
WATERMARK = AlignmentAction.WATERMARK_PASS_THROUGH
BUFFERED = AlignmentAction.BUFFERED
BLOCKED = AlignmentAction.BLOCKED
TRIGGER = AlignmentAction.TRIGGER_SNAPSHOT
IGNORED = AlignmentAction.IGNORED
REFUSED = AlignmentAction.REFUSED


def test_single_input_immediate_alignment():
    """If it fails, a task with one input waits for a second barrier that cannot come."""
    machine = aligner(1)
    assert machine.process_message(0, barrier(1)) is TRIGGER
    assert machine.barrier == barrier(1)
    machine.complete_alignment()
    assert not machine.is_aligning()
    assert machine.process_message(0, event("a1")) is PASS


def test_two_input_alignment_order_1_2():
    """If it fails, a snapshot is taken with one input not yet at its cut."""
    machine = aligner()
    assert machine.process_message(0, barrier(1)) is BLOCKED
    assert (machine.is_blocked(0), machine.is_blocked(1)) == (True, False)
    assert machine.process_message(1, barrier(1)) is TRIGGER
    assert machine.triggered


def test_two_input_alignment_order_2_1():
    """If it fails, the order of the inputs decides whether a checkpoint completes."""
    machine = aligner()
    assert machine.process_message(1, barrier(1)) is BLOCKED
    assert (machine.is_blocked(0), machine.is_blocked(1)) == (False, True)
    assert machine.process_message(0, barrier(1)) is TRIGGER


def test_three_input_alignment():
    """If it fails, a union cuts before its last input has."""
    machine = aligner(3)
    assert [machine.process_message(i, barrier(1)) for i in (2, 0, 1)] == [BLOCKED, BLOCKED, TRIGGER]


def test_events_buffered_from_aligned_input():
    """If it fails, events behind the cut get into the snapshot."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    assert machine.process_message(0, event("a1")) is BUFFERED
    assert machine.process_message(0, event("a2")) is BUFFERED
    assert machine.buffered_event_count() == 2


def test_events_pass_through_unaligned_input():
    """If it fails, events before the cut miss the snapshot, or the slow input starves the fast one for nothing."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    assert machine.process_message(1, event("b1")) is PASS
    assert machine.buffered_event_count() == 0


def test_drain_after_alignment():
    """If it fails, buffered events are lost or come out in another order."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    for name in ("a1", "a2", "a3"):
        machine.process_message(0, event(name))
    machine.process_message(1, barrier(1))
    assert machine.drain_next() is None
    machine.complete_alignment()
    assert machine.process_message(0, event("a4")) is BUFFERED  # behind what is not drained yet
    assert drain(machine) == [(0, f"a{n}", "DRAIN_BUFFERED") for n in (1, 2, 3, 4)]
    assert machine.process_message(0, event("a5")) is PASS


def test_drain_round_robin_fairness():
    """If it fails, one input's backlog keeps the others waiting."""
    machine = aligner(3)
    machine.process_message(1, barrier(1))
    machine.process_message(0, barrier(1))
    for name in ("b1", "b2", "a1", "a2", "a3"):
        machine.process_message("ab".index(name[0]), event(name))
    machine.process_message(2, barrier(1))
    machine.complete_alignment()
    assert [str(message) for _, message in machine.drained()] == ["a1", "b1", "a2", "b2", "a3"]


def test_alignment_timeout_detection():
    """If it fails, a checkpoint whose barrier was lost blocks an input for ever; rule 11: from the trigger, at >=."""
    machine = aligner(alignment_timeout_ns=100)
    machine.note_trigger(1, 1_000)
    machine.process_message(0, barrier(1), 1_050)
    machine.process_message(0, event("a1"), 1_060)
    assert machine.next_deadline_ns() == 1_100
    assert machine.check_timeout(1_099) is None
    assert machine.on_time(1_099) is False
    assert machine.check_timeout(1_100) == 100
    assert machine.on_time(1_100) is True
    assert machine.aborts == [(1, Reason.EXPIRED)]
    assert machine.next_deadline_ns() is None
    assert drain(machine) == [(0, "a1", "DRAIN_BUFFERED")]
    assert machine.process_message(1, barrier(1), 1_200) is IGNORED


def test_alignment_timeout_counts_from_first_barrier_when_no_trigger_is_known():
    """If it fails, a task that was never told of a trigger never aborts, or aborts at once."""
    machine = aligner(alignment_timeout_ns=100)
    machine.process_message(0, barrier(1), 50)
    assert machine.next_deadline_ns() == 150
    machine.note_trigger(1, 20)
    assert machine.next_deadline_ns() == 120


def test_buffer_limit_exceeded():
    """If it fails, a slow input lets memory grow past its limit; limits are inclusive, checked before (rule 7)."""
    machine = aligner(max_buffer_memory_bytes=10)
    machine.process_message(0, barrier(1))
    assert machine.process_message(0, event("a1", size_bytes=4)) is BUFFERED
    assert not machine.is_buffer_limit_exceeded()
    assert machine.process_message(0, event("a2", size_bytes=6)) is BUFFERED  # exactly the limit
    assert machine.is_buffer_limit_exceeded()
    assert machine.aborts == []
    assert machine.process_message(0, event("a3", size_bytes=1)) is REFUSED
    assert machine.aborts == [(1, Reason.BUFFER_LIMIT)]
    assert machine.buffered_bytes() == 10
    assert [str(message) for _, message in machine.drained()] == ["a1", "a2"]
    assert machine.process_message(0, event("a3", size_bytes=1)) is PASS  # after what was buffered before it
    assert machine.process_message(1, barrier(1)) is IGNORED


def test_buffer_limit_per_input_refuses_and_keeps_the_checkpoint():
    """If it fails, one full input costs a checkpoint that only needed patience, or is not bounded itself (A-12)."""
    machine = aligner(max_buffer_per_input=2)
    machine.process_message(0, barrier(1))
    machine.process_message(0, event("a1"))
    assert machine.can_take(0)
    machine.process_message(0, Watermark(3))
    assert not machine.can_take(0)
    before = machine.capture()
    assert machine.process_message(0, event("a2")) is REFUSED
    assert machine.process_message(0, barrier(2)) is REFUSED
    assert machine.capture() == before
    assert machine.process_message(1, event("b1")) is PASS
    assert machine.process_message(1, barrier(1)) is TRIGGER


def test_complete_alignment_resets_state():
    """If it fails, the next checkpoint begins with inputs already counted."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    machine.process_message(1, barrier(1))
    machine.complete_alignment()
    assert not machine.is_aligning()
    assert machine.aligned_input_count() == 0
    assert (machine.barrier, machine.triggered, machine.last_terminated_id) == (None, False, 1)
    assert not machine.is_blocked(0)
    assert machine.process_message(1, barrier(2)) is BLOCKED
    assert machine.aligned_input_count() == 1


def test_duplicate_barrier_ignored():
    """If it fails, a copy counts for an input that has not delivered, or begins the checkpoint again (A-11)."""
    machine = aligner()
    machine.process_message(0, barrier(7))
    before = machine.capture()
    assert machine.process_message(0, barrier(7)) is IGNORED
    assert machine.process_message(0, barrier(6)) is IGNORED
    assert machine.capture() == before
    assert machine.process_message(1, barrier(7)) is TRIGGER
    machine.complete_alignment()
    before = machine.capture()
    assert machine.process_message(0, barrier(7)) is IGNORED
    assert machine.capture() == before


def test_metrics_updated_on_alignment():
    """If it fails, operators of the system see counts of something else (A-19: only events are counted)."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    machine.process_message(0, event("a1"))
    machine.process_message(0, Watermark(1))
    machine.process_message(0, event("a2"))
    buffered = machine.metrics()
    assert (buffered.alignments_completed, buffered.total_events_buffered, buffered.current_buffered) == (0, 2, 2)
    assert buffered.is_aligning
    machine.process_message(1, barrier(1))
    assert machine.metrics().alignments_completed == 0  # the snapshot may still fail
    machine.complete_alignment()
    drain(machine)
    done = machine.metrics()
    assert (done.alignments_completed, done.total_events_buffered, done.current_buffered) == (1, 2, 0)
    assert not done.is_aligning


def test_max_alignment_duration_tracked():
    """If it fails, the worst alignment cannot be distinguished from the last."""
    machine = aligner()
    for checkpoint_id, begin, end in ((1, 100, 150), (2, 200, 290), (3, 300, 310)):
        machine.process_message(0, barrier(checkpoint_id), begin)
        machine.process_message(1, barrier(checkpoint_id), end)
        machine.complete_alignment()
    assert machine.metrics().max_alignment_duration_ns == 90


def test_128_input_alignment():
    """If it fails, a wide union never aligns, or aligns without its last input."""
    machine = aligner(128)
    actions = [machine.process_message(i, barrier(1)) for i in range(128)]
    assert actions == [BLOCKED] * 127 + [TRIGGER]
    assert machine.aligned_input_count() == 128


def test_watermark_passthrough_during_alignment():
    """If it fails, a watermark overtakes buffered events of its own input, and windows fire without them (rule 7,
    A-06)."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    machine.process_message(0, event("a1", timestamp_ms=5))
    assert machine.process_message(0, Watermark(10)) is BUFFERED  # its input is blocked
    assert machine.process_message(1, Watermark(10)) is WATERMARK  # its input is not
    machine.process_message(1, barrier(1))
    machine.complete_alignment()
    assert drain(machine) == [(0, "a1", "DRAIN_BUFFERED"), (0, "watermark 10", "WATERMARK_PASS_THROUGH")]


def test_watermark_passthrough_no_alignment():
    """If it fails, event time stands still between checkpoints."""
    assert aligner().process_message(0, Watermark(10)) is WATERMARK


def test_complete_alignment_reuses_drain_queue():
    """If it fails, what the first alignment left is lost or doubled by the second; runs are the caller's."""
    machine = aligner()

    def align(checkpoint_id: int, buffered: int) -> list[str]:
        machine.process_message(0, barrier(checkpoint_id))
        for n in range(buffered):
            machine.process_message(0, event(f"a{n}"))
        machine.process_message(1, barrier(checkpoint_id))
        machine.complete_alignment()
        return [str(message) for _, run in machine.drain_runs() for message in run]

    first = align(1, 3)
    assert first == ["a0", "a1", "a2"]
    assert align(2, 2) == ["a0", "a1"]
    assert first == ["a0", "a1", "a2"]
    assert machine.drain_next() is None
    assert machine.buffered_bytes() == 0
    assert machine.process_message(0, event("a9")) is PASS


def test_drain_runs_hands_over_nothing_if_a_control_message_is_held():
    """If it fails, the fast path carries events past a buffered barrier or watermark (A-05)."""
    machine = aligner(max_buffer_memory_bytes=ROOMY)
    machine.process_message(0, barrier(1))
    machine.process_message(0, event("a1"))
    machine.process_message(0, barrier(2))
    machine.process_message(0, event("a2"))
    machine.process_message(1, barrier(1))
    machine.complete_alignment()
    assert machine.drain_runs() == []
    assert drain(machine) == [(0, "a1", "DRAIN_BUFFERED"), (0, "barrier 2", "BLOCKED")]
    assert machine.buffered_event_count() == 1


def test_held_barrier_begins_its_own_checkpoint_when_released():
    """If it fails, an input more than one checkpoint ahead loses a barrier and the next cut is wrong (A-05)."""
    machine = aligner()
    for message in (barrier(1), event("a2"), barrier(2), event("a3")):
        machine.process_message(0, message)
    machine.process_message(1, event("b1"))
    assert machine.process_message(1, barrier(1)) is TRIGGER
    machine.complete_alignment()
    assert drain(machine) == [(0, "a2", "DRAIN_BUFFERED"), (0, "barrier 2", "BLOCKED")]
    assert machine.process_message(1, event("b2")) is PASS
    assert machine.process_message(1, barrier(2)) is TRIGGER
    machine.complete_alignment()
    assert drain(machine) == [(0, "a3", "DRAIN_BUFFERED")]


def test_nothing_is_taken_up_between_trigger_and_completion():
    """If it fails, a barrier during an asynchronous snapshot triggers it again and is lost (A-02)."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    machine.process_message(1, barrier(1))
    assert machine.process_message(0, barrier(2)) is BUFFERED
    assert machine.process_message(1, barrier(2)) is BUFFERED
    assert machine.next_deadline_ns() is None
    machine.complete_alignment()
    assert drain(machine) == [(0, "barrier 2", "BLOCKED"), (1, "barrier 2", "TRIGGER_SNAPSHOT")]
    assert machine.metrics().alignments_completed == 1


def test_newer_barrier_subsumes():
    """If it fails, another id counts as the awaited one and the cut is inconsistent (A-01)."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    machine.process_message(0, event("a1"))
    machine.process_message(0, barrier(2))
    assert machine.process_message(1, barrier(2)) is BLOCKED
    assert machine.aborts == [(1, Reason.SUBSUMED)]
    assert drain(machine) == [(0, "a1", "DRAIN_BUFFERED"), (0, "barrier 2", "TRIGGER_SNAPSHOT")]


def test_stale_barrier_does_not_cancel_a_newer_one():
    """If it fails, a barrier of a failed attempt kills the running checkpoint (A-03)."""
    machine = aligner()
    machine.process_message(0, barrier(2))
    assert machine.process_message(1, barrier(1)) is IGNORED
    assert machine.aborts == []
    assert machine.process_message(1, barrier(2)) is TRIGGER


def test_failed_snapshot_releases_without_completing():
    """If it fails, a disk that is full blocks a task for ever, or counts as a success (rule 9, A-17)."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    machine.process_message(0, event("a1"))
    machine.process_message(1, barrier(1))
    assert machine.fail_alignment(Reason.SNAPSHOT_FAILED) == (1, Reason.SNAPSHOT_FAILED)
    assert machine.metrics().alignments_completed == 0
    assert machine.last_terminated_id == 1
    assert drain(machine) == [(0, "a1", "DRAIN_BUFFERED")]


def test_single_input_alignment_allocates_no_queues():
    """If it fails, each barrier of a chain pays for buffers that it does not use (A-20)."""
    machine = aligner(1)
    queues = machine.inputs.queues[0]
    for checkpoint_id in range(1, 4):
        machine.process_message(0, barrier(checkpoint_id))
        machine.complete_alignment()
    assert machine.inputs.queues[0] is queues
