"""The judge of a run that is not kept: what a complete checkpoint has settled is judged, and forgotten.

A `RunningJudge` reads the journal of a job that is never restored, piece by piece. Once a checkpoint is complete, and a
later one too, everything before its cuts is asked for good: the equation of CUT, the states, the order on each
channel, what sources made against what they sent, what sinks showed against what took effect. If all of that is right,
it is dropped, and what is left is judged at the end as ever, with the same invariants. If something is not, nothing is
dropped from there on, so that a verdict names what it would have named of the whole journal. The same goes once a task
has ended: what the others do from there on is kept.

Like `model.spec.history`, this imports nothing of the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, pairwise, takewhile
from typing import cast

from barrierlab.model.spec import equations
from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.exactly_once import SHOWS, left_prepared
from barrierlab.model.spec.history import (
    DELIVERS,
    ChannelHistory,
    Cut,
    Entry,
    ExternalEffect,
    History,
    HistoryError,
    TaskHistory,
    changes_of_state,
)
from barrierlab.model.spec.invariants import Applied, Fold, Limits, SameState, States, Verdict, judge_attempts
from barrierlab.model.spec.messages import MessageView, kind_of
from barrierlab.model.spec.topology import Topology


class RunningJudge:
    """Judges a run while it runs, and keeps only what can still matter.

    Parameters
    ----------
    topology, limits, fold, guarantees
        As for `judge_run`.

    Attributes
    ----------
    history : History
        What has been read, and is not settled.
    is_whole : bool
        Whether something was found that is wrong, so that nothing more is forgotten.
    """

    def __init__(self, topology: Topology, limits: Limits, fold: Fold, guarantees: Mapping[str, str]) -> None:
        self.history = History(topology)
        self.is_whole = False
        self._limits, self._fold, self._guarantees = limits, fold, guarantees
        self._folds: dict[str, Callable[[Sequence[Applied]], str | None]] = {
            task: fold(task) for task in topology.tasks
        }
        self._stand_at = dict.fromkeys(topology.tasks, 0)  # to which of the steps they have come

    def read(self, entries: Iterable[Entry]) -> None:
        """Read more entries, and drop what is settled by now.

        Raises
        ------
        HistoryError
            If the job is restored, or the entries are of no journal of the topology.
        """
        restore = self.history.read(iter(entries))
        if restore is not None:
            raise HistoryError("the job was restored: a run that is not kept is of a job that is never restored")
        complete: list[int] = []
        for checkpoint_id in reversed(self.history.completed):
            if checkpoint_id in self.history.settled:
                break
            complete.append(checkpoint_id)
        complete.sort()
        due: list[int] = []
        for checkpoint_id in complete[:-1]:
            if self.is_whole or not self._is_behind(checkpoint_id):
                return
            due.append(checkpoint_id)
            settling = _Settling(self, due)
            if not settling.is_apart():
                continue
            if settling.is_right():
                settling.drop()
                due = []
            else:
                self.is_whole = True

    def verdict(self, cut_off: bool) -> Verdict:
        """Judge the rest at the end of the run; return the verdict on the whole."""
        self.history.close()
        run = Run.single(self.history)
        states = States(self._fold)
        for task, digest_after in self._folds.items():
            states.stand(run.attempts[0], task, digest_after, self._stand_at[task])
        return judge_attempts(run, self._limits, None, cut_off, self._guarantees, states)

    def _is_behind(self, checkpoint_id: int) -> bool:
        """Return whether every task has continued behind its cut, and sinks have committed what is before it."""
        history = self.history
        for name, task in history.tasks.items():
            cut = history.cuts.get((name, checkpoint_id))
            if cut is None:
                return False
            if name in history.topology.sources:
                if len(task.made) <= cut.made:
                    return False
            elif not any(step[1] in DELIVERS or step[1] == "end" for step in task.steps[cut.step + 1 :]):
                return False
            shown = sum(len(_shown(effect)) for effect in task.outside)
            if name in self._guarantees and shown < sum(cut.applied.values()):
                return False
        return True


class _Settling:
    """Checkpoints that are being settled; the journal is divided at the last of them."""

    def __init__(self, judge: RunningJudge, checkpoint_ids: Sequence[int]) -> None:
        self._judge, self._ids, self._id = judge, checkpoint_ids, checkpoint_ids[-1]
        self._history = judge.history
        self._cuts = {task: self._history.cuts[task, self._id] for task in self._history.tasks}
        self._effects: dict[str, int] = {}  # by sink, how many of its effects are before its cut
        self._drops: dict[str, tuple[int, int, int]] = {}  # by channel: events; messages sent and taken; applied
        for checkpoint_id in checkpoint_ids:
            for task in self._history.tasks:
                self._history.close_cut(task, self._history.cuts[task, checkpoint_id])
        self._history.place_what_senders_recorded()

    def is_apart(self) -> bool:
        """Return whether each channel can be divided at the cuts.

        It cannot where a barrier has overtaken what is before them; the next checkpoint settles that, too.
        """
        for name, kept in self._history.channels.items():
            sender, receiver = self._history.topology.ends(name)
            events = min(self._cuts[sender].sent[name], self._cuts[receiver].applied[name])
            sent, taken, applied = (
                _end_of(events, each) for each in (kept.sent_controls, kept.taken_controls, kept.applied_controls)
            )
            if sent != taken:
                return False
            self._drops[name] = events, sent, applied
        return True

    def is_right(self) -> bool:
        """Judge what is before the cuts."""
        history = self._history
        return (
            all(self._balances(name, each) for name in history.channels for each in self._ids)
            and all(self._in_order(name, kept) for name, kept in history.channels.items())
            and all(map(self._source, history.topology.sources))
            and all(map(self._separates, history.tasks.values()))
            and all(map(self._sink, self._judge._guarantees))
            and all(self._state(task, history.cuts[task, each]) for task in history.tasks for each in self._ids)
        )

    # What is asked.

    def _balances(self, name: str, checkpoint_id: int) -> bool:
        """Return whether CUT holds on a channel."""
        history, (sender, receiver) = self._history, self._history.topology.ends(name)
        sent = history.events(name, "sent")[: history.cuts[sender, checkpoint_id].sent[name]]
        applied = history.events(name, "applied")[: history.cuts[receiver, checkpoint_id].applied[name]]
        right = [*applied, *history.recorded.get((name, checkpoint_id), [])]
        return equations.balanced(sent, right, self._judge._limits.permits_orphans)

    def _in_order(self, name: str, kept: ChannelHistory) -> bool:
        """Return whether FIFO and NOLOSS hold on a channel before the cuts."""
        _, messages, applied = self._drops[name]
        sent, taken = kept.sent[:messages], kept.taken[:messages]
        if self._history.overtaking:
            sent, taken = ([m for m in part if not self._may_overtake(kept, m)] for part in (sent, taken))
        if sent != taken or (kept.end is not None and kept.end <= messages):
            return False
        in_effect = kept.applied[:applied]
        if in_effect != taken:
            taken, in_effect = (
                [m for m in part if self._keeps_its_place(kept, m)] for part in (kept.taken[:messages], in_effect)
            )
        if taken != in_effect:
            return False
        # What is no event and took effect behind the last of those, perhaps before the cut, had its turn, too.
        behind = takewhile(lambda m: kind_of(m) != "Event", islice(kept.applied, applied, None))
        turn = (m for m in islice(kept.sent, messages, None) if self._keeps_its_place(kept, m))
        return all(next(turn, None) == message for message in behind if self._keeps_its_place(kept, message))

    def _keeps_its_place(self, kept: ChannelHistory, message: object) -> bool:
        """Return whether a message is processed in order."""
        if kind_of(message) == "Event":
            return True
        if self._may_overtake(kept, message) or message in kept.ignored:
            return False
        return not equations.has_no_effect(message, kept.receiver.aborted)

    def _may_overtake(self, kept: ChannelHistory, message: object) -> bool:
        if kind_of(message) != "CheckpointBarrier" or not self._history.overtaking:
            return False
        return equations.may_overtake(message, kept.receiver.unaligned, kept.receiver.aborted)

    def _separates(self, task: TaskHistory) -> bool:
        """Return whether FWD holds up to this checkpoint: cause and effect are on one side of each complete one."""
        permits_orphans = self._judge._limits.permits_orphans
        return not any(
            equations.separates(between, each.side, each.cause, between in task.unaligned, permits_orphans)
            for each in task.suspects
            for between in range(min(each.side, each.cause) + 1, max(each.side, each.cause) + 1)
            if between in self._history.completed
        )

    def _source(self, source: str) -> bool:
        """Return whether FIFO and NOLOSS hold for what a source made before its cut."""
        history, cut = self._history, self._cuts[source]
        made, outputs_of = history.tasks[source].made[: cut.made], history.topology.outputs(source)
        sequences = [cast(MessageView, event).sequence for event in made]
        if any(one >= other for one, other in pairwise(sequences)):
            return False
        for _, exchange, outputs in history.topology.output_groups(source):
            sent = [
                history.events(name, "sent")[history.sent_before(name) : cut.sent[name]]
                for name in (outputs_of[index] for index in outputs)
            ]
            merged = sorted((event for each in sent for event in each), key=lambda e: cast(MessageView, e).sequence)
            if any(each != made for each in sent) if exchange == "broadcast" else merged != made:
                return False
        return True

    def _sink(self, sink: str) -> bool:
        """Return whether REC holds for what a sink applied before its cut: visible once, in order, not too early."""
        task, cut = self._history.tasks[sink], self._cuts[sink]
        applied = [e[4] for e in task.steps[: cut.step] if e[1] in DELIVERS and kind_of(e[4]) == "Event"]
        verb, shown, number = SHOWS[self._judge._guarantees[sink]], 0, 0
        while shown < len(applied):
            if number == len(task.outside):
                return False
            effect = task.outside[number]
            number += 1
            if effect.verb in SHOWS.values() and effect.verb != verb:
                return False
            events = _shown(effect)
            covered = self._history.cuts.get((sink, effect.newest_complete))
            if effect.verb == "commit" and (covered is None or shown + len(events) > sum(covered.applied.values())):
                return False
            if events != applied[shown : shown + len(events)]:
                return False
            shown += len(events)
        announced = all(checkpoint_id <= newest for checkpoint_id, _, newest in task.notified)
        self._effects[sink] = number
        return announced and shown == len(applied)

    def _state(self, task: str, cut: Cut) -> bool:
        """Return whether CUT holds for the state at a cut."""
        judge, stretch = self._judge, []
        if type(judge._folds[task]) is not SameState:
            steps = self._history.tasks[task].steps[judge._stand_at[task] : cut.step]
            stretch = changes_of_state(steps)
        digest = judge._folds[task](stretch)
        judge._stand_at[task] = cut.step
        cut.is_right = digest is None or digest == cut.digest
        return cut.is_right

    # What goes.

    def drop(self) -> None:
        """Drop what is before the cuts."""
        history = self._history
        history.settled.update(self._ids)
        later = {task: self._later(its) for task, its in history.tasks.items()}
        for name, kept in history.channels.items():
            (events, messages, applied), (sender, receiver) = self._drops[name], history.topology.ends(name)
            for each in self._ids:
                sent_before = history.cuts[sender, each].sent[name]
                kept.cuts_settled += sent_before + kept.forgotten > 0
                kept.cuts_in_flight += sent_before > history.cuts[receiver, each].applied[name]
                history.recorded.pop((name, each), None)
                history.unsent.pop((name, each), None)
            if sender in history.topology.sources:
                kept.ahead_of_made = self._cuts[sender].sent[name] - events
            del kept.sent[:messages], kept.taken[:messages], kept.applied[:applied]
            for places, count in (
                (kept.sent_controls, messages),
                (kept.taken_controls, messages),
                (kept.applied_controls, applied),
            ):
                places[:] = [place - count for place in places if place >= count]
            if kept.end is not None:
                kept.end -= messages
            kept.forgotten += events
            kept.barriers = {i: barrier for i, barrier in kept.barriers.items() if i > self._id}
            for cut in later[sender]:
                cut.sent[name] -= events
            for cut in later[receiver]:
                cut.applied[name] -= events
        for task, cut in self._cuts.items():
            its, steps, made = history.tasks[task], cut.step, cut.made
            for its_cut in later[task]:
                its_cut.step -= steps
                its_cut.made -= made
            self._judge._stand_at[task] = 0
            del its.steps[:steps], its.made[:made]
            effects = self._effects.get(task, 0)
            its.outside[:effects] = left_prepared(its.outside[:effects]).values()
            its.notified = [each for each in its.notified if each[0] > self._id]
            its.suspects = [each for each in its.suspects if max(each.side, each.cause) > self._id]
        history.changed()

    def _later(self, task: TaskHistory) -> list[Cut]:
        """The cut of this checkpoint and those behind it; of those before it nothing more is asked."""
        found = []
        for cut in reversed(task.cuts):
            if cut.checkpoint_id >= self._id:
                found.append(cut)
            elif cut.is_closed:
                break
            else:
                cut.is_closed = True
        return found


def _end_of(events: int, controls: list[int]) -> int:
    """Return the number of messages up to the last of so many events; `controls` are the places of others."""
    end = events
    for place in controls:
        if place >= end:
            break
        end += 1
    return end


def _shown(effect: ExternalEffect) -> list[object]:
    """Return the events that become visible by an effect."""
    if effect.verb == "commit":
        return list(cast(tuple[str, tuple[object, ...]], effect.subject)[1])
    return [effect.subject] if effect.verb in SHOWS.values() else []
