"""A run of several attempts: what became of each, and what of it survives.

An attempt is the job between two starts: the journal is split at every ``>restore``, and each part is a `History` of
its own. An attempt goes on from a cut of an earlier one, its *parent*: not always of the one just before, which may
have completed no checkpoint; and one that falls back goes on from an older cut than the one before did.

The *surviving history* is what the last attempt knows of: the first one of its line up to the cut from which the next
begins, that one from its restore up to the next cut, and the last to its end. All else is as if it had never happened,
save for what had become visible in the external system.

Like `model.spec.history`, this is the specification: it imports nothing of the code under test.
"""

from __future__ import annotations

from collections.abc import Iterable

from barrierlab.model.spec.history import COORDINATOR, DELIVERS, Cut, Entry, History, HistoryError, Start
from barrierlab.model.spec.messages import kind_of
from barrierlab.model.spec.topology import Topology

IN_DOUBT = "store in doubt"
"""The reason of an abort after which the manifest may be there all the same."""


class Attempt:
    """The job between two starts.

    Attributes
    ----------
    number : int
        From 1.
    history : History
        Of its entries alone.
    restored_id : int
        The checkpoint it began from; 0 is the beginning.
    parent : Attempt or None
        The attempt that took that checkpoint; None at the beginning, and if none did.
    is_last : bool
        Whether no other follows.
    complete : dict of int to int
        When each of its checkpoints was complete, by id; those that were restored later count too, but not those that
        are settled.
    """

    __slots__ = ("_applied", "complete", "history", "is_last", "number", "parent", "restored_id")

    def __init__(self, number: int, history: History, parent: Attempt | None, is_last: bool) -> None:
        self.number = number
        self.history = history
        self.parent = parent
        self.is_last = is_last
        self.restored_id = history.start.checkpoint_id if history.start is not None else 0
        self.complete = {i: done.at_ns for i, done in history.completed.items() if i not in history.settled}
        self._applied: dict[str, list[object]] = {}

    @property
    def origin(self) -> str:
        """Return the start of the attempt, in words."""
        return f"checkpoint {self.restored_id}" if self.restored_id else "the beginning"

    @property
    def start_ns(self) -> int:
        """Return when it was restored; 0 for the first."""
        return self.history.start.at_ns if self.history.start is not None else 0

    @property
    def crashed(self) -> bool:
        """Return whether it ended early: a part of it crashed, or the job was restored after it."""
        return not self.is_last or bool(self.history.crashes)

    @property
    def interrupted(self) -> bool:
        """Return whether the restore itself was ended by a crash: nothing had run yet, so nothing need have been
        restored."""
        history = self.history
        return bool(history.crashes) and not any(task.steps for task in history.tasks.values())

    @property
    def finished(self) -> bool:
        """Return whether every task had nothing more to do."""
        return all(task.finished_ns is not None for task in self.history.tasks.values())

    def line(self) -> list[tuple[Attempt, int | None]]:
        """Return the attempts that this one continues, oldest first, each with the checkpoint that ends it; then
        itself.
        """
        line: list[tuple[Attempt, int | None]] = [(self, None)]
        while (parent := line[-1][0].parent) is not None:
            line.append((parent, line[-1][0].restored_id))
        return line[::-1]

    def cut(self, task: str, checkpoint_id: int | None) -> Cut | None:
        """Return the cut of `task` for a checkpoint; None at its end, and for a task that had finished."""
        return None if checkpoint_id is None else self.history.cuts.get((task, checkpoint_id))

    def steps(self, task: str, checkpoint_id: int | None = None) -> int:
        """Return how many steps of `task` are before its cut, or before its end."""
        cut = self.cut(task, checkpoint_id)
        return len(self.history.tasks[task].steps) if cut is None else cut.step

    def made(self, source: str, checkpoint_id: int | None = None) -> list[object]:
        """Return the events that a source made before its cut, or before its end."""
        made, cut = self.history.tasks[source].made, self.cut(source, checkpoint_id)
        return made if cut is None else made[: cut.made]

    def applied(self, task: str, checkpoint_id: int | None = None) -> list[object]:
        """Return the events that `task` applied before its cut, or before its end, in that order."""
        events = self._applied.get(task)
        if events is None:
            its = self.history.tasks[task]
            if len(its.inputs) == 1:
                events = self.history.events(its.inputs[0], "applied")
            else:
                events = [step[4] for step in its.steps if step[1] in DELIVERS and kind_of(step[4]) == "Event"]
            self._applied[task] = events
        cut = self.cut(task, checkpoint_id)
        return events if cut is None else events[: sum(cut.applied.values())]

    def given_off(self, channel: str, checkpoint_id: int | None = None) -> list[object]:
        """Return the events for `channel` before the sender's cut, or before its end: restored, sent, or in its outbox.

        What was in the outbox at the cut and was never sent is known from its record alone.
        """
        cut = self.cut(self.history.topology.ends(channel)[0], checkpoint_id)
        events = self.history.events(channel, "sent")
        if cut is None:
            return events
        return events[: cut.sent[channel]] + self.history.unsent.get((channel, cut.checkpoint_id), [])

    def taken_in(self, channel: str, checkpoint_id: int | None = None) -> list[object]:
        """Return the events of `channel` that the receiver applied before its cut, or before its end."""
        cut = self.cut(self.history.topology.ends(channel)[1], checkpoint_id)
        events = self.history.events(channel, "applied")
        return events if cut is None else events[: cut.applied[channel]]

    def ended(self, channel: str, checkpoint_id: int) -> bool:
        """Return whether the receiver processed the end of `channel` before its cut."""
        receiver = self.history.topology.ends(channel)[1]
        cut = self.cut(receiver, checkpoint_id)
        return channel in (self.history.tasks[receiver].ended if cut is None else cut.ended)

    def incomplete(self, checkpoint_id: int) -> str | None:
        """Return what a checkpoint of this attempt lacks to be complete; None if it lacks nothing.

        It is when the coordinator says so. When the coordinator was gone by then, or was in doubt whether the manifest
        had been written, it may be: that takes every task's part.
        """
        history = self.history
        if checkpoint_id in history.completed:
            return None
        for task, its in history.tasks.items():
            if (task, checkpoint_id) not in history.cuts and its.finished_ns is None:
                return f"{task} had taken no snapshot of it"
            if (task, checkpoint_id) not in history.acks and its.finished_ns is None:
                return f"{task} had not acknowledged it"
        ended = history.aborted.get(checkpoint_id)
        if ended is not None and ended[1] != IN_DOUBT:
            return f"it was aborted: {ended[1]}"
        if ended is None and COORDINATOR not in (who for who, _, _ in history.crashes):
            return "it was never completed"
        return None


