"""A store whose file system fails at any call, or at any two: what was announced complete stays, and can be read.

A job does its work once to count the calls of its store, then once for each of them to fail there, reading calls too,
with errors that say nothing of what was done. It does what a driver has to: what failed is aborted or done again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from io import FileIO
from itertools import combinations
from pathlib import Path

import pytest

from barrierlab.impl import (
    BarrierError,
    CompletedError,
    DirectoryStore,
    LimitError,
    Manifest,
    RegressingIdError,
    StoredSnapshot,
    StoreError,
    StoreFailedError,
    TaskSnapshot,
    encode,
)
from barrierlab.impl.storage.files import RealFile
from barrierlab.impl.storage.media import DirectoryMedium
from tests.impl.disk import FATES, Answer, Crash, Disk, Fate, Fault, Node, Odd
from tests.impl.stored import JOIN, QUIET, SOURCE, begun, kept

ROOT = "job/store"
FAULTS = [
    Fault(number, takes_place)
    for number in (errno.EIO, errno.EACCES, errno.ENOSPC, errno.ESTALE)
    for takes_place in (False, True)
]


def contents(checkpoint_id: int) -> tuple[TaskSnapshot, ...]:
    """The parts of a checkpoint follow from its id."""
    return TaskSnapshot("a", 0, encode(checkpoint_id), position=checkpoint_id), QUIET, JOIN


class Job:
    """One process with a store, which fails once or twice.

    Attributes
    ----------
    announced, begun : list of int
        The checkpoints that were called complete, and the ids that were given out.
    kept : int
        The most that the job has asked retention to keep so far.
    told : list of str
        The messages of the errors.
    """

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.announced, self.begun = [1], [1]
        self.kept = 2
        self.told: list[str] = []

    def run(self, work: Callable[[DirectoryStore], None]) -> None:
        """The whole life of the process; it fails for good only if its store cannot be opened."""
        store = self.tried(lambda: DirectoryStore(ROOT, self.disk))
        if store is not None:
            work(store)

    def tried(self, call: Callable[[], DirectoryStore]) -> DirectoryStore | None:
        """The answer; None if the medium refuses, which is one line."""
        try:
            return call()
        except StoreError as error:
            self.told.append(str(error))
            return None

    def take(self, store: DirectoryStore, checkpoint_id: int) -> None:
        """A checkpoint, or what a driver does if it fails; an id that may have been given out is not given again."""
        if self.asked(lambda: store.highest_id()) is None or not self.done(lambda: store.begin(checkpoint_id)):
            return
        self.begun.append(checkpoint_id)
        parts = []
        for snapshot in contents(checkpoint_id):
            part = self.asked(lambda snapshot=snapshot: store.write(checkpoint_id, snapshot))
            if part is None:
                self.done(lambda: store.abandon(checkpoint_id))
                return
            parts.append(part)
        self.complete(store, Manifest(checkpoint_id, checkpoint_id, True, tuple(parts)))

    def complete(self, store: DirectoryStore, manifest: Manifest) -> None:
        """Again, while it is in doubt; at the third time it is aborted."""
        for _ in range(3):
            try:
                store.complete(manifest)
            except StoreFailedError as error:
                if error.definite:
                    break
            else:
                self.announced.append(manifest.checkpoint_id)
                return
        self.done(lambda: store.abandon(manifest.checkpoint_id))

    def retain(self, store: DirectoryStore, newest: int) -> None:
        """From here on no more than `newest` need be there."""
        self.kept = min(self.kept, newest)
        self.done(lambda: store.retain(newest))

    def done(self, call: Callable[[], object]) -> bool:
        """Return whether the medium did it; an id that is used up is an answer as well."""
        try:
            call()
        except (StoreError, RegressingIdError) as error:
            self.told.append(str(error))
            return False
        return True

    def asked(self, call: Callable[[], object]) -> object:
        """The answer; None if the medium refuses."""
        try:
            return call()
        except StoreError as error:
            self.told.append(str(error))
            return None

    def is_sound(self, disk: Disk) -> None:
        """Show what the next process finds, when nothing fails any more."""
        assert all(len(message.splitlines()) == 1 for message in self.told)
        store = DirectoryStore(ROOT, disk)
        completed = store.completed()
        assert set(self.announced[-self.kept :]) <= set(completed) <= set(self.begun)
        for checkpoint_id in completed:
            assert set(store.load(checkpoint_id).snapshots) == set(contents(checkpoint_id))
        assert store.latest_usable().passed_over == ()
        assert store.highest_id() >= max(self.begun)
        store.clean()
        kept(store, store.highest_id() + 1)
        assert store.latest_usable().passed_over == ()


def before() -> Disk:
    """Checkpoint 1, all of it flushed."""
    disk = Disk()
    store = DirectoryStore(ROOT, disk)
    store.begin(1)
    store.complete(Manifest(1, 1, True, tuple(store.write(1, each) for each in contents(1))))
    return disk.copy()


def short(job: Job, store: DirectoryStore) -> None:
    """A checkpoint, and the one before it goes."""
    job.take(store, 2)
    job.retain(store, 1)


def long(job: Job, store: DirectoryStore) -> None:
    """All that a store can be asked."""
    job.asked(store.latest_usable)
    job.done(store.clean)
    job.take(store, 2)
    job.retain(store, 2)
    if job.done(lambda: store.begin(3)):
        job.begun.append(3)
        job.asked(lambda: store.write(3, SOURCE))
        job.done(lambda: store.abandon(3))
        job.done(lambda: store.abandon(3))
    job.take(store, 4)
    job.retain(store, 1)
    job.asked(lambda: store.load(4))
    job.done(store.clean)


def count(work: Callable[[Job, DirectoryStore], None]) -> int:
    """Return how many calls the work has when nothing fails."""
    job = Job(before())
    job.run(lambda store: work(job, store))
    assert job.announced[-1] == max(job.begun)
    job.is_sound(job.disk)
    return len(job.disk.calls)


def fails(
    work: Callable[[Job, DirectoryStore], None], faults: dict[int, Fault], fates: Sequence[Fate] = FATES[:2]
) -> Job:
    """The job after these calls of its store have failed; then the machine stops."""
    job = Job(before())
    job.disk.faults = faults
    job.run(lambda store: work(job, store))
    job.disk.faults = {}
    for fate in fates:
        job.is_sound(job.disk.after_crash(fate))
    return job


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_any_call_may_fail(every: int) -> None:
    """One error of the medium would cost a checkpoint that was announced, or make two out of one id (rules 2, 20)."""
    calls = range(0, count(long), every)
    announced = {max(fails(long, {at: FAULTS[at % 8]}, FATES[at % 2 :: 12]).announced) for at in calls}
    assert announced == {1, 2, 4}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS[:2], ids=str)
def test_any_two_calls_may_fail(fault: Fault) -> None:
    """The repair of a first error would do harm if it failed, too; the error number makes no difference here."""
    for pair in combinations(range(count(short) + 6), 2):
        fails(short, dict.fromkeys(pair, fault), FATES[:1])


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_long_job_survives_any_call_that_fails(fault: Fault) -> None:
    """As for one error, of each kind, in whatever way the machine stops later."""
    for at in range(count(long)):
        fails(long, {at: fault}, FATES)


# One error, looked at closely.


def test_a_checkpoint_under_way_never_counts_for_retention() -> None:
    """One look that fails would cost the last complete checkpoint."""
    for number in (errno.EIO, errno.EACCES, errno.ESTALE):
        disk = before()
        store = DirectoryStore(ROOT, disk)
        store.begin(2)
        looks = len(disk.calls)
        store.completed()
        for at in range(looks, len(disk.calls)):
            disk.faults = {at + len(disk.calls) - looks: Fault(number)}
            with suppress(StoreFailedError):
                assert store.retain(1) == ()
            disk.faults = {}
            assert store.completed() == (1,)


class Hidden(Disk):
    """A disk on which one folder cannot be looked into."""

    hidden = ""

    def find(self, path: str) -> Node:
        """An error, for what is in it."""
        if self.hidden and path.startswith(f"{self.hidden}/"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return super().find(path)


def test_what_cannot_be_looked_at_is_named_and_never_removed() -> None:
    """Recovery would pass over a checkpoint in silence, or retention take a complete one for a leftover (rule 22)."""
    disk = Hidden(before().root)
    kept(DirectoryStore(ROOT, disk), 2, SOURCE)
    disk.hidden = f"{ROOT}/checkpoint-2"
    store = DirectoryStore(ROOT, disk)
    assert (store.completed(), store.leftovers(), store.retain(1), store.clean()) == ((1,), (), (), ())
    usable = store.latest_usable()
    assert usable.checkpoint.manifest.checkpoint_id == 1
    assert [(each.checkpoint_id, "Permission denied" in each.why) for each in usable.passed_over] == [(2, True)]
    with pytest.raises(StoreFailedError, match=r"Permission denied.*go back to an older one"):
        store.load(2)
    disk.hidden = ""
    assert store.latest_usable().checkpoint.manifest.checkpoint_id == 2
    assert store.retain(1) == (1,)


def test_a_second_try_leaves_the_first_in_doubt() -> None:
    """Sinks would roll back what a manifest speaks of that is there after all."""
    disk = before()
    store = DirectoryStore(ROOT, disk)
    manifest = begun(store, 2, SOURCE)
    flush = len(disk.calls) + 5  # the folder; the file opened, written, flushed; the rename
    disk.faults = {flush: Fault(errno.EIO)}
    with pytest.raises(StoreFailedError, match="publishing") as caught:
        store.complete(manifest)
    assert disk.calls[-1] == f"flush folder {ROOT}/checkpoint-2"
    assert not caught.value.definite
    disk.faults = {len(disk.calls): Fault(errno.EIO)}
    with pytest.raises(StoreFailedError, match="writing the manifest") as caught:
        store.complete(manifest)
    assert not caught.value.definite
    assert store.retain(1) == ()
    store.complete(manifest)
    assert store.retain(1) == (1,)


def test_what_another_process_published_is_flushed_before_anybody_relies_on_it() -> None:
    """A writer that was killed between rename and flush leaves a manifest that the next crash takes away again."""
    relies: list[Callable[[DirectoryStore], object]] = [
        lambda store: store.retain(1),
        lambda store: store.latest_usable(),
        lambda store: store.load(2),
    ]
    for rely in relies:
        disk = before()
        store = DirectoryStore(ROOT, disk)
        manifest = begun(store, 2, SOURCE)
        disk.stop_at = len(disk.steps) + 5  # the file opened, half written, written, flushed, renamed
        with suppress(Crash):
            store.complete(manifest)
        disk.stop_at = None
        assert disk.steps[-1].startswith("rename")
        assert DirectoryStore(ROOT, disk.after_crash(FATES[0])).completed() == (1,)
        store = DirectoryStore(ROOT, disk)
        assert store.completed() == (2, 1)
        rely(store)
        assert DirectoryStore(ROOT, disk.after_crash(FATES[0])).completed()[0] == 2


# Other writers.


def test_of_two_writers_one_gets_an_id() -> None:
    """The parts of two checkpoints would lie in one folder."""
    disk = before()
    one, other = DirectoryStore(ROOT, disk), DirectoryStore(ROOT, disk)
    one.begin(2)
    with pytest.raises(RegressingIdError):
        other.begin(2)
    other.begin(3)


def second_writer(disk: Disk) -> None:
    """Comes at any moment, cleans up, and takes a checkpoint of its own."""
    store = DirectoryStore(ROOT, disk)
    store.clean()
    kept(store, store.highest_id() + 1, SOURCE)
    store.retain(2)


@pytest.mark.parametrize("meanwhile", [second_writer, lambda disk: DirectoryStore(ROOT, disk).clean()])
def test_a_writer_whose_attempt_was_removed_is_told_so(meanwhile: Callable[[Disk], None]) -> None:
    """Its manifest would name parts that another process has taken for leftovers."""
    work = [lambda store: kept(store, 2, SOURCE, JOIN), lambda store: kept(store, 5, QUIET)]
    whole = before()
    probe = DirectoryStore(ROOT, whole)
    opened = len(whole.calls)
    for each in work:
        each(probe)
    outcomes = set()
    for at in range(opened, len(whole.calls)):
        disk = Interrupted(before().root)
        store = DirectoryStore(ROOT, disk)
        disk.at, disk.meanwhile = at, meanwhile
        announced = []
        for checkpoint_id, each in zip((2, 5), work, strict=True):
            with suppress(StoreFailedError, RegressingIdError, CompletedError):
                each(store)
                announced.append(checkpoint_id)
        found = DirectoryStore(ROOT, disk.after_crash(FATES[0]))
        assert found.latest_usable().passed_over == ()
        for checkpoint_id in found.completed():
            found.load(checkpoint_id)
        assert set(announced[-1:]) <= set(found.completed())
        outcomes.add(tuple(announced))
    assert (2, 5) in outcomes
    assert (5,) in outcomes


class Interrupted(Disk):
    """A disk to which another process comes before one of the calls."""

    at = -1
    meanwhile: Callable[[Disk], None]

    def call(
        self, verb: str, path: str, effect: Callable[[], Answer], half: Callable[[], None] = lambda: None
    ) -> Answer:
        """As before."""
        if len(self.calls) == self.at:
            self.at = -1
            self.meanwhile(self)
        return super().call(verb, path, effect, half)


def test_a_leftover_that_is_no_folder_any_more_is_gone() -> None:
    """Another process was faster: the cleaning would not name what is gone, or take what is not its own."""
    disk = Disk()
    medium = DirectoryMedium("store", disk)
    medium.make(1)
    disk.folder("store").names["checkpoint-1"] = Odd()
    assert medium.remove(1, leftover=True)
    assert "checkpoint-1" in disk.folder("store").names  # it is somebody else's
    del disk.folder("store").names["checkpoint-1"]
    assert medium.remove(1, leftover=True)


# What is no file of the store's.


def make_link(path: Path, outside: Path) -> None:
    """To a folder elsewhere."""
    path.symlink_to(outside, target_is_directory=True)


def make_file_link(path: Path, outside: Path) -> None:
    """To a file elsewhere."""
    path.symlink_to(outside / "precious")


def make_dangling_link(path: Path, outside: Path) -> None:
    """To nothing."""
    path.symlink_to(outside / "nothing")


def make_pipe(path: Path, outside: Path) -> None:
    """Whoever opens it waits for the other end, as a rule."""
    os.mkfifo(path)


def make_folder(path: Path, outside: Path) -> None:
    """With something in it."""
    (path / "in" / "it").mkdir(parents=True)


def make_file(path: Path, outside: Path) -> None:
    """With a text in it."""
    path.write_text("external")


def make_second_name(path: Path, outside: Path) -> None:
    """Of a file elsewhere."""
    os.link(outside / "precious", path)


THINGS = [make_link, make_file_link, make_dangling_link, make_pipe, make_folder, make_file, make_second_name]
PLACES = [
    "checkpoint-1/manifest.json",
    "checkpoint-2",
    "checkpoint-2/manifest.json.tmp",
    "checkpoint-2/operators",
    "checkpoint-2/operators/a",
    "checkpoint-2/operators/a/0",
    "checkpoint-2/operators/a/0/state.bin",
    "checkpoint-1/operators/a/0",
    "checkpoint-1/operators/a/0/state.bin",
    "checkpoint-1/more",
    "checkpoint-3",
    "else",
]


@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: thing.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_nothing_outside_the_store_is_read_or_changed(
    tmp_path: Path, place: str, thing: Callable[[Path, Path], None]
) -> None:
    """A link in the store would be followed and what it leads to emptied; a pipe would stop the job for ever."""
    outside = tmp_path / "outside"
    (outside / "0").mkdir(parents=True)
    for precious in (outside / "precious", outside / "0" / "state.bin", outside / "manifest.json"):
        precious.write_text("precious")
    store = DirectoryStore(str(tmp_path / "store"))
    kept(store, 1, SOURCE, JOIN)
    store.begin(2)
    path = tmp_path / "store" / place
    if path.exists():
        path.rename(tmp_path / "was there")
    path.parent.mkdir(parents=True, exist_ok=True)
    thing(path, outside)
    told: list[BarrierError] = []

    def tried(call: Callable[[], object]) -> None:
        try:
            call()
        except BarrierError as error:
            told.append(error)

    parts: list[StoredSnapshot] = []
    tried(lambda: parts.append(store.write(2, SOURCE)))
    tried(lambda: store.complete(Manifest(2, 2, False, tuple(parts))))
    for other in (store, DirectoryStore(str(tmp_path / "store"))):
        tried(other.latest_usable)
        for checkpoint_id in (1, 2, 3):
            tried(lambda checkpoint_id=checkpoint_id, other=other: other.load(checkpoint_id))
        tried(lambda: store.abandon(2))
        tried(lambda: store.abandon(2))
        tried(other.clean)
        tried(lambda other=other: kept(other, 7, SOURCE))
        tried(lambda other=other: kept(other, 8, SOURCE))
        tried(lambda other=other: other.retain(1))
    assert all(len(str(error).splitlines()) == 1 for error in told)
    assert sorted(str(each.relative_to(outside)) for each in outside.rglob("*")) == [
        "0",
        "0/state.bin",
        "manifest.json",
        "precious",
    ]
    assert {each.read_text() for each in outside.rglob("*") if each.is_file()} == {"precious"}
    assert DirectoryStore(str(tmp_path / "store")).latest_usable().checkpoint.manifest.checkpoint_id == 8
    if place in ("checkpoint-3", "else"):
        assert os.path.lexists(path) or thing is make_folder  # an empty folder of that name is a leftover of ours


def test_a_external_name_uses_up_an_id(tmp_path: Path) -> None:
    """Every attempt to begin that checkpoint would fail, and the job with it."""
    store = DirectoryStore(str(tmp_path))
    (tmp_path / "checkpoint-3").write_text("")
    assert (store.highest_id(), store.completed(), store.clean()) == (3, (), ())
    kept(store, 4, SOURCE)


def test_a_link_inside_an_attempt_goes_with_it(tmp_path: Path) -> None:
    """A checkpoint with one could never be aborted."""
    (tmp_path / "elsewhere").mkdir()
    store = DirectoryStore(str(tmp_path / "store"))
    store.begin(1)
    (tmp_path / "store" / "checkpoint-1" / "x").symlink_to(tmp_path / "elsewhere")
    assert store.abandon(1)
    assert not store.abandon(1)
    assert os.listdir(tmp_path / "store" / "checkpoint-1") == []
    assert (tmp_path / "elsewhere").is_dir()


@pytest.mark.slow
def test_folders_in_folders_without_end_are_removed(tmp_path: Path) -> None:
    """A leftover of that kind would end in a traceback."""
    store = DirectoryStore(str(tmp_path / "s"))
    store.begin(1)
    before, at = os.getcwd(), tmp_path / "s" / "checkpoint-1"
    os.chdir(at)
    try:
        for _ in range(1010):  # more than Python calls within calls
            os.mkdir("a")
            os.chdir("a")
    finally:
        os.chdir(before)
    assert store.abandon(1)


def test_a_store_may_lie_behind_a_link(tmp_path: Path) -> None:
    """A directory that an administrator has moved would be refused."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "there")
    kept(DirectoryStore(str(tmp_path / "here")), 1)
    assert DirectoryStore(str(tmp_path / "here") + "/").completed() == (1,)


