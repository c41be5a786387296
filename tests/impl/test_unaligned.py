"""F-DCKP-006, the unit tests that it plans under their names, and what protocol rules 14 to 19 ask beside them."""

from __future__ import annotations

import pytest

from barrierlab.impl import (
    AlignmentAction,
    BarrierAlignerConfig,
    CheckpointBarrier,
    ClosedInputError,
    EndOfInput,
    Event,
    InFlightChannelData,
    InputIndexError,
    LimitError,
    NotTriggeredError,
    Reason,
    UnalignedAction,
    UnalignedCheckpointConfig,
    UnalignedCheckpointer,
    UnknownMessageError,
    Watermark,
)
from tests.impl.support import END, barrier, cancel, drain, event, flagged, unaligned, unaligned_gate

S = 1_000_000_000


def names(machine, *messages):
    """Return what it answers to (input, message), one after the other; snapshots are taken at once."""
    answers = []
    for input_id, message in messages:
        answers.append(machine.process_message(input_id, message).name)
        if answers[-1] == "TAKE_SNAPSHOT":
            machine.begin_recording()
    return answers


def recorded(machine) -> dict[int, list[str]]:
    """Return what is recorded so far."""
    return {data.input_id: [str(each) for each in data.events] for data in machine.inflight_data()}


# The document's.


def test_unaligned_config_defaults():
    """If it fails, the defaults are not the document's."""
    config = UnalignedCheckpointConfig()
    assert (config.enabled, config.force_unaligned) == (True, False)
    assert config.alignment_timeout_threshold_ns == 30 * S
    assert config.max_inflight_buffer_bytes == 512 * 1024 * 1024


def test_immediate_unaligned_with_flag():
    """If it fails, a flagged barrier waits for the others (rule 14)."""
    machine = unaligned(3)
    assert machine.process_message(1, flagged(1)) is UnalignedAction.TAKE_SNAPSHOT
    assert (machine.barrier, machine.is_unaligned, machine.was_threshold_triggered) == (flagged(1), True, False)
    assert machine.begin_recording() is False


def test_force_unaligned_mode():
    """If it fails, a task that is to be unaligned aligns first (rule 14)."""
    machine = unaligned(3, force_unaligned=True)
    assert machine.process_message(1, barrier(1)) is UnalignedAction.TAKE_SNAPSHOT
    assert machine.barrier == flagged(1)  # what is forwarded says what it is (U-17)
    assert machine.was_threshold_triggered is False


def test_threshold_switch_from_aligned():
    """If it fails, the switch needs another barrier, which backpressure keeps away (rule 15, U-02)."""
    machine = unaligned(2)
    machine.note_trigger(1, 0)
    assert machine.process_message(0, barrier(1), 20 * S).name == "BLOCKED"
    assert machine.next_deadline_ns() == 30 * S
    assert machine.on_time(30 * S - 1) is False
    assert machine.on_time(30 * S) is True
    assert (machine.triggered, machine.is_unaligned, machine.was_threshold_triggered) == (True, True, True)
    assert machine.barrier == flagged(1)
    assert machine.begin_recording() is False
    assert machine.next_deadline_ns() == 60 * S  # and then it is aborted


def test_inflight_capture_single_channel():
    """If it fails, what comes ahead of the missing barrier is not recorded, or not processed (rule 16, U-04)."""
    machine = unaligned(2)
    assert names(machine, (0, flagged(1)), (1, event("b1")), (0, event("a1")), (1, event("b2"))) == [
        "TAKE_SNAPSHOT",
        "RECORDED",
        "PASS_THROUGH",
        "RECORDED",
    ]
    assert machine.inflight_data() == (InFlightChannelData(1, (event("b1"), event("b2")), 2),)


def test_inflight_capture_multiple_channels():
    """If it fails, the records of channels mix, or one goes on behind its barrier (U-05)."""
    machine = unaligned(3)
    names(machine, (0, flagged(1)), (1, event("b1")), (2, event("c1")), (1, flagged(1)), (1, event("b2")))
    names(machine, (2, event("c2", size_bytes=5)))
    assert recorded(machine) == {1: ["b1"], 2: ["c1", "c2"]}
    assert machine.inflight_bytes == 7


