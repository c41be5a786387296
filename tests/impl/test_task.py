"""Sources, operator tasks and sinks: outputs in order, positions, watermarks, ends, closed outputs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barrierlab.impl import (
    Acknowledge,
    BarrierInjectorConfig,
    CheckpointBarrierInjector,
    Decline,
    Event,
    InjectBarrierCommand,
    OperatorTask,
    OutputExchange,
    Reason,
    SinkTask,
    SnapshotFailedError,
    SourceTask,
    Watermark,
    digest,
)
from tests.impl.support import END, Union, aligner, barrier, cancel, event


class Windows(Union):
    """Gives an event back when the watermark has passed it."""

    def process(self, input_id, event):
        self.seen.append(event)
        return ()

    def on_watermark(self, timestamp_ms):
        due = [each for each in self.seen if each.timestamp_ms <= timestamp_ms]
        self.seen = [each for each in self.seen if each.timestamp_ms > timestamp_ms]
        return due

    def on_end(self, input_id):
        return [Event("e", input_id + 1)]


def task(operator=None, num_inputs=2, outputs=1) -> tuple[OperatorTask, list]:
    """A task with `outputs` forward exchanges, and what it tells."""
    told: list[tuple[str, int, str]] = []
    exchanges = [OutputExchange("forward", [output]) for output in range(outputs)]
    made = OperatorTask(
        "t",
        operator or Union(),
        aligner(num_inputs),
        exchanges,
        lambda verb, i, what: told.append((verb, i, str(what))),
    )
    return made, told


def source(outputs=1) -> tuple[SourceTask, list]:
    """A source with `outputs` forward exchanges, and what it tells."""
    told: list[tuple[str, int, str]] = []
    exchanges = [OutputExchange("forward", [output]) for output in range(outputs)]
    injector = CheckpointBarrierInjector(BarrierInjectorConfig(None, "a"))
    return SourceTask("a", injector, exchanges, lambda verb, i, what: told.append((verb, i, str(what)))), told


def inject(made: SourceTask, checkpoint_id: int) -> None:
    """The coordinator's command."""
    made.injector.coordinator_handle().inject(InjectBarrierCommand(checkpoint_id, checkpoint_id))


def sent(made) -> list[tuple[int, str]]:
    """The outbox in readable form."""
    return [(output, str(message)) for output, message in made.outbox]


def test_a_source_cuts_when_the_injector_that_it_was_given_says_so():
    """If it fails, the coordinator commands an injector that no source polls, and each checkpoint expires."""
    injector = CheckpointBarrierInjector(BarrierInjectorConfig(None, "a"))
    made = SourceTask("a", injector, [OutputExchange("forward", [0])])
    injector.coordinator_handle().inject(InjectBarrierCommand(1, 1))
    made.poll(0)
    assert sent(made) == [(0, "barrier 1")]


def test_outputs_of_earlier_events_leave_before_the_barrier():
    """If it fails, results that belong to a checkpoint come behind its barrier (P-11)."""
    made, _ = task()
    for message in (event("a1"), event("a2"), barrier(1), event("a3")):
        made.offer(0, message, 0)
    made.offer(1, barrier(1), 0)
    made.drain_next(0)
    assert sent(made) == [(0, "a1"), (0, "a2"), (0, "barrier 1"), (0, "a3")]


def test_barrier_watermark_cancel_and_end_go_to_every_output():
    """If it fails, one branch of a fan-out stands still (rule 5)."""
    made, _ = task(num_inputs=1, outputs=3)
    for message in (Watermark(4), barrier(1), cancel(2), END):
        made.offer(0, message, 0)
    assert sent(made) == [(o, m) for m in ("watermark 4", "barrier 1", "cancel 2", "end") for o in range(3)]
    assert made.finished


def test_image_is_not_changed_by_what_comes_later():
    """If it fails, an event behind the cut is in the snapshot (P-12)."""
    made, _ = task(num_inputs=1)
    made.offer(0, event("a1"), 0)
    made.offer(0, barrier(1), 0)
    made.offer(0, event("a2"), 0)
    (report,) = made.reports
    assert type(report) is Acknowledge
    assert report.image == (event("a1"),)
    assert report.digest == digest((event("a1"),))


