"""F-DCKP-001, "Test Plan", unit tests: under the document's names, asserting the sound behaviour."""

from __future__ import annotations

import copy
import gc
import sys
import threading
import time
import tracemalloc
from itertools import pairwise

import pytest

from barrierlab.impl import (
    BarrierInjectorConfig,
    CheckpointBarrier,
    CheckpointBarrierInjector,
    CheckpointIdError,
    Event,
    InjectBarrierCommand,
    InjectOutcome,
    InjectStatus,
    PackedBarrierCmd,
    RegressingIdError,
    Watermark,
    as_barrier,
    is_barrier,
    is_event,
    is_watermark,
    map_event,
)

SECOND = 1_000_000_000
MAX_EPOCH = 2**48 - 1


def injector(interval_ns: int | None = None) -> CheckpointBarrierInjector:
    """An injector that asks every `interval_ns`, or never."""
    return CheckpointBarrierInjector(BarrierInjectorConfig(interval_ns, "a"))


def test_checkpoint_barrier_new_creates_aligned():
    """If it fails, an ordinary barrier is taken for one that may overtake data."""
    made = CheckpointBarrier.aligned(7, 3)
    assert (made.checkpoint_id, made.epoch, made.flags) == (7, 3, 0)
    assert made.is_aligned
    assert not made.is_unaligned


def test_checkpoint_barrier_new_unaligned_flag():
    """If it fails, an unaligned checkpoint is aligned under backpressure, which it is there to escape."""
    made = CheckpointBarrier.new_unaligned(7, 3)
    assert made.flags & 1
    assert made.is_unaligned
    assert not made.is_aligned


def test_checkpoint_barrier_size_is_24_bytes():
    """If it fails, a peer that reads the document's layout reads another barrier."""
    made = CheckpointBarrier(2**64 - 1, 2**40 + 5, 1)
    wire = made.to_bytes()
    assert len(wire) == 24
    assert wire == b"\xff" * 8 + (2**40 + 5).to_bytes(8, "little") + (1).to_bytes(8, "little")
    assert CheckpointBarrier.from_bytes(wire) == made


def test_checkpoint_barrier_is_copy():
    """If it fails, fan-out needs to share a barrier that one branch could change under the other."""
    made = CheckpointBarrier(1, 1)
    twin = copy.deepcopy(made)
    assert twin == made
    assert hash(twin) == hash(made)
    with pytest.raises(AttributeError):
        made.checkpoint_id = 2  # type: ignore[misc]
    assert made.checkpoint_id == 1


def test_stream_message_is_barrier_returns_true():
    """If it fails, an executor hands a barrier to the operator as data."""
    assert is_barrier(CheckpointBarrier(1, 1))
    assert not is_barrier(Event("a", 1))
    assert not is_barrier(Watermark(1))
    assert not is_event(CheckpointBarrier(1, 1))
    assert not is_watermark(CheckpointBarrier(1, 1))


def test_stream_message_as_barrier_returns_some():
    """If it fails, the id of a barrier on a channel cannot be read."""
    made = CheckpointBarrier(4, 4)
    assert as_barrier(made) is made
    assert as_barrier(Event("a", 1)) is None


def test_stream_message_map_preserves_barrier():
    """If it fails, a stateless map in a chain changes or loses barriers."""

    def doubled(event: Event) -> Event:
        return Event(event.source, event.sequence, value=event.value * 2)

    made, mark = CheckpointBarrier(1, 1), Watermark(9)
    assert map_event(made, doubled) is made
    assert map_event(mark, doubled) is mark
    assert map_event(Event("a", 1, value=21), doubled).value == 42


def test_injector_periodic_fires_after_interval():
    """If it fails, sources make up ids of their own, or never ask; rule 2: periodic mode only requests."""
    periodic = injector(10 * SECOND)
    request = periodic.due_request(10 * SECOND)
    assert request is not None
    assert (request.source_id, request.requested_ns) == ("a", 10 * SECOND)
    assert periodic.poll_barrier(10 * SECOND) is None
    assert periodic.due_request(10 * SECOND) is None
    assert periodic.next_deadline_ns() == 20 * SECOND


