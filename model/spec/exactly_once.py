"""The duty of a run that was restored: every source event has its effect exactly once, whatever crashed.

Said of the surviving history (`model.spec.attempts`) and of what became visible in the external system: each source
made 1, 2, ... n; on each channel what took effect is what was sent, in that order; each state that was restored is that
of the cut; and a sink has shown what its guarantee says (FLIP-98, FLIP-147 for the last of a job):

``exactly_once``
    Visible is what took effect at the sink, in that order, as far as the newest complete checkpoint at most, and at
    least as far as the one that was announced to the sink last, or restored; all of it once the job has ended. Then no
    transaction is left prepared, either: readers of some systems wait for its end.
``at_least_once``
    What took effect is written at once: so what is done again after a restore is written again.
``idempotent``
    The same, under the event's name; once the job has ended, nothing is visible that did not come again.

Like `model.spec.history`, this is the specification: it imports nothing of the code under test. Every reason is one
line, with the time in nanoseconds of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import cast

from barrierlab.model.spec import equations
from barrierlab.model.spec.attempts import Attempt, Run
from barrierlab.model.spec.history import ExternalEffect
from barrierlab.model.spec.messages import MessageView, kind_of

TimedReason = tuple[str, int]

SHOWS = {"exactly_once": "commit", "at_least_once": "write", "idempotent": "upsert"}
"""The guarantees, and by which effect a sink that gives one shows an event."""


def reasons(
    run: Run,
    guarantees: Mapping[str, str],
    digest_at_start: Callable[[Attempt, str], str | None],
    cut_off: bool,
    repeats: bool = False,
) -> Iterator[TimedReason]:
    """Yield the reasons why REC does not hold.

    Parameters
    ----------
    run : Run
    guarantees : mapping of str to str
        By sink task, one of `SHOWS`. Sinks that are not named are not asked about the external system.
    digest_at_start : callable
        Of the state that a task must have been restored to; None: not to be compared.
    cut_off : bool
        The run was stopped, and did not end by itself.
    repeats : bool
        Its checkpoints promise at least once: what was an orphan in one that was restored takes effect again.
    """
    astray: set[str] = set()  # channels of which it has been said what was restored wrongly
    for attempt in run.attempts:
        yield from _goes_on_after_a_crash(attempt)
        yield from _out_of_place(attempt)
        if attempt.number > 1:
            yield from _not_complete(attempt)
            yield from _states(attempt, digest_at_start)
            for channel in () if attempt.interrupted else run.topology.channels:
                for reason in _channel(attempt, channel):
                    astray.add(channel)
                    yield reason
            yield from _watermarks_go_back(attempt)
    if len(run.attempts) > 1:
        yield from _sources(run)
        for channel in run.topology.channels:
            if channel not in astray:
                yield from _surviving(run, channel, repeats)
    for sink, guarantee in guarantees.items():
        yield from _shown_otherwise(run, sink, guarantee)
        if guarantee == "exactly_once":
            yield from _exactly_once(run, sink, cut_off)
        else:
            yield from _shown_at_once(run, sink, guarantee)


# One attempt.


def _goes_on_after_a_crash(attempt: Attempt) -> Iterator[TimedReason]:
    for who, at_ns, noted in attempt.history.crashes:
        if attempt.history.noted(who) > noted:
            yield f"{who} went on after it had crashed", at_ns


def _out_of_place(attempt: Attempt) -> Iterator[TimedReason]:
    """Check that everything is restored before anything runs (protocol rule 22, defect U-14)."""
    for at_ns, verb, node, channel, subject in attempt.history.out_of_place:
        what = f"{node} was restored" if verb == "restored" else f"{subject} was restored in {channel}"
        if attempt.number == 1:
            yield f"{what} though nothing was to be restored", at_ns
        else:
            yield f"{what} after the job had begun to run", at_ns


def _not_complete(attempt: Attempt) -> Iterator[TimedReason]:
    checkpoint_id, parent = attempt.restored_id, attempt.parent
    if checkpoint_id:
        why = "it was never triggered" if parent is None else parent.incomplete(checkpoint_id)
        if why is not None:
            yield f"checkpoint {checkpoint_id} was restored, but {why}", attempt.start_ns


def _states(attempt: Attempt, digest_at_start: Callable[[Attempt, str], str | None]) -> Iterator[TimedReason]:
    """Check that every task is restored once, to the state of its cut, and that a finished one does nothing more."""
    at_ns, start = attempt.start_ns, attempt.history.start
    assert start is not None
    for name, task in attempt.history.tasks.items():
        if len(task.restored) != 1 and not (attempt.interrupted and not task.restored):
            yield f"{name} was {_times(len(task.restored))} restored when the job went back to {attempt.origin}", at_ns
        due = digest_at_start(attempt, name)
        for checkpoint_id, digest in task.restored[:1]:
            if checkpoint_id != start.checkpoint_id:
                yield f"{name} was restored from checkpoint {checkpoint_id}, the job from {attempt.origin}", at_ns
            elif due is not None and digest != due:
                yield f"the state of {name} restored from {attempt.origin} is {digest}; it was {due}", at_ns
        if name in start.finished and task.steps:
            yield f"{name} runs although it had finished in {attempt.origin}", task.steps[0][0]


def _channel(attempt: Attempt, channel: str) -> Iterator[TimedReason]:
    """Check that the restored events are those in flight at the cut: sent before the sender's, not applied before the
    receiver's.

    Behind it the end, if the sender had finished and the receiver had not taken that. No barrier: the cut has been made
    (protocol rule 22, defect U-13).
    """
    at_ns, where = attempt.start_ns, f"restored in {channel}"
    restored_in_flight = attempt.history.channels[channel].restored_in_flight
    came = attempt.history.events(channel, "restored_in_flight")
    due = _in_flight(attempt, channel)
    if came != due:
        left, right = Counter(due), Counter(came)
        for event in left - right:
            yield f"{event} was not {where}, and was in flight in {attempt.origin}", at_ns
        for event in right - left:
            yield f"{event} was {where} {_times(right[event])}, and was in flight {_times(left[event])}", at_ns
        if left == right:
            event = next(event for event, turn in zip(came, due, strict=True) if event != turn)
            yield f"{event} was {where} in another place than it was sent", at_ns
    for message in restored_in_flight:
        if kind_of(message) in ("CheckpointBarrier", "CancelBarrier"):
            yield f"{message} was {where}: the cut has been made, and no barrier is part of it", at_ns
    ends = sum(kind_of(message) == "EndOfInput" for message in restored_in_flight)
    end_due = _end_in_flight(attempt, channel)
    if ends != end_due:
        yield f"the end was {where} {_times(ends)}, and was in flight {_times(end_due)}", at_ns
    elif ends and kind_of(restored_in_flight[-1]) != "EndOfInput":
        yield f"{restored_in_flight[-1]} was {where} behind the end", at_ns


def _in_flight(attempt: Attempt, channel: str) -> list[object]:
    parent, checkpoint_id = attempt.parent, attempt.restored_id
    if parent is None:
        return []
    return parent.given_off(channel, checkpoint_id)[len(parent.taken_in(channel, checkpoint_id)) :]


def _end_in_flight(attempt: Attempt, channel: str) -> bool:
    parent, start = attempt.parent, attempt.history.start
    if parent is None or start is None:
        return False
    sender = parent.history.topology.ends(channel)[0]
    return sender in start.finished and not parent.ended(channel, attempt.restored_id)


def _watermarks_go_back(attempt: Attempt) -> Iterator[TimedReason]:
    """Check that no operator's watermark is lower than before its cut. (A source may: it makes its events again.)"""
    for channel, kept in attempt.history.channels.items():
        sender = attempt.history.topology.ends(channel)[0]
        if not attempt.history.topology.inputs(sender):
            continue
        first = next((m for m in kept.sent if kind_of(m) == "Watermark"), None)
        before = _last_watermark(attempt, sender, channel) if first is not None else None
        if before is not None and cast(MessageView, first).timestamp_ms < cast(MessageView, before).timestamp_ms:
            reason = f"{first} was sent on {channel} after a restore; before its cut {sender} sent {before}"
            yield reason, attempt.start_ns