def test_late_barrier_consumed_after_snapshot():
    """If it fails, a late barrier takes a second snapshot, or blocks its input."""
    machine = unaligned(3)
    assert names(machine, (0, flagged(1)), (1, barrier(1)), (1, event("b1")), (1, flagged(1))) == [
        "TAKE_SNAPSHOT",
        "LATE_BARRIER",
        "PASS_THROUGH",
        "IGNORED",
    ]
    assert not any(machine.is_blocked(i) for i in range(3))
    assert machine.aligned_input_count() == 2


def test_all_late_barriers_received_resets_state():
    """If it fails, the part is never acknowledged, or the machine stays in its mode (rule 17, U-08)."""
    machine = unaligned(3)
    assert names(machine, (0, flagged(1)), (2, barrier(1)), (1, barrier(1)))[-1] == "PART_COMPLETE"
    machine.complete_alignment()
    assert (machine.barrier, machine.recording, machine.last_terminated_id) == (None, False, 1)
    assert names(machine, (0, barrier(2)), (1, barrier(2)), (2, barrier(2)))[-1] == "TRIGGER_SNAPSHOT"


def test_events_pass_through_after_unaligned_snapshot():
    """If it fails, an input that delivered waits after the snapshot, or what was buffered for it is recorded (U-03)."""
    machine = unaligned(3, limits={"max_buffer_per_input": 3})
    assert names(machine, (0, barrier(1)), (0, event("a1")), (0, event("a2"))) == ["BLOCKED", "BUFFERED", "BUFFERED"]
    machine.on_time(30 * S)
    machine.begin_recording()
    assert drain(machine) == [(0, "a1", "DRAIN_BUFFERED"), (0, "a2", "DRAIN_BUFFERED")]
    assert names(machine, (0, event("a3")), (1, event("b1")), (2, event("c1"))) == [
        "PASS_THROUGH",
        "RECORDED",
        "RECORDED",
    ]
    assert recorded(machine) == {1: ["b1"], 2: ["c1"]}


def test_inflight_buffer_size_limit():
    """If it fails, recording is without bound, or the event over the limit is lost (rule 18, U-16)."""
    machine = unaligned(2, max_inflight_buffer_bytes=3)
    assert names(machine, (0, flagged(1)), (1, event("b1", size_bytes=2)), (1, event("b2"))) == [
        "TAKE_SNAPSHOT",
        "RECORDED",
        "RECORDED",  # exactly the limit
    ]
    assert names(machine, (1, event("b3"))) == ["PASS_THROUGH"]
    assert machine.aborts == [(1, Reason.IN_FLIGHT_LIMIT)]
    assert (recorded(machine), machine.inflight_bytes, machine.recording) == ({}, 0, False)
    assert names(machine, (1, barrier(1))) == ["IGNORED"]


def test_disabled_unaligned_stays_aligned():
    """If it fails, `enabled = False` does not disable (rule 14, U-15)."""
    machine = unaligned(2, enabled=False, force_unaligned=True)
    assert names(machine, (0, flagged(1)), (0, event("a1"))) == ["BLOCKED", "BUFFERED"]
    assert machine.next_deadline_ns() == 60 * S  # aborted, not switched
    assert machine.on_time(59 * S) is False
    assert machine.process_message(1, barrier(1), 59 * S).name == "TRIGGER_SNAPSHOT"
    assert machine.is_unaligned is False
    assert machine.metrics().flag_mismatches == 1  # reported, once
    assert machine.barrier == flagged(1)  # the wish is passed on


def test_metrics_count_unaligned_checkpoints():
    """If it fails, one cannot see how often checkpoints go unaligned, or what that costs."""
    machine = unaligned(2)
    for n in (1, 2):
        names(machine, (0, flagged(n)), (1, event("b1", size_bytes=5)))
        assert machine.metrics().is_in_unaligned_mode
        names(machine, (1, flagged(n)))
        machine.complete_alignment()
    names(machine, (0, barrier(3)), (1, barrier(3)))
    machine.complete_alignment()
    metrics = machine.metrics()
    assert (metrics.unaligned_count, metrics.alignments_completed, metrics.total_inflight_bytes) == (2, 3, 10)
    assert (metrics.threshold_switches, metrics.is_in_unaligned_mode, metrics.flag_mismatches) == (0, False, 0)


