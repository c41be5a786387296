"""Tasks whose barriers go ahead: what they overtake on the way out is recorded by the sender (protocol rule 16)."""

from __future__ import annotations

import pytest

from barrierlab.impl import (
    Acknowledge,
    CoordinatorConfig,
    Decline,
    LimitError,
    NotRecordingError,
    OperatorTask,
    OutputExchange,
    Reason,
    SourceTask,
    Watermark,
)
from barrierlab.impl.checkpoint.injector import InjectBarrierCommand
from tests.impl.support import Dataflow, Union, barrier, event, flagged, unaligned


def task(outputs: int = 2, num_inputs: int = 2, **settings):
    """A task that copies its inputs to every output, and what it tells."""
    told: list[str] = []
    exchanges = [OutputExchange("broadcast", list(range(outputs)))]
    machine = unaligned(num_inputs, **settings)
    return OperatorTask("t", Union(), machine, exchanges, lambda v, i, s: told.append(f"{v} {i} {s}")), told


def sent(a_task) -> list[str]:
    """The outbox, readable."""
    return [f"{output} {message}" for output, message in a_task.outbox]


def output(report: Acknowledge) -> dict[int, list[str]]:
    """Return what the barrier overtook on the way out."""
    return {data.input_id: [str(each) for each in data.events] for data in report.inflight_output}


def test_the_barrier_leaves_ahead_of_the_outbox():
    """If it fails, a full channel downstream delays the barrier, or what it passed is in no record (P-11, P-16)."""
    machine, told = task()
    machine.offer(0, event("a1"), 0)
    machine.offer(0, Watermark(1), 0)
    machine.offer(0, flagged(1), 0)
    assert sent(machine) == ["0 barrier 1 unaligned", "1 barrier 1 unaligned", "0 a1", "1 a1"]
    assert [line.split()[0] for line in told[-4:]] == ["forward", "capture_output", "capture_output", "resume"]
    machine.offer(1, event("b1"), 0)
    assert machine.reports == []
    machine.offer(1, flagged(1), 0)
    (report,) = machine.reports
    assert (report.is_unaligned, report.was_threshold_triggered) == (True, False)
    assert [str(each) for each in report.inflight[0].events] == ["b1"]
    assert output(report) == {0: ["a1"], 1: ["a1"]}
    assert report.image == (event("a1"),)


def test_an_aligned_part_stays_in_order():
    """If it fails, an aligned barrier overtakes, or the answer does not say what it is (rule 19)."""
    machine, _ = task(outputs=1)
    machine.offer(0, event("a1"), 0)
    machine.offer(0, barrier(1), 0)
    machine.offer(1, barrier(1), 0)
    assert sent(machine) == ["0 a1", "0 barrier 1"]
    assert machine.reports == [Acknowledge("t", 1, machine.reports[0].digest)]
    assert (machine.reports[0].is_unaligned, machine.reports[0].inflight_output) == (False, ())


def test_a_task_that_may_not_keeps_a_flagged_barrier_in_order():
    """If it fails, data that a task with `enabled = False` has not recorded is overtaken."""
    machine, _ = task(outputs=1, num_inputs=1, enabled=False)
    machine.offer(0, event("a1"), 0)
    machine.offer(0, flagged(1), 0)
    assert sent(machine) == ["0 a1", "0 barrier 1 unaligned"]
    assert machine.reports[0].is_unaligned is False


def test_the_switch_says_that_it_was_one():
    """If it fails, one cannot tell a switch from a wish (rule 19, U-17)."""
    machine, _ = task(outputs=1)
    machine.offer(0, barrier(1), 0)
    machine.on_time(30_000_000_000)
    machine.offer(1, barrier(1), 0)
    assert (machine.reports[0].is_unaligned, machine.reports[0].was_threshold_triggered) == (True, True)


def test_what_is_passed_in_the_channel_lies_ahead_of_the_outbox():
    """If it fails, after recovery a channel has its events in another order."""
    machine, told = task(outputs=1)
    machine.offer(0, event("a4"), 0)
    machine.offer(0, flagged(1), 0)
    machine.capture_overtaken(0, [event("a3")], 1)
    machine.capture_overtaken(0, [event("a1"), Watermark(0), event("a2")], 1)  # it got on in the meantime
    machine.offer(1, flagged(1), 0)
    assert output(machine.reports[0]) == {0: ["a1", "a2", "a3", "a4"]}
    assert sum(line.startswith("capture_output") for line in told) == 4