def test_injector_periodic_does_not_fire_early():
    """If it fails, checkpoints come more often than configured."""
    periodic = injector(10 * SECOND)
    assert periodic.due_request(10 * SECOND - 1) is None
    assert periodic.next_deadline_ns() == 10 * SECOND
    assert injector(None).due_request(10**18) is None
    assert injector(None).next_deadline_ns() is None


def test_injector_coordinator_trigger_overrides_periodic():
    """If it fails, a source asks for a checkpoint right after it took part in one."""
    periodic = injector(10 * SECOND)
    periodic.coordinator_handle().inject(InjectBarrierCommand(1, 1))
    emitted = periodic.poll_barrier(9 * SECOND)
    assert emitted == CheckpointBarrier(1, 1)
    assert periodic.due_request(18 * SECOND) is None
    assert periodic.due_request(19 * SECOND) is not None


def test_injector_coordinator_handle_inject():
    """If it fails, a command given on the coordinator's thread does not reach the source's."""
    machine = injector()
    outcomes = []
    thread = threading.Thread(
        target=lambda: outcomes.append(machine.coordinator_handle().inject(InjectBarrierCommand(5, 2, True)))
    )
    thread.start()
    thread.join()
    assert outcomes == [InjectOutcome.ACCEPTED]
    assert machine.poll_barrier(0) == CheckpointBarrier.new_unaligned(5, 2)
    assert machine.poll_barrier(0) is None


def test_injector_poll_barrier_fast_path_no_alloc():
    """If it fails, a source that polls after each event feeds the garbage collector."""
    poll = injector(10 * SECOND).poll_barrier
    poll(0)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10_000):
            poll(0)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 1_000
    assert peak - before < 1_000


def test_injector_increments_epoch_on_periodic():
    """If it fails, two allocators give out epochs and they repeat; rule 2: the coordinator's strictly increase."""
    periodic = injector(SECOND)
    handle = periodic.coordinator_handle()
    epochs = []
    for n in range(1, 4):
        request = periodic.due_request(n * SECOND)
        assert request is not None
        handle.inject(InjectBarrierCommand(n, n))  # what the coordinator answers
        emitted = periodic.poll_barrier(n * SECOND)
        assert emitted is not None
        epochs.append(emitted.epoch)
    assert epochs == [1, 2, 3]


def test_injector_barriers_injected_counter():
    """If it fails, the metric counts polls or commands instead of barriers."""
    machine = injector()
    handle = machine.coordinator_handle()
    assert machine.barriers_injected == 0
    for n in (1, 2):
        handle.inject(InjectBarrierCommand(n, n))
        machine.poll_barrier(0)
        machine.poll_barrier(0)
    handle.inject(InjectBarrierCommand(3, 3))
    assert machine.barriers_injected == 2


def test_injector_duplicate_coordinator_signal_latest_wins():
    """If it fails, a checkpoint vanishes unheard at one source; rule 3: what gives way is reported, repeats refused."""
    machine = injector()
    handle = machine.coordinator_handle()
    assert handle.inject(InjectBarrierCommand(5, 5)) is InjectOutcome.ACCEPTED
    assert handle.inject(InjectBarrierCommand(5, 5)) is InjectOutcome.DUPLICATE
    assert handle.inject(InjectBarrierCommand(6, 6)) == InjectOutcome(InjectStatus.REPLACED, (5,))
    assert machine.poll_barrier(0) == CheckpointBarrier(6, 6)
    assert handle.inject(InjectBarrierCommand(6, 6)) is InjectOutcome.DUPLICATE
    assert machine.poll_barrier(0) is None
    with pytest.raises(RegressingIdError):
        handle.inject(InjectBarrierCommand(5, 7))


