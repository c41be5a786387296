"""Reports about who asks for a checkpoint, who answers, and who is waited for."""

from __future__ import annotations

from typing import NamedTuple

from barrierlab.impl import CheckpointBarrier, Reason, SourceTask
from barrierlab.model.defects.engines.kind import Exhibit, Scheme, scheme
from barrierlab.model.defects.kinds.barrier import Bounds, Components


class MidRecovery(NamedTuple):
    """A task that reads its channel state back, and a checkpoint that is asked for.

    Attributes
    ----------
    left : int
        Buffers of channel state that are still to be read back.
    checkpoint : str
        Empty, ``open``, ``unheard`` (the task was asked, and did nothing), ``taken`` or ``declined``.
    """

    left: int = 3
    checkpoint: str = ""


def no_op_trigger(repaired: bool) -> Scheme[MidRecovery]:
    """As repaired, such a job recovers in the old way, in which a task that is not ready declines."""
    return scheme(
        MidRecovery(),
        """
        a buffer is read back | left > 0 | left=left - 1
        a checkpoint is triggered | not checkpoint | checkpoint="open"
        the task is asked for it | checkpoint == "open" | checkpoint=during if left else "taken"
        """,
        left="""checkpoint not in ("taken", "declined")
            | LIVE: the checkpoint is neither taken nor declined, until it expires and the job fails over""",
        during="declined" if repaired else "unheard",
    )


class Coalescer(NamedTuple):
    """Two senders, each of which makes barriers 1 and 2, and a coalescer that pairs the heads of their queues.

    Attributes
    ----------
    made : tuple of int
        The highest barrier that each has made.
    handed : tuple of int
        The highest that each has handed over.
    queues : tuple of tuple of int
        What waits: the highest barrier of each batch.
    out : int
        The highest barrier that has gone on.
    """

    made: tuple[int, int] = (0, 0)
    handed: tuple[int, int] = (0, 0)
    queues: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    out: int = 0


def coalescer(repaired: bool) -> Scheme[Coalescer]:
    """Barriers that are ready are handed over in one batch; repaired, a batch is split before it is queued."""

    def batches(queue: tuple[int, ...], handed: int, made: int) -> tuple[int, ...]:
        return queue + (tuple(range(handed + 1, made + 1)) if repaired else (made,))

    return scheme(
        Coalescer(),
        """
        A makes a barrier | made[0] < 2 | made=put(made, 0, made[0] + 1)
        B makes a barrier | made[1] < 2 | made=put(made, 1, made[1] + 1)
        A hands over what it has | handed[0] < made[0]
            | handed=put(handed, 0, made[0]), queues=put(queues, 0, batches(queues[0], handed[0], made[0]))
        B hands over what it has | handed[1] < made[1]
            | handed=put(handed, 1, made[1]), queues=put(queues, 1, batches(queues[1], handed[1], made[1]))
        the heads of the queues are paired and go on | all(queues)
            | queues=(queues[0][1:], queues[1][1:]), out=max(out, queues[0][0], queues[1][0])
        """,
        wrong="out > min(handed) | CUT: barrier {out} went on, and one of the two has not handed it over",
        left="any(queues) | LIVE: a barrier waits for a partner that was paired already",
        batches=batches,
    )


class TableReplacement(NamedTuple):
    """A table is replaced by another while its consumer reads it; each flag is a step that is done.

    Attributes
    ----------
    issued, above, old, merge : bool
        Where the barrier is: with the coordinator, at the job above, past the old table, at the consumer's merge.
    announced : bool
        The consumer knows of the change, and has asked for the output of the new table.
    built : bool
        The new table is there, and has asked for the output of the job above.
    """

    issued: bool = False
    above: bool = False
    announced: bool = False
    built: bool = False
    old: bool = False
    merge: bool = False


