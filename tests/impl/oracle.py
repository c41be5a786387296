"""The aligned protocol once more, as plain lists: slow, short, and written from the rules alone.

A channel that waits keeps its messages in a list; whoever may go is in a line and takes one message at a time.
Nothing of `impl` but the messages is used. It writes the same lines as `tests.impl.support.Recorder`.
"""

from __future__ import annotations

from barrierlab.impl import CancelBarrier, CheckpointBarrier, EndOfInput, StreamMessage


class Oracle:
    """One task's inputs."""

    def __init__(self, num_inputs: int, fails: set[int]) -> None:
        self.fails = fails
        self.lines: list[str] = []
        self.waiting: list[list[StreamMessage]] = [[] for _ in range(num_inputs)]
        self.open = set(range(num_inputs))
        self.blocked: set[int] = set()
        self.line: list[int] = []
        self.current = 0  # the id under way; 0 is none
        self.done = 0

    def arrive(self, i: int, message: StreamMessage) -> None:
        """A message comes in; then all that may go goes."""
        kind = type(message)
        if i not in self.blocked:
            self.step(i, message)
        elif kind is CheckpointBarrier and message.checkpoint_id <= self.current:
            self.lines.append(f"ignore {i} {message}")
        elif kind is CancelBarrier and message.checkpoint_id == self.current:
            self.step(i, message)
        else:
            self.waiting[i].append(message)
            self.lines.append(f"buffer {i} {message}")
        self.drain()

    def drain(self) -> None:
        """One message of each in the line, in turn, until the line is empty."""
        while self.line:
            i = self.line.pop(0)
            message = self.waiting[i].pop(0)
            self.line += [i] * bool(self.waiting[i])
            self.step(i, message)

    def step(self, i: int, message: StreamMessage) -> None:
        """The message takes effect."""
        kind = type(message)
        if kind is CheckpointBarrier:
            n = message.checkpoint_id
            if n <= max(self.done, self.current - 1):
                self.lines.append(f"ignore {i} {message}")
                return
            if self.current and n > self.current:
                self.lines += [f"decline {self.current} subsumed", f"cancel {self.current}"]
                self.finish(self.current)
            self.current = n
            self.blocked.add(i)
            self.line = [each for each in self.line if each != i]
            self.lines.append(f"block {i} {n}")
            self.complete_if_all_in()
        elif kind is CancelBarrier:
            self.abort_checkpoint(message.checkpoint_id) or self.lines.append(f"ignore {i} {message}")
        elif kind is EndOfInput:
            self.open.discard(i)
            self.lines.append(f"end {i}")
            self.complete_if_all_in()
        else:
            self.lines.append(f"deliver {i} {message}")

    def complete_if_all_in(self) -> None:
        """The snapshot, if every open channel waits."""
        n = self.current
        if n and self.open <= self.blocked:
            if n in self.fails:
                self.lines += [f"decline {n} snapshot failed", f"cancel {n}"]
            else:
                self.lines += [f"snapshot {n}", f"forward barrier {n}", f"complete {n}"]
            self.finish(n)

    def abort_checkpoint(self, n: int, reason: str = "") -> bool:
        """Everything up to `n` is closed."""
        if n <= self.done or n < self.current or not self.open:
            return False
        self.lines += [f"decline {n} {reason}"] * bool(reason) + [f"cancel {n}"]
        self.finish(n)
        return True

    def finish(self, n: int) -> None:
        """Nothing waits any more."""
        self.lines.append(f"resume {self.current or n}")
        self.done, self.current = n, 0
        self.line += [i for i in sorted(self.blocked) if self.waiting[i]]
        self.blocked = set()