def test_watermark_is_the_least_of_the_open_inputs():
    """If it fails, windows fire before the slower input has come, or event time goes back (WM)."""
    made, _ = task(Windows())
    made.offer(0, event("a1", timestamp_ms=4), 0)
    made.offer(0, Watermark(9), 0)
    assert sent(made) == []
    made.offer(1, Watermark(5), 0)
    made.offer(1, Watermark(3), 0)  # never back
    made.offer(0, Watermark(8), 0)
    assert sent(made) == [(0, "a1"), (0, "watermark 5")]
    made.offer(1, END, 0)
    assert sent(made)[2:] == [(0, "e2"), (0, "watermark 9")]
    assert made.watermark_ms == 9


def test_end_of_the_last_input_is_passed_on_once():
    """If it fails, a task ends with its first input, or its readers wait for ever (rule 13)."""
    made, told = task(Windows())
    made.offer(0, END, 0)
    assert not made.finished
    assert sent(made) == [(0, "e1")]
    made.offer(1, END, 0)
    assert made.finished
    assert sent(made) == [(0, "e1"), (0, "e2"), (0, "end")]
    assert [verb for verb, _, _ in told] == ["end", "end"]


def test_abort_of_a_task_that_has_ended():
    """If it fails, a cancel marker follows the end of a channel, where nothing may follow (rule 13)."""
    made, told = task(num_inputs=1)
    made.offer(0, END, 0)
    assert made.abort(1, Reason.EXPIRED, 0) is False
    assert sent(made) == [(0, "end")]
    assert told == [("end", 0, "end")]


def test_closed_output_declines_and_cancels_on_the_others():
    """If it fails, the other branches align for a checkpoint that cannot complete (rule 5, P-15)."""
    made, _ = task(num_inputs=1, outputs=3)
    made.offer(0, event("a1"), 0)
    made.close_output(1)
    made.offer(0, barrier(1), 0)
    made.offer(0, event("a2"), 0)
    assert made.reports == [Decline("t", 1, Reason.OUTPUT_CLOSED)]
    assert sent(made) == [(0, "a1"), (2, "a1"), (0, "cancel 1"), (2, "cancel 1"), (0, "a2"), (2, "a2")]


def test_operator_that_cannot_snapshot():
    """If it fails, a state that was not saved is acknowledged (rule 9)."""

    class Broken(Union):
        def checkpoint(self):
            raise SnapshotFailedError("no space left")

    made, told = task(Broken(), num_inputs=1)
    made.offer(0, barrier(1), 0)
    assert made.reports == [Decline("t", 1, Reason.SNAPSHOT_FAILED)]
    assert sent(made) == [(0, "cancel 1")]
    assert [verb for verb, _, _ in told] == ["block", "decline", "cancel", "resume"]


def test_every_effect_is_told_in_order():
    """If it fails, a history is written that did not happen."""
    made, told = task()
    arrivals = [(0, barrier(1)), (0, event("a1")), (1, event("b1")), (1, barrier(1)), (1, barrier(1))]
    for input_id, message in arrivals:
        made.offer(input_id, message, 0)
    made.drain_next(0)
    cut = digest((event("b1"),))
    assert told == [
        ("block", 0, "1"),
        ("buffer", 0, "a1"),
        ("deliver", 1, "b1"),
        ("block", 1, "1"),
        ("snapshot", -1, str((1, cut))),
        ("forward", -1, "barrier 1"),
        ("complete", -1, "1"),
        ("resume", -1, "1"),
        ("ignore", 1, "barrier 1"),
        ("deliver", 0, "a1"),
    ]


def test_fronts_of_the_gate():
    """If it fails, a driver that talks to the task gets other answers than from its gate."""
    made, told = task()
    made.gate.note_trigger(1, 5)
    made.offer(0, barrier(1), 10)
    assert made.next_deadline_ns() == 5 + made.gate.aligner.config.alignment_timeout_ns
    assert made.can_take(0)
    assert made.on_time(11) is False
    assert made.abort(1, Reason.EXPIRED, 12) is True
    assert told[1:] == [("cancel", -1, "1"), ("resume", -1, "1")]
    assert made.drain_next(12) is False


