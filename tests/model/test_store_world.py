"""The store explored: its scopes hold, have as many states as they had, and see what goes wrong in a store."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

import pytest

from barrierlab.impl.errors import StoreFailedError
from barrierlab.impl.storage.media import MANIFEST, MANIFEST_UNFINISHED, DirectoryMedium, Medium
from barrierlab.impl.storage.store import SnapshotStore
from barrierlab.model.checkpoint.components import SOUND
from barrierlab.model.explore.checker import HOLDS
from barrierlab.model.storage.files import EMPTY, Direct, FileCall, after_crash
from barrierlab.model.storage.scopes import SCOPES


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param(
            scope, id=scope.name, marks=[pytest.mark.slow] * scope.name.startswith(("store bytes", "store: any order"))
        )
        for scope in SCOPES
    ],
)
def test_every_scope_holds_and_is_as_large_as_before(scope) -> None:
    """A count that moves says that the store asks its files otherwise, or that less is explored."""
    outcome = scope.check(SOUND, None)
    assert (outcome.verdict, outcome.states, outcome.violations) == (HOLDS, scope.states, ())


def found(names: str = "") -> set[str]:
    """The invariants that the scopes see broken."""
    outcomes = [scope.check(SOUND, None) for scope in SCOPES if names in scope.name]
    for outcome in outcomes:
        for violation in outcome.violations:
            assert violation.trace.startswith(f"# {outcome.name}.\n")
            assert violation.trace.count("\n") == violation.steps + 2
    return {violation.invariant for outcome in outcomes for violation in outcome.violations}


# Mistakes that a store could make, each with the scopes that are to see it, and as what.


def publishes_unflushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rename is not made durable."""

    def publish(self: DirectoryMedium, checkpoint_id: int, manifest: bytes) -> None:
        folder = self._at(checkpoint_id)
        self._write(self._disk.reopen(f"{folder}/{MANIFEST_UNFINISHED}"), manifest)
        self._disk.rename(f"{folder}/{MANIFEST_UNFINISHED}", f"{folder}/{MANIFEST}")

    monkeypatch.setattr(DirectoryMedium, "publish", publish)


def writes_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest is written under its own name, so that it is there before it is whole."""

    def publish(self: DirectoryMedium, checkpoint_id: int, manifest: bytes) -> None:
        self._write(self._disk.create(f"{self._at(checkpoint_id)}/{MANIFEST}"), manifest)
        self._disk.flush_folder(self._at(checkpoint_id))

    monkeypatch.setattr(DirectoryMedium, "publish", publish)


def counts_what_it_cannot_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention takes what the medium gives no answer about for complete."""
    sound = DirectoryMedium.published

    def published(self: DirectoryMedium) -> dict[int, bool | None]:
        return {checkpoint_id: state is not False for checkpoint_id, state in sound(self).items()}

    monkeypatch.setattr(DirectoryMedium, "published", published)
    monkeypatch.setattr(SnapshotStore, "_is_whole", lambda self, checkpoint_id: True)


def relies_on_what_is_not_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything that another process has published is not flushed."""
    monkeypatch.setattr(DirectoryMedium, "settle", lambda self, checkpoint_id: None)


def removes_the_parts_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest goes with the rest."""

    def remove(self: DirectoryMedium, checkpoint_id: int, leftover: bool = False) -> bool:
        folder = self._at(checkpoint_id)
        for name in sorted(self._disk.names(folder), reverse=True):
            self._clear(f"{folder}/{name}")
        self._disk.flush_folder(folder)
        return True

    monkeypatch.setattr(DirectoryMedium, "remove", remove)


def forgets_the_highest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the highest id goes as well."""
    sound = DirectoryMedium.remove

    def remove(self: DirectoryMedium, checkpoint_id: int, leftover: bool = False) -> bool:
        done = sound(self, checkpoint_id, leftover)
        if self._disk.exists(self._at(checkpoint_id)):
            self._disk.remove(self._at(checkpoint_id))
        return done

    monkeypatch.setattr(DirectoryMedium, "remove", remove)


def takes_attempts_of_others_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt that somebody removed is made anew, and published without what was in it."""
    sound = DirectoryMedium.publish

    def publish(self: DirectoryMedium, checkpoint_id: int, manifest: bytes) -> None:
        folder = self._at(checkpoint_id)
        if self._disk.exists(folder) and not self._disk.exists(f"{folder}/{MANIFEST_UNFINISHED}"):
            self._disk.create(f"{folder}/{MANIFEST_UNFINISHED}")
        sound(self, checkpoint_id, manifest)

    monkeypatch.setattr(DirectoryMedium, "publish", publish)