def test_the_name_of_a_store_just_below_the_root_is_durable() -> None:
    """After a crash there would be no store: the folder that was flushed would be the working directory."""
    disk = Disk()
    DirectoryStore("/store", disk)
    assert disk.steps == ["flush folder /", "make /store", "flush folder /"]


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", 7, b"bytes", None])
def test_a_path_that_no_directory_has_is_one_line(path: str) -> None:
    """It would be a traceback."""
    with pytest.raises(LimitError, match=r"path = .*without a NUL"):
        DirectoryStore(path)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """The store would be made, and fail at its first checkpoint."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFailedError, match=r"Not a directory.*mend the medium or the permissions"):
        DirectoryStore(str(tmp_path / "file"))


def test_a_new_line_in_a_path_stays_one_line(tmp_path: Path) -> None:
    """A message that is looked for by lines would be cut in two."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFailedError) as caught:
        DirectoryStore(str(tmp_path / "file" / "a\nb"))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "give",
    [
        lambda store: store.write(1, b"state"),
        lambda store: store.write(1, None),
        lambda store: store.complete({"checkpoint_id": 1}),
    ],
)
def test_what_is_no_snapshot_or_manifest_is_refused(give: Callable[[DirectoryStore], object]) -> None:
    """It would be a traceback, half way through an attempt."""
    store = DirectoryStore(ROOT, before())
    store.begin(2)
    with pytest.raises(LimitError, match="of type"):
        give(store)


# A real file that takes little at a time.


def test_short_writes_and_short_reads_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part would be torn although every call went well."""

    class Slow(FileIO):
        """Three bytes a call."""

        def write(self, data: object, /) -> int:
            return super().write(memoryview(data)[:3])  # type: ignore[arg-type]

        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(3, 3 if size is None or size < 0 else size))

    def slow(path: str, mode: str, buffering: int, opener: Callable[[str, int], int] | None = None) -> Slow:
        return Slow(path, mode.replace("b", ""), opener=opener)

    monkeypatch.setattr("barrierlab.impl.storage.files.open", slow, raising=False)
    store = DirectoryStore(str(tmp_path))
    kept(store, 1, SOURCE, JOIN)
    assert store.load(1).snapshots == (SOURCE, JOIN)


def test_a_file_that_takes_nothing_is_an_error() -> None:
    """The job would write for ever."""

    class Full(FileIO):
        """Nothing a call."""

        def write(self, data: object, /) -> int:
            return 0

    file = RealFile(Full(os.open(os.devnull, os.O_WRONLY), "w"))
    with closing(file), pytest.raises(OSError, match="takes nothing"):
        file.write(b"x")
