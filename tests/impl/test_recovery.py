"""From a complete checkpoint to what a job begins with: each task at its cut, each channel with what crossed it."""

from __future__ import annotations

import pytest

from impl import (
    Acknowledge,
    CheckpointBarrier,
    InFlightChannelData,
    Manifest,
    MemoryStore,
    RestoreError,
    Wiring,
    encode,
    from_the_beginning,
    plan,
    snapshot_of,
)
from impl.snapshot import Checkpoint, InFlight, TaskSnapshot
from impl.task import digest
from tests.impl.support import event

# a, b -> join -> sink
WIRING = Wiring(
    {"a": ("a", 0), "b": ("b", 0), "join": ("join", 0), "sink": ("sink", 0)},
    {"a": (), "b": (), "join": ("a->join", "b->join"), "sink": ("join->sink",)},
    {"a": ("a->join",), "b": ("b->join",), "join": ("join->sink",), "sink": ()},
)


def flying(channel, *names):
    """What was in flight on a channel."""
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


@pytest.mark.parametrize("state", [(), (1, 2), (1, "w", (), False, ()), (1, 2, (), 0, ()), (1, 2, (), False, (3,))])
def test_a_state_in_another_form_is_refused(state):
    """If it fails, what another program stored is taken for a state."""
    snapshots = tuple(
        TaskSnapshot(task, 0, encode(state), 1 if task in "ab" else None) for task in ("a", "b", "join", "sink")
    )
    with pytest.raises(RestoreError, match="a state of a in another form"):
        plan(Checkpoint(Manifest(3, 3, False, ()), snapshots), WIRING)


def test_no_barrier_is_put_back():
    """If it fails, a task aligns for a checkpoint that is complete (U-13)."""
    barrier = InFlight(0, (encode(CheckpointBarrier(3, 3)),))
    snapshots = tuple(
        TaskSnapshot(task, 0, encode((0, None, (), False, ())), 1 if task in "ab" else None, (barrier,) * (task > "c"))
        for task in ("a", "b", "join", "sink")
    )
    with pytest.raises(RestoreError, match="no barrier is put back"):
        plan(Checkpoint(Manifest(3, 3, False, ()), snapshots), WIRING)
