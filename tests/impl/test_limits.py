"""Every limit, interval, id and count is a whole number within bounds, wherever one is configured: nothing else passes.

`nan` is less than no limit and more than none, and True is 1: a comparison lets both through, and a job that is
configured so never checkpoints, or always.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import pytest

from barrierlab.impl import (
    BarrierAligner,
    BarrierAlignerConfig,
    BarrierError,
    BarrierInjectorConfig,
    CancelBarrier,
    CheckpointBarrier,
    CheckpointCoordinator,
    CoordinatorConfig,
    Event,
    InFlight,
    InFlightFile,
    InjectBarrierCommand,
    LimitError,
    Manifest,
    MemoryStore,
    OperatorTask,
    OutputExchange,
    PackedBarrierCmd,
    Reason,
    SnapshotFailedError,
    StoredFile,
    StoredSnapshot,
    TaskSnapshot,
    UnalignedCheckpointConfig,
    UnalignedCheckpointer,
)
from barrierlab.impl.checkpoint.injector import MAX_EPOCH
from barrierlab.impl.checkpoint.report import Acknowledge, Decline
from barrierlab.impl.control import (
    BarrierControlSignal,
    BarrierControlSignalKind,
    Carrier,
    CountingAligner,
    IdentityAligner,
)
from barrierlab.impl.join import (
    JoinConfig,
    SequenceMergeMapAnnounce,
    SequenceMergeRule,
    SlotRing,
    StageConfig,
    TimestampMergeRule,
)

NO_NUMBERS = [float("nan"), float("inf"), True, False, 1.0, 2.5, "1", b"1", (), -1, -(2**70), -(10**5000), object()]
NO_FLAGS = [0, 1, "yes", None, float("nan")]
CONFIGS = [CoordinatorConfig, BarrierInjectorConfig, BarrierAlignerConfig, UnalignedCheckpointConfig]
FILE = StoredFile("operators/a/0/state.bin", 1, "0" * 32)
MAKERS: dict[str, Callable[[object], object]] = {
    "first_id": lambda value: CheckpointCoordinator(CoordinatorConfig(), ["a"], ["a"], value),
    "barrier id": lambda value: CheckpointBarrier(value, 1),
    "barrier epoch": lambda value: CheckpointBarrier(1, value),
    "barrier flags": lambda value: CheckpointBarrier(1, 1, value),
    "cancelled id": lambda value: CancelBarrier(value),
    "aborted id": lambda value: BarrierAligner().abort(value, Reason.EXPIRED),
    "recovered id": lambda value: BarrierAligner().recover(value, ()),
    "packed id": lambda value: PackedBarrierCmd.new(value, 1),
    "packed epoch": lambda value: PackedBarrierCmd.new(1, value),
    "exchange start": lambda value: OutputExchange("rebalance", [0, 1], value),
    "exchange channel": lambda value: OutputExchange("rebalance", [value]),
    "begun id": lambda value: MemoryStore().begin(value),
    "newest": lambda value: MemoryStore().retain(value),
    "subtask": lambda value: TaskSnapshot("a", value, b""),
    "channel in flight": lambda value: InFlight(value, ()),
    "stored size": lambda value: StoredFile("p", value, "0" * 32),
    "stored channel": lambda value: InFlightFile(value, False, 1, FILE),
    "stored events": lambda value: InFlightFile(0, False, value, FILE),
    "stored subtask": lambda value: StoredSnapshot("a", value, None, FILE),
    "manifest id": lambda value: Manifest(value, 1, False, ()),
    "manifest epoch": lambda value: Manifest(1, value, False, ()),
    "signal id": lambda value: BarrierControlSignal(BarrierControlSignalKind.SYNC_TEST, value),
    "upstreams": lambda value: IdentityAligner(value, Carrier.DATA),
    "upstreams counted": lambda value: CountingAligner(value, Carrier.DATA),
    "ring": lambda value: SlotRing(value),
    "pending outputs": lambda value: StageConfig(most_pending=value),
    "slots": lambda value: StageConfig(slots=((1, value),)),
    "join epoch": lambda value: JoinConfig(9, value),
    "join output": lambda value: JoinConfig(value),
    "rule input": lambda value: SequenceMergeRule.at_offset(value),
    "rule window": lambda value: TimestampMergeRule.in_window(1, value),
    "map epoch": lambda value: SequenceMergeMapAnnounce(9, value, (SequenceMergeRule.at_offset(1),)),
}


def fields(flags: bool) -> Iterator[tuple[type, str]]:
    """Of the configurations: the flags, or all else that is no text."""
    for config in CONFIGS:
        for each in dataclasses.fields(config):
            if "str" not in str(each.type) and (str(each.type) == "bool") is flags:
                yield config, each.name


@pytest.mark.parametrize(("config", "name"), list(fields(flags=False)), ids=str)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_a_configured_number_is_a_whole_one(config: Callable[..., object], name: str, value: object) -> None:
    """A limit of nan is none, and one of True is 1."""
    with pytest.raises(BarrierError) as caught:
        config(**{name: value})
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("config", "name"), list(fields(flags=True)), ids=str)
@pytest.mark.parametrize("value", NO_FLAGS, ids=str)
def test_a_configured_flag_is_one(config: Callable[..., object], name: str, value: object) -> None:
    """A text that says no would be taken for a yes."""
    with pytest.raises(LimitError, match="True or False"):
        config(**{name: value})


@pytest.mark.parametrize("what", MAKERS)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_a_number_given_elsewhere_is_a_whole_one(what: str, value: object) -> None:
    """It would be cut off, or compare as something else, or end in a traceback."""
    with pytest.raises(BarrierError) as caught:
        MAKERS[what](value)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 400


def test_what_cannot_be_written_is_named_by_its_type() -> None:
    """The message itself would fail, or be as long as what was given, or several lines."""

    class Rude:
        """An object of the caller's."""

        def __repr__(self) -> str:
            raise RuntimeError

    class Long:
        """Another one."""

        def __repr__(self) -> str:
            return "x\n" * 500

    assert str(LimitError("a", Rude(), "1")).startswith("a = a Rude; allowed: 1; ")
    assert str(LimitError("a", 10**5000, "1")).startswith("a = a int; allowed: 1; ")
    assert len(str(LimitError("a", Long(), "1\n2")).splitlines()) == 1


