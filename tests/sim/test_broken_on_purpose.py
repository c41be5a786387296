"""Each invariant is seen to fail on a simulated run whose protocol code is broken on purpose, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import barrierlab.impl.checkpoint.task
import barrierlab.sim.checkpoint.build
from barrierlab.impl import (
    AlignmentAction,
    BarrierAligner,
    CheckpointBarrier,
    CheckpointCoordinator,
    Event,
    Gate,
    SinkTask,
    SourceTask,
    Watermark,
)
from barrierlab.impl.checkpoint.report import digest
from barrierlab.model.checkpoint.components import SOUND, Components, with_aligner
from barrierlab.model.spec.settled import RunningJudge
from barrierlab.sim import run
from barrierlab.sim.channels.spsc import SpscChannel
from barrierlab.sim.checkpoint.result import fold_of, guarantees_of
from tests.sim.support import reasons, scenario

SEED = 3
# Both slow enough that held messages are many: the thin input's barrier comes 50 ms after the thick one's.
OVERLAPPING = {"checkpoint": {"interval_s": 0.5, "max_concurrent": 2, "timeout_s": 1.0}, "fault": None}


# Aligners.


class WatermarkOvertakes(BarrierAligner):
    """Lets watermarks of a blocked input pass by what is held (defect P-05: only events are held)."""

    def process_message(self, input_id: int, message: Any, now_ns: int = 0) -> AlignmentAction:
        if type(message) is Watermark and input_id in self.inputs.blocked:
            return AlignmentAction.WATERMARK_PASS_THROUGH
        return super().process_message(input_id, message, now_ns)


class ForgetsWhatItHolds(BarrierAligner):
    """Says of one event in five that it waits, and forgets it."""

    said = AlignmentAction.BUFFERED
    seen = 0

    def process_message(self, input_id: int, message: Any, now_ns: int = 0) -> AlignmentAction:
        if type(message) is Event and input_id in self.inputs.blocked:
            self.seen += 1
            if self.seen % 5 == 0:
                return self.said
        return super().process_message(input_id, message, now_ns)


class DropsWhatItShouldHold(ForgetsWhatItHolds):
    """Takes one event in five, and says nothing of it."""

    said = AlignmentAction.ABORTED


class SwallowsTheSecondBarrier(BarrierAligner):
    """Drops a barrier that comes behind another one, as if it had had its effect (F-DCKP-002 sets a bit)."""

    def process_message(self, input_id: int, message: Any, now_ns: int = 0) -> AlignmentAction:
        if type(message) is CheckpointBarrier and input_id in self.inputs.blocked:
            return AlignmentAction.BLOCKED
        return super().process_message(input_id, message, now_ns)


class ReleasesBackwards(BarrierAligner):
    """Takes what is held from the wrong end."""

    def drain_next(self, now_ns: int = 0) -> Any:
        if self.inputs.ready:
            queue = self.inputs.queues[self.inputs.ready[0]]
            queue.reverse()
            step = super().drain_next(now_ns)
            queue.reverse()
            return step
        return None


class NeverLetsGo(BarrierAligner):
    """Blocks, and neither completes nor aborts."""

    def all_in(self, now_ns: int) -> AlignmentAction:
        return AlignmentAction.BLOCKED

    def abort(self, checkpoint_id: int, reason: Any) -> bool:
        return False

    def on_time(self, now_ns: int) -> bool:
        return False


class HoldsWithoutLimit(BarrierAligner):
    """Takes what a full input must refuse."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.inputs.fast_limit = 10**9
        self.inputs.bytes_left = 10**9

    def can_take(self, input_id: int) -> bool:
        return True

    def buffer(self, input_id: int, message: Any, now_ns: int) -> AlignmentAction:
        self.inputs.queues[input_id].append(message)
        return AlignmentAction.BUFFERED


# Gates and tasks.


class DrainsBeforeForward(Gate):
    """Rule 8 the other way round: what was held goes before the barrier does."""

    def take_snapshot(self) -> None:
        barrier = self.aligner.barrier
        self.port.snapshot(barrier)
        self.aligner.complete_alignment()
        self.port.complete(barrier)
        self.resume(barrier.checkpoint_id)
        self.drain_all(0)
        self.port.forward(barrier)