def test_the_longest_alignment_is_from_first_to_last_barrier():
    """If it fails, unaligned checkpoints show no alignment, however far apart their barriers come."""
    machine = UnalignedCheckpointer()
    for checkpoint_id, begin, end in ((1, 100, 150), (2, 200, 290), (3, 300, 310)):
        machine.process_message(0, CheckpointBarrier.new_unaligned(checkpoint_id, checkpoint_id), begin)
        assert not machine.begin_recording()
        machine.process_message(1, CheckpointBarrier(checkpoint_id, checkpoint_id), end)
        machine.complete_alignment()
    assert machine.metrics().max_alignment_duration_ns == 90
    machine.process_message(0, CheckpointBarrier.new_unaligned(4, 4), 400)
    machine.begin_recording()
    machine.process_message(1, EndOfInput(), 500)
    machine.complete_alignment()
    assert machine.metrics().max_alignment_duration_ns == 100


def test_metrics_count_threshold_switches():
    """If it fails, a threshold that is too low goes unnoticed."""
    machine = unaligned(2)
    machine.process_message(0, barrier(1), 5)
    machine.on_time(5 + 30 * S)
    metrics = machine.metrics()
    assert (metrics.unaligned_count, metrics.threshold_switches) == (1, 1)


# Conformance: the cases of laminardb's own tests that are valid (and the weak one made strong).


def test_aligned_fast_path():
    """If it fails, barriers that come in time cost an unaligned snapshot."""
    machine = unaligned(2)
    assert names(machine, (0, barrier(1)), (1, barrier(1))) == ["BLOCKED", "TRIGGER_SNAPSHOT"]
    assert (machine.is_unaligned, machine.inflight_data()) == (False, ())
    machine.complete_alignment()
    assert not machine.is_aligning()


def test_single_input_immediate_aligned():
    """If it fails, a chain does not checkpoint, or only every second time (U-06)."""
    machine = unaligned(1)
    for n in (1, 2, 3):
        assert names(machine, (0, barrier(n))) == ["TRIGGER_SNAPSHOT"]
        machine.complete_alignment()


def test_timeout_triggers_unaligned():
    """If it fails, the switched part does not say so (U-17)."""
    machine = unaligned(3, alignment_timeout_threshold_ns=1_000_000)
    machine.process_message(0, barrier(1), 0)
    assert machine.should_switch_to_unaligned(5_000_000)
    assert machine.on_time(5_000_000)
    machine.begin_recording()
    names(machine, (1, barrier(1)), (2, barrier(1)))
    assert (machine.barrier.is_unaligned, machine.is_unaligned, machine.was_threshold_triggered) == (True, True, True)


def test_inflight_capture():
    """If it fails, the snapshot names an input and has none of its events (7 and 7 bytes)."""
    machine = unaligned(2)
    machine.process_message(0, barrier(1))
    machine.on_time(30 * S)
    machine.begin_recording()
    names(machine, (1, event("b1", size_bytes=7)), (1, event("b2", size_bytes=7)), (1, barrier(1)))
    assert machine.inflight_data() == (InFlightChannelData(1, (event("b1"), event("b2")), 14),)


def test_max_buffer_exceeded():
    """If it fails, the limit is not inclusive: of 10, 5 and 5 fit, and 1 more does not."""
    machine = unaligned(2, max_inflight_buffer_bytes=10)
    names(machine, (0, flagged(1)), (1, event("b1", size_bytes=5)), (1, event("b2", size_bytes=5)))
    assert machine.aborts == []
    names(machine, (1, event("b3")))
    assert machine.aborts == [(1, Reason.IN_FLIGHT_LIMIT)]


