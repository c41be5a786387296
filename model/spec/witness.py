"""The run that passes through a checkpoint: theorem 1 of Chandy and Lamport (1985) as a program.

A checkpoint is a state in which the job has perhaps never been. The theorem says that the job could have been in it:
the steps of the run can be put into another order, in which each task does what it did in its own order, so that all
steps before the cut come first. Their state is the recorded one. Two neighbouring steps may be exchanged unless the
one sent what the other took; an orphan, taken before the cut and sent behind it, is the pair that cannot be.

A step is here what an event, a watermark or an end of input does: it is made, sent, or takes effect. All is within one
attempt. Like `model.spec.history`, this imports nothing of the code under test.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barrierlab.model.spec.attempts import Attempt, Run
from barrierlab.model.spec.history import CHANGES_STATE, Entry
from barrierlab.model.spec.invariants import RESTORED, Applied, Fold
from barrierlab.model.spec.messages import kind_of

_DATA = ("Event", "Watermark", "EndOfInput")
_COUNTED = (">emit", "deliver", "end", "block", "snapshot", "send")  # what `TaskHistory.steps` keeps
_STEPS = (">emit", "deliver", "end", "send")
_CAUSES = (">emit", ">watermark", "deliver", "end")


class WitnessError(ValueError):
    """No such cut exists; the message says in one line which cuts do."""


@dataclass(frozen=True, slots=True, repr=False)
class CutWitness:
    """The outcome of putting the steps before the cut of a checkpoint first.

    Attributes
    ----------
    checkpoint_id : int
    attempt : int
        Its number, from 1.
    steps : tuple of Entry
        The data steps of the attempt, those before the cut first, as far as they could be put so.
    before : int
        How many of `steps` are before the cut: after so many the job is in the recorded state.
    exchanges : int
        How many exchanges of neighbours that takes: the pairs of a step behind the cut and a later one before it.
    channels : dict of str to tuple of message
        The events in each channel in that state.
    states : dict of str to (str, str or None)
        By task, the digest that was recorded, and that of the state after the steps before the cut; the latter is None
        where the operators of the run are not known.
    obstacle : str
        Why the cut is not consistent, in a line; empty if it is.
    """

    checkpoint_id: int
    attempt: int
    steps: tuple[Entry, ...]
    before: int
    exchanges: int
    channels: dict[str, tuple[object, ...]]
    states: dict[str, tuple[str, str | None]]
    obstacle: str = ""

    def __repr__(self) -> str:
        how = f"{self.exchanges} exchanges put {self.before} of {len(self.steps)} steps first"
        said = f"not consistent: {self.obstacle}" if self.obstacle else f"consistent; {how}"
        return f"<CutWitness: checkpoint {self.checkpoint_id}: {said}>"

    def _repr_html_(self) -> str:
        from barrierlab.model.render.html import block, facts, paragraph  # only for a notebook

        its = {"attempt": self.attempt, "steps": len(self.steps), "before the cut": self.before}
        its |= {"exchanges": self.exchanges, "events in channels": sum(map(len, self.channels.values()))}
        verdict = "broken, not consistent" if self.obstacle else "holds, consistent"
        return block(f"checkpoint {self.checkpoint_id}", verdict, paragraph(self.obstacle), facts(its))


def witness(entries: Sequence[Entry], run: Run, checkpoint_id: int, fold: Fold | None = None) -> CutWitness:
    """Return the run that passes through a complete checkpoint, or the pair of steps that cannot be exchanged for it.

    Parameters
    ----------
    entries : sequence of Entry
        The journal, whole.
    run : Run
        Of these entries.
    checkpoint_id : int
    fold : Fold, optional
        Computes the states of the tasks again.

    Raises
    ------
    WitnessError
        If no attempt of the run has completed that checkpoint.
    """
    attempt = next((each for each in run.attempts if checkpoint_id in each.complete), None)
    if attempt is None:
        complete = sorted({each for one in run.attempts for each in one.complete})
        raise WitnessError(
            f"checkpoint {checkpoint_id} is not complete; allowed: {', '.join(map(str, complete)) or 'none is'}"
        )
    sides = list(_sides(_entries_of(entries, attempt), attempt, checkpoint_id))
    first = [entry for entry, is_before in sides if is_before]
    steps = (*first, *(entry for entry, is_before in sides if not is_before))
    behind = exchanges = 0
    for _, is_before in sides:
        exchanges += behind if is_before else 0
        behind += not is_before
    channels, obstacle = _replay(steps, len(first), attempt, checkpoint_id)
    states = {
        task: (cut.digest, _state(first, attempt, task, fold) if fold is not None else None)
        for task, cut in ((task, attempt.cut(task, checkpoint_id)) for task in run.topology.tasks)
        if cut is not None
    }
    for task, (recorded, found) in states.items():
        if not obstacle and found is not None and found != recorded:
            obstacle = f"the state of {task} is {found} there, and {recorded} was recorded"
    return CutWitness(checkpoint_id, attempt.number, steps, len(first), exchanges, channels, states, obstacle)


def _entries_of(entries: Sequence[Entry], attempt: Attempt) -> Sequence[Entry]:
    starts = [0, *(place for place, entry in enumerate(entries) if entry[1] == ">restore"), len(entries)]
    return entries[starts[attempt.number - 1] : starts[attempt.number]]


def _sides(entries: Iterable[Entry], attempt: Attempt, checkpoint_id: int) -> Iterable[tuple[Entry, bool]]:
    """Yield each data step, with whether it is before the cut of its task.

    A task that had finished has none: all its steps are before. What was caused before the cut is sent before it,
    though it may have waited in the outbox; a task takes and makes nothing new as long as something waits there.
    """
    cuts = {task: attempt.cut(task, checkpoint_id) for task in attempt.history.topology.tasks}
    done = dict.fromkeys(cuts, 0)
    is_new = dict.fromkeys(cuts, False)
    for entry in entries:
        _, verb, task, _, subject = entry
        if task not in cuts:
            continue  # the coordinator
        cut = cuts[task]
        is_behind = cut is not None and done[task] >= cut.step
        done[task] += verb in _COUNTED
        is_new[task] |= is_behind and verb in _CAUSES
        if verb in _STEPS and kind_of(subject) in _DATA:
            yield entry, not (is_new[task] if verb == "send" else is_behind)


def _replay(
    steps: Sequence[Entry], before: int, attempt: Attempt, checkpoint_id: int
) -> tuple[dict[str, tuple[object, ...]], str]:
    """Return the content of the channels after the steps before the cut, and what is wrong in it or in the order."""
    topology = attempt.history.topology
    channels = {name: deque(attempt.history.channels[name].restored_in_flight) for name in topology.channels}
    obstacle = ""
    for _, verb, task, channel, subject in steps[:before]:
        if channel is None:
            continue
        queue = channels[channel]
        if verb == "send":
            queue.append(subject)
        elif queue and queue[0] == subject:
            queue.popleft()
        elif not obstacle:
            sender = topology.ends(channel)[0]
            obstacle = (
                f"{task} took {subject} from {channel} before its cut, and {sender} sent it behind its own: "
                "an orphan; these two steps cannot be exchanged"
            )
    buffered = {name: tuple(each for each in queue if kind_of(each) == "Event") for name, queue in channels.items()}
    for name, messages in buffered.items():
        recorded = attempt.history.recorded.get((name, checkpoint_id), [])
        if not obstacle and list(messages) != recorded:
            obstacle = f"{name} holds {_listed(messages)} there, and {_listed(recorded)} was recorded"
    return buffered, obstacle


def _listed(messages: Sequence[object]) -> str:
    return (
        ", ".join(map(str, messages[:5])) + (f" and {len(messages) - 5} more" if len(messages) > 5 else "") or "nothing"
    )


def _state(first: Sequence[Entry], attempt: Attempt, task: str, fold: Fold) -> str | None:
    """Return the digest of the state of `task` after the steps before the cut, from the beginning of the run on."""
    stretch: list[Applied] = []
    for ancestor, cut_id in attempt.line()[:-1]:
        earlier = ancestor.history.tasks[task].steps[: ancestor.steps(task, cut_id)]
        stretch += [*_effects(earlier), RESTORED]
    return fold(task)([*stretch, *_effects(entry for entry in first if entry[2] == task)])


def _effects(steps: Iterable[Entry]) -> list[Applied]:
    return [(entry[3], entry[4]) for entry in steps if entry[1] in CHANGES_STATE]