def mutation(repaired: bool) -> Scheme[TableReplacement]:
    """The change comes with the barrier; repaired, the consumer hears of it beside the barrier."""
    return scheme(
        TableReplacement(),
        """
        a barrier is issued that carries the change | not issued | issued=True
        the barrier is at the job above | issued and not above | above=True
        the consumer hears of the change | not announced and (merge or (repaired and issued)) | announced=True
        the new table is built | announced and not built | built=True
        the job above sends the barrier on to old and new | above and built and not old | old=True
        the old table sends the barrier on | old and not merge | merge=True
        """,
        left="not merge | LIVE: the barrier waits for the new table, which waits for the barrier",
        repaired=repaired,
    )


class Phases(NamedTuple):
    """A snapshot of two phases on one member with two processors, of which P completes before it has done phase 1.

    Attributes
    ----------
    counted : int
        Processors that are on the counter.
    p : str
        ``runs``, ``done`` (it has sent its last item) or ``gone`` (and is off the counter).
    taken : bool
        Whether the snapshot's thread has taken P's last item.
    one, two : bool
        Whether Q has done phase 1, and phase 2.
    waits_for : int or None
        Processors that are still to do phase 2, once that has begun.
    """

    counted: int = 2
    p: str = "runs"
    taken: bool = False
    one: bool = False
    two: bool = False
    waits_for: int | None = None


def phases(repaired: bool) -> Scheme[Phases]:
    """P sends its last item, and is taken off the counter; repaired, in one step."""
    return scheme(
        Phases(),
        f"""
        P completes, and sends its last item | p == "runs" | {'p="gone", counted=1' if repaired else 'p="done"'}
        P's last item is taken, and stands for its phase 1 | p != "runs" and not taken | taken=True
        P is taken off the counter | p == "done" | p="gone", counted=1
        Q does phase 1 | not one | one=True
        phase 1 is done: phase 2 begins, for all on the counter | one and taken and waits_for is None
            | waits_for=counted
        Q does phase 2 | waits_for is not None and not two | two=True, waits_for=waits_for - 1
        """,
        left="waits_for != 0 | LIVE: phase 2 waits for a processor that has completed",
    )


class Lost(NamedTuple):
    """Two members, each of which gets the order to begin a snapshot; one that is behind a distributed edge hears both.

    Attributes
    ----------
    order : tuple of str
        By member: empty, ``sent``, ``lost`` or ``come``.
    losses : int
        Messages that may still be lost.
    failed : bool
        Whether the master has given the snapshot up.
    barriers : int
        Barriers that have come to the processor behind the edge.
    """

    order: tuple[str, str] = ("", "")
    losses: int = 1
    failed: bool = False
    barriers: tuple[bool, bool] = (False, False)


def lost_order(repaired: bool) -> Scheme[Lost]:
    """An order that is lost fails the snapshot at the master; repaired, it is sent again until it is answered."""
    return scheme(
        Lost(),
        f"""
        the master tells both members to begin | order == ("", "") | order=("sent", "sent")
        the order comes to member 1 | order[0] == "sent" | order=put(order, 0, "come")
        the order comes to member 2 | order[1] == "sent" | order=put(order, 1, "come")
        the order to member 2 is lost | order[1] == "sent" and losses > 0 | losses=0, order=put(order, 1, "lost")
        the master hears nothing of member 2 | order[1] == "lost"
            | {'order=put(order, 1, "sent")' if repaired else 'failed=True, order=put(order, 1, "aborted")'}
        member 1 sends its barrier over the edge | order[0] == "come" and not barriers[0]
            | barriers=put(barriers, 0, True)
        member 2 sends its barrier over the edge | order[1] == "come" and not barriers[1]
            | barriers=put(barriers, 1, True)
        """,
        left="any(barriers) and not all(barriers)"
        " | LIVE: the processor behind the edge waits for a barrier that no one will send",
        faults=("the order to member 2 is lost",),
    )