def test_sink_cannot_use_unaligned():
    """If it fails, a sink commits at a barrier less than came before it (rule 14, U-19)."""
    machine = unaligned(2, is_sink=True, force_unaligned=True, alignment_timeout_threshold_ns=0)
    assert names(machine, (0, flagged(1)), (0, event("a1"))) == ["BLOCKED", "BUFFERED"]
    assert machine.on_time(5_000_000) is False
    assert machine.may_overtake is False
    assert machine.process_overtaking(1, flagged(1), [event("b1")]).name == "REFUSED"
    assert names(machine, (1, event("b1")), (1, barrier(1))) == ["PASS_THROUGH", "TRIGGER_SNAPSHOT"]
    assert machine.metrics().flag_mismatches == 0


def test_late_barriers_complete_cycle():
    """If it fails, the part is complete before its last barrier, or not with it."""
    machine = unaligned(3)
    machine.process_message(0, barrier(1))
    machine.on_time(30 * S)
    machine.begin_recording()
    assert names(machine, (1, barrier(1))) == ["LATE_BARRIER"]
    assert machine.is_aligning()
    assert names(machine, (2, barrier(1))) == ["PART_COMPLETE"]


def test_unaligned_flag_set_on_barrier():
    """If it fails, the flag bit means something else."""
    assert [CheckpointBarrier(1, 1, flags).is_unaligned for flags in (1, 0, 2, 3)] == [True, False, False, True]


# What the rules ask beside that.


@pytest.mark.parametrize(
    "settings", [{"alignment_timeout_threshold_ns": -1}, {"max_inflight_buffer_bytes": 0}], ids=lambda s: next(iter(s))
)
def test_settings_that_make_no_sense(settings):
    """If it fails, a typing error disables unaligned checkpoints without a word."""
    with pytest.raises(LimitError, match=next(iter(settings))):
        UnalignedCheckpointConfig(**settings)


@pytest.mark.parametrize("num_inputs", [1, 64, 65, 128])
def test_every_number_of_inputs(num_inputs):
    """If it fails, a mask overflows (rule 12, U-07)."""
    machine = unaligned(num_inputs)
    answers = names(machine, *((i, flagged(1)) for i in range(num_inputs)))
    assert answers[0] == "TAKE_SNAPSHOT"
    assert answers[1:] == ["LATE_BARRIER"] * (num_inputs - 2) + ["PART_COMPLETE"] * (num_inputs > 1)
    machine.complete_alignment()
    assert machine.last_terminated_id == 1


def test_a_single_input_is_complete_at_once():
    """If it fails, every second checkpoint of a chain is lost (rule 17, U-06)."""
    gate, port = unaligned_gate(1, force_unaligned=True)
    for n in (1, 2, 3):
        gate.offer(0, barrier(n), 0)
        assert port.take() == [
            f"block 0 {n}",
            f"snapshot {n}",
            f"forward barrier {n} unaligned",
            f"complete {n}",
            f"resume {n}",
        ]


def test_the_switch_keeps_who_has_delivered():
    """If it fails, what an input had buffered is lost, or stored and replayed (U-03: the document's scenario)."""
    gate, port = unaligned_gate(3)
    for input_id, message in ((0, barrier(1)), (0, event("a2")), (2, event("d1"))):
        gate.offer(input_id, message, 0)
    gate.offer(1, barrier(1), 31 * S)  # the passive check: strictly later
    gate.drain_all(31 * S)
    for input_id, message in ((0, event("a3")), (2, event("d2")), (2, barrier(1)), (2, event("d3"))):
        gate.offer(input_id, message, 32 * S)
    assert port.lines == [
        "block 0 1",
        "buffer 0 a2",
        "deliver 2 d1",
        "block 1 1",
        "snapshot 1",
        "forward barrier 1 unaligned",
        "resume 1",
        "deliver 0 a2",
        "deliver 0 a3",
        "record 2 d2",
        "deliver 2 d2",
        "block 2 1",
        "complete 1",
        "resume 1",
        "deliver 2 d3",
    ]


def test_a_duplicate_after_the_threshold_does_not_switch():
    """If it fails, a copy of a barrier counts as news (U-22)."""
    machine = unaligned(3)
    machine.process_message(0, barrier(1), 0)
    assert machine.process_message(0, barrier(1), 31 * S) is AlignmentAction.IGNORED