def test_an_aligned_barrier_in_the_outbox_goes_ahead_when_its_time_is_up():
    """If it fails, a full channel downstream delays an aligned barrier for ever, timeout or not (FLINK-27251)."""
    machine, told = task(outputs=2, num_inputs=1, alignment_timeout_threshold_ns=10)
    machine.offer(0, event("a1"), 0)
    machine.offer(0, Watermark(1), 0)
    machine.offer(0, barrier(1), 0)
    machine.outbox.append((0, event("a2")))
    assert not machine.prioritise_barrier(0, flagged(2))
    assert machine.prioritise_barrier(0, flagged(1))
    assert sent(machine)[0] == "0 barrier 1 unaligned"
    assert sent(machine)[-2:] == ["1 barrier 1", "0 a2"]
    assert not machine.prioritise_barrier(0, flagged(1))
    machine.capture_overtaken(0, [event("a0")], 1)
    (report,) = machine.reports
    assert (report.is_unaligned, report.was_threshold_triggered) == (True, True)
    assert output(report) == {0: ["a0", "a1"]}
    assert [line for line in told if line.startswith("capture_output")] == [
        "capture_output 0 (1, Event('a', 1, part=0, key=0, value=None, timestamp_ms=0, size_bytes=1))",
        "capture_output 0 (1, Event('a', 0, part=0, key=0, value=None, timestamp_ms=0, size_bytes=1))",
    ]


def test_what_is_passed_when_the_part_is_complete():
    """If it fails, a chain's record lacks what its barrier passed in the channel: the part is complete at once."""
    machine, _ = task(outputs=1, num_inputs=1)
    machine.offer(0, event("a2"), 0)
    machine.offer(0, flagged(1), 0)
    machine.capture_overtaken(0, [event("a1")], 1)
    assert output(machine.reports[0]) == {0: ["a1", "a2"]}
    machine.reports.clear()
    with pytest.raises(NotRecordingError, match="barrier 1"):
        machine.capture_overtaken(0, [event("a0")], 1)
    with pytest.raises(LimitError, match="output = 7"):
        machine.capture_overtaken(7, [], 1)
    machine.capture_overtaken(0, [Watermark(0)], 1)  # no event: nothing to record, and no bug
    machine.abort(2, Reason.EXPIRED, 0)
    machine.capture_overtaken(0, [event("a0")], 2)  # aborted: nothing to record, and no bug


def test_a_source_records_its_outbox():
    """If it fails, events that the position has passed are in nobody's part (rules 4 and 16, P-14)."""
    source = SourceTask("a", exchanges=[OutputExchange("forward", [0])])
    source.emit(event("a1"))
    source.injector.coordinator_handle().inject(InjectBarrierCommand(1, 1, True))
    source.poll(0)
    source.emit(event("a2"))
    source.injector.coordinator_handle().inject(InjectBarrierCommand(2, 2, True))
    source.poll(0)
    assert sent(source) == ["0 barrier 1 unaligned", "0 barrier 2 unaligned", "0 a1", "0 a2"]
    first, second = source.reports
    assert (first.position, output(first), first.is_unaligned) == (2, {0: ["a1"]}, True)
    assert (second.position, output(second)) == (3, {0: ["a1", "a2"]})
    source.capture_overtaken(0, [event("a0")], 1)  # the first gets on, while the second waits
    assert [output(report) for report in source.reports] == [{0: ["a0", "a1"]}, {0: ["a1", "a2"]}]


