"""The small dataflow with a store, sinks that show something outside, and crashes at any move.

What recovery is made of is `impl`'s: parts are encoded, stored and read back. What is broken on purpose is a hook.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from barrierlab.impl.checkpoint.actions import Aborted, Notify, Publish, Triggered
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.impl.checkpoint.recovery import Restore, TaskRestore, Wiring, from_the_beginning, plan, snapshot_of
from barrierlab.impl.checkpoint.report import Acknowledge
from barrierlab.impl.checkpoint.task import OperatorTask, SinkTask, SourceTask
from barrierlab.impl.checkpoint.transactions import Ledger, SinkWriter
from barrierlab.impl.errors import NoUsableCheckpointError
from barrierlab.impl.reasons import Reason
from barrierlab.impl.storage.media import MANIFEST
from barrierlab.impl.storage.snapshot import Manifest, StoredSnapshot, TaskSnapshot
from barrierlab.impl.storage.store import MemoryStore
from barrierlab.model.checkpoint.operators import refolding
from barrierlab.model.spec.history import COORDINATOR
from barrierlab.model.spec.invariants import Verdict, judge_run
from barrierlab.model.spec.topology import Topology
from tests.model.reference_dataflow import FINISHED, NS_PER_MOVE, UnalignedWorld


class Gone:
    """A coordinator that has crashed: it says nothing."""

    pending: Mapping[int, object] = {}
    settled = True


class FallibleWorld(UnalignedWorld):
    """One run with crashes, the whole job restored after each.

    Parameters
    ----------
    falls : sequence of int
        At which moves something crashes: a task, the coordinator or all, as chance will.
    guarantees : mapping of str to str
        By sink task.
    doubts : int
        How many manifests may not be written, or not surely.
    damages : int
        How many complete checkpoints may turn out to be unreadable, of those that it is sound to lose.
    marks : int
        How many watermarks the sources send; an event for a source that has no more.
    """

    options: Mapping[str, object] = {}  # under which a broken one is to be run
    writer_class = SinkWriter
    ledger_class = Ledger

    def __init__(
        self,
        topology: Topology,
        choose: Callable[[int], int],
        events: int = 4,
        *arguments: int,
        falls: Sequence[int] = (),
        guarantees: Mapping[str, str] | None = None,
        doubts: int = 0,
        damages: int = 0,
        marks: int = 4,
        **options: int,
    ) -> None:
        self.falls, self.guarantees = sorted(falls), guarantees or {}
        self.events, self.doubts, self.damages, self.marks = events, doubts, damages, marks
        self.ledger, self.store = self.ledger_class(), MemoryStore()
        self.stored: dict[int, dict[str, StoredSnapshot]] = {}
        self.announced: set[int] = set()  # to a sink, or by a restore
        self.publishing: Publish | None = None
        self.failed = False
        names = {task: (topology.operator_of(task), 0) for task in topology.tasks}
        for operator in topology.operators:
            names |= {task: (operator, subtask) for subtask, task in enumerate(topology.tasks_of(operator))}
        self.wiring = Wiring(
            names,
            {task: topology.inputs(task) for task in topology.tasks},
            {task: topology.outputs(task) for task in topology.tasks},
        )
        super().__init__(topology, choose, events, *arguments, **options)
        self.config = self.coordinator.config = replace(self.coordinator.config, tolerable_failures=None)

    def verdict(self, cut_off: bool = False) -> Verdict:
        fold = refolding(self.topology, self.operator)
        return judge_run(self.entries, self.topology, self.limits, fold, cut_off, self.guarantees)

    # The moves.

    def moves(self) -> list[Callable[[], None]]:
        if self.falls and self.now >= self.falls[0] * NS_PER_MOVE and (self.tasks or not self.is_gone):
            return [self.fall]
        budgets = self.checkpoints, self.aborts
        if self.failed:
            self.checkpoints = self.aborts = 0
        moves = super().moves()
        self.checkpoints, self.aborts = budgets
        if self.publishing is not None:
            moves.append(self.publish)
        if self.failed and self.may_restore():
            moves.append(self.restore)
        if not moves and not self.failed and not self.coordinator.pending and self.coordinator.next_deadline_ns():
            moves.append(self.wait)
        return moves

    @property
    def is_gone(self) -> bool:
        """Return whether the coordinator has crashed."""
        return isinstance(self.coordinator, Gone)

    def may_restore(self) -> bool:
        """Return whether no manifest is on its way into the store."""
        return self.coordinator.settled

    def wait(self) -> None:
        """Nothing else is left to do until the coordinator's deadline: the last checkpoint is tried again."""
        self.now = max(self.now, self.coordinator.next_deadline_ns())
        self.carry_out(self.coordinator.on_time(self.now))

    def watermark(self, name: str) -> None:
        if not self.marks:
            self.emit(name)
            return
        self.marks -= 1
        self.left[name] += 1  # as many events as ever
        if "idempotent" in self.guarantees.values():  # such a sink asks for an honest source: nothing may be late
            self.next_watermark[name] = max(0, self.tasks[name].position - 1)
        super().watermark(name)

    def hear(self, name: str) -> None:
        report = self.reports[name][0]
        if self.is_gone:
            self.reports[name].popleft()
        elif report is FINISHED:
            self.reports[name].popleft()
            self.carry_out(self.coordinator.finished(name, self.now, self.tasks[name].final_snapshot()))
        else:
            if type(report) is Acknowledge and report.checkpoint_id in self.coordinator.pending:
                self.keep(report)
            super().hear(name)

    def obey(self, name: str) -> None:
        order = self.orders[name][0]
        if type(order) is not Notify:
            super().obey(name)
            return
        self.orders[name].popleft()
        self.note(">notify", name, None, order.checkpoint_id)
        if name in self.guarantees:
            self.announced.add(order.checkpoint_id)
        self.tasks[name].notify(order.checkpoint_id, self.now)

    def publish(self) -> None:
        """The writing of the manifest ends: well; surely not; or nobody knows, and it is there or is not."""
        checkpoint_id = self.publishing.checkpoint_id
        how = self.choose(4) if self.doubts else 0
        self.doubts -= how > 0
        self.note(">publish", COORDINATOR, None, checkpoint_id)
        self.settle_manifest(written=how in (0, 2))
        if how == 0:
            self.carry_out(self.coordinator.published(checkpoint_id, self.now))
        else:
            self.carry_out(self.coordinator.publish_failed(checkpoint_id, self.now, definite=how == 1))

    def settle_manifest(self, written: bool) -> None:
        """The manifest that was being written is there, or never will be."""
        publish, self.publishing = self.publishing, None
        if not written:
            self.store.abandon(publish.checkpoint_id)
            return
        kept = self.stored[publish.checkpoint_id]
        for part in publish.parts:
            if part.task not in kept:
                self.keep(part)
        parts = tuple(kept[part.task] for part in publish.parts)
        unaligned = any(part.is_unaligned for part in publish.parts)
        self.store.complete(Manifest(publish.checkpoint_id, publish.checkpoint_id, unaligned, parts))

    def keep(self, part: Acknowledge) -> None:
        """A part becomes durable."""
        self.stored[part.checkpoint_id][part.task] = self.store.write(part.checkpoint_id, self.snapshot(part))

    def snapshot(self, part: Acknowledge) -> TaskSnapshot:
        """Return what is stored of a part."""
        return snapshot_of(part, *self.wiring.tasks[part.task])

    def carry_out(self, actions: tuple) -> None:
        for action in actions:
            if type(action) is Publish:
                self.publishing = action
            elif type(action) is Notify:
                self.orders[action.task].append(action)
            else:
                if type(action) is Triggered:
                    self.store.begin(action.checkpoint_id)
                    self.stored[action.checkpoint_id] = {}
                elif type(action) is Aborted and action.reason is not Reason.STORE_IN_DOUBT:
                    self.store.abandon(action.checkpoint_id)
                super().carry_out((action,))

    # Crashes.

    def fall(self) -> None:
        """Something crashes, and with it the job."""
        del self.falls[0]
        whole = [list(self.tasks), *([name] for name in self.tasks)] if self.tasks else []
        victims = whole if self.is_gone else [*whole, [COORDINATOR], [*self.tasks, COORDINATOR]]
        for victim in victims[self.choose(len(victims))]:
            self.note(">crash", victim, None, None)
            if victim == COORDINATOR:
                if self.publishing is not None:
                    self.settle_manifest(written=bool(self.choose(2)))
                self.coordinator = Gone()  # type: ignore[assignment]
            else:
                self.drop(victim)
        if not self.is_gone and not self.failed:
            self.carry_out(self.coordinator.suspend(self.now, Reason.JOB_FAILED))
        self.failed = True

    def drop(self, name: str) -> None:
        """A task is no more, nor what it had said and was to hear."""
        del self.tasks[name]
        self.in_hand.pop(name, None)
        self.reports[name].clear()
        self.orders[name].clear()

    # Recovery.

    def restore(self) -> None:
        """The whole job is restored; or another crash comes in the middle of that."""
        restore = self.read()
        checkpoint_id = restore.checkpoint_id
        self.note(">restore", COORDINATOR, None, checkpoint_id)
        self.announced.add(checkpoint_id)
        for name in list(self.tasks):
            self.drop(name)
        for name in self.topology.tasks:
            self.reports[name].clear()
            self.orders[name].clear()
            self.tasks[name] = self._task(name)
            digest = self.restored_task(name, restore.tasks[name], checkpoint_id)
            self.note("restored", name, None, (checkpoint_id, digest))
            if self.falls and self.choose(8) == 1:
                del self.falls[0]
                self.note(">crash", name, None, None)
                for each in list(self.tasks):
                    self.drop(each)
                return
        self.channels = {channel: deque() for channel in self.topology.channels}
        for channel, messages in self.in_flight(restore).items():
            for message in messages:
                self.note("restored_in_flight", self.topology.ends(channel)[1], channel, message)
                self.channels[channel].append(message)
        finished = {name: task.final_snapshot() for name, task in self.tasks.items() if task.finished}
        for name in self.left:
            task = self.tasks[name]
            self.left[name] = 0 if task.finished else max(0, self.events - task.position + 1)
            self.next_watermark[name] = (task.watermark_ms or 0) + 2
        self.over = set(finished)
        if self.is_gone:
            tasks, sources = self.topology.tasks, self.topology.sources
            self.coordinator = CheckpointCoordinator(self.config, tasks, sources, self.store.highest_id() + 1)
        self.coordinator.resume(checkpoint_id, self.now, finished)
        self.failed = False

    def read(self) -> Restore:
        """Return what the newest checkpoint says that can be read; one may be damaged that nobody outside knows of."""
        newest = max(self.store.completed(), default=0)
        if self.damages and newest and newest not in self.announced and self.choose(2):
            self.damages -= 1
            self.store.medium.files[newest][MANIFEST] = b"{"
        try:
            return plan(self.store.latest_usable().checkpoint, self.wiring)
        except NoUsableCheckpointError:
            return from_the_beginning(self.wiring)

    def restored_task(self, name: str, part: TaskRestore, checkpoint_id: int) -> str:
        """A new task goes on behind its cut."""
        return self.tasks[name].recover(part, checkpoint_id)

    def in_flight(self, restore: Restore) -> Mapping[str, Sequence[object]]:
        """Return the messages that come into the channels."""
        return restore.channels

    def _task(self, name: str) -> SourceTask | OperatorTask:
        task = super()._task(name)
        if name not in self.guarantees:
            return task
        tell = self._tell(name)
        writer = self.writer_class(name, self.ledger, self.guarantees[name], tell)
        return SinkTask(name, task.operator, task.gate.aligner, tell, writer)