def test_the_byte_limit_switches_instead_of_giving_up():
    """If it fails, backpressure costs the checkpoint though unaligned is enabled, or a message (rule 7)."""
    gate, port = unaligned_gate(2, limits={"max_buffer_memory_bytes": 2})
    for message in (barrier(1), event("a1"), event("a2")):
        assert gate.offer(0, message, 0)
    assert gate.offer(0, event("a3"), 0) is False
    assert port.lines[-3:] == ["snapshot 1", "forward barrier 1 unaligned", "resume 1"]
    assert gate.drain_all(0) == 2
    assert gate.offer(0, event("a3"), 0)
    assert port.of("deliver") == ["0 a1", "0 a2", "0 a3"]
    assert port.of("record") == port.of("decline") == []
    gate, port = unaligned_gate(2, limits={"max_buffer_memory_bytes": 1}, enabled=False)
    gate.offer(0, barrier(1), 0)
    assert gate.offer(0, event("a1", size_bytes=2), 0) is False
    assert port.of("decline") == ["1 buffer limit"]


def test_a_newer_barrier_waits_on_an_input_that_delivered():
    """If it fails, checkpoint 2 is swallowed, or takes events from before its barrier with it (rule 17, U-08)."""
    gate, port = unaligned_gate(2)
    for input_id, message in ((0, flagged(1)), (0, event("a1")), (0, flagged(2)), (0, event("a2")), (0, cancel(3))):
        assert gate.offer(input_id, message, 0)
    assert port.of("buffer") == ["0 barrier 2 unaligned", "0 a2", "0 cancel 3"]
    assert gate.is_blocked(0)
    gate.offer(1, event("b1"), 0)
    gate.offer(1, flagged(1), 0)
    assert port.of("complete") == ["1"]
    gate.drain_next(0)
    assert port.of("snapshot") == ["1", "2"]
    gate.drain_all(0)
    assert port.of("deliver") == ["0 a1", "1 b1", "0 a2"]  # and the cancel waits again
    gate.offer(1, flagged(2), 0)
    gate.drain_all(0)
    assert (port.of("complete"), port.of("cancel")) == (["1", "2"], ["3"])


def test_a_newer_barrier_elsewhere_subsumes_and_discards_the_record():
    """If it fails, the record of a dead checkpoint is stored with the next (rules 6 and 17)."""
    gate, port = unaligned_gate(2)
    for input_id, message in ((0, flagged(1)), (1, event("b1")), (1, flagged(2)), (0, event("a1"))):
        gate.offer(input_id, message, 0)
    assert port.of("decline") == ["1 subsumed"]
    assert recorded(gate.aligner) == {0: ["a1"]}
    assert port.lines.index("resume 1") < port.lines.index("block 1 2")


@pytest.mark.parametrize("how", ["cancel on the missing", "cancel on the delivered", "coordinator", "timeout"])
def test_a_recording_can_be_aborted(how):
    """If it fails, there is no way out of waiting for late barriers, or the record survives (U-12)."""
    gate, port = unaligned_gate(2)
    gate.offer(0, flagged(1), 0)
    gate.offer(1, event("b1"), 0)
    if how == "coordinator":
        assert gate.abort(1, Reason.EXPIRED, 0)
    elif how == "timeout":
        assert gate.next_deadline_ns() == 60 * S
        assert gate.on_time(60 * S)
    else:
        gate.offer(1 if how == "cancel on the missing" else 0, cancel(1), 0)
    assert port.of("cancel") == ["1"]
    assert port.of("decline") == ["1 expired"] * (how == "timeout")
    assert gate.unaligned.inflight_data() == ()
    gate.offer(1, event("b2"), 0)
    gate.offer(1, flagged(1), 0)
    assert port.lines[-2:] == ["deliver 1 b2", "ignore 1 barrier 1 unaligned"]
    gate.offer(0, flagged(2), 0)
    gate.offer(1, flagged(2), 0)
    assert port.of("complete") == ["2"]


