"""The coordinator once more, as plain lists: slow, short, and written from the rules alone.

It gets the same and answers in lines. Of a checkpoint it knows when it was triggered, who is missing, and a stage:
open, writing, or over. What follows from a move is found by looking at everything again.
"""

from __future__ import annotations

from barrierlab.impl import (
    Aborted,
    AbortTask,
    Completed,
    CoordinatorConfig,
    FailJob,
    Ignored,
    Inject,
    Notify,
    Publish,
    Refused,
    Triggered,
)


def line(action) -> str:
    """An action of the real one, as a line."""
    match action:
        case Triggered(checkpoint_id=n):
            return f"trigger {n}"
        case Inject(source=source, command=command):
            return f"inject {source} {command.checkpoint_id} {command.epoch}"
        case Publish(checkpoint_id=n, parts=parts):
            said = " ".join(f"{p.task}{'.' if p.finished else ''}" for p in parts if p.checkpoint_id == n)
            return f"publish {n} {said}"
        case Completed(checkpoint_id=n):
            return f"completed {n}"
        case Notify(task=task, checkpoint_id=n):
            return f"notify {task} {n}"
        case AbortTask(task=task, checkpoint_id=n, reason=reason):
            return f"abort {task} {n} {reason}"
        case Aborted(checkpoint_id=n, reason=reason):
            return f"aborted {n} {reason}"
        case Refused(reason=reason):
            return f"refused {reason}"
        case Ignored(task=task, checkpoint_id=n):
            return f"ignored {task} {n}"
        case FailJob(reason=reason):
            return f"fail {reason}"
    raise AssertionError(action)


FAILURES = (
    *("expired", "declined", "snapshot failed", "barrier mismatch", "in-flight limit"),
    *("store failed", "store in doubt"),
)
"""The reasons that count against the tolerable number."""


