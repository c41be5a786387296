"""The common parts of the tests of snapshots and stores: small checkpoints, and stores of every kind."""

from __future__ import annotations

from barrierlab.impl import InFlight, Manifest, SnapshotStore, TaskSnapshot, encode

SOURCE = TaskSnapshot("a", 0, encode(7), position=7)
JOIN = TaskSnapshot(
    "join",
    1,
    encode((3, ("x", None))),
    inputs=(InFlight(0, (b"one", b"")), InFlight(2, (b"two",))),
    outputs=(InFlight(0, (b"out",)),),
)
QUIET = TaskSnapshot("join", 0, encode(()))


def begun(store: SnapshotStore, checkpoint_id: int, *snapshots: TaskSnapshot, epoch: int | None = None) -> Manifest:
    """A checkpoint that is written and not yet complete; its manifest."""
    store.begin(checkpoint_id)
    parts = tuple(store.write(checkpoint_id, snapshot) for snapshot in snapshots)
    return Manifest(
        checkpoint_id,
        checkpoint_id if epoch is None else epoch,
        any(part.in_flight for part in parts),
        parts,
    )


def kept(store: SnapshotStore, checkpoint_id: int, *snapshots: TaskSnapshot) -> Manifest:
    """A checkpoint that is complete; its manifest."""
    manifest = begun(store, checkpoint_id, *(snapshots or (SOURCE, JOIN)))
    store.complete(manifest)
    return manifest