def test_a_contradicting_barrier_gives_the_recording_up():
    """If it fails, two attempts of one id become one checkpoint (rule 6); the flag alone is no contradiction (U-18)."""
    machine = unaligned(3)
    assert names(machine, (0, barrier(1)), (1, flagged(1)), (2, CheckpointBarrier(1, 9))) == [
        "BLOCKED",
        "TAKE_SNAPSHOT",
        "ABORTED",
    ]
    assert machine.aborts == [(1, Reason.BARRIER_MISMATCH)]


def test_copies_that_differ_in_the_flag_are_duplicates():
    """If it fails, a copy that went ahead kills the checkpoint of the one that did not."""
    machine = unaligned(3)
    assert names(machine, (0, barrier(1)), (0, flagged(1)), (1, flagged(1)), (0, barrier(1))) == [
        "BLOCKED",
        "IGNORED",
        "TAKE_SNAPSHOT",
        "IGNORED",
    ]
    assert names(machine, (0, barrier(2)), (0, barrier(1))) == ["BUFFERED", "IGNORED"]
    assert machine.aborts == []


def test_a_newer_barrier_that_was_held_waits_in_its_place():
    """If it fails, the switch lets a buffered barrier of the next checkpoint fall behind what follows it (rule 17)."""
    gate, port = unaligned_gate(2)
    for message in (barrier(1), barrier(2), event("a1"), Watermark(1)):
        gate.offer(0, message, 0)
    gate.on_time(30 * S)
    assert (gate.can_drain, gate.is_blocked(0)) == (False, True)
    gate.drain_all(30 * S)
    gate.offer(1, barrier(1), 30 * S)
    gate.drain_all(30 * S)
    assert port.of("deliver") == []  # behind barrier 2, as before
    gate.offer(1, barrier(2), 30 * S)
    gate.drain_all(30 * S)
    assert port.of("complete") == ["1", "2"]
    assert port.of("deliver") == ["0 a1", "0 watermark 1"]


def test_what_waits_with_a_newer_cancel_keeps_its_order_when_a_barrier_overtakes_it():
    """If it fails, an event goes ahead of a cancel marker that came before it (rules 1 and 17).

    The marker's turn came, it had to wait, and it was put behind what stood behind it.
    """
    machine, port = unaligned_gate(3)
    machine.offer(1, flagged(1), 0)
    machine.offer(1, cancel(3), 0)
    machine.offer(1, event("b1"), 0)
    machine.offer(0, flagged(2), 0)
    assert machine.offer_overtaking(1, flagged(2), (), 0)
    machine.drain_all(0)
    assert port.of("deliver") == []
    machine.offer(2, flagged(2), 0)
    machine.drain_all(0)
    assert port.lines[-4:] == ["resume 2", "cancel 3", "resume 3", "deliver 1 b1"]


def test_a_released_event_over_the_limit():
    """If it fails, the input on which the limit was passed is never read again (rule 18)."""
    gate, port = unaligned_gate(2, max_inflight_buffer_bytes=1)
    gate.offer(0, barrier(1), 0)
    gate.offer(0, event("a1", size_bytes=2), 0)
    gate.abort(1, Reason.EXPIRED, 0)
    gate.offer(1, flagged(2), 0)
    gate.drain_all(0)
    assert port.of("decline") == ["2 in-flight limit"]
    assert gate.aligner.free == {0, 1}
    gate.offer(0, event("a2"), 0)
    assert port.of("deliver") == ["0 a1", "0 a2"]
    assert gate.aligner.buffered_bytes() == 0


def test_a_snapshot_that_fails_at_the_start():
    """If it fails, a task keeps recording for a checkpoint that it has no image for (rule 9)."""
    gate, port = unaligned_gate(2)
    port.fails = {1}
    gate.offer(1, flagged(1), 0)
    gate.offer(0, event("a1"), 0)
    assert port.lines == ["block 1 1", "decline 1 snapshot failed", "cancel 1", "resume 1", "deliver 0 a1"]
    assert not gate.aligner.is_aligning()


