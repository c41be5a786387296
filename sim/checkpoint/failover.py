"""From a failure to a job that runs again: noticed, stopped as a whole, started, read, restored.

Failover is of the whole job: a failed task's neighbours hold what it would need. What is read is the newest usable
checkpoint, and only once no manifest is being written: one that landed later would bring back a checkpoint whose
transactions have been rolled back. A failure meanwhile begins it all again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from barrierlab.impl import Checkpoint, Reason, Restore, Wiring, from_the_beginning
from barrierlab.model.spec.topology import Topology
from barrierlab.sim.checkpoint.coordinator import CoordinatorNode
from barrierlab.sim.checkpoint.faults import Slowness
from barrierlab.sim.checkpoint.storage import Storage
from barrierlab.sim.checkpoint.tasks import Job
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.scenario.settings import Scenario

RUNNING, UNNOTICED, STARTING = "running", "unnoticed", "starting"


@dataclass(slots=True)
class RecoveryRecord:
    """One failure, and how the job came to run again. Times are simulated nanoseconds; None: not that far.

    `attempt` is the one that begins then, the first being 1; `starts` counts how often it had to be begun;
    `positions` are the sources' when it failed.
    """

    attempt: int
    cause: str
    failed_ns: int
    starts: int = 1
    noticed_ns: int | None = None
    checkpoint_id: int | None = None
    restored_ns: int | None = None
    replayed: int = 0
    caught_up_ns: int | None = None
    positions: dict[str, int] = field(default_factory=dict)


class Attempts(Protocol):
    """The port that ends and begins attempts of a job; the coordinator may be another one in the next."""

    coordinator: CoordinatorNode

    def halt(self) -> None:
        """Cancel every task: this attempt is over."""

    def restart(self, restore: Restore) -> None:
        """Put everything back everywhere, and let it run."""


class Recovery:
    """Sees to it that a job that failed runs again.

    Parameters
    ----------
    plan : callable
        Makes a `Restore` of a checkpoint.
    slowness : Slowness
        Of everything that a restart has to do.
    detection, restart : callable
        Draw nanoseconds: from a failure until it is noticed; from then until every task is there again.

    Attributes
    ----------
    records : list of RecoveryRecord
        The last one may not have ended.
    restored_ns : int
        When the job was restored last.
    """

    def __init__(
        self,
        attempts: Attempts,
        scenario: Scenario,
        clock: Clock,
        job: Job,
        storage: Storage,
        plan: Callable[[Checkpoint, Wiring], Restore],
        slowness: Slowness,
        detection: Callable[[], int],
        restart: Callable[[], int],
    ) -> None:
        self._attempts, self._clock, self._job, self._storage = attempts, clock, job, storage
        self._plan, self._slowness, self._detection, self._restart = plan, slowness, detection, restart
        self._read_bytes_per_s = scenario.recovery.read_bytes_per_s
        self.records: list[RecoveryRecord] = []
        self.restored_ns = 0
        self._wiring = wiring_of(scenario.topology)
        self._stage = RUNNING
        self._round = 0  # whatever was asked for in an older one is not done
        self._waiting = False  # for the store, with all tasks there
        self._behind = 0  # sources that still catch up

    @property
    def under_way(self) -> bool:
        """Return whether the job does not run, or not as a whole."""
        return self._stage is not RUNNING

    # Failures.

    def crash(self, tasks: Iterable[str], cause: str) -> bool:
        """Let these tasks stop dead; return whether any did.

        One that is down, or has ended with its end stored, is not there any more.
        """
        gone = self._attempts.coordinator.gone
        hit = [self._job.nodes[task] for task in tasks if task not in gone]
        if self._stage is not STARTING:
            hit = [node for node in hit if not node.dead]
        for node in hit:
            node.crash()
        if hit:
            self._failed(cause, self._detection())
        return bool(hit)

    def crash_coordinator(self, cause: str) -> bool:
        """Let the coordinator stop dead, and with it what it was about to do; return whether it was there."""
        coordinator = self._attempts.coordinator
        if coordinator.dead:
            return False
        coordinator.crash()
        self._failed(cause, self._detection())
        return True

    def fail(self, cause: str) -> None:
        """Fail the job, as the coordinator itself does: nothing need be noticed."""
        self._failed(cause, 0)

    def _failed(self, cause: str, detection_ns: int) -> None:
        if self._stage is UNNOTICED:
            return
        if self._stage is RUNNING:
            self.records.append(RecoveryRecord(len(self.records) + 2, cause, self._clock.now))
        else:
            self.records[-1].starts += 1
        self._stage = UNNOTICED
        self._behind = 0
        self._next(detection_ns, self._noticed)

    def _next(self, delay_ns: int, step: Callable[[], None]) -> None:
        self._round += 1
        this = self._round
        self._waiting = False
        self._clock.schedule(delay_ns, lambda: step() if this == self._round else None)

    # Step by step.

    def _noticed(self) -> None:
        record, coordinator = self.records[-1], self._attempts.coordinator
        self._stage = STARTING
        if record.noticed_ns is None:
            record.noticed_ns = self._clock.now
            record.positions = self._positions()
        self._attempts.halt()
        if not coordinator.dead:
            coordinator.suspend(Reason.JOB_FAILED)
        self._next(self._slowness.slowed(self._restart()), self._read)

    def settled(self) -> None:
        """Go on with the restore: no manifest is being written any more."""
        if self._waiting:
            self._read()

    def _read(self) -> None:
        """Find the checkpoint, as every task is there, and read it. Tasks read side by side."""
        coordinator, rate = self._attempts.coordinator, self._read_bytes_per_s
        self._waiting = not coordinator.dead and not coordinator.machine.settled
        if self._waiting:
            return
        checkpoint = self._storage.newest()
        read_ns = 0
        if checkpoint is not None and rate is not None:
            most = self._storage.largest_bytes(checkpoint.manifest.checkpoint_id)
            read_ns = self._slowness.slowed(round(most / rate * 1e9))
        self._next(read_ns, lambda: self._restore(checkpoint))

    def _restore(self, checkpoint: Checkpoint | None) -> None:
        record = self.records[-1]
        restore = from_the_beginning(self._wiring) if checkpoint is None else self._plan(checkpoint, self._wiring)
        self._stage = RUNNING
        self.restored_ns = record.restored_ns = self._clock.now
        record.checkpoint_id = restore.checkpoint_id
        self._attempts.restart(restore)
        record.replayed = sum(record.positions[name] - position for name, position in self._positions().items())
        self._behind = sum(node.behind for node in self._job.source_nodes)
        if not self._behind:
            record.caught_up_ns = self._clock.now

    def _positions(self) -> dict[str, int]:
        return {node.name: node.task.position for node in self._job.source_nodes}

    def caught_up(self) -> None:
        """Note that a source has nothing overdue any more."""
        self._behind -= 1
        if not self._behind:
            self.records[-1].caught_up_ns = self._clock.now


def wiring_of(topology: Topology) -> Wiring:
    """Return the graph as `impl.checkpoint.recovery` needs it."""
    return Wiring(
        {
            task: (operator, subtask)
            for operator in topology.operators
            for subtask, task in enumerate(topology.tasks_of(operator))
        },
        {task: topology.inputs(task) for task in topology.tasks},
        {task: topology.outputs(task) for task in topology.tasks},
    )