class Run:
    """All attempts of a run. Made by `of`.

    Attributes
    ----------
    topology : Topology
    attempts : list of Attempt
        In order; at least one.
    surviving : list of (Attempt, int or None)
        The line of the last one: `Attempt.line`.
    """

    __slots__ = ("attempts", "surviving", "topology")

    def __init__(self, attempts: list[Attempt]) -> None:
        self.attempts = attempts
        self.topology: Topology = attempts[-1].history.topology
        self.surviving = attempts[-1].line()

    @classmethod
    def of(cls, entries: Iterable[Entry], topology: Topology) -> Run:
        """Read the attempts from the journal `entries` of a run on `topology`, in one pass.

        Raises
        ------
        HistoryError
            As `History.of`; or if what is restored is no checkpoint's id.
        """
        journal = iter(entries)
        attempts: list[Attempt] = []
        taken_by: dict[int, Attempt] = {}
        start: Start | None = None
        while True:
            history, restore = History.begin(journal, topology, start)
            parent = taken_by.get(start.checkpoint_id) if start is not None else None
            attempts.append(Attempt(len(attempts) + 1, history, parent, restore is None))
            if restore is None:
                return cls(attempts)
            taken_by.update((checkpoint_id, attempts[-1]) for checkpoint_id, _ in history.triggers)
            start = _start(restore, taken_by)
            if start.checkpoint_id in taken_by:
                taken_by[start.checkpoint_id].complete.setdefault(start.checkpoint_id, start.at_ns)

    @classmethod
    def single(cls, history: History) -> Run:
        """A run of one attempt."""
        return cls([Attempt(1, history, None, True)])


def _start(restore: Entry, taken_by: dict[int, Attempt]) -> Start:
    """Return the start of the attempt behind `restore`, from the parts of its checkpoint."""
    at_ns, _, _, _, checkpoint_id = restore
    if type(checkpoint_id) is not int or checkpoint_id < 0:
        raise HistoryError(f"{checkpoint_id!r} is restored, and is no checkpoint; write its id, or 0 for the beginning")
    newest = max(taken_by, default=0)
    parent = taken_by.get(checkpoint_id)
    if parent is None:
        return Start(at_ns, checkpoint_id, newest, {}, frozenset())
    ended, finished = {}, set()
    for task, its in parent.history.tasks.items():
        cut = parent.cut(task, checkpoint_id)
        ended[task] = frozenset(its.ended) if cut is None else cut.ended
        if cut is None and its.finished_ns is not None:
            finished.add(task)
    return Start(at_ns, checkpoint_id, newest, ended, frozenset(finished))