# The ids that there are.


def test_no_id_is_given_that_no_injector_takes() -> None:
    """Every checkpoint from then on would fail at its sources, with a traceback."""
    with pytest.raises(LimitError, match=f"from 1 to {MAX_EPOCH}"):
        CheckpointCoordinator(CoordinatorConfig(), ["a"], ["a"], MAX_EPOCH + 1)
    coordinator = CheckpointCoordinator(CoordinatorConfig(interval_ns=1), ["a"], ["a"], MAX_EPOCH)
    _, inject = coordinator.trigger(0)
    PackedBarrierCmd.new(inject.command.checkpoint_id, inject.command.epoch)  # type: ignore[union-attr]
    coordinator.acknowledge(Acknowledge("a", MAX_EPOCH), 1)
    coordinator.published(MAX_EPOCH, 2)
    (refused,) = coordinator.trigger(3)
    assert refused.reason is Reason.IDS_USED_UP  # type: ignore[union-attr]
    assert coordinator.next_deadline_ns() is None


def test_a_job_that_has_no_id_left_for_its_final_checkpoint_is_over() -> None:
    """It would wait for ever for a checkpoint that cannot be."""
    coordinator = CheckpointCoordinator(CoordinatorConfig(interval_ns=None), ["a"], ["a"], MAX_EPOCH)
    coordinator.trigger(0)
    coordinator.acknowledge(Acknowledge("a", MAX_EPOCH), 1)
    coordinator.published(MAX_EPOCH, 2)
    assert coordinator.finished("a", 3, Acknowledge("a", MAX_EPOCH, finished=True)) == ()
    assert coordinator.ended


def test_a_command_is_packed_with_a_flag() -> None:
    """A number as a flag would be added to the epoch."""
    with pytest.raises(LimitError):
        PackedBarrierCmd.new(1, 1, 2)  # type: ignore[arg-type]
    assert PackedBarrierCmd.new(1, 1, True).epoch == 1
    assert InjectBarrierCommand(1, 1).is_unaligned is False


# What else only the caller can get wrong.


@pytest.mark.parametrize("ended", [(0, 0), (1, 0, 1), (0, 3), (-1,)])
def test_ends_that_cannot_be_are_refused_at_a_recovery(ended: tuple[int, ...]) -> None:
    """An end that counts twice lets a task cut before all its barriers are in."""
    aligner = BarrierAligner(BarrierAlignerConfig(num_inputs=3))
    before = aligner.capture()
    with pytest.raises(BarrierError):
        aligner.recover(1, ended)
    assert aligner.capture() == before
    aligner.recover(1, (0,))
    assert aligner.process_message(1, CheckpointBarrier(2, 2)).name == "BLOCKED"


