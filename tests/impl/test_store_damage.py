"""Whatever happens to a stored file, recovery names it and takes the next older checkpoint (protocol rule 22)."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from barrierlab.impl import (
    DamagedError,
    DirectoryStore,
    InFlight,
    NoUsableCheckpointError,
    RealFiles,
    StoreFailedError,
    TaskSnapshot,
    Unusable,
)
from tests.impl.disk import Disk
from tests.impl.stored import SOURCE, kept

TASK = TaskSnapshot("j", 0, b"s", inputs=(InFlight(1, (b"e", b"")),), outputs=(InFlight(0, (b"o",)),))
FILES = [
    "manifest.json",
    "operators/j/0/state.bin",
    "operators/j/0/inflight_1.buf",
    "operators/j/0/inflight_out_0.buf",
]


def stored(*checkpoint_ids: int) -> Disk:
    """A disk with these checkpoints."""
    disk = Disk()
    store = DirectoryStore("store", disk)
    for checkpoint_id in checkpoint_ids:
        kept(store, checkpoint_id, TASK)
    return disk


def changed(content: bytes) -> Iterator[bytes]:
    """Each byte in three ways, each shorter one, and longer ones."""
    for at, byte in enumerate(content):
        for other in (byte ^ 1, byte ^ 0x80, 0 if byte else 0xFF):
            yield content[:at] + bytes([other]) + content[at + 1 :]
    for size in range(len(content)):
        yield content[:size]
    for more in (b"\0", b"\n", b" ", content[-1:], content):
        yield content + more


def test_the_files_below_are_all_there_are() -> None:
    """A file would not be damaged in these tests."""
    assert sorted(stored(1).files()) == sorted(f"store/checkpoint-1/{path}" for path in FILES)


@pytest.mark.parametrize("path", FILES)
def test_any_change_of_any_file_is_named_and_the_older_checkpoint_taken(path: str) -> None:
    """Damage would be restored, or passed over in silence (protocol rule 22; defect U-11)."""
    disk = stored(1, 2)
    store = DirectoryStore("store", disk)
    name = f"checkpoint-2/{path}"
    good = disk.content(f"store/{name}")
    assert store.latest_usable().checkpoint.manifest.checkpoint_id == 2
    for bad in changed(good):
        disk.put(f"store/{name}", bad)
        usable = store.latest_usable()
        assert usable.checkpoint.manifest.checkpoint_id == 1
        (passed,) = usable.passed_over
        assert passed.checkpoint_id == 2
        assert passed.why.startswith(f"{name}: ")
    disk.put(f"store/{name}", good)
    assert store.latest_usable().passed_over == ()


@pytest.mark.parametrize("path", FILES[1:])
def test_a_missing_file_is_named_and_the_older_checkpoint_taken(path: str) -> None:
    """A checkpoint would be restored without a part."""
    disk = stored(1, 2)
    disk.remove(f"store/checkpoint-2/{path}")
    usable = DirectoryStore("store", disk).latest_usable()
    assert usable.checkpoint.manifest.checkpoint_id == 1
    assert usable.passed_over[0].why.startswith(f"checkpoint-2/{path}: no such file; ")


@pytest.mark.parametrize("path", FILES)
def test_a_file_of_another_checkpoint_is_found_out(path: str) -> None:
    """A file that is sound in itself would be restored into another checkpoint."""
    disk = stored(1)
    store = DirectoryStore("store", disk)
    kept(store, 2, replace(TASK, state=b"t", inputs=(InFlight(1, (b"f", b"")),), outputs=(InFlight(0, (b"p",)),)))
    disk.put(f"store/checkpoint-2/{path}", disk.content(f"store/checkpoint-1/{path}"))
    with pytest.raises(DamagedError, match=f"^checkpoint-2/{path}: "):
        store.load(2)


def test_a_file_of_another_task_is_found_out() -> None:
    """Two instances of one operator would swap their states."""
    disk = Disk()
    store = DirectoryStore("store", disk)
    kept(store, 1, replace(TASK, subtask=0), replace(TASK, subtask=1))
    for one, other in ((0, 1), (1, 0)):
        disk.put(
            f"store/checkpoint-1/operators/j/{one}/state.bin",
            stored(1).content("store/checkpoint-1/operators/j/0/state.bin").replace(b"\0", bytes([other]), 1),
        )
    with pytest.raises(DamagedError, match=r"operators/j/0/state\.bin"):
        store.load(1)


def test_every_unusable_one_is_named_newest_first() -> None:
    """Whoever looks after the store would learn of one damage only."""
    disk = stored(1, 2, 3, 4)
    disk.put("store/checkpoint-4/manifest.json", b"")
    disk.put("store/checkpoint-3/operators/j/0/inflight_1.buf", b"x" * 1000)
    disk.remove("store/checkpoint-2/operators/j/0/state.bin")
    usable = DirectoryStore("store", disk).latest_usable()
    assert usable.checkpoint.manifest.checkpoint_id == 1
    assert [(each.checkpoint_id, each.why.split(":")[0]) for each in usable.passed_over] == [
        (4, "checkpoint-4/manifest.json"),
        (3, "checkpoint-3/operators/j/0/inflight_1.buf"),
        (2, "checkpoint-2/operators/j/0/state.bin"),
    ]
    assert all(isinstance(each, Unusable) for each in usable.passed_over)


def test_none_left_is_one_clear_error() -> None:
    """A job would start from nothing although it has checkpoints, or end in a traceback."""
    disk = stored(1, 2)
    for checkpoint_id in (1, 2):
        disk.put(f"store/checkpoint-{checkpoint_id}/operators/j/0/state.bin", b"short")
    with pytest.raises(NoUsableCheckpointError) as caught:
        DirectoryStore("store", disk).latest_usable()
    assert [checkpoint_id for checkpoint_id, _why in caught.value.passed_over] == [2, 1]
    assert str(caught.value).startswith(
        "checkpoint 2 is unusable (checkpoint-2/operators/j/0/state.bin: 5 bytes; allowed: "
    )
    assert "checkpoint 1 is unusable" in str(caught.value)


def test_a_copied_checkpoint_does_not_pass_for_another() -> None:
    """A restored backup under a wrong name would be taken for a newer checkpoint."""
    disk = stored(1)
    folder = disk.folder("store")
    folder.names["checkpoint-9"] = folder.names["checkpoint-1"]
    usable = DirectoryStore("store", disk).latest_usable()
    assert usable.checkpoint.manifest.checkpoint_id == 1
    assert "the manifest of checkpoint 1; allowed: that of checkpoint 9" in usable.passed_over[0].why


class Broken(Disk):
    """A disk on which some paths cannot be read."""

    bad: tuple[str, ...] = ()

    def read(self, path: str, most: int) -> bytes:
        """An error, for some."""
        if path.startswith(self.bad):
            raise OSError(errno.EIO, "Input/output error", path)
        return super().read(path, most)

    def exists(self, path: str) -> bool:
        """An error, for some."""
        if path.startswith(self.bad):
            raise OSError(errno.EIO, "Input/output error", path)
        return super().exists(path)


@pytest.mark.parametrize("bad", ["store/checkpoint-2", "store/checkpoint-2/operators/j/0/inflight_1.buf"])
def test_what_cannot_be_read_is_passed_over_and_kept(bad: str) -> None:
    """One bad sector would stop every recovery, or cost a checkpoint that may be readable again."""
    disk = Broken(stored(1, 2).root)
    disk.bad = (bad,)
    store = DirectoryStore("store", disk)
    usable = store.latest_usable()
    assert usable.checkpoint.manifest.checkpoint_id == 1
    assert "Input/output error" in usable.passed_over[0].why
    with pytest.raises(StoreFailedError):
        store.load(2)
    assert store.clean() == ()
    disk.bad = ()
    assert store.latest_usable().checkpoint.manifest.checkpoint_id == 2


def test_retention_does_not_count_what_could_not_be_read() -> None:
    """Damage to the newest checkpoints would cost the last usable one."""
    disk = stored(1, 2, 3)
    store = DirectoryStore("store", disk)
    disk.put("store/checkpoint-3/manifest.json", b"")
    assert store.retain(1) == (1,)  # it looks itself, where nobody has

    disk = stored(1, 2, 3)
    store = DirectoryStore("store", disk)
    disk.put("store/checkpoint-3/manifest.json", b"")
    store.latest_usable()
    assert store.retain(1) == (1,)
    assert store.latest_usable().checkpoint.manifest.checkpoint_id == 2
    kept(store, 4, TASK)
    assert store.retain(1) == (3, 2)


def test_no_more_is_read_than_the_manifest_says(tmp_path: Path) -> None:
    """A file that grew without end would fill the memory before it is found out."""

    class Measured(RealFiles):
        """Remembers the most that was asked for."""

        asked: dict[str, int] = {}

        def read(self, path: str, most: int) -> bytes:
            data = super().read(path, most)
            self.asked[path.rpartition("/")[2]] = len(data)
            return data

    files = Measured()
    store = DirectoryStore(str(tmp_path), files)
    manifest = kept(store, 1, SOURCE)
    size = manifest.parts[0].state.size_bytes
    with open(tmp_path / "checkpoint-1" / "operators" / "a" / "0" / "state.bin", "ab") as file:
        file.truncate(2**40)  # a hole; takes no room
    with pytest.raises(DamagedError, match=f"{size + 1} or more bytes; allowed: {size} bytes, as in the manifest"):
        store.load(1)
    assert files.asked["state.bin"] == size + 1
    assert files.asked["manifest.json"] < 1000
    assert len(RealFiles().read(str(tmp_path / "checkpoint-1" / "manifest.json"), 2**60)) < 1000
