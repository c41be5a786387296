"""Reports about one input channel of a task: what of it is in flight at the cut, and who hears of a barrier."""

from __future__ import annotations

from typing import NamedTuple

from barrierlab.model.defects.engines.kind import Exhibit, Scheme, scheme

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


ENTRIES: dict[str, Exhibit] = {
    "FLINK-20097": forgets_the_barrier,
    "FLINK-21104": obsolete_barrier,
    "FLINK-17568": mailbox,
    "FLINK-40521": wakeup,
    "FLINK-33693": forced_aligned,
}