def test_sink_has_no_outputs():
    """If it fails, a sink fills an outbox that nobody empties, and stops."""
    sink = SinkTask("sink", Union(), aligner(1))
    for message in (event("a1"), barrier(1), Watermark(1), END):
        sink.offer(0, message, 0)
    assert not sink.outbox
    assert sink.finished
    assert [type(report) for report in sink.reports] == [Acknowledge]


def test_source_cuts_where_its_position_says():
    """If it fails, recovery replays an event that is in the checkpoint, or loses one that is not (rule 4, P-10)."""
    made, told = source(outputs=2)
    made.emit(event("a1"))
    inject(made, 1)
    made.poll(0)
    made.emit(event("a2"))
    assert sent(made) == [(o, m) for m in ("a1", "barrier 1", "a2") for o in range(2)]
    assert made.reports == [Acknowledge("a", 1, digest(2), 2)]
    assert told == [("snapshot", -1, str((1, digest(2)))), ("forward", -1, "barrier 1"), ("complete", -1, "1")]


def test_source_that_was_told_to_abort_skips_the_barrier():
    """If it fails, a source starts a checkpoint that is dead already (rule 10)."""
    made, _ = source()
    inject(made, 3)
    assert made.abort(3, Reason.EXPIRED, 0) is True
    assert made.abort(3, Reason.EXPIRED, 0) is False
    assert made.poll(0) is None
    assert sent(made) == [(0, "cancel 3")]
    assert made.reports == []
    inject(made, 4)
    made.poll(0)
    assert sent(made)[1:] == [(0, "barrier 4")]


def test_source_with_a_closed_output_declines():
    """If it fails, half of the job takes part in a checkpoint (rule 5)."""
    made, _ = source(outputs=2)
    made.close_output(0)
    inject(made, 1)
    assert made.poll(0) is None
    assert made.reports == [Decline("a", 1, Reason.OUTPUT_CLOSED)]
    assert sent(made) == [(1, "cancel 1")]


def test_source_that_has_ended():
    """If it fails, something follows the end of a channel (rule 4: the end is a standing barrier)."""
    made, _ = source()
    made.emit_watermark(7)
    made.end()
    made.end()
    inject(made, 1)
    assert made.poll(0) is None
    assert made.abort(2, Reason.EXPIRED, 0) is False
    assert sent(made) == [(0, "watermark 7"), (0, "end")]
    assert made.reports == []


def test_exchanges():
    """If it fails, events of one key part ways, or the load of a rebalance does."""
    events = [Event("a", n, key=n % 4) for n in range(1, 9)]
    assert [OutputExchange("broadcast", [3, 5]).select(e) for e in events[:1]] == [(3, 5)]
    turn = OutputExchange("rebalance", [3, 5, 7], start=1)
    assert [turn.select(e) for e in events[:4]] == [(5,), (7,), (3,), (5,)]
    spread = OutputExchange("hash", [0, 1, 2])
    by_key = {}
    for each in events:
        assert by_key.setdefault(each.key, spread.select(each)) == spread.select(each)
    assert len(set(by_key.values())) > 1


def test_hash_and_digest_do_not_depend_on_the_process():
    """If it fails, the same seed gives another run in another process."""
    program = (
        "from barrierlab.impl import digest, Event, OutputExchange;"
        "print(digest({'b': {'y', 'x'}, 'a': (1, 2.5, None)}),"
        "[OutputExchange('hash', range(7)).select(Event('a', 1, key=k))[0] for k in ('x', 'y', 3)])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(said) == 1


@pytest.mark.parametrize(
    ("one", "other"), [((1, 2), (2, 1)), ({1: 2}, {2: 1}), ("1", 1), ((1, (2,)), ((1, 2),)), ({1}, (1,))]
)
def test_digest_tells_states_apart(one, other):
    """If it fails, a wrong state passes for the right one."""
    assert digest(one) != digest(other)