def _last_watermark(attempt: Attempt, sender: str, channel: str) -> object | None:
    for earlier, checkpoint_id in reversed(attempt.line()[:-1]):
        steps = earlier.history.tasks[sender].steps[: earlier.steps(sender, checkpoint_id)]
        for step in reversed(steps):
            if step[1] == "send" and step[3] == channel and kind_of(step[4]) == "Watermark":
                return step[4]
    return None


# The surviving history.


def _sources(run: Run) -> Iterator[TimedReason]:
    """Check that a source continues behind its cut in every attempt: of what survives it made 1, 2, ... n, each once.

    What it had made before a cut that was restored was sent, or recorded.
    """
    for source in run.topology.sources:
        before: dict[int, int] = {}  # by attempt: how many it had made when that began
        for attempt in run.attempts:
            at_ns, parent, count = attempt.start_ns, attempt.parent, 0
            if parent is not None:
                kept = parent.made(source, attempt.restored_id)
                count = before[parent.number] + len(kept)
                yield from _forgotten(attempt, source, kept)
            before[attempt.number] = count
            made = cast(list[MessageView], attempt.made(source))
            if [event.sequence for event in made] != list(range(count + 1, count + len(made) + 1)):
                turn, event = next(pair for pair in enumerate(made, count + 1) if pair[1].sequence != pair[0])
                yield f"{source} made {event} after a start from {attempt.origin}, where {source}{turn} was due", at_ns


