"""Reports about what is saved, what is read back, and what a job goes on from."""

from __future__ import annotations

from typing import NamedTuple

from barrierlab.model.defects.engines.kind import Exhibit, Scheme, scheme


class Recovered(NamedTuple):
    """An input channel that was restored, and a checkpoint that begins meanwhile.

    Attributes
    ----------
    left : int
        Recovered buffers that the task has not consumed.
    converted : bool
        Whether the channel is an ordinary one by now.
    came, waiting : int
        New buffers that came, and those of them that were not consumed.
    applied : int
        Buffers that were consumed.
    cut : tuple of (int, int, int) or None
        What was applied, what was recorded, and what there was.
    declines : int
        How often the task may still decline.
    """

    left: int = 2
    converted: bool = False
    came: int = 0
    waiting: int = 0
    applied: int = 0
    cut: tuple[int, int, int] | None = None
    declines: int = 2


def recovered_channel(repaired: bool) -> Scheme[Recovered]:
    """The barrier overtakes what waits in the channel; a channel that is not an ordinary one records nothing."""
    return scheme(
        Recovered(),
        """
        the task consumes a recovered buffer | left > 0 | left=left - 1, applied=applied + 1
        the channel becomes an ordinary one | not left and not converted | converted=True
        a new buffer comes | came < 1 | came=1, waiting=1
        the task consumes a new buffer | converted and waiting > 0 | waiting=0, applied=applied + 1
        a checkpoint begins at the task | cut is None and declines > 0
            | **(dict(declines=declines - 1) if repaired and not converted
                else dict(cut=(applied, waiting if converted else 0, 2 + came)))
        """,
        wrong="""cut and cut[0] + cut[1] != cut[2]
            | CUT: {cut[2] - cut[0] - cut[1]} buffers that wait in the channel are neither in the state nor recorded""",
        repaired=repaired,
    )


class RecoveryFilter(NamedTuple):
    """Channel state that is filtered while it is read back, by one thread.

    Attributes
    ----------
    free : int
        Buffers of the pool.
    before, after : int
        Buffers that hold what was read, and what was left of it.
    read : int
        How many were read, of three.
    """

    free: int = 2
    before: int = 0
    after: int = 0
    read: int = 0


def filtering(repaired: bool) -> Scheme[RecoveryFilter]:
    """Both sides of the filter take buffers of one pool; repaired, what was read has one buffer of its own."""
    return scheme(
        RecoveryFilter(),
        """
        the thread reads a buffer of channel state | read < 3 and (before == 0 if repaired else free > 0)
            | before=before + 1, read=read + 1, free=free - (not repaired)
        the thread writes what is left of it into another | before > 0 and free > 0
            | before=before - 1, after=after + 1, free=free - 1 + (not repaired)
        the task consumes a buffer | after > 0 | after=after - 1, free=free + 1
        """,
        left="before | LIVE: the thread waits for a buffer, and holds all of them itself",
        repaired=repaired,
    )


class Local(NamedTuple):
    """A local channel that is to be restored, and the task above it, which shares its pool.

    Attributes
    ----------
    free, own : int
        Buffers of the pool, and of the channel alone.
    buffered : int
        Buffers that the task above has filled and cannot pass on.
    restored : bool
    passed : int
        Buffers that were passed on, of two.
    """

    free: int = 2
    own: int = 0
    buffered: int = 0
    restored: bool = False
    passed: int = 0


def local_channel(repaired: bool) -> Scheme[Local]:
    """The channel asks the pool for a buffer; repaired, it has one, as a remote channel has."""
    return scheme(
        Local(own=int(repaired)),
        """
        the task above fills a buffer | free > 0 and buffered + passed < 2 | free=free - 1, buffered=buffered + 1
        the channel has a buffer, and is restored | not restored and free + own > 0 | restored=True
        the channel asks for a buffer, and gets none | not restored and free + own == 0 |
        a buffer is passed on through the channel | restored and buffered > 0
            | buffered=buffered - 1, passed=passed + 1, free=free + 1
        """,
        left="not restored | LIVE: the channel waits for a buffer of the task that waits for it",
    )