def test_outputs_count_against_the_limit():
    """If it fails, a large outbox is recorded without bound (rule 18)."""
    machine, _ = task(outputs=2, max_inflight_buffer_bytes=3)
    machine.offer(0, event("a1"), 0)
    machine.offer(0, flagged(1), 0)
    assert machine.gate.unaligned.inflight_bytes == 2
    machine.capture_overtaken(1, [event("a0")], 1)
    assert machine.reports == []
    machine.capture_overtaken(0, [event("a0")], 1)
    assert machine.reports == [Decline("t", 1, Reason.IN_FLIGHT_LIMIT)]
    machine, _ = task(outputs=2, max_inflight_buffer_bytes=1)
    machine.offer(0, event("a1"), 0)
    machine.offer(0, flagged(1), 0)
    assert machine.reports == [Decline("t", 1, Reason.IN_FLIGHT_LIMIT)]
    assert sent(machine)[-2:] == ["0 cancel 1", "1 cancel 1"]


def test_a_part_that_is_complete_counts_against_the_limit_until_it_is_reported():
    """If it fails, what the barrier passes in a channel after the last input's barrier is recorded without bound."""
    machine, _ = task(outputs=1, max_inflight_buffer_bytes=2)
    machine.offer(0, event("a1"), 0)
    machine.offer(0, flagged(1), 0)
    machine.offer(1, flagged(1), 0)
    (report,) = machine.reports
    assert output(report) == {0: ["a1"]}
    machine.capture_overtaken(0, [event("a0")], 1)
    (report,) = machine.reports
    assert output(report) == {0: ["a0", "a1"]}
    machine.capture_overtaken(0, [event("a8"), event("a9")], 1)
    assert machine.reports == [Decline("t", 1, Reason.IN_FLIGHT_LIMIT)]
    assert sent(machine)[-1] == "0 cancel 1"  # behind the barrier
    machine.capture_overtaken(0, [event("a7")], 1)  # aborted: nothing to record


def test_a_source_counts_its_outputs_against_the_limit():
    """If it fails, what a source has in its outbox and channels is recorded without bound (rule 18)."""
    for in_outbox, in_channel, declines in ((2, 0, False), (3, 0, True), (1, 1, False), (1, 2, True)):
        source = SourceTask("a", exchanges=[OutputExchange("forward", [0])])
        source.max_inflight_buffer_bytes = 2
        for n in range(in_outbox):
            source.emit(event(f"a{n + 1}"))
        source.injector.coordinator_handle().inject(InjectBarrierCommand(1, 1, True))
        assert source.poll(0) == flagged(1)
        source.capture_overtaken(0, [event(f"a{9 + n}") for n in range(in_channel)], 1)
        if declines:
            assert source.reports == [Decline("a", 1, Reason.IN_FLIGHT_LIMIT)]
            assert sent(source)[-1] == "0 cancel 1"
        else:
            (report,) = source.reports
            assert len(output(report)[0]) == in_outbox + in_channel


def test_what_is_aborted_leaves_no_record():
    """If it fails, the next part carries what a dead barrier overtook."""
    machine, _ = task(outputs=1)
    machine.offer(0, event("a1"), 0)
    machine.offer(0, flagged(1), 0)
    machine.abort(1, Reason.EXPIRED, 0)
    assert machine._overtaken is None  # it may be large
    machine.outbox.clear()
    machine.offer(0, flagged(2), 0)
    machine.offer(1, flagged(2), 0)
    assert output(machine.reports[-1]) == {}


def test_a_task_in_the_middle_of_recording_is_what_it_captured():
    """If it fails, image, record or overtaken outputs are lost with a task that is restored."""
    first, _ = task(outputs=1)
    for input_id, message in ((0, event("a1")), (0, flagged(1)), (1, event("b1"))):
        first.offer(input_id, message, 0)
    second, _ = task(outputs=1)
    value = first.capture()
    assert hash(value) == hash(first.capture())
    second.restore(value)
    for each in (first, second):
        each.offer(1, flagged(1), 0)
    assert second.reports == first.reports
    assert (second.reports[0].image, output(second.reports[0])) == ((event("a1"),), {0: ["a1"]})


def test_the_coordinator_asks():
    """If it fails, a job that is set to unaligned checkpoints gets aligned barriers."""
    for asked in (False, True):
        flow = Dataflow("a->sink", config=CoordinatorConfig(None, unaligned=asked))
        flow.trigger()
        flow.run()
        assert flow.completed == [1]
        assert flow.said("a", "forward") == ["forward barrier 1 unaligned" if asked else "forward barrier 1"]
