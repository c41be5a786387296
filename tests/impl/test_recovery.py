"""From a complete checkpoint to what a job begins with: each task at its cut, each channel with what crossed it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barrierlab.impl import (
    Acknowledge,
    CheckpointBarrier,
    InFlightChannelData,
    InjectBarrierCommand,
    InputIndexError,
    LimitError,
    Manifest,
    MemoryStore,
    NotFinishedError,
    OperatorTask,
    OutputExchange,
    RestoreError,
    SourceTask,
    TaskRestore,
    Watermark,
    Wiring,
    encode,
    from_the_beginning,
    plan,
    snapshot_of,
)
from barrierlab.impl.checkpoint.report import digest
from barrierlab.impl.storage.snapshot import Checkpoint, InFlight, TaskSnapshot
from tests.impl.support import END, Union, aligner, barrier, event, flagged, unaligned

# a, b -> join -> sink
WIRING = Wiring(
    {"a": ("a", 0), "b": ("b", 0), "join": ("join", 0), "sink": ("sink", 0)},
    {"a": (), "b": (), "join": ("a->join", "b->join"), "sink": ("join->sink",)},
    {"a": ("a->join",), "b": ("b->join",), "join": ("join->sink",), "sink": ()},
)


def flying(channel, *names):
    """Return what was in flight on a channel."""
    return InFlightChannelData(channel, tuple(map(event, names)), len(names))


PARTS = (
    Acknowledge("a", 3, position=7, image=7, inflight_output=(flying(0, "a5", "a6"),)),
    Acknowledge("b", 3, position=3, image=3, finished=True, watermark_ms=9),
    Acknowledge("join", 3, image=(1, "x"), watermark_ms=-4, inflight=(flying(0, "a3", "a4"), flying(1, "b2"))),
    Acknowledge("sink", 3, image=(), prepared=("sink-2", "sink-3")),
)


def stored(parts=PARTS, checkpoint_id=3) -> Checkpoint:
    """A checkpoint through a store."""
    store = MemoryStore()
    store.begin(checkpoint_id)
    kept = tuple(store.write(checkpoint_id, snapshot_of(part, part.task, 0)) for part in parts)
    store.complete(Manifest(checkpoint_id, checkpoint_id, True, kept))
    return store.latest_usable().checkpoint


def test_every_task_gets_what_it_acknowledged():
    """If it fails, a task goes on from another place than its cut."""
    restore = plan(stored(), WIRING)
    assert restore.checkpoint_id == 3
    for part in PARTS:
        back = restore.tasks[part.task]
        for name in ("task", "image", "position", "watermark_ms", "ended", "finished", "prepared"):
            assert getattr(back, name) == getattr(part, name)
        assert back.digest == digest(part.image)


def test_a_channel_gets_the_receivers_record_then_the_senders_then_the_end():
    """If it fails, events pass one another in a recovery, or a channel ends that goes on, or the other way round."""
    channels = plan(stored(), WIRING).channels
    assert [list(map(str, channels[name])) for name in ("a->join", "b->join", "join->sink")] == [
        ["a3", "a4", "a5", "a6"],
        ["b2", "end"],
        [],
    ]
    ended = (PARTS[0], PARTS[1], Acknowledge("join", 3, image=0, ended=(1,)), PARTS[3])
    assert plan(stored(ended), WIRING).channels["b->join"] == ()


def test_nothing_is_in_flight_at_the_beginning():
    """If it fails, a job that never completed a checkpoint cannot begin again, or begins in the middle."""
    restore = from_the_beginning(WIRING)
    assert restore.checkpoint_id == 0
    assert [part.position for part in restore.tasks.values()] == [1, 1, None, None]
    assert restore.channels == {"a->join": (), "b->join": (), "join->sink": ()}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (PARTS[:3], r"checkpoint 3 with no part of sink\[0\]; allowed: a part each of a\[0\], b\[0\], join\[0\]"),
        ((*PARTS, Acknowledge("more", 3)), r"with a part of more\[0\]"),
        ((Acknowledge("a", 3), *PARTS[1:]), "a part of a without a position; allowed: a position of each source"),
        ((*PARTS[:3], Acknowledge("sink", 3, position=4)), "a part of sink at position 4"),
        ((*PARTS[:3], Acknowledge("sink", 3, ended=(1,))), "the end of input 1 of sink; allowed: its 1 inputs"),
        (
            (*PARTS[:3], Acknowledge("sink", 3, inflight=(flying(1, "a1"),))),
            "something in flight on 1, as an input of sink; allowed: the 1 that there are",
        ),
        (
            (*PARTS[:3], Acknowledge("sink", 3, inflight_output=(flying(0, "a1"),))),
            "something in flight on 0, as an output of sink; allowed: the 0 that there are",
        ),
    ],
)
def test_a_checkpoint_of_another_job_is_refused(parts, message):
    """If it fails, a job is put together from parts that do not belong together."""
    with pytest.raises(RestoreError, match=message):
        plan(stored(parts), WIRING)


@pytest.mark.parametrize(
    "state",
    [(), (1, 2), (1, "w", (), False, ()), (1, 2, (), 0, ()), (1, 2, (0, 0), False, ()), (1, 2, (), False, (3,))],
)
def test_a_state_in_another_form_is_refused(state):
    """If it fails, what another program stored is taken for a state."""
    snapshots = tuple(
        TaskSnapshot(task, 0, encode(state), 1 if task in "ab" else None) for task in ("a", "b", "join", "sink")
    )
    with pytest.raises(RestoreError, match="a state of a in another form"):
        plan(Checkpoint(Manifest(3, 3, False, ()), snapshots), WIRING)


def test_no_barrier_is_restored():
    """If it fails, a task aligns for a checkpoint that is complete (U-13)."""
    barrier = InFlight(0, (encode(CheckpointBarrier(3, 3)),))
    snapshots = tuple(
        TaskSnapshot(task, 0, encode((0, None, (), False, ())), 1 if task in "ab" else None, (barrier,) * (task > "c"))
        for task in ("a", "b", "join", "sink")
    )
    with pytest.raises(RestoreError, match="no barrier is restored"):
        plan(Checkpoint(Manifest(3, 3, False, ()), snapshots), WIRING)


@pytest.mark.parametrize(
    ("inputs", "outputs", "odd"),
    [
        ({"a": (), "t": ("a->t",)}, {"a": ("a->t", "a->u"), "t": ()}, "a->u"),
        ({"a": (), "t": ("a->t", "a->t")}, {"a": ("a->t",), "t": ()}, "a->t"),
        ({"a": (), "t": ("x->t",)}, {"a": (), "t": ()}, "x->t"),
    ],
)
def test_a_wiring_has_two_ends_for_each_channel(inputs, outputs, odd):
    """If it fails, what was in flight is put into a channel that nobody reads, or into one twice."""
    with pytest.raises(LimitError, match=f"channel = '{odd}'; allowed: one output of a task and one input of a task"):
        Wiring({"a": ("a", 0), "t": ("t", 0)}, inputs, outputs)


# Tasks.


class Timed(Union):
    """Remembers the watermarks too."""

    def on_watermark(self, timestamp_ms):
        self.seen.append(timestamp_ms)
        return ()


def task(num_inputs=2, machine=None, operator=None) -> tuple[OperatorTask, list[str]]:
    """A task with one output, and what it tells."""
    told: list[str] = []
    made = OperatorTask(
        "t",
        operator or Timed(),
        machine or aligner(num_inputs),
        [OutputExchange("forward", [0])],
        lambda verb, i, what: told.append(f"{verb} {i} {what}"),
    )
    return made, told


def sent(made) -> list[str]:
    """The outbox, readable."""
    return [str(message) for _, message in made.outbox]


def test_a_task_goes_on_behind_its_cut():
    """If it fails, a task begins with another state, aligns for a checkpoint that is complete, or waits for an end."""
    made, told = task()
    assert made.recover(TaskRestore("t", (event("a1"),), watermark_ms=5, ended=(1,)), 4) == digest((event("a1"),))
    assert (told, sent(made), made.reports) == ([], [], [])
    assert not made.can_take(1)
    assert not made.abort(4, "expired", 0)
    made.offer(0, barrier(4), 0)
    assert told == ["ignore 0 barrier 4"]
    made.offer(0, event("a2"), 0)
    made.offer(0, barrier(5), 0)
    (report,) = made.reports
    assert (report.checkpoint_id, report.image) == (5, (event("a1"), event("a2")))
    assert (report.watermark_ms, report.ended) == (5, (1,))
    made.offer(0, END, 0)
    assert made.finished
    assert sent(made) == ["a2", "barrier 5", "end"]


def test_a_watermark_is_a_lower_bound_and_is_passed_on_once_more():
    """If it fails, a window fires twice or an event is late that was not, or those behind wait for what was in flight.

    Watermarks are no state of a channel (U-10): what was on its way at the cut is sent again by who had reached it.
    """
    made, _ = task()
    made.recover(TaskRestore("t", (), watermark_ms=10), 1)
    for input_id, ms in ((0, 10), (1, 7), (1, 10), (0, 12), (1, 10), (1, 11)):
        made.offer(input_id, Watermark(ms), 0)
    assert sent(made) == ["watermark 10", "watermark 11"]
    assert made.operator.seen == [11]
    straight, _ = task()
    for input_id, ms in ((0, 10), (1, 10), (1, 11)):
        straight.offer(input_id, Watermark(ms), 0)
    assert sent(straight) == ["watermark 10"]
    fresh, _ = task(1)
    fresh.recover(TaskRestore("t", None), 0)
    fresh.offer(0, Watermark(3), 0)
    fresh.offer(0, Watermark(3), 0)
    assert sent(fresh) == ["watermark 3"]


def test_a_part_says_what_was_so_at_the_cut():
    """If it fails, an unaligned part says of watermark and ends what came after its image."""
    made, _ = task(3, unaligned(3))
    for input_id, message in ((2, END), (0, Watermark(4)), (1, Watermark(4)), (0, flagged(1))):
        made.offer(input_id, message, 0)
    for input_id, message in ((0, Watermark(9)), (1, Watermark(8)), (1, event("b1")), (1, END)):
        made.offer(input_id, message, 0)
    (report,) = made.reports
    assert (report.image, report.watermark_ms, report.ended, report.finished) == ((4,), 4, (2,), False)
    assert made.operator.seen == [4, 8, event("b1"), 9]


def test_a_finished_task_has_a_final_part_and_is_restored_finished():
    """If it fails, a checkpoint after an end cannot be restored, or the task runs again (FLIP-147)."""
    made, _ = task()
    with pytest.raises(
        NotFinishedError, match="the final snapshot of t, which goes on; allowed: a task that has finished"
    ):
        made.final_snapshot()
    for input_id, message in ((0, event("a1")), (1, Watermark(2)), (0, END), (1, END)):
        made.offer(input_id, message, 0)
    part = made.final_snapshot()
    assert part == Acknowledge("t", 0, digest((event("a1"), 2)), watermark_ms=2, ended=(0, 1), finished=True)
    assert made.final_snapshot() == part
    again, told = task()
    fields = (part.task, part.image, part.position, part.watermark_ms, part.ended, part.finished)
    again.recover(TaskRestore(*fields), 6)
    assert again.finished
    assert again.final_snapshot() == replace(part, checkpoint_id=6)  # it stands for what comes after that
    assert again.final_snapshot().image == part.image
    assert (sent(again), told, again.can_take(0), again.abort(7, "expired", 0)) == ([], [], False, False)


def test_a_source_goes_on_where_it_was():
    """If it fails, events are made twice or never, or a barrier of a checkpoint that is over is sent (rule 4)."""
    first = SourceTask("a", None, [OutputExchange("forward", [0])])
    first.emit(event("a1"))
    first.emit_watermark(7)
    first.emit_watermark(6)
    first.injector.coordinator_handle().inject(InjectBarrierCommand(2, 2))
    first.poll(0)
    (report,) = first.reports
    assert (report.position, report.watermark_ms) == (2, 7)
    again = SourceTask("a", None, [OutputExchange("forward", [0])])
    assert again.recover(TaskRestore("a", 2, 2, 7), 2) == digest(2)
    assert (again.position, again.watermark_ms, again.finished) == (2, 7, False)
    again.injector.coordinator_handle().inject(InjectBarrierCommand(2, 2))
    assert again.poll(0) is None
    again.emit(event("a2"))
    again.end()
    over = SourceTask("a", None, [OutputExchange("forward", [0])])
    part = again.final_snapshot()
    assert part == Acknowledge("a", 2, digest(3), 3, watermark_ms=7, finished=True)
    over.recover(TaskRestore("a", 3, 3, 7, finished=True), 4)
    assert (over.final_snapshot(), list(over.outbox)) == (replace(part, checkpoint_id=4), [])


def test_a_task_that_went_on_is_what_it_captured():
    """If it fails, an exploration that comes back to a recovered task finds one that has told of its watermark."""
    first, _ = task()
    first.recover(TaskRestore("t", (event("a1"),), watermark_ms=10, ended=(1,)), 4)
    again, _ = task()
    again.restore(first.capture())
    assert (again.capture(), hash(again.capture())) == (first.capture(), hash(first.capture()))
    for made in (first, again):
        made.offer(0, Watermark(10), 0)
        assert sent(made) == ["watermark 10"]


def test_an_input_that_ended_must_be_one():
    """If it fails, an aligner waits for one input less than it has."""
    machine = aligner(2)
    before = machine.capture()
    for ended in ((0, 2), (-1,)):
        with pytest.raises(InputIndexError):
            machine.recover(3, ended)
        assert machine.capture() == before
