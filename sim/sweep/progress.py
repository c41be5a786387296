"""Progress of a sweep: a bar on a terminal, else a plain line now and then; always on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

_LINES = 20  # at most about so many plain lines a sweep


class _Rate(ProgressColumn):
    """Rate per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f} {task.description}/s" if task.speed else "")


class ProgressWatch:
    """Shows what is done, rate and time left of `total` runs, of which `before` were done at the start.

    `what` are runs, or whatever takes its time.
    """

    def __init__(self, total: int, before: int = 0, what: str = "runs") -> None:
        self._what = what
        self._total, self._before, self._said = total, before, before
        self._start = time.monotonic()
        console = Console(stderr=True)
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=console, speed_estimate_period=60)
            self._task = self._bar.add_task(what, total=total, completed=before)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tick(self, done: int) -> None:
        """`done` runs are stored."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        elif done > self._said and (done == self._total or done - self._said >= self._total / _LINES):
            self._said = done
            rate = (done - self._before) / max(time.monotonic() - self._start, 1e-9)
            left = f", {(self._total - done) / rate:.0f} s left" if done < self._total else ""
            print(f"{done} of {self._total} {self._what}, {rate:.1f} a second{left}", file=sys.stderr, flush=True)