class Passes:
    """An operator that gives what it takes; its image fails as long as it is set to."""

    fails = False

    def process(self, input_id: int, event: Event) -> tuple[Event, ...]:
        """The event."""
        return (event,)

    def on_watermark(self, timestamp_ms: int) -> tuple[Event, ...]:
        """Nothing."""
        return ()

    def on_end(self, input_id: int) -> tuple[Event, ...]:
        """Nothing."""
        return ()

    def checkpoint(self) -> object:
        """No state."""
        if self.fails:
            raise SnapshotFailedError("disk full")
        return ()

    def restore(self, image: object) -> None:
        """No state."""


def passing(most_bytes: int = 10**6) -> OperatorTask:
    """A task with one input and one output, which weighs every message as 100 bytes."""
    config = UnalignedCheckpointConfig(max_inflight_buffer_bytes=most_bytes)
    machine = UnalignedCheckpointer(BarrierAlignerConfig(num_inputs=1), config, size_of=lambda message: 100)
    return OperatorTask("t", Passes(), machine, [OutputExchange("forward", [0])])


@pytest.mark.parametrize(("most_bytes", "kind"), [(499, Decline), (500, Acknowledge)])
def test_what_is_overtaken_on_the_way_out_is_weighed_as_on_the_way_in(most_bytes: int, kind: type) -> None:
    """The limit of what is in flight would not hold for a task whose own events are large."""
    events = [Event("a", sequence) for sequence in range(1, 6)]
    barrier = CheckpointBarrier.new_unaligned(1, 1)
    inwards, outwards, later = passing(most_bytes), passing(most_bytes), passing(most_bytes)
    inwards.offer_overtaking(0, barrier, events, 0)
    for event in events:
        outwards.offer(0, event, 0)
    outwards.offer(0, barrier, 0)
    later.offer(0, barrier, 0)
    later.capture_overtaken(0, events, 1)
    for task in (inwards, outwards, later):
        assert [type(report) for report in task.reports] == [kind]
        if kind is Acknowledge:
            (part,) = task.reports
            sizes = [data.size_bytes for data in (*part.inflight, *part.inflight_output)]  # type: ignore[union-attr]
            assert sizes == [500]


def outbox(task: OperatorTask) -> list[str]:
    """As text."""
    return [str(message) for _, message in task.outbox]


def two_aligned() -> OperatorTask:
    """Two aligned barriers wait in the outbox, with events between."""
    task = passing()
    for message in (Event("a", 1), CheckpointBarrier(10, 10), Event("a", 2), CheckpointBarrier(11, 11)):
        task.offer(0, message, 0)
    return task


def test_barriers_that_go_ahead_late_stay_in_order() -> None:
    """The newer one first would cost the older one's checkpoint at every receiver (rule 6)."""
    task = two_aligned()
    for checkpoint_id in (10, 11):
        assert task.prioritise_barrier(0, CheckpointBarrier.new_unaligned(checkpoint_id, checkpoint_id))
    assert outbox(task) == ["barrier 10 unaligned", "barrier 11 unaligned", "a1", "a2"]
    recorded = [[str(event) for data in report.inflight_output for event in data.events] for report in task.reports]  # type: ignore[union-attr]
    assert recorded == [["a1"], ["a1", "a2"]]


def test_a_barrier_does_not_pass_an_older_one_that_is_wanted() -> None:
    """The same, where only the newer one is late."""
    task = two_aligned()
    assert not task.prioritise_barrier(0, CheckpointBarrier.new_unaligned(11, 11))
    assert outbox(task) == ["a1", "barrier 10", "a2", "barrier 11"]
    task.cancel(10)
    assert task.prioritise_barrier(0, CheckpointBarrier.new_unaligned(11, 11))
    assert outbox(task)[0] == "barrier 11 unaligned"


def test_a_final_part_that_fails_is_to_be_asked_for_again() -> None:
    """The driver would get a decline of a checkpoint, and none was under way."""
    task = passing()
    assert isinstance(task.operator, Passes)
    task.offer(0, CheckpointBarrier(1, 1), 0)
    task.gate.offer(0, Event("a", 1), 0)
    task.end_input(0)
    task.operator.fails = True
    before = (task.finished, list(task.reports), list(task.outbox))
    with pytest.raises(SnapshotFailedError, match=r"disk full; .*ask for the final snapshot again"):
        task.final_snapshot()
    assert (task.finished, list(task.reports), list(task.outbox)) == before
    task.operator.fails = False
    assert task.final_snapshot().finished
