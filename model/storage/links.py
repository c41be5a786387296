"""A link in place of a folder of the store: nothing behind it is read as the store's own, changed or removed.

Somebody may put one there, by mistake or by intent, to a folder that looks just the same. (CWE-59: link following.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from barrierlab.impl.errors import StoreError
from barrierlab.impl.storage.snapshot import Manifest, StoredSnapshot, TaskSnapshot
from barrierlab.impl.storage.store import DirectoryStore
from barrierlab.model.storage.files import EMPTY, Direct, FileCall
from barrierlab.model.storage.world import PATH, contents

FOLDERS = ("", "/operators", "/operators/a", "/operators/a/0")
"""Those on the way to a part, below that of a checkpoint."""
COMPLETE, UNDER_WAY = 2, 3
REFUSED = {"write": FOLDERS[:3], "complete": FOLDERS[:1], "abandon": ()}
"""By call, the folders that it goes through: of the second part of an operator, of the manifest; none is removed."""
ELSEWHERE = "elsewhere"


def cases() -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Yield each case with a name, and with why it does not hold, or None."""
    for folder in FOLDERS:
        yield f"a link in place of checkpoint-{COMPLETE}{folder}", partial(_complete, folder)
        for does in REFUSED:
            yield f"{does} with a link in place of checkpoint-{UNDER_WAY}{folder}", partial(_under_way, folder, does)


def _below(disk: Direct, folder: str) -> dict[str, object]:
    """Return all names in a folder, with the bytes of files."""
    found: dict[str, object] = {}
    for name in disk.port.names(folder):
        path = f"{folder}/{name}"
        found |= _below(disk, path) | {path: None} if disk.port.is_folder(path) else {path: disk.port.read(path, 10**6)}
    return found


def _linked(disk: Direct, folder: str) -> dict[str, object]:
    """Move a folder out of the store, and put a link where it was; all that is behind the link."""
    inner = _below(disk, folder)
    disk.ask(FileCall("make_folder", ELSEWHERE))
    for path, data in sorted(inner.items()):
        to = ELSEWHERE + path.removeprefix(folder)
        disk.ask(FileCall("make_folder" if data is None else "create", to))
        disk.ask(FileCall("write", to, data) if data is not None else FileCall("exists", to))
    for path in (*sorted(inner, reverse=True), folder):
        disk.ask(FileCall("remove", path))
    disk.ask(FileCall("link", folder, ELSEWHERE))
    return _below(disk, ELSEWHERE)


def _begun() -> tuple[Direct, DirectoryStore, StoredSnapshot]:
    """Return a store with two complete checkpoints, and of a third one part of two of one operator written."""
    disk = Direct(EMPTY)
    store = DirectoryStore(PATH, disk.port)
    for checkpoint_id in (1, COMPLETE):
        store.begin(checkpoint_id)
        parts = tuple(store.write(checkpoint_id, each) for each in contents(checkpoint_id, 2))
        store.complete(Manifest(checkpoint_id, checkpoint_id, True, parts))
    store.begin(UNDER_WAY)
    return disk, store, store.write(UNDER_WAY, TaskSnapshot("a", 0, b"first"))


def _complete(folder: str) -> str | None:
    disk, _, _ = _begun()
    before = _linked(disk, f"{PATH}/checkpoint-{COMPLETE}{folder}")
    store = DirectoryStore(PATH, disk.port)
    try:
        store.load(COMPLETE)
    except StoreError:
        pass
    else:
        return "it is read as the store's own"
    newest = store.latest_usable().checkpoint.manifest.checkpoint_id
    if newest != 1:
        return f"the latest is {newest}, and not 1"
    for does in (partial(store.retain, 1), store.clean):
        try:
            does()
        except StoreError:
            continue
    return None if _below(disk, ELSEWHERE) == before else "what is behind it was changed"


def _under_way(folder: str, does: str) -> str | None:
    disk, store, part = _begun()
    before = _linked(disk, f"{PATH}/checkpoint-{UNDER_WAY}{folder}")
    try:
        if does == "write":
            store.write(UNDER_WAY, TaskSnapshot("a", 1, b"second"))
        elif does == "complete":
            store.complete(Manifest(UNDER_WAY, UNDER_WAY, True, (part,)))
        else:
            store.abandon(UNDER_WAY)
        refused = False
    except StoreError:
        refused = True
    if _below(disk, ELSEWHERE) != before:
        return "what is behind it was changed"
    return None if refused == (folder in REFUSED[does]) else "it is refused" if refused else "it is not refused"