class Master(NamedTuple):
    """A master whose last good snapshot is 1, while snapshot 2 is answered and the job is forced to restart.

    Attributes
    ----------
    execution : int
    reply : str
        ``under way``; ``found good``: of the execution that runs; ``done``: acted upon, or ignored.
    last : int
        The newest snapshot.
    data : bool
        Whether the data of snapshot 1 is there.
    plan : int
        The snapshot that the new execution is to read; 0 if none was chosen.
    begins_at : int or None
        The snapshot that it began at; 0 is the beginning of the source.
    """

    execution: int = 1
    reply: str = "under way"
    last: int = 1
    data: bool = True
    plan: int = 0
    begins_at: int | None = None


def late_reply(repaired: bool) -> Scheme[Master]:
    """The reply is looked at, and acted upon; repaired, in one step that a restart cannot come between."""
    acts = "reply='done', last=2, data=False"
    return scheme(
        Master(),
        f"""
        the reply for snapshot 2 comes, and its execution is compared | reply == "under way"
            | **(dict(reply="done") if execution != 1 else dict({acts if repaired else "reply='found good'"}))
        snapshot 2 is the newest: the data of snapshot 1 is cleared | reply == "found good" | {acts}
        the job is forced to restart from the newest snapshot | execution == 1 | execution=2, plan=last
        the new execution reads its snapshot | plan > 0 and begins_at is None
            | begins_at=plan if plan == 2 or data else 0
        """,
        wrong="begins_at == 0 | REC: the source restarts from the initial state, and every event takes effect twice",
        left="not begins_at | LIVE: the job does not run again",
    )


class Final(NamedTuple):
    """The final checkpoint of a job of two tasks that is being stopped.

    Attributes
    ----------
    parts : int
        Tasks that have written their part, and ended.
    committed : bool
        Whether the sink's part is committed.
    written : bool
        Whether the metadata of the checkpoint is written.
    down : bool
    resumed : bool
    """

    parts: int = 0
    committed: bool = False
    written: bool = False
    down: bool = False
    resumed: bool = False


def final_checkpoint(repaired: bool) -> Scheme[Final]:
    """The leader shuts down when all tasks have ended; repaired, when the checkpoint is complete."""
    return scheme(
        Final(),
        """
        a task writes its part of the final checkpoint, and ends | parts < 2 | parts=parts + 1
        the sink's part is committed | parts == 2 and not committed | committed=True
        the leader writes the metadata | parts == 2 and not written and not down | written=True
        the leader shuts down | parts == 2 and not down and (written or not repaired) | down=True
        the job is resumed | down and committed and not resumed | resumed=True
        """,
        wrong="""resumed and not written
            | REC: the job resumes from the checkpoint before, and what was committed comes a second time""",
        left="not resumed | LIVE: the job is not resumed",
        repaired=repaired,
    )


class Workers(NamedTuple):
    """Two workers that run through epoch 1, and note their progress each for itself.

    Attributes
    ----------
    through, noted : tuple of bool
        By worker: whether it is through epoch 1, and has noted that.
    crashed : bool
    resumes : int
        The epoch that is resumed from; 0 before that.
    """

    through: tuple[bool, bool] = (False, False)
    noted: tuple[bool, bool] = (False, False)
    crashed: bool = False
    resumes: int = 0


def resume_epoch(repaired: bool) -> Scheme[Workers]:
    """The epoch to resume from is the least that was noted; repaired, by all workers, whose number is known."""
    return scheme(
        Workers(),
        """
        worker 1 is through epoch 1 | not crashed and not through[0] | through=put(through, 0, True)
        worker 2 is through epoch 1 | not crashed and not through[1] | through=put(through, 1, True)
        worker 1 notes its progress | not crashed and through[0] and not noted[0] | noted=put(noted, 0, True)
        worker 2 notes its progress | not crashed and through[1] and not noted[1] | noted=put(noted, 1, True)
        the cluster crashes | not crashed | crashed=True
        the cluster resumes | crashed and not resumes | resumes=2 if reached(noted) else 1
        """,
        wrong="""resumes == 2 and not all(noted)
            | REC: epoch 1 of worker {noted.index(False) + 1} is skipped, and its data lost""",
        faults=("the cluster crashes",),
        reached=all if repaired else any,
    )