def _forgotten(attempt: Attempt, source: str, made: list[object]) -> Iterator[TimedReason]:
    """Yield the events that a source made before its cut in the parent of `attempt` and never put into its channels."""
    parent, outputs_of = cast(Attempt, attempt.parent), attempt.history.topology.outputs(source)
    for _, exchange, outputs in attempt.history.topology.output_groups(source):
        had = []
        for channel in [outputs_of[index] for index in outputs]:
            restored_in_flight = len(parent.history.events(channel, "restored_in_flight"))
            had.append(parent.given_off(channel, attempt.restored_id)[restored_in_flight:])
        for sent in had if exchange == "broadcast" else [list(chain.from_iterable(had))]:
            for event in Counter(made) - Counter(sent) if len(sent) != len(made) else ():
                reason = f"{source} made {event} before its cut in {attempt.origin}, and neither sent nor recorded it"
                yield reason, attempt.start_ns


def _surviving(run: Run, channel: str, repeats: bool) -> Iterator[TimedReason]:
    """Yield where the applied events are not the emitted ones, in order; if they `repeats`, each at least once."""
    given_off: list[object] = []
    applied: list[object] = []
    for attempt, checkpoint_id in run.surviving:
        given_off += attempt.given_off(channel, checkpoint_id)[
            len(attempt.history.events(channel, "restored_in_flight")) :
        ]
        applied += attempt.taken_in(channel, checkpoint_id)
    if applied == given_off[: len(applied)]:
        return
    end_ns = run.attempts[-1].history.end_ns
    due, came = Counter(given_off), Counter(applied)
    for event in () if repeats else came - due:
        yield f"{event} took effect {_times(came[event])} on {channel}, and was sent {_times(due[event])}", end_ns
    reached = max((index for index, event in enumerate(given_off) if came[event]), default=0)
    for event in Counter(given_off[:reached]) - came:
        yield f"{event} was sent on {channel} and never took effect, though what came after it did", end_ns


# Sinks.


def _shown_otherwise(run: Run, sink: str, guarantee: str) -> Iterator[TimedReason]:
    for attempt in run.attempts:
        for at_ns, verb, subject, _ in attempt.history.tasks[sink].outside:
            if verb in SHOWS.values() and verb != SHOWS[guarantee]:
                what = subject[0] if isinstance(subject, tuple) else subject
                yield f"{sink} is {guarantee}, but did {verb} {what}", at_ns


def _shown_at_once(run: Run, sink: str, guarantee: str) -> Iterator[TimedReason]:
    verb = SHOWS[guarantee]
    for attempt in run.attempts:
        applied = attempt.applied(sink)
        shown = [effect.subject for effect in attempt.history.tasks[sink].outside if effect.verb == verb]
        if shown == applied:
            continue
        end_ns, due, came = attempt.history.end_ns, Counter(applied), Counter(shown)
        for event in (due - came) + (came - due):
            yield f"{event} took effect {_times(due[event])} at {sink} and was shown {_times(came[event])}", end_ns
        if due == came:
            event = next(event for event, turn in zip(shown, applied, strict=True) if event != turn)
            yield f"{event} was shown by {sink} in another place than it took effect", end_ns
    if guarantee == "idempotent" and run.attempts[-1].finished:
        lasting = set().union(*(attempt.applied(sink, checkpoint_id) for attempt, checkpoint_id in run.surviving))
        for attempt in run.attempts:
            for event in attempt.applied(sink):
                if event not in lasting:
                    lasting.add(event)
                    yield f"{event} is visible at {sink}, and never came again", attempt.history.end_ns


def _exactly_once(run: Run, sink: str, cut_off: bool) -> Iterator[TimedReason]:
    visible: list[object] = []
    lines: dict[int, list[object]] = {}  # by attempt: what took effect in those that it goes on from, and in itself
    for attempt in run.attempts:
        before: list[object] = []
        if attempt.parent is not None:
            parents, own = lines[attempt.parent.number], attempt.parent.applied(sink)
            kept = attempt.parent.applied(sink, attempt.restored_id)
            before = parents[: len(parents) - len(own) + len(kept)]
        line = lines[attempt.number] = before + attempt.applied(sink)
        if attempt.number > 1:
            yield from _falls_back(run, attempt, sink, visible, before)
        yield from _too_early(attempt, sink, len(before), len(visible))
        for effect in attempt.history.tasks[sink].outside:
            if effect.verb == "commit":
                visible += cast(tuple[str, tuple[object, ...]], effect.subject)[1]
        yield from _too_little(attempt, sink, line, len(before), visible)
    line, last = lines[run.attempts[-1].number], run.attempts[-1]
    end_ns = last.history.end_ns
    if not equations.shown_in_turn(visible, line):
        due, came = Counter(line), Counter(visible)
        for event in came - due:
            yield f"{event} became visible at {sink} {_times(came[event])}; {_times(due[event])} is right", end_ns
        if not came - due:
            event = next(event for event, turn in zip(visible, line, strict=False) if event != turn)
            yield f"{event} became visible at {sink} in another place than it took effect", end_ns
    if last.finished and not last.crashed and not cut_off:
        if not equations.shown_enough(visible, line):
            for event in Counter(line) - Counter(visible):
                yield f"{event} is not visible at {sink}, and the job has ended", end_ns
        else:
            effects = chain.from_iterable(attempt.history.tasks[sink].outside for attempt in run.attempts)
            for transaction in left_prepared(effects):
                yield equations.left_open(transaction, sink), end_ns