def never_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each completion fails, so that nothing is ever announced."""

    def publish(self: DirectoryMedium, checkpoint_id: int, manifest: bytes) -> None:
        raise StoreFailedError("publishing", OSError(5, "no"))

    monkeypatch.setattr(DirectoryMedium, "publish", publish)


def is_sure_of_what_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second try that fails early is taken for the whole scripted case."""

    class Forgets(set[int]):
        """A set that nothing stays in."""

        def add(self, checkpoint_id: int) -> None:
            """Nothing."""

    sound = SnapshotStore.__init__

    def made(self: SnapshotStore, medium: Medium) -> None:
        sound(self, medium)
        self._in_doubt = Forgets()

    def restored(self: SnapshotStore, value: object) -> None:
        restore(self, value)
        self._in_doubt = Forgets()

    restore = SnapshotStore.restore
    monkeypatch.setattr(SnapshotStore, "__init__", made)
    monkeypatch.setattr(SnapshotStore, "restore", restored)


def keeps_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention removes nothing."""
    monkeypatch.setattr(SnapshotStore, "retain", lambda self, newest: ())


@pytest.mark.parametrize(
    ("plant", "scopes", "invariant"),
    [
        (publishes_unflushed, "three checkpoints", "KEPT"),
        (writes_in_place, "three checkpoints", "WHOLE"),
        (counts_what_it_cannot_look_at, "a call that fails", "KEPT"),
        (relies_on_what_is_not_durable, "a killed process", "KEPT"),
        (removes_the_parts_first, "three checkpoints", "WHOLE"),
        (forgets_the_highest, "all that can be asked", "IDS"),
        (takes_attempts_of_others_for_its_own, "an attempt that another removes", "WHOLE"),
        (never_completes, "the first checkpoint", "LIVE"),
        (never_completes, "all that can be asked", "RAISED"),
        (is_sure_of_what_is_in_doubt, "two calls that fail", "DOUBT"),
        (keeps_everything, "all that can be asked", "LIVE"),
        (keeps_everything, "any order of calls", "CALLS"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_mistake_of_a_store_is_seen(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], scopes: str, invariant: str
) -> None:
    """A scope that never failed has asked nothing; and of what is broken the run is shown."""
    plant(monkeypatch)
    assert invariant in found(scopes)


def test_a_change_of_the_bytes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints of an earlier version could not be read any more."""
    monkeypatch.setattr("barrierlab.impl.storage.encoding._F64", Struct(">d"))
    assert found("store bytes: values") == {"BYTES"}


# The file system of the model.


def test_a_crash_leaves_everything_that_it_may() -> None:
    """Less, and a store that does not flush would hold; more, and a sound one would not."""
    disk = Direct(EMPTY)
    disk.ask(FileCall("make_folder", "a"))
    disk.ask(FileCall("create", "a/x"))
    disk.ask(FileCall("write", "a/x", b"1234"))

    def outcomes() -> set[object]:
        seen: set[object] = set()
        for tree in after_crash(disk.tree):
            left = Direct(tree)
            if not left.ask(FileCall("exists", "a")):
                seen.add("nothing")
            else:
                names = left.ask(FileCall("names", "a"))
                assert isinstance(names, tuple)
                seen.add(tuple((name, left.ask(FileCall("read", f"a/{name}", 9))) for name in names))
        return seen

    assert outcomes() == {"nothing", (), (("x", b""),), (("x", b"12"),), (("x", b"1234"),)}
    disk.ask(FileCall("flush", "a/x"))
    disk.ask(FileCall("flush_folder", "a"))
    assert outcomes() == {"nothing", (("x", b"1234"),)}
    disk.ask(FileCall("flush_folder", ""))
    disk.ask(FileCall("rename", "a/x", "a/y"))
    assert outcomes() == {(("x", b"1234"),), (("y", b"1234"),)}


def test_the_scopes_have_names_of_their_own() -> None:
    """A verdict would be of another scope."""
    names = [scope.name for scope in SCOPES]
    assert len(set(names)) == len(names)
    assert {scope.protocol for scope in SCOPES} == {"store"}
