"""A recovery that is broken on purpose is seen to be, on a run that holds with the sound one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import barrierlab.sim.checkpoint.build
from barrierlab.impl import (
    Checkpoint,
    CheckpointCoordinator,
    EndOfInput,
    RegressingIdError,
    Restore,
    SinkTask,
    SinkWriter,
    SourceTask,
    UnsettledError,
    Wiring,
    plan,
)
from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.sim import run
from barrierlab.sim.channels.spsc import SpscChannel
from barrierlab.sim.checkpoint.coordinator import CoordinatorNode
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.checkpoint.storage import Storage
from barrierlab.sim.checkpoint.tasks import TaskNode
from tests.sim.support import FAILING, LATE, MODES, scenario, with_changes

SEED = 4
CRASH: dict[str, Any] = {"fault": [{"kind": "crash", "task": "work[0]", "at_s": 2.43}]}
SLOW_MAP = {"map": {"service_s": {"dist": "exponential", "mean": 0.008}}}
QUEUES = with_changes(with_changes(MODES["unaligned"], CRASH), {"channel": {"default": LATE}, "operator": SLOW_MAP})
# Their senders have buffers of their own, which a barrier passes on the way out.
OUTGOING = with_changes(QUEUES, {"channel": {"default": {"form": "network", "segment_bytes": 200, "latency_s": 0.002}}})
ENDED = with_changes(CRASH, {"source": {"a": {"events": 400}, "b": {"events": 28}}, "until_s": 30.0})
LATE_END = {
    **with_changes(with_changes(MODES["unaligned"], ENDED), {"recovery": {"detection_s": 0.02}, "until_s": 30.0}),
    "channel": {"b->work": {**LATE, "latency_s": 0.5}},
    "checkpoint": {"first_s": 0.7, "interval_s": 9.0, "aligned_checkpoint_timeout_s": 0.0},
    "fault": [{"kind": "crash", "task": "map", "at_s": 1.6}],
}


class DoesNotSeek(SourceTask):
    """Begins with the first event again."""

    def recover(self, part: Any, checkpoint_id: int) -> str:
        state = super().recover(part, checkpoint_id)
        self.position = 1
        return state


class SeeksTooFar(SourceTask):
    """Goes on behind the event that it should begin with."""

    def recover(self, part: Any, checkpoint_id: int) -> str:
        state = super().recover(part, checkpoint_id)
        self.position += 1
        return state


class ForgetsItsState(SinkTask):
    """Begins with an empty state."""

    def recover(self, part: Any, checkpoint_id: int) -> str:
        return super().recover(part, 0)


class CommitsAtOnce(SinkWriter):
    """Does not wait until the checkpoint is complete."""

    def prepare(self, checkpoint_id: int) -> None:
        super().prepare(checkpoint_id)
        self.on_complete(checkpoint_id)


class NeverCommits(SinkWriter):
    """Does nothing when a checkpoint is announced."""

    def on_complete(self, checkpoint_id: int) -> None:
        """Nothing."""


class RollsNothingBack(SinkWriter):
    """Keeps what the restored checkpoint does not speak of, and commits it with the next one."""

    def recover(self, prepared: Any, checkpoint_id: int) -> None:
        kept = tuple(prepared)
        others = [
            (name, 0)
            for name, (sink, state, _) in self.ledger._transactions.items()
            if (sink, state) == (self.sink, "is prepared") and name not in kept
        ]
        self._commit(kept)
        self._prepared += others


class LeavesItOpen(SinkWriter):
    """Rolls back nothing, and commits it never."""

    def recover(self, prepared: Any, checkpoint_id: int) -> None:
        self._newest_id = checkpoint_id
        self._commit(tuple(prepared))


class RollsAllBack(SinkWriter):
    """Rolls back what the restored checkpoint had prepared."""

    def recover(self, prepared: Any, checkpoint_id: int) -> None:
        super().recover((), checkpoint_id)


def without_outputs(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """Everything that senders recorded is forgotten."""
    return plan(replace(checkpoint, snapshots=tuple(replace(s, outputs=()) for s in checkpoint.snapshots)), wiring)


def without_inputs(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """Everything that receivers recorded is forgotten."""
    return plan(replace(checkpoint, snapshots=tuple(replace(s, inputs=()) for s in checkpoint.snapshots)), wiring)


def backwards(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """Everything in flight comes in the wrong order."""
    restore = plan(checkpoint, wiring)
    return replace(restore, channels={name: messages[::-1] for name, messages in restore.channels.items()})


def twice(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """Everything in flight comes twice."""
    restore = plan(checkpoint, wiring)
    return replace(restore, channels={name: messages * 2 for name, messages in restore.channels.items()})


def without_ends(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """That a sender had finished is forgotten."""
    restore = plan(checkpoint, wiring)
    channels = {n: tuple(m for m in ms if type(m) is not EndOfInput) for n, ms in restore.channels.items()}
    return replace(restore, channels=channels)


class PutsBackTwice(SpscChannel):
    """Everything in flight is read twice."""

    def restored_in_flight(self, messages: Any) -> None:
        super().restored_in_flight(messages)
        super().restored_in_flight(messages)


class LosesWhatIsPutBack(SpscChannel):
    """Nothing in flight is ever read."""

    def restored_in_flight(self, messages: Any) -> None:
        """Nothing."""


class SeesOnlyTheQueue(SpscChannel):
    """A message on its way is not counted among what a barrier passes."""

    def take_overtaking(self, unread: Any) -> Any:
        return self.overtakers.take(unread, list(self.queue))


def oldest(self: Storage) -> Checkpoint:
    """The first that is kept, not the newest."""
    assert self._store is not None
    return self._store.load(self._store.completed()[-1])


def is_still_heard(self: TaskNode) -> None:
    """A crash is noted, and nothing stops."""
    self.entries.append((self.clock.now, ">crash", self.name, None, None))


def keeps_the_attempt(self: Engine) -> None:
    """An order of an older attempt still takes effect."""
    self.clock.ready.clear()


def announces_nothing(self: CoordinatorNode, action: Any) -> None:
    """Nobody is notified that a checkpoint is complete."""


# name: what the reason says, which of `Components` is broken or what else, the breakage, the scenario's changes
BROKEN: dict[str, tuple[str, tuple[Any, str] | str, Any, dict[str, Any]]] = {
    "source restarts from the initial state": ("REC: ", "source", DoesNotSeek, CRASH),
    "source leaves one out": ("REC: ", "source", SeeksTooFar, CRASH),
    "state forgotten": (
        "REC: the state of sink restored",
        "sink",
        ForgetsItsState,
        CRASH,
    ),
    "sender's record forgotten": ("was not restored", "plan", without_outputs, OUTGOING),
    "receiver's record forgotten": ("was not restored", "plan", without_inputs, QUEUES),
    "in flight, backwards": ("REC: ", "plan", backwards, QUEUES),
    "in flight, twice": ("was restored", "plan", twice, QUEUES),
    "end forgotten": ("the end was restored", "plan", without_ends, LATE_END),
    "read twice": ("", (barrierlab.sim.checkpoint.build, "SpscChannel"), PutsBackTwice, QUEUES),
    "never read": ("", (barrierlab.sim.checkpoint.build, "SpscChannel"), LosesWhatIsPutBack, QUEUES),
    "on its way and unrecorded": (
        "is lost to checkpoint",
        (barrierlab.sim.checkpoint.build, "SpscChannel"),
        SeesOnlyTheQueue,
        QUEUES,
    ),
    "committed when prepared": ("no complete checkpoint has it", "writer", CommitsAtOnce, CRASH),
    "never committed": ("is not visible at sink", "writer", NeverCommits, CRASH),
    "not rolled back": ("REC: ", "writer", RollsNothingBack, CRASH),
    "left prepared": ("is neither committed nor rolled back", "writer", LeavesItOpen, ENDED),
    "rolled back too much": (
        "is not visible at sink",
        "writer",
        RollsAllBack,
        {**CRASH, "store": {"manifest_s": 0.3}, "fault": [{"kind": "crash", "task": "map", "at_s": 2.0}]},
    ),
    "an older checkpoint": ("so it comes again", (Storage, "newest"), oldest, {**CRASH, "store": {"retained": 2}}),
    "dead and heard": ("went on after it had crashed", (TaskNode, "crash"), is_still_heard, CRASH),
    "two attempts at a time": ("", (Engine, "halt"), keeps_the_attempt, CRASH),
    "not announced": (
        "is not visible at sink, and the job has ended",
        (CoordinatorNode, "_announce"),
        announces_nothing,
        {**ENDED, "checkpoint": {"interval_s": 9.0}},
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_broken_recovery_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recovery broken in this way would pass for a sound one; or the sound one, on the same run, for broken."""
    text, where, breakage, changes = BROKEN[name]
    small = scenario(tmp_path, FAILING, **changes)
    sound = run(small, SEED)
    assert sound.verdict == "holds", sound.violations
    components = SOUND
    if isinstance(where, str):
        components = Components(**{where: breakage})
    else:
        monkeypatch.setattr(*where, breakage)
    broken = run(small, SEED, components=components)
    assert broken.verdict == "broken"
    found = [f"{violation.invariant}: {violation.reason}" for violation in broken.violations]
    assert any(text in reason for reason in found), found[:8]


def test_an_id_that_comes_again_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new coordinator would write into the checkpoints of the old one."""
    monkeypatch.setattr(Storage, "highest_id", lambda self: 0)
    with pytest.raises(RegressingIdError):
        run(scenario(tmp_path, FAILING, fault=[{"kind": "coordinator_crash", "at_s": 2.4}]), SEED)


def test_a_manifest_that_is_not_waited_for_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest that lands after the restore would bring back transactions that were rolled back."""
    monkeypatch.setattr(CheckpointCoordinator, "settled", property(lambda self: True))
    slow = {"store": {"manifest_s": 0.9}, "recovery": {"restart_s": 0.1}, "checkpoint": {"interval_s": 2.0}}
    with pytest.raises(UnsettledError):
        run(
            scenario(tmp_path, with_changes(FAILING, slow), fault=[{"kind": "crash", "task": "map", "at_s": 2.2}]), SEED
        )