def left_prepared(effects: Iterable[ExternalEffect]) -> dict[object, ExternalEffect]:
    """Return by transaction the effects by which a sink has prepared what it has neither committed nor rolled back."""
    left: dict[object, ExternalEffect] = {}
    for effect in effects:
        if effect.verb == "prepare":
            left[cast(tuple[str, int], effect.subject)[0]] = effect
        elif effect.verb == "commit":
            left.pop(cast(tuple[str, tuple[object, ...]], effect.subject)[0], None)
        elif effect.verb == "rollback":
            left.pop(effect.subject, None)
    return left


def _falls_back(
    run: Run, attempt: Attempt, sink: str, visible: list[object], before: list[object]
) -> Iterator[TimedReason]:
    """Check that nothing behind the restored cut is visible: it will come again."""
    if equations.shown_in_turn(visible, before):
        return
    again = Counter(visible) - Counter(before)
    for event in list(again)[:1]:
        announced = [
            checkpoint_id
            for earlier in run.attempts[: attempt.number - 1]
            for checkpoint_id, _, _ in earlier.history.tasks[sink].notified
        ]
        newest = max(announced, default=0)
        behind = f"behind checkpoint {newest}, which was announced to {sink}, " if newest > attempt.restored_id else ""
        reason = f"{attempt.origin} was restored {behind}and {event} is visible already, so it comes again"
        yield reason, attempt.start_ns


def _too_early(attempt: Attempt, sink: str, before: int, shown: int) -> Iterator[TimedReason]:
    """Check that all that is visible is before the cut of a complete checkpoint (protocol rule 20).

    Of the sink's events in order, `before` are before the restore, and `shown` were visible then. They are counted: an
    event may reach a sink in two ways, so its name does not say which one it is.
    """
    for at_ns, verb, subject, newest in attempt.history.tasks[sink].outside:
        if verb != "commit":
            continue
        transaction, events = cast(tuple[str, tuple[object, ...]], subject)
        covered = 0 if newest == attempt.restored_id else len(attempt.applied(sink, newest))
        beyond = equations.uncovered(events, shown, before + covered)
        shown += len(events)
        if not beyond:
            continue
        later = set(attempt.applied(sink)[covered:])
        early = next((event for event in beyond if event in later), None)
        if early is not None:
            yield f"{early} became visible at {sink} with {transaction}, and no complete checkpoint has it", at_ns


def _too_little(
    attempt: Attempt, sink: str, line: list[object], before: int, visible: list[object]
) -> Iterator[TimedReason]:
    """Check that all before the restored cut, and before the cut last notified to the sink, is visible."""
    task = attempt.history.tasks[sink]
    due, why, at_ns = before, f"{attempt.origin} was restored", attempt.start_ns
    for checkpoint_id, notified_ns, newest in task.notified:
        if checkpoint_id > newest:
            yield f"checkpoint {checkpoint_id} was announced to {sink} before it was complete", notified_ns
        elif checkpoint_id > attempt.restored_id:
            due = before + len(attempt.applied(sink, checkpoint_id))
            why, at_ns = f"checkpoint {checkpoint_id} was announced to it", notified_ns
    if equations.shown_enough(visible, line[:due]) or attempt.interrupted:
        return
    shown = set(visible)
    gone = {effect.subject for effect in task.outside if effect.verb == "rollback"}
    for place, event in enumerate(line[:due]):
        if event not in shown:
            transaction = _transaction(attempt, sink, place)
            how = f" ({transaction} was rolled back)" if transaction in gone else ""
            yield f"{event} is not visible at {sink}, though {why}{how}", at_ns


def _transaction(attempt: Attempt, sink: str, place: int) -> str | None:
    """Return the transaction of the event that `sink` applied at index `place`."""
    for each, checkpoint_id in attempt.line():
        if place < (count := len(each.applied(sink, checkpoint_id))):
            for effect in each.history.tasks[sink].outside:
                if effect.verb == "prepare":
                    transaction, events = cast(tuple[str, int], effect.subject)
                    if place < events:
                        return transaction
                    place -= events
            return None
        place -= count
    return None


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