class TimeProgress(NamedTuple):
    """A message of time 5 for an operator, and what it and an observer know of who may still send at that time.

    Attributes
    ----------
    message : str
        ``waits``; ``here``: the operator has taken it, and a capability with it; ``there``: another worker took it.
    capability : bool
        Whether the operator may send at time 5.
    heard : bool
        Whether the operator has heard that the other worker took it.
    from_other, from_operator : tuple of int
        Changes that are on their way to the observer, in order.
    senders : int
        What the observer makes of the changes: who may still send at time 5.
    passed : bool
        Whether its frontier has passed time 5.
    """

    message: str = "waits"
    capability: bool = False
    made: bool = False
    heard: bool = False
    from_other: tuple[int, ...] = ()
    from_operator: tuple[int, ...] = ()
    senders: int = 1
    passed: bool = False


def capability(repaired: bool) -> Scheme[TimeProgress]:
    """A capability may be made of the frontier of the inputs; repaired, only of a message or another capability."""
    return scheme(
        TimeProgress(),
        """
        another worker takes the message | message == "waits" | message="there", from_other=(-1,)
        the operator takes the message, and a capability in its place | message == "waits" and not made
            | message="here", capability=True, made=True
        the operator hears that the message was taken | message == "there" and not heard | heard=True
        the operator makes a capability, since its input is at time 5
            | not made and not repaired and message != "here" and not heard
            | capability=True, made=True, from_operator=(1,)
        the operator drops its capability | capability | capability=False, from_operator=(*from_operator, -1)
        the observer hears of the other worker | from_other
            | from_other=(), senders=senders + from_other[0], passed=passed or senders + from_other[0] == 0
        the observer hears of the operator | from_operator | from_operator=from_operator[1:],
                senders=senders + from_operator[0], passed=passed or senders + from_operator[0] == 0
        """,
        wrong="passed and capability | FRONTIER: the observer has passed time 5, at which the operator may still send",
        left="not passed | LIVE: the observer never passes time 5",
        repaired=repaired,
    )


class Log(NamedTuple):
    """A log from which events are replayed, and a checkpoint.

    Attributes
    ----------
    applied : int
        Events that were logged and applied.
    position, image : int or None
        How far the log is said to be covered, and what is in the state that was saved.
    replayed : bool
    """

    applied: int = 0
    position: int | None = None
    image: int | None = None
    replayed: bool = False


def log_position(repaired: bool) -> Scheme[Log]:
    """The position is taken, and then the state; repaired, the position with the state, and behind it."""
    return scheme(
        Log(),
        """
        an event is logged and applied | applied < 3 and not replayed | applied=applied + 1
        the checkpoint takes the position in the log | not repaired and position is None | position=applied
        the checkpoint saves the state | image is None and (repaired or position is not None)
            | image=applied, position=applied if repaired else position
        after a crash the log is replayed from that position | image is not None and not replayed | replayed=True
        """,
        wrong="""replayed and None not in (image, position) and image != position
            | REC: event {position + 1} is in the state that was saved, and is replayed as well""",
        faults=("after a crash the log is replayed from that position",),
        repaired=repaired,
    )


class LoggedSteps(NamedTuple):
    """A pipeline that replays two logged steps, and takes a checkpoint of the step that it has come to.

    Attributes
    ----------
    step : int
        Steps that are done.
    log : int or None
        The step whose input log is kept, for a checkpoint to say where to read on.
    saved : tuple of (int, int or None)
        What is in the checkpoint: the step, and the step that its input positions are of.
    """

    step: int = 0
    log: int | None = 0
    saved: tuple[int, int | None] | None = None


