"""Reports about one input channel of a task: what of it is in flight at the cut, and who hears of a barrier."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barrierlab.model.defects.engines.kind import Scheme, SchemeDefect, entry, to

FLINK = "Flink"


# What is captured of a channel.


class Persister(NamedTuple):
    """The rule by which a message of one channel is recorded as in flight in checkpoint 2.

    Attributes
    ----------
    came : int
        Messages of the script that the network's thread has brought.
    seen : int
        The highest barrier that it remembers.
    pending : bool
        Whether it waits for barrier 2, and records until then.
    stopped, started : bool
        Whether the task has ended checkpoint 1, and begun checkpoint 2.
    recorded : tuple of str
    """

    came: int = 0
    seen: int = 1
    pending: bool = False
    stopped: bool = False
    started: bool = False
    recorded: tuple[str, ...] = ()


def _persister(script: tuple[str, ...], begin: Persister, remembers: bool, compares: bool) -> Scheme[Persister]:
    """A channel that brings `script`.

    `remembers`: the end of checkpoint 1 leaves alone what was seen of barrier 2. `compares`: a barrier ends only the
    recording of its own checkpoint.
    """
    ahead = script[: script.index("barrier 2")]
    due = tuple(message for message in ahead if not message.startswith("barrier"))

    def arrive(message: str) -> Callable[[Persister], Persister]:
        def arrives(state: Persister) -> Persister:
            state = state._replace(came=state.came + 1)
            if not message.startswith("barrier"):
                return state._replace(recorded=(*state.recorded, message)) if state.pending else state
            number = int(message.removeprefix("barrier "))
            ends = number == 2 or not compares
            return state._replace(seen=max(state.seen, number), pending=state.pending and not ends)

        return arrives

    def stop(state: Persister) -> Persister:
        return state._replace(stopped=True, seen=state.seen if remembers else min(state.seen, 1))

    def begins(state: Persister) -> Persister:
        queued = tuple(message for message in script[: state.came] if message in due)
        return state._replace(started=True, pending=state.seen < 2, recorded=queued)

    def wrong(state: Persister) -> str | None:
        extra = [message for message in state.recorded if message not in due]
        return f"CUT: {extra[0]} came behind barrier 2, and is recorded as in flight in checkpoint 2" if extra else None

    def left(state: Persister) -> str | None:
        lost = [message for message in due if message not in state.recorded]
        return f"CUT: {lost[0]} was in flight at checkpoint 2, and is not recorded" if lost else None

    return Scheme(
        begin,
        {
            **{
                f"the channel brings {message}": (lambda s, at=at: s.came == at, arrive(message))  # type: ignore[misc]
                for at, message in enumerate(script)
            },
            **({} if begin.stopped else {"the task ends checkpoint 1": (lambda s: not s.stopped, stop)}),
            "the task begins checkpoint 2": (lambda s: s.stopped and not s.started, begins),
        },
        wrong=wrong,
        left=left,
    )


def forgets_the_barrier(repaired: bool) -> Scheme[Persister]:
    """Checkpoint 1 ends when barrier 2 has come."""
    return _persister(("x", "barrier 2", "y"), Persister(), repaired, True)


def obsolete_barrier(repaired: bool) -> Scheme[Persister]:
    """Checkpoint 1 was declined elsewhere, so that its barrier comes when checkpoint 2 has begun."""
    return _persister(("barrier 1", "x", "barrier 2"), Persister(seen=0, stopped=True), True, repaired)


# A barrier that is noticed by another thread than the task's.


class TwoInputMailbox(NamedTuple):
    """A task with two inputs: one brings a barrier and an event behind it, the other an event and a barrier.

    Attributes
    ----------
    first, second : int
        Messages that were read.
    mail : bool
        Whether the checkpoint is in the task's mailbox.
    noticed : bool
        Whether the network's thread has seen the barrier of the first input.
    cut : tuple of (int, int) or None
        What was read when the state was saved.
    """

    first: int = 0
    second: int = 0
    mail: bool = False
    noticed: bool = False
    cut: tuple[int, int] | None = None


def mailbox(repaired: bool) -> Scheme[TwoInputMailbox]:
    """The task reads its mail between two rounds of reading; repaired, a noticed barrier ends the round."""

    def reads(state: TwoInputMailbox) -> bool:
        return not (repaired and state.mail)

    def wrong(state: TwoInputMailbox) -> str | None:
        if state.cut is None or state.cut[0] < 2:
            return None
        return "CUT: the event behind the barrier of the first input is in the state that was saved"

    return Scheme(
        TwoInputMailbox(),
        {
            "the network notices the barrier of the first input": (
                lambda s: not s.noticed,
                to(noticed=True, mail=True),
            ),
            "the task reads that barrier": (lambda s: reads(s) and s.noticed and s.first == 0, to(first=1)),
            "the task reads the event behind it": (lambda s: reads(s) and s.first == 1, to(first=2)),
            "the task reads an event of the second input": (lambda s: reads(s) and s.second == 0, to(second=1)),
            "the task reads the barrier of the second input": (lambda s: reads(s) and s.second == 1, to(second=2)),
            "the task reads its mail: its state is saved": (
                lambda s: s.mail,
                lambda s: s._replace(mail=False, cut=(s.first, s.second)),
            ),
        },
        wrong=wrong,
        left=lambda s: None if s.cut and s.first == s.second == 2 else "LIVE: the task has not read all",
    )


class Wakeup(NamedTuple):
    """A flag that says that a priority barrier is pending.

    Attributes
    ----------
    sent, queued, taken : int
        Barriers.
    flag : bool
    clears : bool
        Whether the task has found, when it took the last one, that no other was queued.
    """

    sent: int = 0
    queued: int = 0
    flag: bool = False
    clears: bool = False
    taken: int = 0


def wakeup(repaired: bool, concurrent: int = 2) -> Scheme[Wakeup]:
    """Two barriers, of which so many may be pending at once."""

    def clear(state: Wakeup) -> Wakeup:
        return state._replace(clears=False, flag=repaired and state.queued > 0)

    def take(state: Wakeup) -> Wakeup:
        return state._replace(queued=state.queued - 1, taken=state.taken + 1, clears=state.queued == 1)

    def open_checkpoints(state: Wakeup) -> int:
        return state.sent - state.taken + state.clears

    return Scheme(
        Wakeup(),
        {
            "a barrier is queued, and the flag set": (
                lambda s: s.sent < 2 and open_checkpoints(s) < concurrent,
                lambda s: s._replace(sent=s.sent + 1, queued=s.queued + 1, flag=True),
            ),
            "the task takes a barrier": (lambda s: s.flag and s.queued > 0 and not s.clears, take),
            "the task clears the flag": (lambda s: s.clears, clear),
        },
        left=lambda s: f"LIVE: barrier {s.taken + 1} is queued, and no flag says so" if s.queued else None,
    )


class UnrecoverableEdge(NamedTuple):
    """An edge whose channel state could not be given back, and a barrier on it that has a timeout.

    Attributes
    ----------
    sent, taken : int
        Events ahead of the barrier.
    barrier : str
        Empty; ``timeout``: it waits, until its deadline; ``aligned``: it waits; ``unaligned``: it overtakes.
    cut : int or None
        Events that were taken when the receiver's state was saved.
    """

    sent: int = 0
    taken: int = 0
    barrier: str = ""
    cut: int | None = None


def forced_aligned(repaired: bool) -> Scheme[UnrecoverableEdge]:
    """The sender marks a barrier as one that never overtakes; as reported, only one that is unaligned already."""

    def wrong(state: UnrecoverableEdge) -> str | None:
        if state.cut is None or state.cut == state.sent:
            return None
        return f"CUT: {state.sent - state.cut} events were overtaken on an edge that keeps nothing in flight"

    return Scheme(
        UnrecoverableEdge(),
        {
            "the sender sends an event": (
                lambda s: s.sent < 2 and not s.barrier,
                lambda s: s._replace(sent=s.sent + 1),
            ),
            "the sender sends its barrier": (lambda s: not s.barrier, to(barrier="aligned" if repaired else "timeout")),
            "the deadline of the barrier passes": (
                lambda s: s.barrier == "timeout" and s.cut is None,
                to(barrier="unaligned"),
            ),
            "the receiver takes an event": (lambda s: s.taken < s.sent, lambda s: s._replace(taken=s.taken + 1)),
            "the receiver takes the barrier": (
                lambda s: s.cut is None and (s.barrier == "unaligned" or (bool(s.barrier) and s.taken == s.sent)),
                lambda s: s._replace(cut=s.taken),
            ),
        },
        wrong=wrong,
        left=lambda s: "LIVE: the barrier is not taken" if s.cut is None else None,
        faults=("the deadline of the barrier passes",),
    )


ENTRIES = (
    entry(
        2,
        "the_end_of_a_checkpoint_forgets_the_next_barrier",
        FLINK,
        ("https://issues.apache.org/jira/browse/FLINK-20097", "https://github.com/apache/flink/pull/14040"),
        "The network's thread has seen barrier 2 when the task ends checkpoint 1, and that resets the channel: "
        "checkpoint 2 then waits for a barrier that has passed, and records what comes behind it.",
        "The end of a checkpoint leaves alone what was seen of a newer barrier.",
        SchemeDefect(
            *("FLINK-20097", "safety", "CUT"),
            "Barrier 2 is in when checkpoint 1 ends, and is forgotten.",
            forgets_the_barrier,
        ),
    ),
    entry(
        2,
        "an_obsolete_barrier_ends_the_recording",
        FLINK,
        ("https://issues.apache.org/jira/browse/FLINK-21104", "https://github.com/apache/flink/pull/14807"),
        "The barrier of an older checkpoint, which was declined elsewhere, is taken for the awaited one: what is in "
        "flight behind it is not recorded.",
        "A barrier that is older than the checkpoint under way is ignored.",
        SchemeDefect(
            *("FLINK-21104", "safety", "CUT"),
            "Checkpoint 2 has begun when the barrier of checkpoint 1 comes.",
            obsolete_barrier,
        ),
    ),
    entry(
        3,
        "data_behind_the_barrier_is_consumed_before_the_mail_is_read",
        FLINK,
        ("https://issues.apache.org/jira/browse/FLINK-17568", "https://github.com/apache/flink/pull/12034"),
        "A barrier only puts the checkpoint into the task's mailbox; the task may read on, and consume what came "
        "behind the barrier before its state is saved.",
        "The task goes back to its mailbox as soon as a barrier was noticed.",
        SchemeDefect(
            *("FLINK-17568", "safety", "CUT"),
            "The checkpoint is in the mailbox, and the task reads on.",
            mailbox,
        ),
    ),
    entry(
        7,
        "a_flag_is_cleared_that_was_set_anew",
        FLINK,
        ("https://issues.apache.org/jira/browse/FLINK-40521", "https://github.com/apache/flink/pull/29057"),
        "One thread sets the flag for a pending priority barrier and another clears it by what it found before: with "
        "two barriers pending the second is queued and nobody is woken. Flink has one at a time, and says so in a "
        "comment.",
        "Whoever clears the flag looks at the queue in the same step.",
        SchemeDefect(
            *("FLINK-40521", "liveness", "LIVE"),
            "The second barrier comes between the look into the queue and the clearing of the flag.",
            wakeup,
        ),
        "latent",
    ),
    entry(
        8,
        "forced_alignment_is_ignored_for_a_barrier_with_a_timeout",
        FLINK,
        ("https://issues.apache.org/jira/browse/FLINK-33693", "https://github.com/apache/flink/pull/23850"),
        "On an edge that supports no unaligned checkpoints the sender marks barriers so that they never overtake, but "
        "only those that are unaligned already; one that is aligned until a deadline overtakes there after it.",
        "The mark is set on every barrier of such an edge.",
        SchemeDefect(
            *("FLINK-33693", "safety", "CUT"),
            "The deadline of a barrier passes behind an event on such an edge.",
            forced_aligned,
        ),
    ),
)
