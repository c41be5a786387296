"""The critical path of a checkpoint: what it waited for, where, from its trigger to its completion.

Followed from the end back to the trigger: the manifest, the report that came last, the task that made it, the barrier
that let it (the last one where inputs are aligned or recorded, the first where it went unaligned), the channel on which
that came, the task that sent it, and so on to a source and its command. One thing is waited for at any moment, so the
pieces leave no gap and add up to the duration to the nanosecond.

A wait for a barrier is a task's start delay until its first barrier of the checkpoint, and alignment from then on, as
in its own statistics (`sim.checkpoint.metrics`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from barrierlab.impl import CheckpointBarrier, EndOfInput
from barrierlab.model.render.html import block, table
from barrierlab.model.spec.history import Entry
from barrierlab.model.spec.topology import Topology
from barrierlab.sim.checkpoint.metrics import NS_PER_MS, CheckpointRecord, TaskPart

if TYPE_CHECKING:
    import pandas as pd

START_DELAY, ALIGNMENT, SYNC, ASYNC = "start delay", "alignment", "sync", "async"
TRIGGER, BEGIN, OUTPUT, ACKNOWLEDGEMENT, MANIFEST = "trigger", "begin", "output", "acknowledgement", "manifest"
PIECE_OF = {
    **dict.fromkeys((TRIGGER, START_DELAY), "start_delay"),
    ALIGNMENT: "alignment",
    SYNC: "sync",
    **dict.fromkeys((BEGIN, OUTPUT, ASYNC, ACKNOWLEDGEMENT, MANIFEST), "rest"),
}
"""The four sums that tables and reports have. A start delay counts from the trigger, so the command's way is in it."""
COORDINATOR, STORE = "coordinator", "store"


@dataclass(frozen=True, slots=True)
class Piece:
    """One wait on the path.

    Attributes
    ----------
    where : str
        A task, or the coordinator or the store.
    what : str
        One of those above; `begin` is work of a task before its image, `output` a barrier that cannot leave its task.
    waits_for : str
        The channel whose queue the barrier is in, or what else goes first.
    begin_ns, end_ns : int
        Simulated nanoseconds.
    """

    where: str
    what: str
    waits_for: str
    begin_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """Return how long it lasted, in nanoseconds."""
        return self.end_ns - self.begin_ns

    def __str__(self) -> str:
        return f"{self.where}: {self.what} ({self.waits_for}) {self.duration_ns / NS_PER_MS:.1f} ms"


