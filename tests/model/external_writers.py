"""Writers of sinks as an engine may bring them: sound ones, and with one mistake each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from barrierlab.impl import Event, Ledger, SinkWriter
from barrierlab.impl.checkpoint.report import silent
from barrierlab.model.checkpoint.interfaces import ExternalSystem
from docs.parts.writer import Planted, TwoPhase


class AtLeastOnce:
    """Sends what it was given in one batch a checkpoint."""

    role = "at_least_once_writer"

    def __init__(self, sink: str, external: ExternalSystem) -> None:
        self.external = external
        self.batch: list[Event] = []

    def write(self, event: Event) -> None:
        self.batch.append(event)

    def flush(self) -> None:
        for event in self.batch:
            self.external.write(event)
        self.batch = []

    def recover(self, checkpoint_id: int) -> None: ...


class Idempotent:
    """Writes each row at once."""

    role = "idempotent_writer"

    def __init__(self, sink: str, external: ExternalSystem) -> None:
        self.external = external

    def write(self, key: str, event: Event) -> None:
        self.external.upsert(key, event)

    def flush(self) -> None: ...

    def recover(self, checkpoint_id: int) -> None: ...


class RollsBackAtAborts(TwoPhase):
    """Takes an abort for the end of the transaction."""

    def abort(self, checkpoint_id: int) -> None:
        for name, committed_from in self.waiting:
            if committed_from == checkpoint_id:
                self.external.roll_back(name)
        self.waiting = [each for each in self.waiting if each[1] != checkpoint_id]


class LeavesToCommit(TwoPhase):
    """Does not commit what the restored part holds."""

    def recover(self, prepared: Sequence[str], checkpoint_id: int) -> None:
        super().recover((), checkpoint_id)


class CommitsTheNewestOnly(TwoPhase):
    """Forgets what an older checkpoint, which was aborted, had prepared."""

    def commit(self, checkpoint_id: int) -> None:
        self.waiting = [each for each in self.waiting if each[1] >= checkpoint_id]
        super().commit(checkpoint_id)


class RollsNothingBack(TwoPhase):
    """Leaves what is prepared as it is, and commits it with the rest later."""

    def recover(self, prepared: Sequence[str], checkpoint_id: int) -> None:
        self.newest = checkpoint_id
        self.waiting = [(name, checkpoint_id + 1) for name in self.external.prepared()]
        for name in prepared:
            self.external.commit(name)


class LeavesItOpen(TwoPhase):
    """Commits what the restored part holds, and leaves all else prepared for ever."""

    def recover(self, prepared: Sequence[str], checkpoint_id: int) -> None:
        self.newest = checkpoint_id
        for name in prepared:
            self.external.commit(name)


class PreparesACopy(TwoPhase):
    """Prepares what it writes a second time, and forgets that."""

    def pre_commit(self, checkpoint_id: int) -> None:
        if self.open:
            self.external.prepare(f"{self.sink}-{checkpoint_id}-copy", self.open)
        super().pre_commit(checkpoint_id)


class FlushesTheFirst(AtLeastOnce):
    """Sends one event a checkpoint, and drops the others."""

    def flush(self) -> None:
        self.batch = self.batch[:1]
        super().flush()


class FlushesBeforeTheLast(AtLeastOnce):
    """Keeps the last one for the next batch."""

    def flush(self) -> None:
        kept = self.batch[-1:]
        self.batch = self.batch[:-1]
        super().flush()
        self.batch = kept


class FlushesTwice(AtLeastOnce):
    """Sends two batches, and no third."""

    batches = 0

    def flush(self) -> None:
        self.batches += 1
        if self.batches < 3:
            super().flush()


class SendsTwice(AtLeastOnce):
    """Sends at once, and with its batch again."""

    def write(self, event: Event) -> None:
        super().write(event)
        self.external.write(event)


class WritesUnderOneKey(Idempotent):
    """Every row replaces the one before it."""

    def write(self, key: str, event: Event) -> None:
        self.external.upsert("row", event)


class WritesOnlyNewKeys(Idempotent):
    """Skips a row after a recovery, which it takes for known."""

    def __init__(self, sink: str, external: ExternalSystem) -> None:
        super().__init__(sink, external)
        self.is_new = True

    def write(self, key: str, event: Event) -> None:
        if self.is_new:
            super().write(key, event)

    def recover(self, checkpoint_id: int) -> None:
        self.is_new = not checkpoint_id


class WritesThePrevious(Idempotent):
    """Writes a row when the next one comes, and never the last."""

    def __init__(self, sink: str, external: ExternalSystem) -> None:
        super().__init__(sink, external)
        self.last: list[tuple[str, Event]] = []

    def write(self, key: str, event: Event) -> None:
        for each in self.last:
            self.external.upsert(*each)
        self.last = [(key, event)]


class OfImpl:
    """A thin adapter over the writer of `impl`."""

    role = "two_phase_writer"
    of_impl: type[SinkWriter] = SinkWriter

    def __init__(self, sink: str, external: ExternalSystem) -> None:
        self.writer = self.of_impl(sink, cast(Ledger, Bridge(external)), "exactly_once", silent)

    def write(self, event: Event) -> None:
        self.writer.write(event)

    def pre_commit(self, checkpoint_id: int) -> None:
        self.writer.prepare(checkpoint_id)

    def finish(self) -> None:
        self.writer.prepare_last()

    def prepared(self) -> tuple[str, ...]:
        return self.writer.prepared

    def commit(self, checkpoint_id: int) -> None:
        self.writer.on_complete(checkpoint_id)

    def abort(self, checkpoint_id: int) -> None: ...

    def recover(self, prepared: Sequence[str], checkpoint_id: int) -> None:
        self.writer.recover(prepared, checkpoint_id)


class Bridge:
    """The external system in the words of `impl.checkpoint.transactions.Ledger`."""

    def __init__(self, external: ExternalSystem) -> None:
        self.external = external

    def prepare(self, sink: str, transaction: str, events: Sequence[Event]) -> None:
        self.external.prepare(transaction, events)

    def commit(self, transaction: str) -> tuple[Event, ...]:
        self.external.commit(transaction)
        return ()

    def roll_back_others(self, sink: str, keep: Sequence[str]) -> tuple[str, ...]:
        others = tuple(name for name in self.external.prepared() if name not in keep)
        for name in others:
            self.external.roll_back(name)
        return others

    def count(self, sink: str) -> int:
        return self.external.count()


class KeepsWhatIsPrepared(SinkWriter):
    """Prepares at each cut all that was ever written."""

    __slots__ = ()

    def _prepare(self, transaction: str, committed_from: int) -> None:
        events = list(self.open)
        super()._prepare(transaction, committed_from)
        self.open = events


class SpeaksOfNothing(SinkWriter):
    """Its part does not say what is prepared."""

    __slots__ = ()

    @property
    def prepared(self) -> tuple[str, ...]:
        return ()


class CommitsAheadOfItself(SinkWriter):
    """Commits what the next checkpoint covers, too."""

    __slots__ = ()

    def on_complete(self, checkpoint_id: int) -> None:
        super().on_complete(checkpoint_id + 1)


class Kept(OfImpl):
    """With the first of these."""

    of_impl = KeepsWhatIsPrepared


class Silent(OfImpl):
    """With the second."""

    of_impl = SpeaksOfNothing


class Ahead(OfImpl):
    """With the third."""

    of_impl = CommitsAheadOfItself


CRASH = "aligned: a->s; events 2, checkpoints 2; crash"
ENDS = "aligned: a->s; events 1, checkpoints 2; closed input and crash"
ABORT = "aligned: a->m m->s; events 1, checkpoints 1; abort and crash"
AT_LEAST_ONCE = "aligned: a->s; events 2, checkpoints 2; crash, at least once"
IDEMPOTENT = "aligned: a->s; events 2, checkpoints 2; crash, idempotent"
SOUND: dict[type, tuple[str, ...]] = {
    TwoPhase: (CRASH, ENDS, ABORT),
    OfImpl: (CRASH, ENDS, ABORT),
    AtLeastOnce: (AT_LEAST_ONCE,),
    Idempotent: (IDEMPOTENT,),
}
PLANTED: dict[type, tuple[str, str]] = {
    RollsBackAtAborts: (ABORT, "REC"),
    Planted: (CRASH, "REC"),
    LeavesToCommit: (CRASH, "REC"),
    CommitsTheNewestOnly: (ABORT, "REC"),
    RollsNothingBack: (CRASH, "REC"),
    LeavesItOpen: (CRASH, "REC"),
    PreparesACopy: (CRASH, "REC"),
    Kept: (CRASH, "REC"),
    Silent: (CRASH, "REC"),
    Ahead: (CRASH, "REC"),
    FlushesTheFirst: (AT_LEAST_ONCE, "REC"),
    FlushesBeforeTheLast: (AT_LEAST_ONCE, "REC"),
    FlushesTwice: (AT_LEAST_ONCE, "REC"),
    SendsTwice: (AT_LEAST_ONCE, "REC"),
    WritesUnderOneKey: (IDEMPOTENT, "REC"),
    WritesOnlyNewKeys: (IDEMPOTENT, "REC"),
    WritesThePrevious: (IDEMPOTENT, "REC"),
}
"""With one mistake, and where it comes out."""
