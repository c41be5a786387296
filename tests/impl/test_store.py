"""The promises of a store, in memory and in a directory: the same of each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from barrierlab.impl import (
    AttemptError,
    BarrierError,
    CheckpointIdError,
    CompletedError,
    DirectoryStore,
    LimitError,
    Manifest,
    MemoryStore,
    NotCompleteError,
    NoUsableCheckpointError,
    RegressingIdError,
    SnapshotStore,
    StoreFailedError,
)
from tests.breadth import examples
from tests.impl.disk import Disk
from tests.impl.stored import JOIN, QUIET, SOURCE, begun, kept


@pytest.fixture(params=["memory", "directory", "disk in memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SnapshotStore:
    """An empty store."""
    if request.param == "memory":
        return MemoryStore()
    if request.param == "directory":
        return DirectoryStore(str(tmp_path / "job" / "checkpoints"))
    return DirectoryStore("job/checkpoints", Disk())


def test_what_was_completed_is_loaded(store: SnapshotStore) -> None:
    """A recovery would find something else than what was captured."""
    manifest = kept(store, 1, SOURCE, JOIN, QUIET)
    checkpoint = store.load(1)
    assert checkpoint.manifest == manifest
    assert checkpoint.snapshots == (SOURCE, QUIET, JOIN)
    assert store.latest_usable().checkpoint == checkpoint


def test_what_was_not_completed_is_not_there(store: SnapshotStore) -> None:
    """A checkpoint would be restored that lacks a part (protocol rule 20; defect P-13)."""
    begun(store, 1, SOURCE, JOIN)
    assert store.completed() == ()
    with pytest.raises(NotCompleteError, match="allowed: none: no checkpoint is complete"):
        store.load(1)
    with pytest.raises(NoUsableCheckpointError, match="no checkpoint is complete") as caught:
        store.latest_usable()
    assert caught.value.passed_over == ()


def test_the_newest_comes_first(store: SnapshotStore) -> None:
    """Recovery would go back further than it must."""
    for checkpoint_id in (1, 2, 9, 10):
        kept(store, checkpoint_id)
    assert store.completed() == (10, 9, 2, 1)
    usable = store.latest_usable()
    assert (usable.checkpoint.manifest.checkpoint_id, usable.passed_over) == (10, ())


def test_a_completed_checkpoint_never_changes(store: SnapshotStore) -> None:
    """The checkpoint that sinks have committed by would be replaced (protocol rule 20)."""
    manifest = kept(store, 1)
    before = store.load(1)
    changes: list[Callable[[], object]] = [
        lambda: store.begin(1),
        lambda: store.write(1, QUIET),
        lambda: store.complete(manifest),
        lambda: store.abandon(1),
    ]
    for change in changes:
        with pytest.raises(CompletedError, match="of checkpoint 1, which is complete"):
            change()
    assert store.load(1) == before


def test_an_id_is_used_once(store: SnapshotStore) -> None:
    """Two attempts would mix their parts under one id (protocol rule 2)."""
    store.begin(5)
    for used in (5, 4):
        with pytest.raises(RegressingIdError, match=f"checkpoint id {used} after 5"):
            store.begin(used)
    assert store.abandon(5)
    with pytest.raises(RegressingIdError):
        store.begin(5)
    assert store.clean() == ()
    assert store.highest_id() == 5
    kept(store, 6)
    assert store.highest_id() == 6


@pytest.mark.parametrize("bad", [0, -1, 2**64, True, "1", None])
def test_an_id_that_no_barrier_can_have_is_refused(store: SnapshotStore, bad: int) -> None:
    """A folder would be made that is never found again."""
    with pytest.raises(CheckpointIdError):
        store.begin(bad)
    assert store.highest_id() == 0


def test_a_manifest_must_have_exactly_the_parts_that_were_written(store: SnapshotStore) -> None:
    """A checkpoint would be complete without a task's part (protocol rule 20; defect P-13)."""
    manifest = begun(store, 1, SOURCE, JOIN)
    more = MemoryStore()
    other = begun(more, 1, QUIET)
    for parts in (manifest.parts[:1], (*manifest.parts, *other.parts), (replace(manifest.parts[0], position=8),)):
        with pytest.raises(AttemptError, match=r"those that were written: a\[0\], join\[1\]"):
            store.complete(replace(manifest, parts=parts))
    assert store.completed() == ()
    store.complete(manifest)
    assert store.completed() == (1,)