class NeverAsked(SourceTask):
    """The order to inject a barrier at source b fails on its way, and its failure is in a future that nobody reads."""

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        if self.name == "a":
            return super().poll(now_ns)
        barrier = self.injector.poll_barrier(now_ns)
        if barrier is not None:
            self.failed(barrier)
        return None

    def failed(self, barrier: CheckpointBarrier) -> None: ...


class Reported(NeverAsked):
    """The failure goes to the coordinator."""

    def failed(self, barrier: CheckpointBarrier) -> None:
        self.last_terminated_id = barrier.checkpoint_id
        self.decline(barrier.checkpoint_id, Reason.OUTPUT_CLOSED)
        self.cancel(barrier.checkpoint_id)


class Tail(NamedTuple):
    """The end of a checkpoint, which is written in the background, and a recovery that begins meanwhile.

    Attributes
    ----------
    tails : tuple of str
        By checkpoint: ``writes``, ``stuck``, ``done`` or ``cancelled``.
    fenced : bool
        Whether a recovery was announced.
    stopped, begun : bool
        Whether this node has said that it has stopped, and the recovery begun.
    """

    tails: tuple[str, str] = ("writes", "writes")
    fenced: bool = False
    stopped: bool = False
    begun: bool = False


def tails(repaired: bool) -> Scheme[Tail]:
    """A node stops when no tail is left; repaired, a recovery cancels them first."""
    return scheme(
        Tail(),
        """
        a tail is written | tails[0] == "writes" | tails=put(tails, 0, "done")
        the other tail is written | tails[1] == "writes" | tails=put(tails, 1, "done")
        the store does not answer a tail | tails[0] == "writes" | tails=put(tails, 0, "stuck")
        a recovery is announced | not fenced | fenced=True
        the tails are cancelled | repaired and fenced and not {*tails} <= quiet | tails=("cancelled", "cancelled")
        the node says that it has stopped | fenced and not stopped and {*tails} <= quiet | stopped=True
        the recovery begins | stopped and not begun | begun=True
        """,
        left="fenced and not begun | LIVE: a recovery was announced, and never begins",
        faults=("the store does not answer a tail",),
        quiet={"done", "cancelled"},
        repaired=repaired,
    )


class Head(NamedTuple):
    """The head of an iteration, and the coordinator that sends it an event ahead of each checkpoint.

    Attributes
    ----------
    ended : bool
        Whether the head has finished.
    event : bool
        Whether an event is on its way to it.
    checkpoint : str
        Empty or ``open``.
    last : str
        How the last checkpoint ended.
    """

    ended: bool = False
    event: bool = False
    checkpoint: str = ""
    last: str = ""


def head_events(repaired: bool) -> Scheme[Head]:
    """The job goes on behind its head, and so do its checkpoints."""
    return scheme(
        Head(),
        """
        a checkpoint begins, with an event for the head | not checkpoint
            | checkpoint="open", event=not (repaired and ended)
        the head takes the event | event and not ended | event=False
        the event cannot be delivered: the checkpoint fails | event and ended
            | event=False, checkpoint="", last="failed"
        the checkpoint completes | checkpoint and not event | checkpoint="", last="completed"
        the head finishes | not ended and not event | ended=True, last=""
        """,
        left="""ended and last != "completed"
            | LIVE: no checkpoint completes any more, since its event cannot be delivered""",
        repaired=repaired,
    )


_JOIN = Bounds("a->join b->join", events=0)
ENTRIES: dict[str, Exhibit] = {
    "FLINK-40518": no_op_trigger,
    "RISINGWAVE-24951": coalescer,
    "RISINGWAVE-23273": mutation,
    "HAZELCAST-18530": phases,
    "JET-1435": lost_order,
    "SEATUNNEL-12111": (_JOIN, Components(source=NeverAsked), Components(source=Reported)),
    "LAMINARDB-507": tails,
    "FLINK-24807": head_events,
}
