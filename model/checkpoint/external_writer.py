"""An external sink writer in the place of `impl.checkpoint.transactions.SinkWriter` in whole dataflows.

What it makes visible is looked at as it does so; that events are visible when they have to be, by the monitor of the
task if it writes in transactions, else here: it may keep them back until `flush`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any, cast

from barrierlab.impl.checkpoint.report import Tell
from barrierlab.impl.checkpoint.task import SinkTask
from barrierlab.impl.checkpoint.transactions import Ledger
from barrierlab.impl.errors import TransactionError
from barrierlab.impl.messages import Event
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.hosting import ExternalError, Hosted, brief, examine_class, has
from barrierlab.model.checkpoint.interfaces import AtLeastOnceWriter, ExternalSystem, IdempotentWriter, TwoPhaseWriter

GUARANTEES = {
    "two_phase_writer": "exactly_once",
    "at_least_once_writer": "at_least_once",
    "idempotent_writer": "idempotent",
}
"""By role, the guarantee of the sinks that it is for."""
_SHAPES = {"exactly_once": TwoPhaseWriter, "at_least_once": AtLeastOnceWriter, "idempotent": IdempotentWriter}
_OPTIONAL = {"aborts": ("abort",), "recovery": ("recover",)}


class NotVisibleError(Exception):
    """A writer shows, or does not show, something else than its sink has taken."""

    invariant = "REC"


def examine(kind: type, guarantee: str) -> None:
    """Look at a class before anything is explored: `model.checkpoint.hosting.examine_class`."""
    make = partial(ExternalWriter, kind, "s", Ledger(), guarantee, lambda *_: None)
    examine_class(kind, _SHAPES[guarantee], _OPTIONAL, "sink, external", make)


class ExternalWriter:
    """Adapts an external writer to the interface of `impl`.

    Parameters
    ----------
    kind : type
    sink : str
    ledger : Ledger
        The external system.
    guarantee : str
    tell : callable

    Attributes
    ----------
    due : tuple of Event
        What the writer was handed and has not made visible, where that is at once or at `flush`.
    """

    __slots__ = ("_hosted", "_name", "due", "guarantee", "ledger", "sink", "tell")

    def __init__(self, kind: type, sink: str, ledger: Ledger, guarantee: str, tell: Tell) -> None:
        self._name, self.sink, self.ledger, self.guarantee, self.tell = kind.__name__, sink, ledger, guarantee, tell
        self.due: tuple[Event, ...] = ()
        external: ExternalSystem = _External(self)
        self._hosted = Hosted(lambda: kind(sink, external), (external,))

    @property
    def _is_transactional(self) -> bool:
        return self.guarantee == "exactly_once"

    def write(self, event: Event) -> None:
        """Hand over an event; the monitor takes it for visible if it may come at the next flush."""
        machine = self._hosted.machine
        if self._is_transactional:
            machine.write(event)
            return
        self.due = (*self.due, event)
        self.tell("write" if self.guarantee == "at_least_once" else "upsert", -1, event)
        if self.guarantee == "at_least_once":
            machine.write(event)
        else:
            machine.write(str(event), event)

    def prepare(self, checkpoint_id: int) -> None:
        """`TwoPhaseWriter.pre_commit`, or a flush."""
        if self._is_transactional:
            self._hosted.machine.pre_commit(checkpoint_id)
        else:
            self._flush(f"the cut of checkpoint {checkpoint_id}")

    def prepare_last(self) -> None:
        """`TwoPhaseWriter.finish`, or a flush."""
        if self._is_transactional:
            self._hosted.machine.finish()
        else:
            self._flush("the end")

    def _flush(self, until: str) -> None:
        self._hosted.machine.flush()
        if self.due:
            raise NotVisibleError(f"{self.due[0]} is not visible at {self.sink}, and was written before {until}")

    @property
    def prepared(self) -> tuple[str, ...]:
        """`TwoPhaseWriter.prepared`."""
        if not self._is_transactional:
            return ()
        answer: Any = self._hosted.machine.prepared()
        if isinstance(answer, str | bytes) or not isinstance(answer, Iterable):
            raise ExternalError(f"{self._name}.prepared answered {brief(answer)}; allowed: names of transactions")
        names = tuple(answer)
        for each in names:
            if type(each) is not str:
                raise ExternalError(f"{self._name}.prepared answered {brief(each)}; allowed: names of transactions")
        return names

    def on_complete(self, checkpoint_id: int) -> None:
        """`TwoPhaseWriter.commit`."""
        if self._is_transactional:
            self._hosted.machine.commit(checkpoint_id)

    def abort(self, checkpoint_id: int) -> None:
        """`TwoPhaseWriter.abort`."""
        if self._is_transactional and has(type(self._hosted.machine), "abort"):
            self._hosted.machine.abort(checkpoint_id)

    def recover(self, prepared: Iterable[str], checkpoint_id: int) -> None:
        """`TwoPhaseWriter.recover`, or `AtLeastOnceWriter.recover`."""
        if self._is_transactional:
            self._hosted.machine.recover(tuple(prepared), checkpoint_id)
        else:
            self._hosted.machine.recover(checkpoint_id)

    def shown(self, event: Event) -> None:
        """Note that an event has become visible.

        Raises
        ------
        NotVisibleError
            If it was not handed over, or was visible already.
        """
        if not any(each is event or (each == event and each.value == event.value) for each in self.due):
            raise NotVisibleError(f"{event} was shown by {self.sink}, and is not among what is to be shown")
        self.due = tuple(each for each in self.due if each != event)

    def capture(self) -> Hashable:
        """Return all of it; the external system captures itself."""
        return self._hosted.capture(), self.due

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        inner, self.due = value
        self._hosted.restore(inner)


class _External:
    """The external system, as the writer of one sink sees it: `ExternalSystem`."""

    def __init__(self, writer: ExternalWriter) -> None:
        self._writer = writer

    def prepare(self, transaction: str, events: Sequence[Event]) -> None:
        writer = self._writer
        if type(transaction) is not str:
            raise ExternalError(f"prepare of {brief(transaction)}; allowed: a name of type str")
        writer.ledger.prepare(writer.sink, transaction, events)
        writer.tell("prepare", -1, (transaction, len(events)))

    def commit(self, transaction: str) -> None:
        self._writer.tell("commit", -1, (transaction, self._writer.ledger.commit(transaction)))

    def roll_back(self, transaction: str) -> None:
        prepared, writer = self.prepared(), self._writer
        if transaction not in prepared:
            raise TransactionError("roll back", str(transaction), "is not prepared", ", ".join(prepared) or "none")
        writer.ledger.roll_back_others(writer.sink, [each for each in prepared if each != transaction])
        writer.tell("rollback", -1, transaction)

    def prepared(self) -> tuple[str, ...]:
        return self._writer.ledger.prepared(self._writer.sink)

    def count(self) -> int:
        return self._writer.ledger.count(self._writer.sink)

    def write(self, event: Event) -> None:
        self._writer.shown(event)

    def upsert(self, key: str, event: Event) -> None:
        if key != str(event):
            raise NotVisibleError(f"{event} was shown under the key {key!r}")
        self._writer.shown(event)


class ExternalSinkTask(SinkTask):
    """A sink that also tells its writer of aborts."""

    __slots__ = ()

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> bool:
        """Abort as every task does, and pass the abort to the writer."""
        found, writer = super().abort(checkpoint_id, reason, now_ns), cast(object, self.writer)
        if isinstance(writer, ExternalWriter):
            writer.abort(checkpoint_id)
        return found