@pytest.mark.parametrize("unaligned", [False, True], ids=["aligned", "unaligned"])
@pytest.mark.parametrize("checkpoint_id", [1, 42, 2**63, 2**64 - 1])
@pytest.mark.parametrize("epoch", [0, 1, 2**32 + 7])
def test_packed_barrier_cmd_round_trip(checkpoint_id, epoch, unaligned):
    """If it fails, a source emits another barrier than the coordinator wished."""
    packed = PackedBarrierCmd.new(checkpoint_id, epoch, unaligned)
    assert packed.word == checkpoint_id << 64 | epoch << 16 | unaligned << 15
    assert (packed.checkpoint_id, packed.epoch, packed.is_unaligned) == (checkpoint_id, epoch, unaligned)
    assert packed.word & 0x7FFF == 0


def test_packed_barrier_cmd_empty_sentinel():
    """If it fails, no command looks like one, or one like none (defect P-05)."""
    assert PackedBarrierCmd.EMPTY.is_empty
    assert not PackedBarrierCmd.new(1, 0).is_empty
    with pytest.raises(CheckpointIdError):
        PackedBarrierCmd.new(0, 1)


def test_packed_barrier_cmd_epoch_48bit_max():
    """If it fails, the last epoch that fits is cut, or spills into the id."""
    packed = PackedBarrierCmd.new(1, MAX_EPOCH, True)
    assert packed.epoch == MAX_EPOCH
    assert packed.checkpoint_id == 1
    assert packed.is_unaligned


class Yielding(dict):
    """A cell that lets another thread go on after each step on it, so that every gap between two steps is met."""

    def pop(self, *arguments):
        taken = super().pop(*arguments)
        time.sleep(0)
        return taken

    def get(self, *arguments):
        found = super().get(*arguments)
        time.sleep(0)
        return found

    def __getitem__(self, key):
        found = super().__getitem__(key)
        time.sleep(0)
        return found

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        time.sleep(0)


def run_together(*works) -> None:
    """Each in a thread of its own, with the shortest turns there are."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize(("cell", "rounds"), [(dict, 10_000), (Yielding, 300)], ids=["as it is", "wide gaps"])
def test_inject_poll_concurrent_consistency(cell, rounds):
    """If it fails, a barrier mixes two commands, or a command that nobody replaced is lost (defect P-01)."""
    machine = injector()
    machine.cell.pending = cell()
    handle = machine.coordinator_handle()
    replaced: list[int] = []
    emitted: list[CheckpointBarrier] = []
    done = threading.Event()

    def coordinate() -> None:
        for n in range(1, rounds + 1):
            replaced.extend(handle.inject(InjectBarrierCommand(n, 3 * n, bool(n % 2))).replaced)
        done.set()

    def poll() -> None:
        last_look = False
        while not last_look:
            last_look = done.is_set()
            barrier = machine.poll_barrier(0)
            if barrier is not None:
                emitted.append(barrier)

    run_together(coordinate, poll)
    ids = [barrier.checkpoint_id for barrier in emitted]
    assert all(b.epoch == 3 * b.checkpoint_id and b.is_unaligned == bool(b.checkpoint_id % 2) for b in emitted)
    assert all(earlier < later for earlier, later in pairwise(ids))
    assert sorted(ids + replaced) == list(range(1, rounds + 1))
    assert machine.barriers_injected == len(ids)


def test_command_that_comes_between_two_steps_of_a_poll_is_not_lost():
    """If it fails, a poll that claims and clears in two steps clears the next command (P-01, step by step)."""

    class Interrupted(dict):
        """The coordinator injects 6 right after the source's first step on the cell."""

        def pop(self, *arguments):
            return self._then(super().pop(*arguments))

        def get(self, *arguments):
            return self._then(super().get(*arguments))

        def _then(self, found):
            if injections:
                handle.inject(injections.pop())
            return found

    machine = injector()
    handle = machine.coordinator_handle()
    injections: list[InjectBarrierCommand] = []
    machine.cell.pending = Interrupted()
    handle.inject(InjectBarrierCommand(5, 5))
    injections.append(InjectBarrierCommand(6, 6))
    assert machine.poll_barrier(0) == CheckpointBarrier(5, 5)
    assert machine.poll_barrier(0) == CheckpointBarrier(6, 6)
