"""From a failure to a job that runs again: noticed, stopped as a whole, started, read, put back.

Failover is of the whole job: a failed task's neighbours hold what it would need. What is read is the newest usable
checkpoint, and only once no manifest is being written: one that landed later would bring back a checkpoint whose
transactions have been rolled back. A failure meanwhile begins it all again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barrierlab.impl import Checkpoint, Reason, Wiring, from_the_beginning
from barrierlab.model.spec.topology import Topology
from barrierlab.sim.checkpoint.metrics import RecoveryRecord

if TYPE_CHECKING:
    from barrierlab.sim.checkpoint.engine import Engine

RUNNING, UNNOTICED, STARTING = "running", "unnoticed", "starting"


class Recovery:
    """Sees to it that a job that failed runs again.

    Parameters
    ----------
    engine : Engine
    detection, restart : callable
        Draw nanoseconds: from a failure until it is noticed; from then until every task is there again.

    Attributes
    ----------
    records : list of RecoveryRecord
        The last one may not have ended.
    restored_ns : int
        When the job was put back last.
    """

    def __init__(self, engine: Engine, detection: Callable[[], int], restart: Callable[[], int]) -> None:
        self._engine, self._detection, self._restart = engine, detection, restart
        self.records: list[RecoveryRecord] = []
        self.restored_ns = 0
        self._wiring = wiring_of(engine.scenario.topology)
        self._stage = RUNNING
        self._round = 0  # whatever was asked for in an older one is not done
        self._waiting = False  # for the store, with all tasks there
        self._behind = 0  # sources that still catch up

    @property
    def under_way(self) -> bool:
        """Whether the job does not run, or not as a whole."""
        return self._stage is not RUNNING

    # Failures.

    def crash(self, tasks: Iterable[str], cause: str) -> bool:
        """Let these tasks stop dead; return whether any did.

        One that is down, or has ended with its end stored, is not there any more.
        """
        engine = self._engine
        hit = [engine.nodes[task] for task in tasks if task not in engine.coordinator.gone]
        if self._stage is not STARTING:
            hit = [node for node in hit if not node.dead]
        for node in hit:
            node.crash()
        if hit:
            self._failed(cause, self._detection())
        return bool(hit)

    def crash_coordinator(self, cause: str) -> bool:
        """Let the coordinator stop dead, and with it what it was about to do; return whether it was there."""
        if self._engine.coordinator.dead:
            return False
        self._engine.coordinator.crash()
        self._failed(cause, self._detection())
        return True

    def fail(self, cause: str) -> None:
        """The coordinator itself fails the job: nothing need be noticed."""
        self._failed(cause, 0)

    def _failed(self, cause: str, detection_ns: int) -> None:
        if self._stage is UNNOTICED:
            return
        if self._stage is RUNNING:
            self.records.append(RecoveryRecord(len(self.records) + 2, cause, self._engine.now))
        else:
            self.records[-1].starts += 1
        self._stage = UNNOTICED
        self._behind = 0
        self._next(detection_ns, self._noticed)

    def _next(self, delay_ns: int, step: Callable[[], None]) -> None:
        self._round += 1
        this = self._round
        self._waiting = False
        self._engine.schedule(delay_ns, lambda: step() if this == self._round else None)

    # Step by step.

    def _noticed(self) -> None:
        engine, record = self._engine, self.records[-1]
        self._stage = STARTING
        if record.noticed_ns is None:
            record.noticed_ns = engine.now
            record.positions = {node.name: node.task.position for node in engine.source_nodes}
        engine.halt()
        if not engine.coordinator.dead:
            engine.coordinator.suspend(Reason.JOB_FAILED)
        self._next(engine.faults.recovery.slowed(self._restart()), self._read)

    def settled(self) -> None:
        """No manifest is being written any more."""
        if self._waiting:
            self._read()

    def _read(self) -> None:
        """Every task is there: find the checkpoint, and read it. Tasks read side by side."""
        engine = self._engine
        self._waiting = not engine.coordinator.dead and not engine.coordinator.machine.settled
        if self._waiting:
            return
        checkpoint = engine.storage.newest()
        rate = engine.scenario.recovery.read_bytes_per_s
        read_ns = 0
        if checkpoint is not None and rate is not None:
            most = max(engine.metrics.sizes_of(checkpoint.manifest.checkpoint_id), default=0)
            read_ns = engine.faults.recovery.slowed(round(most / rate * 1e9))
        self._next(read_ns, lambda: self._put_back(checkpoint))

    def _put_back(self, checkpoint: Checkpoint | None) -> None:
        engine, record = self._engine, self.records[-1]
        restore = (
            from_the_beginning(self._wiring) if checkpoint is None else engine.parts.plan(checkpoint, self._wiring)
        )
        self._stage = RUNNING
        self.restored_ns = record.restored_ns = engine.now
        record.checkpoint_id = restore.checkpoint_id
        engine.restart(restore)
        positions = {node.name: node.task.position for node in engine.source_nodes}
        record.replayed = sum(record.positions[name] - position for name, position in positions.items())
        self._behind = sum(node.behind for node in engine.source_nodes)
        if not self._behind:
            record.caught_up_ns = engine.now

    def caught_up(self) -> None:
        """A source has nothing overdue any more."""
        self._behind -= 1
        if not self._behind:
            self.records[-1].caught_up_ns = self._engine.now


def wiring_of(topology: Topology) -> Wiring:
    """What `impl.checkpoint.recovery` must know of the graph."""
    return Wiring(
        {
            task: (operator, subtask)
            for operator in topology.operators
            for subtask, task in enumerate(topology.tasks_of(operator))
        },
        {task: topology.inputs(task) for task in topology.tasks},
        {task: topology.outputs(task) for task in topology.tasks},
    )