class SnapshotsAfterRelease(Gate):
    """The image is taken once what was held has been applied."""

    def take_snapshot(self) -> None:
        barrier = self.aligner.barrier
        self.port.forward(barrier)
        self.aligner.complete_alignment()
        self.resume(barrier.checkpoint_id)
        self.drain_all(0)
        self.port.snapshot(barrier)
        self.port.complete(barrier)


class SnapshotsTwice(Gate):
    """Takes the image again after the barrier has left."""

    def take_snapshot(self) -> None:
        barrier = self.aligner.barrier
        super().take_snapshot()
        self.port.snapshot(barrier)


class KeepsAnOldImage(SinkTask):
    """Answers with the image before (defect P-12 the other way round)."""

    __slots__ = ("_old",)

    def snapshot(self, barrier: CheckpointBarrier) -> None:
        image = getattr(self, "_old", None) or self.operator.checkpoint()
        self._old, self._image = self.operator.checkpoint(), image
        self._image_digest = digest(image)
        self.tell("snapshot", -1, (barrier.checkpoint_id, self._image_digest))
        self.writer.prepare(barrier.checkpoint_id)


class BarrierLeavesLater(SourceTask):
    """Takes the position now and sends the barrier behind the next event: two steps where rule 4 wants one."""

    __slots__ = ("_late",)

    def forward(self, barrier: CheckpointBarrier) -> None:
        self._late = barrier

    def emit(self, event: Event) -> None:
        super().emit(event)
        if getattr(self, "_late", None) is not None:
            barrier, self._late = self._late, None
            super().forward(barrier)


class AcknowledgesUnseen(SinkTask):
    """Acknowledges the checkpoint without an image of its own."""

    def snapshot(self, barrier: CheckpointBarrier) -> None:
        """Nothing is kept."""


class RepeatsAnId(CheckpointCoordinator):
    """Gives the id of the second checkpoint out again."""

    def trigger(self, now_ns: int) -> Any:
        if self._next_id == 3:
            self._next_id = 2
        return super().trigger(now_ns)


class Bottomless(SpscChannel):
    """A queue that is never full."""

    def push(self, message: Any) -> bool:
        self.capacity = len(self.queue) + 1
        return super().push(message)


class Overtakes(SpscChannel):
    """Hands the last event out before the one ahead of it."""

    def take(self) -> Any:
        queue = self.queue
        if len(queue) > 2 and type(queue[0]) is Event and type(queue[1]) is Event:
            queue[0], queue[1] = queue[1], queue[0]
        return super().take()


class Loses(SpscChannel):
    """Drops one message in fifty between the queue and its reader."""

    opened = 0

    def take(self) -> Any:
        Loses.opened += 1
        if Loses.opened % 50 == 0 and len(self.queue) > 1 and type(self.queue[0]) is Event:
            self.queue.popleft()
        return super().take()