def test_watermarks_keep_their_place_and_are_not_recorded():
    """If it fails, a watermark overtakes an event in flight, or crashes the machine (U-10)."""
    gate, port = unaligned_gate(2)
    for message in (event("b1"), Watermark(5), event("b2"), flagged(1)):
        gate.offer(0, flagged(1), 0)
        gate.offer(1, message, 0)
    assert port.of("deliver") == ["1 b1", "1 watermark 5", "1 b2"]
    assert port.of("record") == ["1 b1", "1 b2"]


def test_an_end_is_a_barrier():
    """If it fails, a source that ends leaves the part incomplete for ever (rule 13)."""
    gate, port = unaligned_gate(3)
    for input_id, message in ((0, flagged(1)), (1, event("b1")), (1, END), (0, END), (2, event("c1")), (2, END)):
        gate.offer(input_id, message, 0)
    assert port.lines[-3:] == ["deliver 2 c1", "end 2", "complete 1"]
    assert port.of("record") == ["1 b1", "2 c1"]


# Overtaking.


def test_an_overtaking_barrier_records_what_it_passed_once():
    """If it fails, overtaken data is in no record, or in it twice, or is lost live (rule 16, P-16)."""
    gate, port = unaligned_gate(2)
    ahead = [event("b1"), Watermark(3), event("b2")]
    assert gate.offer_overtaking(1, barrier(1), ahead, 0)
    assert port.take() == [
        "block 1 1",
        "snapshot 1",
        "forward barrier 1 unaligned",
        "record 1 b1",
        "record 1 b2",
        "resume 1",
    ]
    for message in [*ahead, event("b3")]:
        gate.offer(1, message, 0)
    assert port.of("record") == []
    assert port.of("deliver") == ["1 b1", "1 watermark 3", "1 b2", "1 b3"]
    assert gate.offer_overtaking(0, barrier(1), [event("a1")], 0)
    assert port.lines[-4:] == ["block 0 1", "record 0 a1", "complete 1", "resume 1"]


def test_an_overtaking_barrier_passes_what_is_still_to_release():
    """If it fails, messages that the gate itself holds are behind the cut of nobody."""
    gate, port = unaligned_gate(2)
    for message in (barrier(1), event("a1"), event("a2")):
        gate.offer(0, message, 0)
    gate.abort(1, Reason.EXPIRED, 0)
    assert gate.can_drain
    assert gate.offer_overtaking(0, flagged(2), [event("a3")], 0)
    assert port.of("record") == ["0 a1", "0 a2", "0 a3"]
    gate.offer(1, flagged(2), 0)
    gate.drain_all(0)
    assert port.of("deliver") == ["0 a1", "0 a2"]
    assert len(port.of("record")) == 3


def test_what_is_still_to_release_ahead_of_the_barrier_is_recorded():
    """If it fails, events that a former checkpoint buffered are neither in the state nor in the record."""
    gate, port = unaligned_gate(3)
    for message in (barrier(1), event("a1"), event("a2"), barrier(2), event("a3")):
        gate.offer(0, message, 0)
    gate.abort(1, Reason.EXPIRED, 0)
    gate.offer(1, flagged(2), 0)
    gate.drain_all(0)
    assert port.of("record") == ["0 a1", "0 a2"]
    assert port.of("deliver") == ["0 a1", "0 a2", "0 a3"]
    assert gate.offer(2, flagged(2), 0)
    assert port.of("complete") == ["2"]


def test_where_a_barrier_may_not_overtake_it_comes_in_its_turn():
    """If it fails, a sink or a task that aligns is handed a barrier ahead of data that belongs before it."""
    for settings in ({"is_sink": True}, {"enabled": False}):
        gate, port = unaligned_gate(2, **settings)
        assert gate.may_overtake is False
        assert gate.wants_overtaking(0, flagged(1), 99 * S) is False
        assert gate.offer_overtaking(0, flagged(1), [event("a1")], 0) is False
        assert port.lines == []
    gate, port = unaligned_gate(2)
    gate.offer(0, flagged(1), 0)
    assert gate.offer_overtaking(0, flagged(2), [event("a1")], 0) is False  # it would be before what 1 still lacks
    gate.offer(1, flagged(1), 0)
    assert gate.offer_overtaking(0, flagged(2), [event("a1")], 0)


