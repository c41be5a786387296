"""A sink's writer with the ledger that all sinks share: transactions, at least once, and rows, over any recovery.

`SinkReference` is written from protocol rule 20 and the documentation of `impl.checkpoint.transactions`: it keeps what
every sink has written, by transaction, and works out from that what a reader sees.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from barrierlab.impl.checkpoint.transactions import Ledger, SinkWriter
from barrierlab.impl.errors import TransactionError
from barrierlab.impl.messages import Event
from barrierlab.model.checkpoint.component import CallStimulus, ComponentScope, Reference, RefusedError, Under, stimulus
from barrierlab.model.checkpoint.components import Components

SinkRow = tuple[int, int]
"""The sequence of an event, and its payload: a later event of one sequence replaces an earlier row, payload and all."""


@dataclass(frozen=True)
class SinkBounds:
    """The bounds of a scope: which guarantee, which sinks, and how far.

    Attributes
    ----------
    guarantee : str
    sinks : tuple of str
    writes, ids : int
        Events that are written, and checkpoints, in all.
    sequences : int
        How many events there are; they are written again with another payload.
    """

    guarantee: str
    sinks: tuple[str, ...]
    writes: int
    ids: int
    sequences: int = 0


class SinkReference(Reference):
    """The sinks and the external system as the rules have them."""

    fixed = ("outside", "lines")

    def __init__(self, outside: SinkBounds) -> None:
        self.outside = outside
        self.written, self.next_id = 0, 1
        self.open: dict[str, tuple[SinkRow, ...]] = dict.fromkeys(outside.sinks, ())
        self.prepared: dict[str, tuple[tuple[str, int], ...]] = dict.fromkeys(outside.sinks, ())
        self.newest = dict.fromkeys(outside.sinks, 0)
        self.is_over = dict.fromkeys(outside.sinks, False)
        self.parts: dict[tuple[str, int], tuple[str, ...]] = {(sink, 0): () for sink in outside.sinks}
        self.transactions: dict[str, tuple[str, str, tuple[SinkRow, ...]]] = {}
        self.visible: dict[str, tuple[SinkRow, ...]] = dict.fromkeys(outside.sinks, ())
        self.lines: list[str] = []

    def stands(self) -> tuple[str, ...]:
        lines, self.lines = self.lines, []
        for sink in self.outside.sinks:
            ever = sum(whose == sink for whose, _, _ in self.transactions.values())
            names = [name for name, _ in self.prepared[sink]]
            lines.append(seen(sink, self.visible[sink], names, len(self.open[sink]), ever))
        return tuple(lines)

    def stimuli(self) -> Sequence[CallStimulus]:
        """Return all that a task, a coordinator or a recovery may do; also a repeated commit."""
        return list(self._stimuli())

    def _stimuli(self) -> Iterator[CallStimulus]:
        for sink in self.outside.sinks:
            if not self.is_over[sink]:
                if self.written < self.outside.writes:
                    sequences = range(1, self.outside.sequences + 1) or (self.written + 1,)
                    yield from (stimulus("write", sink, n, self.written) for n in sequences)
                if self.next_id <= self.outside.ids:
                    yield stimulus("prepare", sink, self.next_id)
                yield stimulus("prepare_last", sink)
            yield from (stimulus("complete", sink, n) for n in range(1, self.next_id))
            for whose, n in self.parts:
                if whose == sink and len(self.transactions) < self.outside.ids + 1:
                    yield stimulus("recover", sink, n)
        yield from (stimulus("commit", name) for name in (*self.transactions, "s-9"))
        yield from (stimulus("keep_all", sink) for sink in self.outside.sinks)
        for name, (whose, _, rows) in self.transactions.items():
            yield from (stimulus("prepare_again", whose, name), stimulus("prepare_other", whose, name, len(rows) + 1))

    # What a task does.

    def write(self, sink: str, sequence: int, payload: int) -> None:
        """Let an event take effect at the sink."""
        row, self.written = (sequence, payload), self.written + 1
        if self.outside.guarantee == "exactly_once":
            self.open[sink] += (row,)
        elif self.outside.guarantee == "at_least_once":
            self.visible[sink] += (row,)
            self.lines.append(f"write {_named(row)}")
        else:
            rows = dict(self.visible[sink])
            rows[sequence] = payload
            self.visible[sink] = tuple(rows.items())
            self.lines.append(f"upsert {_named(row)}")

    def prepare(self, sink: str, n: int) -> None:
        """Take the sink's part of a checkpoint: what is open is kept outside, and seen by nobody."""
        self.next_id, self.newest[sink] = n + 1, n
        self._prepare(sink, f"{sink}-{n}", n)
        self.parts[sink, n] = tuple(name for name, _ in self.prepared[sink])

    def prepare_last(self, sink: str) -> None:
        """End the sink: what is open is covered by all checkpoints behind its last one."""
        self.is_over[sink] = True
        ever = sum(whose == sink for whose, _, _ in self.transactions.values())
        self._prepare(sink, f"{sink}-final-{ever + 1}", self.newest[sink] + 1)

    def _prepare(self, sink: str, name: str, committed_from: int) -> None:
        if self.open[sink]:
            self.transactions[name] = sink, "prepared", self.open[sink]
            self.prepared[sink] += ((name, committed_from),)
            self.lines.append(f"prepare {name} {len(self.open[sink])}")
            self.open[sink] = ()

    # What becomes of it.

    def complete(self, sink: str, n: int) -> None:
        """Complete a checkpoint: commit what it covers, oldest first."""
        due = [name for name, committed_from in self.prepared[sink] if committed_from <= n]
        self.prepared[sink] = tuple(each for each in self.prepared[sink] if each[1] > n)
        for name in due:
            self._commit(name)

    def recover(self, sink: str, n: int) -> None:
        """Recover the sink from its part of a checkpoint: commit that, and roll back all else of it."""
        keeps = self.parts[sink, n]
        self.open[sink], self.prepared[sink], self.newest[sink], self.is_over[sink] = (), (), n, False
        for name in keeps:
            if self.transactions[name][1] == "rolled back":  # a recovery to older than what was restored since
                self.lines = []
                raise RefusedError("TransactionError")
            self._commit(name)
        for name, (whose, state, _) in self.transactions.items():
            if whose == sink and state == "prepared" and name not in keeps:
                self.transactions[name] = sink, "rolled back", ()
                self.lines.append(f"rollback {name}")

    def _commit(self, name: str) -> None:
        sink, state, rows = self.transactions[name]
        self.visible[sink] += rows
        self.transactions[name] = sink, "committed", ()
        self.lines.append(f"commit {name} {_listed(rows if state == 'prepared' else ())}")

    def commit(self, name: str) -> tuple[str, ...]:
        """Commit a transaction, maybe once more; only what is prepared becomes visible, and once."""
        sink, state, rows = self.transactions.get(name, ("", "unknown", ()))
        if state in ("unknown", "rolled back"):
            raise RefusedError("TransactionError")
        self.visible[sink] += rows
        self.transactions[name] = sink, "committed", ()
        return (f"became visible: {_listed(rows)}",)

    def keep_all(self, sink: str) -> tuple[str, ...]:
        """Roll back nothing: all is to be kept, prepared or not."""
        return ("rolled back nothing",)

    def prepare_again(self, sink: str, name: str) -> None:
        """Prepare a transaction once more, which changes nothing; refuse it if it is prepared no longer."""
        if self.transactions[name][1] != "prepared":
            raise RefusedError("TransactionError")

    def prepare_other(self, sink: str, name: str, count: int) -> None:
        """Refuse another transaction of that name."""
        raise RefusedError("TransactionError")


