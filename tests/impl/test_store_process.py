"""A real process on a real disk, killed at some step of its writing: what it had called complete is there, whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

from barrierlab.impl import DirectoryStore, InFlight, TaskSnapshot, encode

ROOT = Path(__file__).parents[2]
KILLS = 5
WRITER = """
import sys
from barrierlab.impl import DirectoryStore, Manifest, RealFiles
from tests.impl.test_store_process import snapshots

def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()

class Loud(RealFiles):
    # Says a dot before each step.
    def __getattribute__(self, name):
        if name in ("make_folder", "flush_folder", "create", "reopen", "rename", "remove"):
            say(".")
        return super().__getattribute__(name)

store = DirectoryStore(sys.argv[1], Loud())
store.clean()
while True:
    checkpoint_id = store.highest_id() + 1
    store.begin(checkpoint_id)
    parts = tuple(store.write(checkpoint_id, each) for each in snapshots(checkpoint_id))
    store.complete(Manifest(checkpoint_id, checkpoint_id, True, parts))
    say(f" {checkpoint_id} ")
    store.retain(2)
"""


def snapshots(checkpoint_id: int) -> tuple[TaskSnapshot, ...]:
    """Return the content of a checkpoint, which follows from its id."""
    size = Random(checkpoint_id).choice([10, 2_000, 30_000])
    flying = tuple(encode((checkpoint_id, n)) for n in range(size // 100))
    return (
        TaskSnapshot("a", 0, encode(checkpoint_id), position=checkpoint_id),
        TaskSnapshot("t", 0, bytes([checkpoint_id % 256]) * size, inputs=(InFlight(0, flying),)),
    )


def killed_after(steps: int, folder: str) -> list[int]:
    """The checkpoints that a writer had reported as complete when it was killed, so many characters after its start."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, folder], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        said = writer.stdout.read(steps)
        writer.kill()
        rest, errors = writer.communicate()
    assert (writer.returncode != 0, errors) == (True, b"")
    whole, _, _ = (said + rest).rpartition(b" ")  # the last id may have been cut
    return [int(word) for word in whole.replace(b".", b" ").split()]


def test_a_writer_that_is_killed_at_any_step(tmp_path):
    """If it fails, a crash costs a checkpoint that was announced, or leaves one that is not whole (rules 20 and 22)."""
    folder, chance = str(tmp_path / "store"), Random(20)
    announced = begun = 0
    for _ in range(KILLS):
        reported = killed_after(chance.randint(60, 160), folder)
        assert reported
        assert reported == sorted(set(reported))
        assert reported[0] > begun  # no id is used twice, also of those that were never complete
        announced = reported[-1]
        store = DirectoryStore(folder)
        begun = store.highest_id()
        usable = store.latest_usable()
        assert announced <= usable.checkpoint.manifest.checkpoint_id <= begun
        assert usable.passed_over == ()
        for checkpoint_id in store.completed():
            assert store.load(checkpoint_id).snapshots == snapshots(checkpoint_id)
