"""Samples of a running job, as its cluster gives them: the sizes and the queues of each subtask's buffers."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

from tests.flink.cluster import ask

METRICS = {
    "debloated_bytes": "Shuffle.Netty.Input.0.debloatedBufferSize",
    "estimated_ms": "estimatedTimeToConsumeBuffersMs",
    "in_buffers": "Shuffle.Netty.Input.Buffers.inputQueueLength",
    "in_bytes": "Shuffle.Netty.Input.Buffers.inputQueueSize",
    "out_buffers": "Shuffle.Netty.Output.Buffers.outputQueueLength",
    "out_bytes": "Shuffle.Netty.Output.Buffers.outputQueueSize",
    "busy_ms_per_s": "busyTimeMsPerSecond",
    "pressed_ms_per_s": "backPressuredTimeMsPerSecond",
    "records_in_per_s": "numRecordsInPerSecond",
    "bytes_in_per_s": "numBytesInPerSecond",
}
"""Columns, and the metric of a subtask that each has; of the buffer sizes that of the first gate."""
COLUMNS = ("run", "t_s", "task", "subtask", *METRICS)


class Sampler:
    """The samples of one run, each `every_s` at most. Called with a job's number, it takes one if it is time."""

    def __init__(self, run: str, every_s: float = 1.0) -> None:
        self.run, self.rows = run, list[dict[str, Any]]()
        self._every_s, self._began, self._last = every_s, time.monotonic(), 0.0
        self._vertices: list[dict[str, Any]] = []

    def __call__(self, job: str) -> None:
        now = time.monotonic()
        if now - self._last < self._every_s:
            return
        self._last = now
        self._vertices = self._vertices or ask(f"/jobs/{job}")["vertices"]
        for vertex in self._vertices:
            subtasks = range(vertex["parallelism"])
            wanted = ",".join(f"{index}.{metric}" for index in subtasks for metric in METRICS.values())
            found = {
                each["id"]: each["value"] for each in ask(f"/jobs/{job}/vertices/{vertex['id']}/metrics?get={wanted}")
            }
            for index in subtasks:
                values = {column: found.get(f"{index}.{metric}", "") for column, metric in METRICS.items()}
                if any(values.values()):
                    at = {"run": self.run, "t_s": f"{now - self._began:.1f}", "task": vertex["name"], "subtask": index}
                    self.rows.append({**at, **values})

    def save(self, path: Path) -> None:
        """Write the samples as a table."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
