"""A store on a disk that stops at any step, and forgets what was not flushed: the old checkpoint is there, or the new.

Every test does its work once to count the steps, then once for each step to stop there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl import DirectoryStore, Manifest, StoreFailedError
from tests.breadth import examples
from tests.impl.disk import FATES, Crash, Disk, Fate, new, old, torn, zeros
from tests.impl.stored import JOIN, QUIET, SOURCE, begun, kept

Work = Callable[[DirectoryStore], object]


def disk_with(*checkpoint_ids: int) -> Disk:
    """A disk that holds these checkpoints, all flushed."""
    disk = Disk()
    store = DirectoryStore("job/store", disk)
    for checkpoint_id in checkpoint_ids:
        kept(store, checkpoint_id)
    return disk.copy()


def stopped(before: Disk, work: Work) -> Iterator[tuple[Disk, bool]]:
    """The disk as it stands when `work` was stopped at each step, and whether all of it had been done."""
    whole = before.copy()
    work(DirectoryStore("job/store", whole))
    assert len(whole.steps) > 4
    for stop_at in range(len(whole.steps) + 1):
        disk = before.copy()
        disk.stop_at = stop_at
        try:
            work(DirectoryStore("job/store", disk))
        except Crash:
            yield disk, False
        else:
            assert disk.steps == whole.steps
            yield disk, True


def found(disk: Disk) -> tuple[int, ...]:
    """Return what the next process finds: every complete checkpoint can be read whole."""
    store = DirectoryStore("job/store", disk)
    completed = store.completed()
    for checkpoint_id in completed:
        checkpoint = store.load(checkpoint_id)
        assert checkpoint.snapshots in ((SOURCE, JOIN), (SOURCE, QUIET))
    if completed:
        assert store.latest_usable().passed_over == ()
    return completed


def goes_on(disk: Disk) -> None:
    """The next process takes a checkpoint, which is there after one more crash that keeps nothing unflushed."""
    store = DirectoryStore("job/store", disk)
    store.clean()
    before = store.completed()
    checkpoint_id = store.highest_id() + 1
    kept(store, checkpoint_id)
    assert found(disk.after_crash(FATES[0])) == (checkpoint_id, *before)


def take_second(store: DirectoryStore) -> None:
    """Checkpoint 2."""
    kept(store, 2, SOURCE, QUIET)


@pytest.mark.parametrize("fate", FATES, ids=str)
def test_a_crash_at_any_step_leaves_the_old_or_the_new_checkpoint(fate: Fate) -> None:
    """Recovery would find a checkpoint that is not whole, or none (protocol rule 20)."""
    outcomes = set()
    for disk, done in stopped(disk_with(1), take_second):
        left = disk.after_crash(fate)
        completed = found(left)
        assert completed == (2, 1) if done else completed in ((1,), (2, 1)), disk.steps[-1]
        outcomes.add(completed)
        goes_on(left)
    assert outcomes == {(1,), (2, 1)}


@pytest.mark.parametrize("fate", FATES, ids=str)
def test_a_crash_of_the_very_first_checkpoint_leaves_it_or_none(fate: Fate) -> None:
    """The directory itself could be forgotten behind a checkpoint that was announced."""
    for disk, done in stopped(Disk(), lambda store: kept(store, 1)):
        left = disk.after_crash(fate)
        completed = found(left)
        assert completed == (1,) if done else completed in ((), (1,)), disk.steps[-1]
        goes_on(left)


@pytest.mark.parametrize("fate", FATES, ids=str)
def test_a_crash_of_retention_leaves_whole_checkpoints(fate: Fate) -> None:
    """A half removed checkpoint would count as complete."""
    for disk, done in stopped(disk_with(1, 2, 3), lambda store: store.retain(1)):
        left = disk.after_crash(fate)
        completed = found(left)
        assert completed[0] == 3
        assert not done or completed == (3,)
        goes_on(left)


@pytest.mark.parametrize("fate", FATES, ids=str)
def test_a_crash_of_cleaning_or_giving_up_harms_nothing(fate: Fate) -> None:
    """A complete checkpoint would go with the leftovers, or an id would be used twice (protocol rule 2)."""

    def work(store: DirectoryStore) -> None:
        store.clean()
        begun(store, 4, SOURCE)
        store.abandon(4)

    before = disk_with(1)
    store = DirectoryStore("job/store", before)
    begun(store, 2, SOURCE)
    begun(store, 3, SOURCE)
    for disk, done in stopped(before, work):
        left = disk.after_crash(fate)
        assert found(left) == (1,)
        highest = DirectoryStore("job/store", left).highest_id()
        assert highest == 4 if done else highest in (3, 4)
        goes_on(left)


def test_a_part_is_durable_when_its_task_may_acknowledge() -> None:
    """The manifest would be durable and a part that it names would not (protocol rule 20; defect P-13)."""
    disk = disk_with(1)
    store = DirectoryStore("job/store", disk)
    manifest = begun(store, 2, SOURCE, JOIN)
    left = disk.after_crash(FATES[0])
    for part in manifest.parts:
        for file in (part.state, *(entry.file for entry in part.in_flight)):
            assert len(left.content(f"job/store/checkpoint-2/{file.path}")) == file.size_bytes


def test_an_id_is_used_up_by_a_crash() -> None:
    """The next process would give a checkpoint the id of a failed one (protocol rule 2)."""
    disk = disk_with(1)
    DirectoryStore("job/store", disk).begin(2)
    store = DirectoryStore("job/store", disk.after_crash(FATES[0]))
    assert store.highest_id() == 2
    store.begin(3)
    store.complete(Manifest(3, 3, False, ()))
    assert store.completed() == (3, 1)


@given(st.data())
@settings(max_examples=examples(150), deadline=None)
def test_any_crash_of_a_job_leaves_whole_checkpoints(data: st.DataObject) -> None:
    """Some mixture of kept and lost changes, over several checkpoints and retention, would not be recovered from."""

    def job(store: DirectoryStore) -> None:
        for checkpoint_id in (1, 2, 3):
            kept(store, checkpoint_id)
            announced.append(checkpoint_id)
            store.retain(1)

    announced: list[int] = []
    whole = Disk()
    job(DirectoryStore("job/store", whole))
    announced.clear()
    disk = Disk()
    disk.stop_at = data.draw(st.integers(0, len(whole.steps)), label="steps done")
    with contextlib.suppress(Crash):
        job(DirectoryStore("job/store", disk))
    bits = data.draw(st.lists(st.booleans(), min_size=1, max_size=40), label="changes kept")
    content = data.draw(st.sampled_from([old, new, torn, zeros]))
    left = disk.after_crash(Fate("drawn", lambda at, kind: bits[at % len(bits)], content))
    completed = found(left)
    assert not announced or completed[0] >= announced[-1]
    goes_on(left)


def test_the_disk_forgets_what_was_not_flushed() -> None:
    """The tests above would hold for a store that never flushes."""
    disk = Disk()
    disk.make_folder("a")
    file = disk.create("a/x")
    file.write(b"1234")
    outcomes = set()
    for fate in FATES:
        left = disk.after_crash(fate)
        outcomes.add(left.content("a/x") if left.exists("a/x") else left.exists("a"))
    assert outcomes == {False, True, b"", b"12", b"1234", bytes(4)}
    file.flush()
    disk.flush_folder("a")
    assert not disk.after_crash(FATES[0]).exists("a")
    disk.flush_folder("")
    assert disk.after_crash(FATES[0]).content("a/x") == b"1234"
    disk.rename("a/x", "a/y")
    assert list(disk.after_crash(FATES[0]).files()) == ["a/x"]
    assert list(disk.after_crash(FATES[1]).files()) == ["a/y"]


# A disk that refuses.


def test_a_full_disk_costs_the_checkpoint_under_way_and_no_other() -> None:
    """A failed write would pass for a part, or harm what is complete."""
    whole = disk_with(1)
    take_second(DirectoryStore("job/store", whole))
    unclear = 0
    for fail_at in range(1, len(whole.steps)):
        disk = disk_with(1)
        disk.fail_at = {fail_at}
        store = DirectoryStore("job/store", disk)
        with pytest.raises(StoreFailedError, match="No space left on device") as caught:
            take_second(store)
        if caught.value.definite:
            assert store.completed() == (1,)
        else:
            unclear += 1
        store.abandon(2)
        assert store.completed() == (1,) == found(disk.after_crash(FATES[0]))
        goes_on(disk)
    assert unclear == 2


def test_a_completion_that_failed_half_way_is_settled_by_another() -> None:
    """A checkpoint would be neither complete nor aborted, and its sinks could do neither."""
    for failing in ("write", "flush", "rename", "flush folder"):
        disk = disk_with(1)
        store = DirectoryStore("job/store", disk)
        manifest = begun(store, 2, SOURCE)
        done = len(disk.steps)
        probe = disk_with(1)
        probe_store = DirectoryStore("job/store", probe)
        probe_store.complete(begun(probe_store, 2, SOURCE))
        at = next(i for i in range(done, len(probe.steps)) if probe.steps[i].startswith(failing + " job"))
        disk.fail_at = {at}
        with pytest.raises(StoreFailedError) as caught:
            store.complete(manifest)
        assert caught.value.definite is (failing in ("write", "flush"))
        store.complete(manifest)
        assert DirectoryStore("job/store", disk.after_crash(FATES[0])).completed() == (2, 1)


def test_a_part_that_failed_can_be_written_again() -> None:
    """A full disk for a moment would cost the checkpoint, or a torn part would be taken for whole."""
    disk = disk_with()
    store = DirectoryStore("job/store", disk)
    store.begin(1)
    begins = len(disk.steps)
    store.write(1, JOIN)
    for fail_at in range(begins, len(disk.steps)):
        again = disk_with()
        again.fail_at = {fail_at}
        other = DirectoryStore("job/store", again)
        other.begin(1)
        again.fail_at = {fail_at - begins + len(again.steps)}
        with pytest.raises(StoreFailedError, match=r"writing join\[1\] for checkpoint 1"):
            other.write(1, JOIN)
        part = other.write(1, JOIN)
        other.complete(Manifest(1, 1, True, (part,)))
        left = DirectoryStore("job/store", again.after_crash(FATES[0]))
        assert left.load(1).snapshots == (JOIN,)


# A reader while retention runs.


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_reader_is_never_lost_while_retention_runs(every: int) -> None:
    """A recovery that reads while checkpoints come and go would fail, or get a half of one."""
    reads: list[None] = []
    probe = disk_with(1, 2)
    probe.on_read = lambda: reads.append(None)
    DirectoryStore("job/store", probe).latest_usable()
    taken = {2: (SOURCE, JOIN), 3: (SOURCE, QUIET), 4: (SOURCE, QUIET)}
    seen = set()
    for first in range(len(reads)):
        for second in range(first, len(reads) + 10, every):
            disk = disk_with(1, 2)
            writer = DirectoryStore("job/store", disk)
            reader = DirectoryStore("job/store", disk)
            count = -1

            def meanwhile(
                disk: Disk = disk, writer: DirectoryStore = writer, at: tuple[int, int] = (first, second)
            ) -> None:
                nonlocal count
                count += 1
                hook, disk.on_read = disk.on_read, lambda: None
                for place, checkpoint_id in zip(at, (3, 4), strict=True):
                    if place == count:
                        kept(writer, checkpoint_id, SOURCE, QUIET)
                        writer.retain(1)
                disk.on_read = hook

            disk.on_read = meanwhile
            usable = reader.latest_usable()
            assert usable.passed_over == ()
            checkpoint_id = usable.checkpoint.manifest.checkpoint_id
            assert usable.checkpoint.snapshots == taken[checkpoint_id]
            seen.add(checkpoint_id)
    assert seen == {2, 3, 4}


def test_a_reader_is_never_lost_half_way_through_retention() -> None:
    """Anything that is removed first could be missed while what replaces it is not yet seen."""
    before = disk_with(1, 2)
    manifest_of_3 = begun(DirectoryStore("job/store", before.copy()), 3, SOURCE)
    reads: list[None] = []
    before.on_read = lambda: reads.append(None)
    DirectoryStore("job/store", before).latest_usable()
    before.on_read = lambda: None
    for at in range(len(reads)):
        disk = before.copy()
        writer = DirectoryStore("job/store", disk)
        begun(writer, 3, SOURCE)  # is there, and not complete, when the reader begins
        reader = DirectoryStore("job/store", disk)
        count = -1

        def meanwhile(disk: Disk = disk, writer: DirectoryStore = writer, at: int = at) -> None:
            nonlocal count
            count += 1
            if count == at:
                disk.on_read = lambda: None
                writer.complete(manifest_of_3)
                disk.stop_at = len(disk.steps) + 4  # the manifest of 2 is gone, its folder is not
                with contextlib.suppress(Crash):
                    writer.retain(1)
                disk.stop_at = None  # the writer is no more, the reader goes on

        disk.on_read = meanwhile
        assert reader.latest_usable().checkpoint.manifest.checkpoint_id in (2, 3)
