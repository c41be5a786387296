"""Reports about one input channel of a task: what of it is in flight at the cut, and who hears of a barrier."""

from __future__ import annotations

from typing import NamedTuple

from barrierlab.model.defects.engines.kind import Scheme, SchemeDefect, entry, scheme

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
    due = tuple(message for message in script[: script.index("barrier 2")] if message.isalpha())

    def brings(at: int, message: str) -> str:
        if message.isalpha():
            then = f"recorded=(*recorded, *('{message}',) * pending)"
        else:
            number = int(message.removeprefix("barrier "))
            then = f"seen=max(seen, {number}), pending=pending and {number != 2 and compares}"
        return f"the channel brings {message} | came == {at} | came=came + 1, {then}"

    rules = [brings(at, message) for at, message in enumerate(script)]
    if not begin.stopped:
        rules.append("the task ends checkpoint 1 | not stopped | stopped=True, seen=min(seen, 2 if remembers else 1)")
    rules.append(
        "the task begins checkpoint 2 | stopped and not started"
        " | started=True, pending=seen < 2, recorded=tuple(filter(due.count, script[:came]))"
    )
    return scheme(
        begin,
        "\n".join(rules),
        wrong="""{*recorded} - {*due}
            | CUT: {[each for each in recorded if each not in due][0]} came behind barrier 2,
            and is recorded as in flight in checkpoint 2""",
        left="""{*due} - {*recorded}
            | CUT: {[each for each in due if each not in recorded][0]} was in flight at checkpoint 2,
            and is not recorded""",
        remembers=remembers,
        script=script,
        due=due,
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
    return scheme(
        TwoInputMailbox(),
        """
        the network notices the barrier of the first input | not noticed | noticed=True, mail=True
        the task reads that barrier | not (repaired and mail) and noticed and first == 0 | first=1
        the task reads the event behind it | not (repaired and mail) and first == 1 | first=2
        the task reads an event of the second input | not (repaired and mail) and second == 0 | second=1
        the task reads the barrier of the second input | not (repaired and mail) and second == 1 | second=2
        the task reads its mail: its state is saved | mail | mail=False, cut=(first, second)
        """,
        wrong="""cut and cut[0] == 2
            | CUT: the event behind the barrier of the first input is in the state that was saved""",
        left="not (cut and first == second == 2) | LIVE: the task has not read all",
        repaired=repaired,
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
    return scheme(
        Wakeup(),
        """
        a barrier is queued, and the flag set | sent < 2 and sent - taken + clears < concurrent
            | sent=sent + 1, queued=queued + 1, flag=True
        the task takes a barrier | flag and queued > 0 and not clears
            | queued=queued - 1, taken=taken + 1, clears=queued == 1
        the task clears the flag | clears | clears=False, flag=repaired and queued > 0
        """,
        left="queued | LIVE: barrier {taken + 1} is queued, and no flag says so",
        concurrent=concurrent,
        repaired=repaired,
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
    return scheme(
        UnrecoverableEdge(),
        """
        the sender sends an event | sent < 2 and not barrier | sent=sent + 1
        the sender sends its barrier | not barrier | barrier="aligned" if repaired else "timeout"
        the deadline of the barrier passes | barrier == "timeout" and cut is None | barrier="unaligned"
        the receiver takes an event | taken < sent | taken=taken + 1
        the receiver takes the barrier | cut is None and (barrier == "unaligned" or barrier and taken == sent)
            | cut=taken
        """,
        wrong="""cut is not None and cut != sent
            | CUT: {sent - cut} events were overtaken on an edge that keeps nothing in flight""",
        left="cut is None | LIVE: the barrier is not taken",
        faults=("the deadline of the barrier passes",),
        repaired=repaired,
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