def seen(sink: str, rows: Sequence[SinkRow], prepared: Sequence[str], unprepared: int, ever: int) -> str:
    """Return how a sink stands, as both sides say it."""
    its = f"{sink} shows {_listed(rows)}"
    return f"{its}; prepared {' '.join(prepared) or 'nothing'}, {unprepared} open, {ever} ever"


def _named(row: SinkRow) -> str:
    return f"a{row[0]}={row[1]}"


def _listed(rows: Sequence[SinkRow]) -> str:
    return " ".join(map(_named, rows)) or "nothing"


class SinkMachine(Under):
    """Writers and a ledger, with the verbs of `SinkReference`."""

    refusals = (TransactionError,)

    def __init__(self, outside: SinkBounds, components: Components) -> None:
        self.outside, self._components = outside, components
        self.ledger: Ledger = components.ledger()
        self.stored: dict[tuple[str, int], tuple[str, ...]] = {(sink, 0): () for sink in outside.sinks}
        self.effects: list[str] = []
        self.writers: dict[str, SinkWriter] = {sink: self._made(sink) for sink in outside.sinks}

    def _made(self, sink: str) -> SinkWriter:
        return self._components.writer(sink, self.ledger, self.outside.guarantee, self._tell)

    def _tell(self, verb: str, index: int, subject: Any) -> None:
        if index != -1:
            self.effects.append(f"input {index}")  # none of this concerns one
        if verb == "commit":
            self.effects.append(f"commit {subject[0]} {_listed(_rows(subject[1]))}")
        elif verb == "prepare":
            self.effects.append(f"prepare {subject[0]} {subject[1]}")
        else:
            self.effects.append(f"{verb} {subject if isinstance(subject, str) else _listed(_rows([subject]))}")

    @property
    def machines(self) -> Sequence[object]:
        """The ledger and its writers."""
        return (self.ledger, *self.writers.values())

    def capture(self) -> Hashable:
        """Return what ledger and writers capture, and the parts that are stored."""
        writers = tuple(writer.capture() for writer in self.writers.values())
        return self.ledger.capture(), writers, tuple(self.stored.items())

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        ledger, writers, stored = value
        self.ledger.restore(ledger)
        for writer, captured in zip(self.writers.values(), writers, strict=True):
            writer.restore(captured)
        self.stored, self.effects = dict(stored), []

    def stands(self) -> tuple[str, ...]:
        stands = [
            seen(sink, _rows(self.ledger.visible(sink)), its.prepared, len(its.open), self.ledger.count(sink))
            for sink, its in self.writers.items()
        ]
        return *self.effects, *stands

    def write(self, sink: str, sequence: int, payload: int) -> None:
        self.writers[sink].write(Event("a", sequence, value=payload))

    def prepare(self, sink: str, n: int) -> None:
        self.writers[sink].prepare(n)
        self.stored[sink, n] = self.writers[sink].prepared

    def prepare_last(self, sink: str) -> None:
        self.writers[sink].prepare_last()

    def complete(self, sink: str, n: int) -> None:
        self.writers[sink].on_complete(n)

    def recover(self, sink: str, n: int) -> None:
        self.writers[sink] = self._made(sink)
        self.writers[sink].recover(self.stored[sink, n], n)

    def commit(self, name: str) -> tuple[str, ...]:
        events = self.ledger.commit(name)
        return (f"became visible: {_listed(_rows(events))}",)

    def keep_all(self, sink: str) -> tuple[str, ...]:
        gone = self.ledger.roll_back_others(sink, [name for name, _ in self._transactions()])
        return (f"rolled back {', '.join(gone) or 'nothing'}",)

    def prepare_again(self, sink: str, name: str) -> None:
        self.ledger.prepare(sink, name, dict(self._transactions())[name][2])

    def prepare_other(self, sink: str, name: str, count: int) -> None:
        self.ledger.prepare(sink, name, [Event("a", n) for n in range(count)])

    def _transactions(self) -> Any:
        transactions, _, _ = self.ledger.capture()  # type: ignore[misc]
        return transactions  # type: ignore[has-type]


def _rows(events: Sequence[Event]) -> list[SinkRow]:
    return [(event.sequence, event.value) for event in events]  # type: ignore[misc]


def _scope(name: str, states: int, outside: SinkBounds) -> ComponentScope:
    return ComponentScope(f"sink: {name}", states, partial(SinkMachine, outside), partial(SinkReference, outside))


SCOPES = (
    _scope("transactions of one sink", 3_408, SinkBounds("exactly_once", ("s",), 3, 2)),
    _scope("transactions of two sinks in one ledger", 1_874, SinkBounds("exactly_once", ("s", "t"), 2, 1)),
    _scope("at least once", 300, SinkBounds("at_least_once", ("s", "t"), 3, 1)),
    _scope("rows that are written again", 1_700, SinkBounds("idempotent", ("s", "t"), 3, 1, sequences=2)),
)