def replayed_step(repaired: bool) -> Scheme[LoggedSteps]:
    """A step that is replayed drops its input log; repaired, the last one is kept."""
    return scheme(
        LoggedSteps(),
        """
        a logged step is replayed | step < 2 | step=step + 1, log=step + 1 if repaired else None
        a new step is made, and logged | 2 <= step < 4 | step=step + 1, log=step + 1
        a checkpoint is taken | step >= 2 and saved is None | saved=(step, log)
        """,
        wrong="""saved and saved[0] != saved[1]
            | REC: the checkpoint holds step {saved[0]}, and not how far its inputs had been read""",
        repaired=repaired,
    )


class Changelog(NamedTuple):
    """A task whose state was wiped, and is restored from a changelog of two records that it wrote before.

    Attributes
    ----------
    restored : int
        Records that are in the local state.
    file : int
        The position in the checkpoint file.
    phase : str
        ``restoring``, ``closed`` or ``running``.
    closes : int
        How often it may still be closed.
    """

    restored: int = 0
    file: int = 0
    phase: str = "restoring"
    closes: int = 1


def changelog(repaired: bool) -> Scheme[Changelog]:
    """At its close a task writes the position that it holds; as reported, what it had written to the changelog."""
    return scheme(
        Changelog(),
        """
        a record is restored | phase == "restoring" and max(file, restored) < 2 | restored=restored + 1
        the task is closed, and writes its position | phase == "restoring" and closes > 0
            | phase="closed", file=restored if repaired else 2, closes=0
        the task is opened again | phase == "closed" | phase="restoring"
        the task runs, since its position is the end | phase == "restoring" and max(file, restored) == 2
            | phase="running"
        """,
        wrong="""phase == "running" and restored < 2
            | REC: the task runs, and {2 - restored} records of its changelog are not in its state""",
        left='phase != "running" | LIVE: the task does not run',
        repaired=repaired,
    )


class Committer(NamedTuple):
    """The committer of a sink, and the result of a writer for checkpoint 1.

    Attributes
    ----------
    sent, came : bool
        Whether the writer has sent its result and its barrier, and whether the result has come.
    saved : int
        Checkpoints whose state the committer has saved.
    buffered : int
        The checkpoint in which the result is saved; 0 if in none.
    committed : int
        The newest checkpoint that the table says is committed.
    shown : bool
        Whether the result is in the table.
    crashed : bool
    """

    sent: bool = False
    came: bool = False
    saved: int = 0
    buffered: int = 0
    committed: int = 0
    shown: bool = False
    crashed: bool = False


def committer(repaired: bool) -> Scheme[Committer]:
    """The barrier overtakes the result; repaired, it does not, on the edge to the committer.

    What is of a checkpoint that the table has is taken for committed at a restore; the result is of checkpoint 1.
    """
    return scheme(
        Committer(),
        """
        the writer sends its result and the barrier of checkpoint 1 | not sent | sent=True
        the result of the writer comes | sent and not came | came=True
        the committer saves what it holds
            | sent and saved < 2 and saved == committed and not crashed and (came or not repaired)
            | saved=saved + 1, buffered=buffered or (saved + 1 if came else 0)
        the checkpoint is complete, and is committed | saved > committed and not crashed
            | committed=saved, shown=shown or buffered > 0
        the checkpoint is complete; the job crashes, and is restored from it
            | saved > committed and came and not crashed
            | crashed=True, shown=shown or (buffered > 0 and committed < 1), committed=saved
        """,
        wrong="""crashed and buffered and not shown
            | REC: the result of checkpoint 1 is taken for committed, and never comes into the table""",
        faults=("the checkpoint is complete; the job crashes, and is restored from it",),
        repaired=repaired,
    )


ENTRIES: dict[str, Exhibit] = {
    "FLINK-20654": recovered_channel,
    "FLINK-39519": filtering,
    "FLINK-19027": local_channel,
    "JET-2824": late_reply,
    "ARROYO-1124": final_checkpoint,
    "BYTEWAX-181": resume_epoch,
    "TIMELY-327": capability,
    "LAMINARDB-159": log_position,
    "FELDERA-4037": replayed_step,
    "KAFKA-16017": changelog,
    "ICEBERG-15846": committer,
}