class CriticalPath(tuple[Piece, ...]):
    """The pieces of a checkpoint's time, one behind the other; they add up to it."""

    __slots__ = ()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each piece, from the trigger on."""
        begin_ns = self[0].begin_ns if self else 0
        return [
            {
                "where": piece.where,
                "what": piece.what,
                "waits_for": piece.waits_for,
                "begin_ms": (piece.begin_ns - begin_ns) / NS_PER_MS,
                "duration_ms": piece.duration_ns / NS_PER_MS,
            }
            for piece in self
        ]

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a frame."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __repr__(self) -> str:
        longest = max(self, key=lambda piece: piece.duration_ns, default=None)
        total_ms = sum(piece.duration_ns for piece in self) / NS_PER_MS
        return f"<CriticalPath: {total_ms:.1f} ms in {len(self)} pieces; the longest: {longest}>"

    def _repr_html_(self) -> str:
        total_ms = sum(piece.duration_ns for piece in self) / NS_PER_MS
        return block(f"critical path, {total_ms:.1f} ms", "", table(self.rows))


class _Came(NamedTuple):
    """A barrier or an end of input that took effect at a task."""

    at_ns: int
    channel: str
    is_end: bool


class Journal:
    """The journal of a run for its paths, read once, in one piece or in several."""

    def __init__(self, entries: Iterable[Entry], topology: Topology) -> None:
        self._topology = topology
        self._sent: dict[tuple[int, str], int] = {}  # by checkpoint and channel
        self._ends_sent: dict[tuple[int, str], int] = {}  # by attempt and channel
        self._attempt: dict[int, int] = {}  # in which attempt a checkpoint was triggered
        self._cut: dict[tuple[int, str], _Came | None] = {}  # by checkpoint and task, what made it take its snapshot
        self._whole: dict[tuple[int, str], tuple[int, _Came | None]] = {}  # and when what made its part complete
        self._first: dict[tuple[int, str], _Came] = {}
        self._attempts = 0  # ended
        self._newest: dict[str, _Came] = {}  # by task
        self.read(entries)

    def read(self, entries: Iterable[Entry]) -> None:
        """Read on."""
        attempt, newest = self._attempts, self._newest
        for at_ns, verb, node, channel, subject in entries:
            if verb == "send":
                if type(subject) is CheckpointBarrier:
                    self._sent.setdefault((subject.checkpoint_id, channel), at_ns)  # type: ignore[arg-type]
                elif type(subject) is EndOfInput:
                    self._ends_sent[attempt, channel] = at_ns  # type: ignore[index]
            elif verb == "block" or verb == "end":
                newest[node] = came = _Came(at_ns, channel, verb == "end")  # type: ignore[arg-type]
                if verb == "block":
                    self._first.setdefault((subject, node), came)  # type: ignore[arg-type]
            elif verb == "snapshot" or verb == "complete":
                due_to = newest.get(node)
                if due_to is not None and due_to.at_ns < at_ns:
                    due_to = None  # a deadline did it
                if verb == "snapshot":
                    self._cut[subject[0], node] = due_to  # type: ignore[index]
                else:
                    self._whole[subject, node] = at_ns, due_to  # type: ignore[index]
            elif verb == ">trigger":
                self._attempt[subject] = attempt  # type: ignore[index]
            elif verb == ">restore":
                attempt += 1
                newest.clear()
        self._attempts = attempt

    def path(self, record: CheckpointRecord) -> CriticalPath:
        """Return the pieces of a checkpoint that is complete, in the order of time."""
        return CriticalPath(reversed(_Walk(self, record).pieces))


class _Walk:
    """The way back through one checkpoint."""

    def __init__(self, journal: Journal, record: CheckpointRecord) -> None:
        assert record.ended_ns is not None
        assert record.manifest_ns is not None
        self._journal, self._record, self._id = journal, record, record.checkpoint_id
        self._now = record.ended_ns
        self.pieces: list[Piece] = []
        self._back(record.manifest_ns, STORE, MANIFEST, "the manifest")
        reported = {task: part for task, part in record.parts.items() if part.acknowledged_ns is not None}
        if reported:
            last = max(reported, key=lambda task: reported[task].acknowledged_ns or 0)
            self._report(last, reported[last])
        self._back(record.triggered_ns, COORDINATOR, TRIGGER, "the way of the command")

    def _back(self, to_ns: int, where: str, what: str, waits_for: str) -> None:
        """Note that this was waited for, from `to_ns` until the moment that has been explained."""
        begin_ns = max(self._record.triggered_ns, min(to_ns, self._now))
        if begin_ns < self._now:
            self.pieces.append(Piece(where, what, waits_for, begin_ns, self._now))
            self._now = begin_ns

    def _report(self, task: str, part: TaskPart) -> None:
        assert part.acknowledged_ns is not None
        assert part.reported_ns is not None
        self._back(part.acknowledged_ns, STORE, MANIFEST, "an older manifest")
        self._back(part.reported_ns + part.async_ns, task, ACKNOWLEDGEMENT, "the way to the coordinator")
        self._back(part.reported_ns, task, ASYNC, "its part to be saved")
        if part.snapshot_ns is None:  # a task that had ended: it needs no barrier
            return
        synced_ns = part.snapshot_ns + part.begin_ns + part.sync_ns
        whole_ns, due_to = self._journal._whole.get((self._id, task), (part.snapshot_ns, None))
        self._back(max(whole_ns, synced_ns), task, OUTPUT, "its barriers to leave")
        if synced_ns >= whole_ns:
            self._snapshot(task, part)
        else:
            self._barrier(task, part, due_to)

    def _snapshot(self, task: str, part: TaskPart) -> None:
        assert part.snapshot_ns is not None
        self._back(part.snapshot_ns + part.begin_ns, task, SYNC, "its image")
        self._back(part.snapshot_ns, task, BEGIN, "to begin its part")
        if self._journal._topology.inputs(task):
            self._barrier(task, part, self._journal._cut.get((self._id, task)))
            return
        record = self._record
        self._back(record.commanded_ns.get(task, self._now), task, START_DELAY, "its step")
        self._back(record.commands_ns, COORDINATOR, TRIGGER, "the way of the command")
        self._back(record.triggered_ns, COORDINATOR, TRIGGER, "the command")

    def _barrier(self, task: str, part: TaskPart, came: _Came | None) -> None:
        """Follow back the barrier that came and made the task go on; `came` is None if its deadline did."""
        journal = self._journal
        if came is None:
            came = journal._first.get((self._id, task))
            if came is None:
                return
            self._wait(came.at_ns, task, part, "its timeout")
        sender = journal._topology.ends(came.channel)[0]
        if came.is_end:
            sent_ns = journal._ends_sent.get((journal._attempt[self._id], came.channel), 0)
            self._wait(sent_ns, task, part, came.channel)
            self._back(self._record.triggered_ns, sender, OUTPUT, "its end")
            return
        arrived_ns = self._record.overtook_ns.get(came.channel)
        sent_ns = journal._sent.get((self._id, came.channel), self._record.triggered_ns)
        if arrived_ns is not None:
            self._wait(arrived_ns, task, part, "its step")
        self._wait(sent_ns, task, part, came.channel)
        its = self._record.parts[sender]
        assert its.snapshot_ns is not None
        begun_ns = its.snapshot_ns + its.begin_ns
        synced_ns = begun_ns + its.sync_ns
        if self._now >= synced_ns:
            self._back(synced_ns, sender, OUTPUT, came.channel)
        else:  # its barrier goes before the image is taken
            self._back(begun_ns, sender, OUTPUT, came.channel)
        self._snapshot(sender, its)

    def _wait(self, to_ns: int, task: str, part: TaskPart, waits_for: str) -> None:
        """Add the wait for a barrier: the first one, or another."""
        self._back(max(to_ns, part.first_barrier_ns), task, ALIGNMENT, waits_for)
        self._back(to_ns, task, START_DELAY, waits_for)