def test_a_part_is_written_once_and_only_under_way(store: SnapshotStore) -> None:
    """A late or repeated part would replace one that was acknowledged."""
    with pytest.raises(AttemptError, match="write of checkpoint 1, which is not under way; allowed: none"):
        store.write(1, SOURCE)
    manifest = begun(store, 1, SOURCE)
    with pytest.raises(AttemptError, match=r"a second part of a\[0\] for checkpoint 1"):
        store.write(1, replace(SOURCE, position=8))
    store.complete(manifest)
    assert store.load(1).snapshots == (SOURCE,)


def test_completing_one_aborts_the_older_ones_under_way(store: SnapshotStore) -> None:
    """An older checkpoint could complete behind a newer one (protocol rule 20)."""
    first = begun(store, 1, SOURCE)
    third_begun = [begun(store, 2, SOURCE), begun(store, 3, SOURCE)]
    store.complete(third_begun[0])
    with pytest.raises(AttemptError):
        store.complete(first)
    assert store.leftovers() == (1,)
    assert store.clean() == (1,)
    store.complete(third_begun[1])
    assert store.completed() == (3, 2)


def test_an_abandoned_checkpoint_is_gone(store: SnapshotStore) -> None:
    """A declined checkpoint would fill the store, or be completed after all."""
    manifest = begun(store, 1, SOURCE)
    assert store.abandon(1)
    assert not store.abandon(1)
    with pytest.raises(AttemptError):
        store.complete(manifest)
    assert (store.completed(), store.leftovers()) == ((), ())


def test_retention_keeps_the_newest(store: SnapshotStore) -> None:
    """The store would fill up, or lose what is needed."""
    for checkpoint_id in (1, 2, 3, 4):
        kept(store, checkpoint_id)
    assert store.retain(5) == ()
    assert store.retain(2) == (2, 1)
    assert store.completed() == (4, 3)
    assert store.retain(2) == ()
    assert store.load(3).manifest.checkpoint_id == 3
    assert store.leftovers() == ()


@pytest.mark.parametrize("bad", [0, -1, True, None])
def test_retention_of_none_is_refused(store: SnapshotStore, bad: int) -> None:
    """The last checkpoint would go."""
    kept(store, 1)
    with pytest.raises(LimitError, match="newest"):
        store.retain(bad)
    assert store.completed() == (1,)


def test_retention_spares_what_is_under_way(store: SnapshotStore) -> None:
    """A checkpoint would lose its parts before it is complete."""
    kept(store, 1)
    manifest = begun(store, 2, SOURCE)
    store.retain(1)
    assert store.clean() == ()
    store.complete(manifest)
    assert store.load(2).snapshots == (SOURCE,)


def test_a_checkpoint_without_parts_is_one(store: SnapshotStore) -> None:
    """A job all of whose tasks have ended could not have its last checkpoint."""
    kept(store, 1)
    store.begin(2)
    store.complete(Manifest(2, 2, False, ()))
    assert store.latest_usable().checkpoint.snapshots == ()


# A directory alone.


def test_the_files_are_where_the_document_has_them(tmp_path: Path) -> None:
    """Another reader would not find them (F-DCKP-006; protocol rule 21)."""
    kept(DirectoryStore(str(tmp_path)), 7)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert [path.replace(os.sep, "/") for path in found] == [
        "checkpoint-7/manifest.json",
        "checkpoint-7/operators/a/0/state.bin",
        "checkpoint-7/operators/join/1/inflight_0.buf",
        "checkpoint-7/operators/join/1/inflight_2.buf",
        "checkpoint-7/operators/join/1/inflight_out_0.buf",
        "checkpoint-7/operators/join/1/state.bin",
    ]


def test_the_next_process_finds_what_was_completed(tmp_path: Path) -> None:
    """A checkpoint would last as long as the process that took it."""
    first = DirectoryStore(str(tmp_path))
    kept(first, 1)
    begun(first, 2, SOURCE)
    second = DirectoryStore(str(tmp_path))
    assert (second.completed(), second.highest_id(), second.leftovers()) == ((1,), 2, (2,))
    assert second.load(1) == first.load(1)
    assert second.clean() == (2,)
    assert (second.leftovers(), second.highest_id()) == ((), 2)
    kept(second, 3)
    assert second.clean() == (2,)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-1", "checkpoint-3"]


