"""A whole job that can fail: the small dataflow with a store, sinks that write to the external system, and recovery.

What outlives a failure is in `Outside`. All else is made anew and restored, in the order that
`impl.checkpoint.recovery` asks for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from barrierlab.impl import (
    Aborted,
    Acknowledge,
    CheckpointCoordinator,
    CoordinatorConfig,
    Decline,
    FailJob,
    Ledger,
    Manifest,
    MemoryStore,
    NoUsableCheckpointError,
    Publish,
    Reason,
    SinkTask,
    SinkWriter,
    SnapshotStore,
    SourceTask,
    StoreFailedError,
    Triggered,
    Wiring,
    from_the_beginning,
    plan,
    snapshot_of,
)
from tests.impl.support import UnalignedDataflow

TURN_NS = 10_000_000


class Troubled(MemoryStore):
    """A store that does with each manifest what comes next in `trouble`; when that is used up, all goes well.

    ``refused``; ``part refused``, already what is stored before it; ``lost`` or ``landed`` when it does not answer.
    """

    def __init__(self, trouble: Iterable[str] = ()) -> None:
        super().__init__()
        self.trouble = list(trouble)

    def _save(self, checkpoint_id: int, files: dict[str, bytes]) -> None:
        if self.trouble[:1] == ["part refused"]:
            del self.trouble[0]
            raise OSError("no space left")
        super()._save(checkpoint_id, files)

    def _publish(self, checkpoint_id: int, manifest: bytes) -> None:
        trouble = self.trouble.pop(0) if self.trouble else ""
        if trouble == "landed":
            super()._publish(checkpoint_id, manifest)
        if trouble:
            raise StoreFailedError("publishing", OSError(trouble), definite=trouble == "refused")
        super()._publish(checkpoint_id, manifest)


@dataclass
class Outside:
    """The objects that a failure of the job leaves alone, and how the job is made."""

    edges: str
    guarantee: str = "exactly_once"
    unaligned: bool = False
    events: int = 9
    operators: dict | None = None
    interval: int = 7
    stalled: tuple = ("sink",)
    store: SnapshotStore = field(default_factory=MemoryStore)
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def config(self) -> CoordinatorConfig:
        """Two at a time, so that one may be subsumed."""
        return CoordinatorConfig(None, unaligned=self.unaligned, max_concurrent=2, tolerable_failures=2)


class Job(UnalignedDataflow):
    """One attempt. A turn moves everything once; a manifest lands a turn after it was asked for."""

    def __init__(self, outside: Outside, first_id: int = 1) -> None:
        self.outside = outside
        self.kept: dict[int, dict] = {}
        self.writing: Publish | None = None
        self.turn = 0
        self.doomed = False  # whether the coordinator fails the job
        super().__init__(outside.edges, operators=outside.operators, capacity=3, config=outside.config)
        self.coordinator = CheckpointCoordinator(outside.config, list(self.tasks), self.sources, first_id)

    def _sink(self, name, operator, machine) -> SinkTask:
        writer = SinkWriter(name, self.outside.ledger, self.outside.guarantee, self._teller(name))
        return SinkTask(name, operator, machine, self._teller(name), writer)

    def act(self, actions) -> None:
        """Each checkpoint has a folder from its trigger on; one that is surely aborted has none any more."""
        for action in actions:
            if type(action) is Triggered:
                self.outside.store.begin(action.checkpoint_id)
                self.kept[action.checkpoint_id] = {}
            elif type(action) is Aborted:
                self.kept.pop(action.checkpoint_id)
                if action.reason.definite:
                    self.outside.store.abandon(action.checkpoint_id)
            elif type(action) is FailJob:
                self.doomed = True
            super().act((action,))

    def keep(self, report: Acknowledge) -> None:
        """Store a part, once; one that comes too late is not."""
        parts = self.kept.get(report.checkpoint_id)
        if parts is not None and report.task not in parts:
            parts[report.task] = self.outside.store.write(report.checkpoint_id, snapshot_of(report, report.task, 0))

    def hear(self, report) -> None:
        """Durable first, and then acknowledged; or else declined."""
        if type(report) is Acknowledge:
            try:
                self.keep(report)
            except StoreFailedError:
                report = Decline(report.task, report.checkpoint_id, Reason.STORE_FAILED)
        super().hear(report)

    def hear_end(self, task) -> None:
        """With the final snapshot."""
        self.act(self.coordinator.finished(task.name, self.now_ns, task.final_snapshot()))

    def publish(self, action) -> None:
        """It takes until the next turn."""
        self.writing = action

    def write_manifest(self) -> StoreFailedError | None:
        """The manifest, and the final snapshots that are not stored yet."""
        action, self.writing = self.writing, None
        checkpoint_id, kept = action.checkpoint_id, self.kept[action.checkpoint_id]
        is_unaligned = any(part.is_unaligned for part in action.parts)
        try:
            for part in action.parts:
                self.keep(part)
            self.outside.store.complete(Manifest(checkpoint_id, checkpoint_id, is_unaligned, tuple(kept.values())))
        except StoreFailedError as error:
            return error
        return None

    def land(self) -> None:
        """The write of the manifest ends."""
        checkpoint_id = self.writing.checkpoint_id
        error = self.write_manifest()
        if error is None:
            self.act(self.coordinator.published(checkpoint_id, self.now_ns))
        else:
            self.act(self.coordinator.publish_failed(checkpoint_id, self.now_ns, error.definite))

    def go(self, turns: int) -> bool:
        """So many turns, or to the end of the job; whether that has come."""
        for _ in range(turns):
            if self.coordinator.ended or self.doomed:
                break
            self.turn += 1
            self.now_ns += TURN_NS
            for name in self.sources:
                task = self.tasks[name]
                if not task.outbox and not task.finished:
                    if task.position <= self.outside.events:
                        self.emit(name)
                    else:
                        task.end()
            if self.writing is not None:
                self.land()
            if self.turn % self.outside.interval == 0:
                self.trigger()
            self.act(self.coordinator.on_time(self.now_ns))
            self.step(self.outside.stalled if self.turn % 4 else ())
        return self.coordinator.ended

    def fail(self, lost: bool = False, lands: bool = False) -> Job:
        """Everything stops, and a new job goes on.

        Parameters
        ----------
        lost : bool
            Whether the coordinator is lost too.
        lands : bool
            Whether the manifest that was being written is there all the same.
        """
        outside = self.outside
        if not lost:
            self.act(self.coordinator.suspend(self.now_ns, Reason.JOB_FAILED))
        if self.writing is not None and not lost:
            self.land()
        elif self.writing is not None and lands:
            self.write_manifest()
        again = Job(outside, outside.store.highest_id() + 1)
        if not lost:
            assert self.coordinator.settled
            again.coordinator = self.coordinator
        again.turn, again.now_ns = self.turn, self.now_ns
        again.restored_in_flight()
        return again

    def restored_in_flight(self) -> None:
        """All states, all channels; then the coordinator may go on."""
        wiring = self.wiring()
        try:
            restore = plan(self.outside.store.latest_usable().checkpoint, wiring)
        except NoUsableCheckpointError:
            restore = from_the_beginning(wiring)
        for name, task in self.tasks.items():
            assert task.recover(restore.tasks[name], restore.checkpoint_id) == restore.tasks[name].digest or (
                not restore.checkpoint_id
            )
        for channel in self.channels:
            channel.queue.extend(restore.channels[f"{channel.sender}->{channel.receiver}"])
        finished = {name: task.final_snapshot() for name, task in self.tasks.items() if task.finished}
        self.coordinator.resume(restore.checkpoint_id, self.now_ns, finished)
        self.restored = restore

    def wiring(self) -> Wiring:
        """By the names of both ends."""
        inputs: dict[str, dict[int, str]] = {name: {} for name in self.tasks}
        outputs: dict[str, dict[int, str]] = {name: {} for name in self.tasks}
        for channel in self.channels:
            inputs[channel.receiver][channel.input_id] = f"{channel.sender}->{channel.receiver}"
            outputs[channel.sender][channel.output] = f"{channel.sender}->{channel.receiver}"
        return Wiring(
            {name: (name, 0) for name in self.tasks},
            {name: [each[i] for i in sorted(each)] for name, each in inputs.items()},
            {name: [each[i] for i in sorted(each)] for name, each in outputs.items()},
        )

    def in_flight(self) -> int:
        """Return how many messages were restored into channels."""
        return sum(map(len, self.restored.channels.values()))

    def positions(self) -> dict[str, int]:
        """Return the positions at which the sources go on."""
        return {name: task.position for name, task in self.tasks.items() if type(task) is SourceTask}
