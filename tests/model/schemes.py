"""Aligners of many kinds, sound and broken, put together from decisions that engines take one way or the other.

None inherits anything of `impl`: they stand in for its gate as any external class does
(`model.checkpoint.external.parts_of`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import GatePort
from barrierlab.impl.errors import SnapshotFailedError
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.impl.reasons import Reason


@dataclass(frozen=True)
class Scheme:
    """The decisions of an aligner; as they are by default, it is sound.

    Attributes
    ----------
    waits : str
        What is behind a barrier is ``"left"`` in its channel (`can_take` says so), ``"refused"`` (`offer` does), or
        ``"held"``.
    remembers : str
        Which ids are done with: ``"all"``; only what was ``"aligned"`` here, so that an abort that comes before the
        barrier is forgotten; or ``"none"``.
    counts_ends : bool
        An input that has ended counts as one that has delivered.
    looks_at_ends : bool
        An end may complete an alignment.
    counts : bool
        Barriers are counted, and not told apart by their inputs.
    compares_ids : bool
        A barrier of another id ends the alignment that is under way.
    snapshots : str
        At the ``"last"`` barrier, at the ``"first"``, or ``"later"``: in a step of its own behind the last.
    forwards : str
        ``"with"`` the snapshot, or ``"later"``, in a step of its own.
    completes : str
        ``"last"``, or ``"early"``: before the snapshot is taken.
    resumes : str
        ``"with"`` the completion, or ``"later"``.
    drains : str
        ``"lowest"`` input first, or ``"highest"``.
    obeys : str
        An abort ``"always"``; only while ``"aligning"`` that checkpoint; only while ``"idle"``; ``"never"``.
    deadline : str
        ``"none"``; ``"declines"`` when it passes; aborts ``"silently"``; is ``"kept"`` behind the end of its
        checkpoint and declines that; or ``"nothing"`` comes of it.
    goes_round : bool
        Whether, once it has nothing to drain, it says that it has, for ever.
    """

    waits: str = "left"
    remembers: str = "all"
    counts_ends: bool = True
    looks_at_ends: bool = True
    counts: bool = False
    compares_ids: bool = True
    snapshots: str = "last"
    forwards: str = "with"
    completes: str = "last"
    resumes: str = "with"
    drains: str = "lowest"
    obeys: str = "always"
    deadline: str = "none"
    goes_round: bool = False

    def __str__(self) -> str:
        kept = [
            (each.name, getattr(self, each.name)) for each in fields(self) if getattr(self, each.name) != each.default
        ]
        return ", ".join(f"{name}={value}" for name, value in kept) or "sound"


CHOICES: dict[str, tuple[object, ...]] = {
    "waits": ("left", "refused", "buffered"),
    "remembers": ("all", "aligned", "none"),
    "counts_ends": (True, False),
    "looks_at_ends": (True, False),
    "counts": (False, True),
    "compares_ids": (True, False),
    "snapshots": ("last", "first", "later"),
    "forwards": ("with", "later"),
    "completes": ("last", "early"),
    "resumes": ("with", "later"),
    "drains": ("lowest", "highest"),
    "obeys": ("always", "aligning", "idle", "never"),
    "deadline": ("none", "declines", "silently", "kept", "nothing"),
    "goes_round": (False, True),
}
"""The choices of each decision, the sound one first."""


def class_of(scheme: Scheme) -> type:
    """The aligner that decides so."""
    return type("Composed", (_Composed,), {"scheme": scheme})


class _Composed:
    scheme: Scheme
    _KEPT = ("blocked", "ended", "buffered", "current", "count", "done", "late", "kept", "spins")

    def __init__(self, port: GatePort, config: BarrierAlignerConfig) -> None:
        self.port, self.config, n = port, config, config.num_inputs
        self.blocked = [0] * n
        self.ended = [False] * n
        self.buffered: list[tuple[StreamMessage, ...]] = [()] * n
        self.current: CheckpointBarrier | None = None
        self.count = 0
        self.done = 0
        self.late: tuple[tuple[str, CheckpointBarrier], ...] = ()  # steps that are still to be made
        self.kept = 0  # the checkpoint whose deadline is still set
        self.spins = 0

    # Capture and restore.

    def capture(self) -> Any:
        values = (getattr(self, name) for name in self._KEPT)
        return tuple(tuple(value) if isinstance(value, list) else value for value in values)

    def restore(self, value: Any) -> None:
        for name, each in zip(self._KEPT, value, strict=True):
            setattr(self, name, list(each) if name in ("blocked", "ended", "buffered") else each)

    # Reading.

    def can_take(self, i: int) -> bool:
        if self.ended[i] or self.late:
            return not self.ended[i] and self.scheme.waits != "left"
        if self.scheme.waits == "buffered":
            return len(self.buffered[i]) < self.config.max_buffer_per_input
        return self.scheme.waits == "refused" or not self.blocked[i]

    def offer(self, i: int, message: StreamMessage, now_ns: int) -> bool:
        if self.ended[i]:
            return False
        if self.blocked[i] or self.buffered[i] or self.late:
            if self.scheme.waits != "buffered" or len(self.buffered[i]) == self.config.max_buffer_per_input:
                return False
            self.buffered[i] += (message,)
            self.port.buffer(i, message)
        else:
            self.take(i, message)
        return True

    def take(self, i: int, message: StreamMessage) -> None:
        if isinstance(message, Event | Watermark):
            self.port.deliver(i, message)
        elif isinstance(message, EndOfInput):
            self.ended[i] = True
            self.port.end_input(i)
            if self.scheme.looks_at_ends:
                self.look()
        elif isinstance(message, CheckpointBarrier):
            self.barrier(i, message)
        else:
            assert isinstance(message, CancelBarrier)
            self.cancelled(i, message)

    def free(self) -> list[int]:
        order = [i for i, buffered in enumerate(self.buffered) if buffered and not self.blocked[i]]
        return order if self.scheme.drains == "lowest" else order[::-1]

    @property
    def can_drain(self) -> bool:
        return bool(self.late or self.free() or (self.scheme.goes_round and self.done))

    def drain_next(self, now_ns: int) -> None:
        if self.late:
            (what, barrier), self.late = self.late[0], self.late[1:]
            self.step(what, barrier)
        elif order := self.free():
            i = order[0]
            message, self.buffered[i] = self.buffered[i][0], self.buffered[i][1:]
            self.take(i, message)
        elif self.scheme.goes_round:
            self.spins = 1 - self.spins

    # Checkpoints.

    def barrier(self, i: int, barrier: CheckpointBarrier) -> None:
        n = barrier.checkpoint_id
        if n <= self.done and self.scheme.remembers != "none":
            self.port.ignore(i, barrier)
            return
        if self.current is not None and self.scheme.compares_ids:
            if n < self.current.checkpoint_id:
                self.port.ignore(i, barrier)
                return
            if n > self.current.checkpoint_id:
                self.port.decline(self.current.checkpoint_id, Reason.SUBSUMED)
                self.abort_checkpoint(self.current.checkpoint_id)
        self.port.block(i, n)
        self.blocked[i] = n
        self.count += 1
        if self.current is None:
            self.current = barrier
            self.kept = n
            if self.scheme.snapshots == "first":
                self.step("snapshot", barrier)
        self.look()

    def look(self) -> None:
        barrier = self.current
        if barrier is None:
            return
        ended = sum(self.ended) if self.scheme.counts_ends else 0
        if self.scheme.counts:
            complete = self.count + ended >= len(self.blocked)
        else:
            complete = all(
                blocked or (ended and self.scheme.counts_ends)
                for blocked, ended in zip(self.blocked, self.ended, strict=True)
            )
        if not complete or (all(self.ended) and not any(self.blocked)):
            return
        steps = ["complete"] if self.scheme.completes == "early" else []
        steps += ["snapshot"] if self.scheme.snapshots != "first" else []
        steps += ["forward"] if self.scheme.snapshots != "first" or self.scheme.forwards == "later" else []
        steps += ["complete"] if self.scheme.completes == "last" else []
        steps.append("resume")
        self.current, self.count = None, 0
        if self.scheme.deadline != "kept":
            self.kept = 0
        putting_off = False
        for step in steps:
            putting_off = putting_off or {
                "snapshot": self.scheme.snapshots == "later",
                "forward": self.scheme.forwards == "later",
                "resume": self.scheme.resumes == "later",
            }.get(step, False)
            if putting_off:
                self.late += ((step, barrier),)
            elif not self.step(step, barrier):
                break

    def step(self, what: str, barrier: CheckpointBarrier) -> bool:
        n = barrier.checkpoint_id
        if what == "snapshot":
            try:
                self.port.snapshot(barrier)
            except SnapshotFailedError as error:
                self.port.decline(n, error.reason)
                self.late = ()
                self.abort_checkpoint(n)
                return False
            if self.scheme.snapshots == "first" and self.scheme.forwards == "with":
                self.port.forward(barrier)
        elif what == "forward":
            self.port.forward(barrier)
        elif what == "complete":
            self.port.complete(barrier)
        else:
            self.port.resume(n)
            self.blocked = [0] * len(self.blocked)
            self.remember(n)
        return True

    def remember(self, n: int) -> None:
        if self.scheme.remembers != "none":
            self.done = max(self.done, n)

    def abort_checkpoint(self, n: int) -> None:
        self.remember(n)
        self.current, self.count, self.kept = None, 0, 0
        self.blocked = [0] * len(self.blocked)
        self.port.cancel(n)
        self.port.resume(n)

    def cancelled(self, i: int, marker: CancelBarrier) -> None:
        if not self.drop(marker.checkpoint_id):
            self.port.ignore(i, marker)

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> None:
        aligning = self.current is not None and self.current.checkpoint_id <= checkpoint_id
        if self.scheme.obeys == "always" or self.scheme.obeys == ("aligning" if aligning else "idle"):
            self.drop(checkpoint_id)

    def drop(self, n: int) -> bool:
        """Give up what is under way up to `n`, or skip what is to come; False if that is no news."""
        if self.late or all(self.ended):
            return False
        if self.current is not None:
            if self.current.checkpoint_id > n:
                return False
            self.abort_checkpoint(self.current.checkpoint_id)
            self.remember(n)
            return True
        if n <= self.done or self.scheme.remembers == "aligned":
            return False
        if self.scheme.remembers == "all":
            self.done = n
            self.port.cancel(n)
            self.port.resume(n)
            return True
        return False

    # Deadlines.

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        pass

    def next_deadline_ns(self) -> int | None:
        return self.config.alignment_timeout_ns if self.kept and self.scheme.deadline != "none" else None

    def on_time(self, now_ns: int) -> None:
        if self.scheme.deadline == "none" or not self.kept or now_ns < self.config.alignment_timeout_ns:
            return
        n = self.kept
        if self.scheme.deadline in ("declines", "kept"):
            self.port.decline(n, Reason.EXPIRED)
        if self.scheme.deadline != "nothing":
            self.kept = 0
            if self.current is not None:
                self.abort_checkpoint(n)