def test_what_is_not_a_checkpoint_is_left_alone(tmp_path: Path) -> None:
    """Somebody's files would be taken for a checkpoint, or removed."""
    names = ["checkpoint-01", "checkpoint-x", "checkpoint-", "checkpoint-99999999999999999999", "notes", "checkpoint-٣"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{}")
    store = DirectoryStore(str(tmp_path))
    assert (store.completed(), store.leftovers(), store.highest_id()) == ((), (), 0)
    kept(store, 1)
    assert store.clean() == ()
    assert set(os.listdir(tmp_path)) == {*names, "checkpoint-1"}


def test_the_system_is_asked_to_make_it_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The promises of the disk in these tests would not be done on a real one."""
    done: list[str] = []
    folder = tmp_path / "checkpoint-1"
    sync, replace_ = os.fsync, os.replace

    def fsync(handle: int) -> None:
        sync(handle)
        name = os.readlink(f"/proc/self/fd/{handle}") if os.path.exists("/proc/self/fd") else "?"
        done.append(f"{os.path.relpath(name, tmp_path)} {os.fstat(handle).st_size if os.path.isfile(name) else '/'}")

    def rename(path: str, to: str) -> None:
        replace_(path, to)
        done.append(f"rename {os.path.relpath(to, tmp_path)}")

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    store = DirectoryStore(str(tmp_path))
    manifest = begun(store, 1, SOURCE)
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("the names of open files cannot be listed here")
    size = os.path.getsize(folder / "operators/a/0/state.bin")
    assert done[-2:] == [f"checkpoint-1/operators/a/0/state.bin {size}", "checkpoint-1/operators/a/0 /"]
    assert {". /", "checkpoint-1 /", "checkpoint-1/operators /", "checkpoint-1/operators/a /"} < set(done)
    done.clear()
    store.complete(manifest)
    size = os.path.getsize(folder / "manifest.json")
    assert done == [f"checkpoint-1/manifest.json.tmp {size}", "rename checkpoint-1/manifest.json", "checkpoint-1 /"]


def test_a_directory_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    """A job would start that can never take a checkpoint."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFailedError, match="making the directory") as caught:
        DirectoryStore(str(tmp_path / "file" / "checkpoints"))
    assert caught.value.definite


# The same of each, whatever is done.

IDS = st.integers(1, 6)
SNAPSHOTS = st.sampled_from([SOURCE, JOIN, QUIET])


class Alike(RuleBasedStateMachine):
    """A store in memory and one in a directory are asked the same, and answer the same."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = Disk()
        self.stores: tuple[SnapshotStore, ...] = (MemoryStore(), DirectoryStore("store", self.disk))
        self.parts: dict[int, list[object]] = {}

    def both(self, ask: Callable[[SnapshotStore], object]) -> object:
        """The one answer, or the name of the one error."""
        answers = []
        for store in self.stores:
            try:
                answers.append(ask(store))
            except BarrierError as error:
                answers.append((type(error), str(error)))
        assert answers[0] == answers[1]
        return answers[0]

    @rule(checkpoint_id=IDS)
    def begin(self, checkpoint_id: int) -> None:
        """Often out of order."""
        if self.both(lambda store: store.begin(checkpoint_id)) is None:
            self.parts[checkpoint_id] = []

    @rule(checkpoint_id=IDS, snapshot=SNAPSHOTS)
    def write(self, checkpoint_id: int, snapshot: object) -> None:
        """Often twice, or too late."""
        part = self.both(lambda store: store.write(checkpoint_id, snapshot))
        if not isinstance(part, tuple):
            self.parts[checkpoint_id].append(part)

    @rule(checkpoint_id=IDS, some=st.booleans())
    def complete(self, checkpoint_id: int, some: bool) -> None:
        """Sometimes not with all parts."""
        parts = tuple(self.parts.get(checkpoint_id, ())[some:])
        self.both(lambda store: store.complete(Manifest(checkpoint_id, 1, True, parts)))

    @rule(checkpoint_id=IDS)
    def abandon(self, checkpoint_id: int) -> None:
        """Often nothing."""
        self.both(lambda store: store.abandon(checkpoint_id))

    @rule(checkpoint_id=IDS)
    def look(self, checkpoint_id: int) -> None:
        """All that can be asked."""
        self.both(lambda store: store.load(checkpoint_id))
        self.both(lambda store: store.latest_usable())
        self.both(lambda store: (store.completed(), store.highest_id(), store.leftovers()))

    @rule(newest=st.integers(0, 3))
    def retain(self, newest: int) -> None:
        """Keep some."""
        self.both(lambda store: store.retain(newest))

    @rule()
    def clean(self) -> None:
        """Leftovers go."""
        self.both(lambda store: store.clean())


Alike.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
TestAlike = Alike.TestCase