def test_overtaking_barriers_that_add_nothing():
    """If it fails, a stale or doubled barrier starts something because it came ahead of its place."""
    machine = unaligned(2)
    names(machine, (0, flagged(2)))
    assert machine.process_overtaking(1, flagged(1), [event("b1")]).name == "IGNORED"
    assert machine.process_overtaking(0, flagged(2), [event("a1")]).name == "IGNORED"
    assert machine.process_overtaking(0, CheckpointBarrier(2, 9), []).name == "ABORTED"
    assert machine.aborts == [(2, Reason.BARRIER_MISMATCH)]
    assert recorded(machine) == {}


def test_overtaken_data_counts_against_the_limit():
    """If it fails, the limit holds for what comes later and not for what was queued (rule 18)."""
    gate, port = unaligned_gate(2, max_inflight_buffer_bytes=2)
    gate.offer(0, flagged(1), 0)
    gate.offer(1, event("b1"), 0)
    assert gate.offer_overtaking(1, flagged(1), [event("b2"), event("b3")], 0)
    assert port.of("decline") == ["1 in-flight limit"]
    assert port.of("complete") == []
    gate.offer_overtaking(0, flagged(2), [event("a1"), event("a2"), event("a3")], 0)
    assert port.of("snapshot") == ["1"]
    assert port.of("cancel") == ["1", "2"]


def test_wants_overtaking():
    """If it fails, a driver leaves barriers in the queue for which the task waits, or takes them too early (R7, R9)."""
    machine = unaligned(2)
    assert machine.wants_overtaking(0, flagged(1), 0)
    assert not machine.wants_overtaking(0, barrier(1), 99 * S)  # it does not know since when
    machine.note_trigger(1, 5)
    assert machine.overtaking_deadline_ns(barrier(1)) == 5 + 30 * S
    assert not machine.wants_overtaking(0, barrier(1), 4 + 30 * S)
    assert machine.wants_overtaking(0, barrier(1), 5 + 30 * S)
    names(machine, (1, flagged(1)))
    assert machine.wants_overtaking(0, barrier(1), 0)
    assert not machine.wants_overtaking(1, flagged(2), 0)
    names(machine, (0, barrier(1)))
    machine.complete_alignment()
    assert not machine.wants_overtaking(0, barrier(1), 99 * S)
    assert unaligned(2, force_unaligned=True).wants_overtaking(0, barrier(1), 0)


def test_what_only_the_driver_can_do_wrong_raises():
    """If it fails, a bug of the driver shows up as a wrong checkpoint later."""
    machine = unaligned(2)
    names(machine, (1, END), (0, flagged(1)))
    before = machine.capture()
    with pytest.raises(InputIndexError):
        machine.process_overtaking(-1, flagged(2), [])
    with pytest.raises(ClosedInputError):
        machine.process_overtaking(1, flagged(2), [])
    with pytest.raises(UnknownMessageError):
        machine.process_overtaking(0, event("a1"), [])  # type: ignore[arg-type]
    with pytest.raises(NotTriggeredError):
        machine.begin_recording()
    assert machine.capture() == before
    machine = unaligned(3)
    machine.process_message(1, END)
    machine.process_message(0, flagged(1))
    with pytest.raises(NotTriggeredError):
        machine.complete_alignment()  # recording has not even begun
    machine.begin_recording()
    before = machine.capture()
    with pytest.raises(NotTriggeredError):
        machine.complete_alignment()
    with pytest.raises(ClosedInputError):
        machine.process_message(1, event("b1"))
    with pytest.raises(InputIndexError):
        machine.process_message(3, event("d1"))
    assert machine.capture() == before


def test_sizes_of_the_callers_own():
    """If it fails, limits count something else than the caller said (U-16)."""
    machine = UnalignedCheckpointer(
        BarrierAlignerConfig(2), UnalignedCheckpointConfig(max_inflight_buffer_bytes=250), size_of=lambda message: 100
    )
    names(machine, (0, flagged(1)), (1, Event("b", 1)))
    assert machine.process_overtaking(1, flagged(1), [Event("b", 2)]).name == "PART_COMPLETE"
    assert sum(data.size_bytes for data in machine.inflight_data()) == 200
