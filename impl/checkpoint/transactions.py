"""The writes of a sink to the external system, and when they become visible there.

Invariant, exactly once: what is visible of a sink is what it had applied before its cut of a complete checkpoint.

A transactional sink commits in two phases (protocol rule 20; Flink: `TwoPhaseCommittingStatefulSink`): at its snapshot
it prepares what it wrote since the one before, and once a checkpoint is known to be complete it commits all that it
prepared up to there. An abort rolls nothing back: the next complete checkpoint covers it. Only a recovery does: what
the restored checkpoint speaks of is committed, all else of that sink is rolled back, and is written again. So a commit
must be repeatable, and what is prepared must outlive the sink: that is the external system's part, `Ledger`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from barrierlab.impl.errors import LimitError, TransactionError

if TYPE_CHECKING:
    from barrierlab.impl.checkpoint.report import Tell
    from barrierlab.impl.messages import Event

GUARANTEES = ("exactly_once", "at_least_once", "idempotent")
_PREPARED, _COMMITTED, _ROLLED_BACK = "is prepared", "was committed", "was rolled back"


class Ledger:
    """The external system: prepared transactions of sinks, and the committed output. It outlives every task."""

    __slots__ = ("_rows", "_transactions", "_written")

    def __init__(self) -> None:
        # By name: whose, what has become of it, and what is in it while it is prepared.
        self._transactions: dict[str, tuple[str, str, tuple[Event, ...]]] = {}
        self._written: dict[str, list[Event]] = {}
        self._rows: dict[str, dict[Event, Event]] = {}  # events are equal by name, so a later one replaces an earlier

    def prepare(self, sink: str, transaction: str, events: Iterable[Event]) -> None:
        """Prepare `events`: after any failure they can be committed; no reader sees them yet.

        Raises
        ------
        TransactionError
            If there has been a transaction of that name, other than this very one. Nothing changes.
        """
        new = sink, _PREPARED, tuple(events)
        known = self._transactions.setdefault(transaction, new)
        if known != new:
            raise TransactionError("prepare", transaction, known[1], "a name that no transaction has had")

    def commit(self, transaction: str) -> tuple[Event, ...]:
        """Commit a transaction; return what became visible now, so nothing the second time.

        Raises
        ------
        TransactionError
            If it was rolled back or never prepared. Nothing changes.
        """
        sink, state, events = self._transactions.get(transaction, ("", "was never prepared", ()))
        if state == _COMMITTED:
            return ()
        if state != _PREPARED:
            raise TransactionError("commit", transaction, state, "one that is prepared, or was committed before")
        self._transactions[transaction] = sink, _COMMITTED, ()
        self._written.setdefault(sink, []).extend(events)
        return events

    def roll_back_others(self, sink: str, keep: Iterable[str]) -> tuple[str, ...]:
        """Roll back all that one sink has prepared except `keep`; return the names, in the order of preparation."""
        kept = set(keep)
        others = tuple(name for name in self.prepared(sink) if name not in kept)
        for name in others:
            self._transactions[name] = sink, _ROLLED_BACK, ()
        return others

    def write(self, sink: str, event: Event) -> None:
        """Write an event that is visible at once."""
        self._written.setdefault(sink, []).append(event)

    def upsert(self, sink: str, event: Event) -> None:
        """Write an event that is visible at once and replaces the event of that name, if there is one."""
        self._rows.setdefault(sink, {})[event] = event

    def visible(self, sink: str) -> tuple[Event, ...]:
        """Return what a reader sees of this sink, in the order in which it became visible; then its rows."""
        return (*self._written.get(sink, ()), *self._rows.get(sink, {}).values())

    def forget_visible(self) -> None:
        """Forget the visible events: their readers have them."""
        self._written.clear()
        self._rows.clear()

    def count(self, sink: str) -> int:
        """Return how many transactions this sink has ever prepared."""
        return sum(whose == sink for whose, _, _ in self._transactions.values())

    def prepared(self, sink: str) -> tuple[str, ...]:
        """Return the transactions of this sink that are prepared, and neither committed nor rolled back."""
        return tuple(
            name for name, (whose, state, _) in self._transactions.items() if whose == sink and state == _PREPARED
        )

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return (
            tuple(self._transactions.items()),
            tuple((sink, tuple(events)) for sink, events in self._written.items()),
            tuple((sink, tuple(rows.items())) for sink, rows in self._rows.items()),
        )

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        transactions, written, rows = value  # type: ignore[misc]
        self._transactions = dict(transactions)  # type: ignore[has-type]
        self._written = {sink: list(events) for sink, events in written}  # type: ignore[has-type]
        self._rows = {sink: dict(items) for sink, items in rows}  # type: ignore[has-type]


class SinkWriter:
    """A sink's connection to the external system.

    Parameters
    ----------
    sink : str
        The task's name; its transactions are named after it.
    ledger : Ledger
    guarantee : str
        ``exactly_once``: in transactions. ``at_least_once``: at once, and again after a recovery. ``idempotent``: at
        once, as rows that replace those of the same name.
    tell : callable
        Verbs: write, upsert (event), prepare (transaction, number of events), commit (transaction, events that became
        visible), rollback (transaction).

    Attributes
    ----------
    open : list of Event
        What is in no prepared transaction yet. It dies with the task.

    Raises
    ------
    LimitError
        If there is no such guarantee.

    Examples
    --------
    >>> from barrierlab.impl import Event, Ledger, SinkWriter
    >>> ledger = Ledger()
    >>> writer = SinkWriter("s", ledger, "exactly_once", lambda verb, index, subject: None)
    >>> writer.write(Event("a", 1))
    >>> writer.prepare(1)
    >>> writer.prepared
    ('s-1',)
    >>> writer.on_complete(1)
    >>> [str(event) for event in ledger.visible("s")]
    ['a1']
    """

    __slots__ = ("_newest_id", "_prepared", "guarantee", "ledger", "open", "sink", "tell")

    def __init__(self, sink: str, ledger: Ledger, guarantee: str, tell: Tell) -> None:
        if guarantee not in GUARANTEES:
            raise LimitError("guarantee", guarantee, ", ".join(GUARANTEES))
        self.sink = sink
        self.ledger = ledger
        self.guarantee = guarantee
        self.tell = tell
        self.open: list[Event] = []
        self._prepared: list[tuple[str, int]] = []  # with the least id of the checkpoints that cover it
        self._newest_id = 0  # of the checkpoints of which this sink took its part

    def write(self, event: Event) -> None:
        """Write the next event."""
        if self.guarantee == "exactly_once":
            self.open.append(event)
        elif self.guarantee == "at_least_once":
            self.ledger.write(self.sink, event)
            self.tell("write", -1, event)
        else:
            self.ledger.upsert(self.sink, event)
            self.tell("upsert", -1, event)

    def prepare(self, checkpoint_id: int) -> None:
        """Prepare the open transaction, if there is one, for the sink's part of a checkpoint."""
        self._newest_id = checkpoint_id
        self._prepare(f"{self.sink}-{checkpoint_id}", checkpoint_id)

    def prepare_last(self) -> None:
        """Prepare the open transaction, if there is one, after the last event.

        It is covered by the checkpoints of which the sink's final snapshot is its part: all that are newer than the
        last it took one of. Its name counts the transactions outside, so that after a recovery it is another.
        """
        self._prepare(f"{self.sink}-final-{self.ledger.count(self.sink) + 1}", self._newest_id + 1)

    def _prepare(self, transaction: str, committed_from: int) -> None:
        if not self.open:
            return
        self.ledger.prepare(self.sink, transaction, self.open)
        self._prepared.append((transaction, committed_from))
        self.tell("prepare", -1, (transaction, len(self.open)))
        self.open = []

    @property
    def prepared(self) -> tuple[str, ...]:
        """Return the transactions that are prepared and not known to be committed: the sink's part of a checkpoint."""
        return tuple(transaction for transaction, _ in self._prepared)

    def on_complete(self, checkpoint_id: int) -> None:
        """Commit all that a complete checkpoint covers (Flink: `notifyCheckpointComplete`)."""
        due = [transaction for transaction, committed_from in self._prepared if committed_from <= checkpoint_id]
        self._prepared = self._prepared[len(due) :]
        self._commit(due)

    def recover(self, prepared: Iterable[str], checkpoint_id: int) -> None:
        """Restore the sink: commit what the restored part had prepared, and roll back all else of this sink."""
        kept = tuple(prepared)
        self._newest_id = checkpoint_id
        self._commit(kept)
        for transaction in self.ledger.roll_back_others(self.sink, kept):
            self.tell("rollback", -1, transaction)

    def _commit(self, transactions: Iterable[str]) -> None:
        for transaction in transactions:
            self.tell("commit", -1, (transaction, self.ledger.commit(transaction)))

    def capture(self) -> Hashable:
        """Return the state for `restore`; the ledger captures itself."""
        return tuple(self.open), tuple(self._prepared), self._newest_id

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        opened, prepared, self._newest_id = value  # type: ignore[misc]
        self.open = list(opened)  # type: ignore[has-type]
        self._prepared = list(prepared)  # type: ignore[has-type]
