"""The store in simulated time: what a write costs, when it is refused; and real bytes, where they may be read."""

from __future__ import annotations

import errno
from collections.abc import Callable

from barrierlab.impl import (
    Acknowledge,
    Checkpoint,
    Manifest,
    NoUsableCheckpointError,
    SnapshotStore,
    StoredSnapshot,
    StoreFailedError,
    snapshot_of,
)
from barrierlab.impl.storage.media import MemoryMedium
from barrierlab.sim.checkpoint.faults import Faults
from barrierlab.sim.scenario.settings import Scenario

# After these a job is restored, or how many bytes there are decides: else nobody would ever read what is stored.
NEED_BYTES = ("crash", "coordinator_crash", "failing_store", "full_store")


class RefusingMedium(MemoryMedium):
    """A medium that fails, or is full, while a fault says so.

    `lands` says of a write of unknown outcome whether it took place.
    """

    def __init__(self, faults: Faults, lands: Callable[[], bool]) -> None:
        super().__init__()
        self._faults, self._lands = faults, lands

    def save(self, checkpoint_id: int, files: dict[str, bytes]) -> None:
        self._ask(sum(map(len, files.values())))
        super().save(checkpoint_id, files)

    def publish(self, checkpoint_id: int, manifest: bytes) -> None:
        call = f"publishing checkpoint {checkpoint_id}"
        try:
            self._ask(len(manifest))
        except OSError as error:
            raise StoreFailedError(call, error) from error
        in_doubt = [fault for fault in self._faults.refusing if fault.in_doubt]
        if not in_doubt:
            super().publish(checkpoint_id, manifest)
            return
        self._faults.effects[in_doubt[0].name].met += 1
        if self._lands():
            super().publish(checkpoint_id, manifest)
        raise StoreFailedError(call, OSError(errno.ETIMEDOUT, "no answer"), definite=False)

    def _ask(self, size_bytes: int) -> None:
        """Raise OSError if so many bytes more are refused."""
        for fault in self._faults.refusing:
            effect = self._faults.effects[fault.name]
            if fault.kind == "failing_store" and not fault.in_doubt:
                effect.met += 1
                raise OSError(errno.EIO, "the store fails")
            if fault.kind == "full_store" and self.used_bytes + size_bytes > fault.capacity_bytes:
                effect.met += 1
                raise OSError(errno.ENOSPC, "no space left")

    @property
    def used_bytes(self) -> int:
        """The bytes of all checkpoints kept, whole or in part."""
        return sum(len(data) for files in self.files.values() for data in files.values())


class Storage:
    """The store as coordinator and tasks see it.

    Parameters
    ----------
    scenario : Scenario
    faults : Faults
    manifest, lands : callable
        Draws the nanoseconds of a manifest's write; and whether one of unknown outcome took place.
    """

    def __init__(
        self, scenario: Scenario, faults: Faults, manifest: Callable[[], int], lands: Callable[[], bool]
    ) -> None:
        self._topology, self._settings, self._faults = scenario.topology, scenario.store, faults
        self._manifest, self._lands = manifest, lands
        keeps = scenario.checkpoint.tolerable_failures is not None or any(
            fault.kind in NEED_BYTES for fault in scenario.faults
        )
        self._store = SnapshotStore(RefusingMedium(faults, lands)) if keeps else None
        self._parts: dict[int, dict[str, StoredSnapshot]] = {}
        self._sizes: dict[int, dict[str, int]] = {}  # of a checkpoint's parts by task, in bytes

    @property
    def keeps_bytes(self) -> bool:
        """Return whether parts are encoded and kept."""
        return self._store is not None

    # What it costs.

    def write_ns(self, report: Acknowledge, usual_ns: int, size_bytes: int) -> int:
        """Return how long it takes to save a part: what it takes anyway, and by its size."""
        if self._store is not None:
            self._sizes.setdefault(report.checkpoint_id, {})[report.task] = size_bytes
        rate = self._settings.bytes_per_s
        return self._faults.store.slowed(usual_ns + (0 if rate is None else round(size_bytes / rate * 1e9)))

    def largest_bytes(self, checkpoint_id: int) -> int:
        """The size of the largest part of a checkpoint."""
        return max(self._sizes.get(checkpoint_id, {}).values(), default=0)

    def publish_ns(self) -> int:
        """Return how long a manifest takes."""
        return self._faults.store.slowed(self._manifest())

    # What it does.

    def begin(self, checkpoint_id: int) -> None:
        """Note that a checkpoint is under way."""
        if self._store is not None:
            self._store.begin(checkpoint_id)
            self._parts[checkpoint_id] = {}

    def write(self, report: Acknowledge) -> bool:
        """Save a task's part; False if the store refuses. One that comes too late is not saved."""
        parts = self._parts.get(report.checkpoint_id)
        if self._store is None or parts is None:
            return True
        operator = self._topology.operator_of(report.task)
        subtask = self._topology.tasks_of(operator).index(report.task)
        try:
            parts[report.task] = self._store.write(report.checkpoint_id, snapshot_of(report, operator, subtask))
        except StoreFailedError:
            return False
        return True

    def publish(self, checkpoint_id: int, reports: tuple[Acknowledge, ...]) -> StoreFailedError | None:
        """Save the manifest, and before it the parts of tasks that had finished; what failed, if something did."""
        if self._store is None:
            return None
        parts = self._parts[checkpoint_id]
        for report in reports:
            if report.task not in parts and not self.write(report):
                return StoreFailedError(f"writing {report.task} for checkpoint {checkpoint_id}", OSError("refused"))
        is_unaligned = any(report.is_unaligned for report in reports)
        try:
            self._store.complete(Manifest(checkpoint_id, checkpoint_id, is_unaligned, tuple(parts.values())))
        except StoreFailedError as error:
            return error
        del self._parts[checkpoint_id]
        self._store.retain(self._settings.retained)
        self._store.clean()
        return None

    def cut_short(self, checkpoint_id: int, reports: tuple[Acknowledge, ...]) -> None:
        """Note that its writer died while it wrote the manifest: that is there now, or never will be."""
        if self._lands():
            self.publish(checkpoint_id, reports)

    def abandon(self, checkpoint_id: int) -> None:
        """Remove what was written of a checkpoint that is aborted, surely incomplete."""
        if self._store is not None and self._parts.pop(checkpoint_id, None) is not None:
            self._store.abandon(checkpoint_id)

    def newest(self) -> Checkpoint | None:
        """The newest usable checkpoint; None if there is none."""
        if self._store is None:
            return None
        try:
            return self._store.latest_usable().checkpoint
        except NoUsableCheckpointError:
            return None

    def highest_id(self) -> int:
        """Return the highest id that was ever begun."""
        return 0 if self._store is None else self._store.highest_id()
