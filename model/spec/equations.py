"""The equations of the invariants, each once, over plain values.

There are two who ask. `model.spec.invariants` has the whole journal of a run, and names every event that is wrong.
`model.checkpoint.monitor` has one state of an exploration: it forgets what is settled, so that few states differ, and
counts where a journal lists. Of barriers and watermarks both come to the values by `model.spec.watch`, of the rest each
in its own way; what must hold of them is said here.

Like `model.spec.history`, this imports nothing of the code under test. A reason is a line without the invariant's name.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import TypeVar, cast

from barrierlab.model.spec.messages import UNALIGNED_FLAG, MessageView, kind_of

E = TypeVar("E")

# A complete checkpoint.


def balanced(left: Sequence[object], right: Sequence[object], permits_orphans: bool) -> bool:
    """CUT: what was sent before the cut is what was taken before it, and then what is recorded as in flight.

    Events of a channel, or their places in it: it is first in, first out. Where orphans are permitted, `left` may be
    the first part of `right`.
    """
    return left == (right[: len(left)] if permits_orphans else right)


SNAPSHOT, ACKNOWLEDGEMENT = "a snapshot", "the acknowledgement"


def lacking(has_cut: bool, has_begun: bool, is_acknowledged: bool, finished: bool) -> Iterator[str]:
    """ONCE: what of a task a checkpoint lacks that was completed (protocol rule 20).

    A task that had finished owes nothing, unless the checkpoint had begun there before: a barrier of it had taken
    effect, or was forwarded.
    """
    if not has_cut and (has_begun or not finished):
        yield SNAPSHOT
    if not is_acknowledged and not finished:
        yield ACKNOWLEDGEMENT


def completed_without(checkpoint_id: int, what: str, task: str) -> str:
    """The reason for what `lacking` yields."""
    return f"checkpoint {checkpoint_id} was completed without {what} of {task}"


def separates(barrier: int, side: int, cause: int, is_unaligned: bool, permits_orphans: bool) -> bool:
    """FWD: whether a barrier lies between a message that is sent and its cause, where it must not.

    The message leaves behind barrier `side`, its cause came behind barrier `cause`. An unaligned barrier may be sent
    ahead of what input before it caused; where orphans are permitted, behind what input behind it caused.
    """
    if side < cause:
        return side < barrier <= cause and not permits_orphans
    return cause < barrier <= side and not is_unaligned


def cut_again(task: str, checkpoint_id: int, count: int) -> Iterator[str]:
    """ONCE: why a task may not have taken so many snapshots of a checkpoint."""
    if count > 1:
        yield f"{task} took {count} snapshots of checkpoint {checkpoint_id}"


def ended_again(checkpoint_id: int, verb: str, before: str | None) -> Iterator[str]:
    """LIVE: why a checkpoint may not be completed, or aborted, that was ended so `before`; None if it was not."""
    if before is not None:
        yield f"checkpoint {checkpoint_id} was {verb} after it {before}"


# Ids.


def cut_goes_back(task: str, checkpoint_id: int, newest: int) -> Iterator[str]:
    """ID: why a task may not take its snapshot of a checkpoint behind the one of `newest`."""
    if checkpoint_id < newest:
        yield f"{task} took its snapshot of checkpoint {checkpoint_id} after {newest}"


def triggered_late(checkpoint_id: int, newest: int) -> str | None:
    """ID: why a checkpoint may not be triggered when `newest` was."""
    if checkpoint_id > newest:
        return None
    return f"checkpoint {checkpoint_id} was triggered after {newest}; ids begin with 1 and strictly increase"


def completed_out_of_turn(checkpoint_id: int, newest: int, is_triggered: bool) -> Iterator[str]:
    """ID: why a checkpoint may not be completed when `newest` was."""
    if checkpoint_id < newest:
        yield f"checkpoint {checkpoint_id} was completed after {newest}, which drops every older one"
    if not is_triggered:
        yield f"checkpoint {checkpoint_id} was completed and never triggered"


def barrier_goes_back(
    task: str, channel: str, barrier: tuple[int, int | None], newest: tuple[int, int], of_channel: int
) -> str | None:
    """ID: why a barrier may not take effect; barriers are given by id and epoch.

    Parameters
    ----------
    task, channel : str
        Where it takes effect.
    barrier, newest : (int, int)
        Which takes effect, and the highest id and the highest epoch that have at this task. The epoch of a barrier that
        nobody has sent is not known: FIFO has something against it.
    of_channel : int
        The highest id that has on this channel.
    """
    (checkpoint_id, epoch), (newest_id, newest_epoch) = barrier, newest
    if checkpoint_id < newest_id or checkpoint_id <= of_channel:
        return f"barrier {checkpoint_id} took effect at {task} on {channel} after barrier {newest_id}"
    if epoch is not None and ((epoch <= newest_epoch) if checkpoint_id > newest_id else (epoch != newest_epoch)):
        return f"barrier {checkpoint_id} took effect at {task} with epoch {epoch}, after epoch {newest_epoch}"
    return None


# Turns.


def may_overtake(barrier: object, unaligned: Container[int], aborted: Container[int]) -> bool:
    """FIFO: whether a barrier need not keep its place: CUT asks what it has passed (protocol rule 16).

    Parameters
    ----------
    barrier : message
    unaligned, aborted : collection of int
        The checkpoints whose barrier the task forwarded flagged, and those that it aborted.
    """
    view = cast(MessageView, barrier)
    return bool(view.flags & UNALIGNED_FLAG) or view.checkpoint_id in unaligned or view.checkpoint_id in aborted


def has_no_effect(message: object, aborted: Container[int]) -> bool:
    """NOLOSS: whether a message may come to nothing: a barrier or cancel of a checkpoint that the task has aborted."""
    kind = kind_of(message)
    return kind in ("CheckpointBarrier", "CancelBarrier") and cast(MessageView, message).checkpoint_id in aborted


# Watermarks.


def least_promise(promises: Collection[int | None]) -> int | None:
    """WM: what a task is to promise whose open inputs have promised this much; None if one has promised nothing."""
    known = [promise for promise in promises if promise is not None]
    return min(known) if known and len(known) == len(promises) else None


def promised_too_much(
    task: str, channel: str, mark: object, promises: Iterable[tuple[str, int | None]]
) -> Iterator[str]:
    """WM: why a task may not send a watermark while its open inputs have promised this much, a line for each."""
    for source, promise in promises:
        if promise is None or promise < cast(MessageView, mark).timestamp_ms:
            has = "has promised nothing" if promise is None else f"has promised {promise} only"
            yield f"{task} sent {mark} on {channel}, but {source} {has}"


# Limits.


def beyond(count: int, what: str, most: int | None) -> Iterator[str]:
    """BOUND: why there may not be `count` of something where a limit is set; it is inclusive."""
    if most is not None and count > most:
        yield f"{count} {what}; at most {most} may be"


# Sinks that show each event exactly once. Events in their order, or their places in it.


def shown_in_turn(visible: Sequence[object], took_effect: Sequence[object]) -> bool:
    """REC: whether what is visible took effect first, of all that did and is to stay."""
    return visible == took_effect[: len(visible)]


def shown_enough(visible: Sequence[object], due: Sequence[object]) -> bool:
    """REC: whether all is visible that is `due`.

    That is what a checkpoint covers that was restored, or announced to the sink; and all, once the job has ended.
    """
    return visible[: len(due)] == due


def left_open(transaction: object, sink: str) -> str:
    """REC: what is wrong with a transaction that is still prepared when the job has ended."""
    return f"{transaction} of {sink} is neither committed nor rolled back, and the job has ended"


def uncovered(events: Sequence[E], shown: int, covered: int) -> Sequence[E]:
    """REC: which of `events`, that become visible behind `shown` others, no complete checkpoint covers."""
    return events[max(0, covered - shown) :]