# name: invariant, what the reason says, which of `Components` is broken or what else, the breakage, changes of the
# scenario
STALLED = {"fault": [{"kind": "stall", "task": "join", "at_s": 0.5, "for_s": 0.7}]}
BROKEN: dict[str, tuple[str, str, tuple[Any, str] | str, Any, dict[str, Any]]] = {
    "drain_before_forward": (
        "FWD",
        "on join->sink ahead of barrier 1, but its cause",
        (barrierlab.impl.checkpoint.task, "Gate"),
        DrainsBeforeForward,
        {},
    ),
    "drain_before_forward_cuts_wrong": (
        "CUT",
        "is an orphan in checkpoint 1 of sink: taken before the cut, sent after",
        (barrierlab.impl.checkpoint.task, "Gate"),
        DrainsBeforeForward,
        {},
    ),
    "image_after_release": (
        "CUT",
        "is an orphan in checkpoint 1 of join: taken before the cut, sent after",
        (barrierlab.impl.checkpoint.task, "Gate"),
        SnapshotsAfterRelease,
        {},
    ),
    "image_of_another_time": (
        "CUT",
        "; what took effect before the cut makes ",
        "sink",
        KeepsAnOldImage,
        {},
    ),
    "barrier_leaves_later": (
        "CUT",
        "is an orphan in checkpoint 1 of join: taken before the cut, sent after",
        "source",
        BarrierLeavesLater,
        {},
    ),
    "watermark_overtakes": ("WM", "before a", "aligner", WatermarkOvertakes, {}),
    "held_event_dropped": (
        "NOLOSS",
        "was taken once from a->join and never took effect",
        "aligner",
        DropsWhatItShouldHold,
        {},
    ),
    "held_event_forgotten": ("FIFO", "took effect on a->join where a", "aligner", ForgetsWhatItHolds, {}),
    "channel_drops": ("FIFO", "was next", (barrierlab.sim.checkpoint.build, "SpscChannel"), Loses, {}),
    "channel_overtakes": (
        "FIFO",
        "was taken from a->join where",
        (barrierlab.sim.checkpoint.build, "SpscChannel"),
        Overtakes,
        {},
    ),
    "second_barrier_swallowed": (
        "NOLOSS",
        "was taken from a->join and had no effect",
        "aligner",
        SwallowsTheSecondBarrier,
        {**OVERLAPPING, "channel": {"b->join": {"latency_s": 0.7}}},
    ),
    "released_backwards": ("FIFO", "took effect on a->join where", "aligner", ReleasesBackwards, {"until_s": 2.2}),
    "snapshot_twice": (
        "ONCE",
        "join took 2 snapshots of checkpoint 1",
        (barrierlab.impl.checkpoint.task, "Gate"),
        SnapshotsTwice,
        {},
    ),
    "acknowledged_unseen": (
        "ONCE",
        "checkpoint 1 was completed without a snapshot of sink",
        "sink",
        AcknowledgesUnseen,
        {},
    ),
    "id_twice": (
        "ID",
        "checkpoint 2 was triggered after 2; ids begin with 1 and strictly increase",
        "coordinator",
        RepeatsAnId,
        {},
    ),
    "alignment_never_completed": (
        "LIVE",
        "join still waits on a->join for checkpoint 1, which was aborted",
        "aligner",
        NeverLetsGo,
        {},
    ),
    "channel_without_capacity": (
        "BOUND",
        "messages were in a->join at a time; its capacity is 16",
        (barrierlab.sim.checkpoint.build, "SpscChannel"),
        Bottomless,
        STALLED,
    ),
    "input_without_limit": (
        "BOUND",
        "messages of a->join were buffered at a time; at most 3 may be",
        "aligner",
        HoldsWithoutLimit,
        {"checkpoint": {"max_buffer_per_input": 3}},
    ),
    "bytes_without_limit": (
        "BOUND",
        "bytes were buffered at join at a time; at most 350 may be",
        "aligner",
        HoldsWithoutLimit,
        {"checkpoint": {"max_buffer_memory_bytes": 350}},
    ),
}


def test_every_invariant_is_broken_by_something() -> None:
    """An invariant could hold because it cannot fail."""
    from barrierlab.model.spec.invariants import INVARIANTS

    assert {case[0] for case in BROKEN.values()} == set(INVARIANTS)


@pytest.mark.parametrize("name", BROKEN)
def test_the_broken_run_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A protocol broken in this way would pass for a sound one; or the sound one, on the same run, for broken."""
    invariant, text, where, breakage, changes = BROKEN[name]
    small = scenario(tmp_path, **changes)
    sound = run(small, SEED)
    assert sound.verdict == "holds", sound.violations
    components = SOUND
    if where == "aligner":
        components = with_aligner(breakage)
    elif isinstance(where, str):
        components = Components(**{where: breakage})
    else:
        monkeypatch.setattr(*where, breakage)
        monkeypatch.setattr(Loses, "opened", 0)
    broken = run(small, SEED, components=components)
    assert broken.verdict == "broken"
    found = reasons(broken, invariant)
    assert any(text in reason for reason in found), (found[:3], [str(v) for v in broken.violations[:5]])
    judge = RunningJudge(small.topology, broken.limits, fold_of(small), guarantees_of(small))
    rows = broken._engine.rows
    for begin in range(0, len(rows), 150):
        judge.read(rows[begin : begin + 150])
    assert judge.verdict(broken._engine.cut_off) == broken.judged  # whatever it had forgotten by then