class Oracle:
    """One job's checkpoints."""

    def __init__(self, config: CoordinatorConfig, tasks: list[str], sources: list[str], first_id: int = 1) -> None:
        self.config, self.tasks, self.sources = config, tasks, sources
        self.stage: dict[int, str] = {}
        self.began: dict[int, int] = {}
        self.said: dict[int, dict[str, bool]] = {}  # who has given a part, and whether it was the final one
        self.next_id = first_id
        self.finished: list[str] = []
        self.running = True
        self.over = False
        self.failures = 0
        self.last_trigger = self.last_completion = self.last_resume = self.retry = None
        self.lines: list[str] = []

    def take(self) -> list[str]:
        """Return what was answered since the last time."""
        lines, self.lines = self.lines, []
        return lines

    def at(self, stage: str) -> list[int]:
        """The checkpoints that are there."""
        return [n for n in sorted(self.stage) if self.stage[n] == stage]

    @property
    def failing(self) -> bool:
        return self.config.tolerable_failures is not None and self.failures > self.config.tolerable_failures

    # What it gets.

    def trigger(self, now: int) -> None:
        why = self.refusal(now)
        if why:
            self.lines.append(f"refused {why}")
            return
        n = self.begin(now)
        self.lines += [f"inject {source} {n} {n}" for source in self.sources if source not in self.finished]

    def refusal(self, now: int) -> str:
        if not self.running:
            return "job failed"
        if self.failing:
            return "too many failures"
        if all(source in self.finished for source in self.sources):
            return "sources finished"
        if len(self.at("open")) + len(self.at("writing")) >= self.config.max_concurrent:
            return "too many pending"
        if self.last_completion is not None and now < self.last_completion + self.config.min_pause_ns:
            return "min pause"
        return ""

    def begin(self, now: int) -> int:
        n, self.next_id = self.next_id, self.next_id + 1
        self.lines.append(f"trigger {n}")
        self.stage[n], self.began[n], self.said[n] = "open", now, dict.fromkeys(self.finished, True)
        self.last_trigger = now
        return n

    def acknowledge(self, task: str, n: int, now: int) -> None:
        if self.stage.get(n) != "open" or task in self.said[n]:
            self.lines.append(f"ignored {task} {n}")
            return
        self.said[n][task] = False
        self.look(now)

    def decline(self, task: str, n: int, reason: str, now: int) -> None:
        if self.stage.get(n) != "open":
            self.lines.append(f"ignored {task} {n}")
            return
        self.abort_checkpoint(n, reason)
        self.look(now)

    def finish(self, task: str, now: int) -> None:
        if not self.running:
            self.lines.append(f"ignored {task} 0")
            return
        self.finished += [task] * (task not in self.finished)
        for n in self.at("open"):
            self.said[n].setdefault(task, True)
        self.look(now)

    def time(self, now: int) -> None:
        for n in self.at("open"):
            if self.stage[n] == "open" and now >= self.began[n] + self.config.timeout_ns:
                self.abort_checkpoint(n, "expired")
        due = self.due()
        if due is not None and now >= due:
            self.trigger(now)
        self.look(now)

    def due(self) -> int | None:
        """Return the time at which the next one begins, as things are."""
        if self.config.interval_ns is None:
            return None
        if self.last_trigger is not None:
            due = self.last_trigger + self.config.interval_ns
        elif self.last_resume is not None:
            due = self.last_resume + self.config.interval_ns
        else:
            due = self.config.interval_ns
        if self.last_completion is not None:
            due = max(due, self.last_completion + self.config.min_pause_ns)
        return None if self.refusal(due) else due

    def deadline(self) -> int | None:
        """Return the time at which something will happen."""
        times = [self.began[n] + self.config.timeout_ns for n in self.at("open")]
        if (due := self.due()) is not None:
            times.append(due)
        if self.retry is not None and self.wants_final():
            times.append(self.retry)
        return min(times, default=None)

    def written(self, n: int, now: int, how: str) -> None:
        """The write of a manifest has ended: well, badly, or in doubt."""
        if how == "well":
            self.stage[n] = "over"
            self.failures, self.last_completion, self.retry = 0, now, None
            self.lines.append(f"completed {n}")
            if self.running:
                self.lines += [f"notify {task} {n}" for task in self.tasks]
                self.over = len(self.said[n]) == len(self.tasks) and all(self.said[n].values())
            for older in self.at("open"):
                if older < n:
                    self.stage[older] = "over"
                    self.lines.append(f"aborted {older} subsumed")
        elif not self.running:
            self.stage[n] = "over"
            self.lines.append(f"aborted {n} store {how}")
        else:
            self.retry = now + max(self.config.min_pause_ns, self.config.interval_ns or 10**9)
            self.stage[n] = "open"
            self.abort_checkpoint(n, f"store {how}")
        self.look(now)

    def suspend(self, reason: str) -> None:
        self.running = False
        for n in self.at("open"):
            self.stage[n] = "over"
            self.lines.append(f"aborted {n} {reason}")

    def resume(self, now: int, finished: list[str]) -> None:
        self.running, self.finished, self.failures = True, list(finished), 0
        self.over = len(finished) == len(self.tasks)
        self.last_trigger = self.last_completion = self.retry = None
        self.last_resume = now

    # What follows.

    def abort_checkpoint(self, n: int, reason: str) -> None:
        was_failing = self.failing
        self.failures += reason in FAILURES
        for older in self.at("open"):
            if older <= n:
                self.stage[older] = "over"
                self.lines.append(f"aborted {older} {reason}")
        self.lines += [f"abort {task} {n} {reason}" for task in self.tasks if task not in self.finished]
        if self.failing and not was_failing:
            self.lines.append("fail too many failures")

    def look(self, now: int) -> None:
        """One manifest is written at a time, that of the oldest which is whole; at the end of the job, one more."""
        self.write()
        if self.wants_final() and (self.retry is None or now >= self.retry):
            self.begin(now)
            self.write()

    def write(self) -> None:
        whole = [n for n in self.at("open") if len(self.said[n]) == len(self.tasks)]
        if self.running and whole and not self.at("writing"):
            self.stage[whole[0]] = "writing"
            said = " ".join(f"{task}{'.' * final}" for task, final in sorted(self.said[whole[0]].items()))
            self.lines.append(f"publish {whole[0]} {said}")

    def wants_final(self) -> bool:
        everything = len(self.finished) == len(self.tasks)
        under_way = self.at("open") + self.at("writing")
        return self.running and everything and not under_way and not self.over and not self.failing
