"""Reports about what is saved, what is read back, and what a job goes on from."""

from __future__ import annotations

from typing import NamedTuple

from barrierlab.model.defects.engines.kind import Scheme, SchemeDefect, entry, to

FLINK, KAFKA = "Flink", "Kafka Streams"


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

    def checkpoint(state: Recovered) -> Recovered:
        if repaired and not state.converted:
            return state._replace(declines=state.declines - 1)
        recorded = state.waiting if state.converted else 0
        return state._replace(cut=(state.applied, recorded, 2 + state.came))

    def wrong(state: Recovered) -> str | None:
        if state.cut is None or state.cut[0] + state.cut[1] == state.cut[2]:
            return None
        missing = state.cut[2] - state.cut[0] - state.cut[1]
        return f"CUT: {missing} buffers that wait in the channel are neither in the state nor recorded"

    return Scheme(
        Recovered(),
        {
            "the task consumes a recovered buffer": (
                lambda s: s.left > 0,
                lambda s: s._replace(left=s.left - 1, applied=s.applied + 1),
            ),
            "the channel becomes an ordinary one": (lambda s: not s.left and not s.converted, to(converted=True)),
            "a new buffer comes": (lambda s: s.came < 1, to(came=1, waiting=1)),
            "the task consumes a new buffer": (
                lambda s: s.converted and s.waiting > 0,
                lambda s: s._replace(waiting=0, applied=s.applied + 1),
            ),
            "a checkpoint begins at the task": (lambda s: s.cut is None and s.declines > 0, checkpoint),
        },
        wrong=wrong,
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

    def read(state: RecoveryFilter) -> RecoveryFilter:
        return state._replace(before=state.before + 1, read=state.read + 1, free=state.free - (not repaired))

    def write(state: RecoveryFilter) -> RecoveryFilter:
        return state._replace(before=state.before - 1, after=state.after + 1, free=state.free - 1 + (not repaired))

    return Scheme(
        RecoveryFilter(),
        {
            "the thread reads a buffer of channel state": (
                lambda s: s.read < 3 and (s.before == 0 if repaired else s.free > 0),
                read,
            ),
            "the thread writes what is left of it into another": (lambda s: s.before > 0 and s.free > 0, write),
            "the task consumes a buffer": (
                lambda s: s.after > 0,
                lambda s: s._replace(after=s.after - 1, free=s.free + 1),
            ),
        },
        left=lambda s: "LIVE: the thread waits for a buffer, and holds all of them itself" if s.before else None,
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
    return Scheme(
        Local(own=int(repaired)),
        {
            "the task above fills a buffer": (
                lambda s: s.free > 0 and s.buffered + s.passed < 2,
                lambda s: s._replace(free=s.free - 1, buffered=s.buffered + 1),
            ),
            "the channel has a buffer, and is restored": (
                lambda s: not s.restored and s.free + s.own > 0,
                to(restored=True),
            ),
            "the channel asks for a buffer, and gets none": (
                lambda s: not s.restored and s.free + s.own == 0,
                lambda s: s,
            ),
            "a buffer is passed on through the channel": (
                lambda s: s.restored and s.buffered > 0,
                lambda s: s._replace(buffered=s.buffered - 1, passed=s.passed + 1, free=s.free + 1),
            ),
        },
        left=lambda s: None if s.restored else "LIVE: the channel waits for a buffer of the task that waits for it",
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

    def acts(state: Master) -> Master:
        return state._replace(reply="done", last=2, data=False)

    def look(state: Master) -> Master:
        if state.execution != 1:
            return state._replace(reply="done")
        return acts(state) if repaired else state._replace(reply="found good")

    def read(state: Master) -> Master:
        return state._replace(begins_at=state.plan if state.plan == 2 or state.data else 0)

    return Scheme(
        Master(),
        {
            "the reply for snapshot 2 comes, and its execution is compared": (lambda s: s.reply == "under way", look),
            "snapshot 2 is the newest: the data of snapshot 1 is cleared": (lambda s: s.reply == "found good", acts),
            "the job is forced to restart from the newest snapshot": (
                lambda s: s.execution == 1,
                lambda s: s._replace(execution=2, plan=s.last),
            ),
            "the new execution reads its snapshot": (lambda s: s.plan > 0 and s.begins_at is None, read),
        },
        wrong=lambda s: (
            "REC: the source restarts from the initial state, and every event takes effect twice"
            if s.begins_at == 0
            else None
        ),
        left=lambda s: None if s.begins_at else "LIVE: the job does not run again",
        faults=(),
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
    return Scheme(
        Final(),
        {
            "a task writes its part of the final checkpoint, and ends": (
                lambda s: s.parts < 2,
                lambda s: s._replace(parts=s.parts + 1),
            ),
            "the sink's part is committed": (lambda s: s.parts == 2 and not s.committed, to(committed=True)),
            "the leader writes the metadata": (
                lambda s: s.parts == 2 and not s.written and not s.down,
                to(written=True),
            ),
            "the leader shuts down": (
                lambda s: s.parts == 2 and not s.down and (s.written or not repaired),
                to(down=True),
            ),
            "the job is resumed": (lambda s: s.down and s.committed and not s.resumed, to(resumed=True)),
        },
        wrong=lambda s: (
            "REC: the job resumes from the checkpoint before, and what was committed comes a second time"
            if s.resumed and not s.written
            else None
        ),
        left=lambda s: None if s.resumed else "LIVE: the job is not resumed",
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

    def both(values: tuple[bool, bool], worker: int) -> tuple[bool, bool]:
        return (True, values[1]) if worker == 0 else (values[0], True)

    def resume(state: Workers) -> Workers:
        reached = all(state.noted) if repaired else any(state.noted)
        return state._replace(resumes=2 if reached else 1)

    def wrong(state: Workers) -> str | None:
        skipped = [number for number, noted in enumerate(state.noted, 1) if not noted]
        if state.resumes == 2 and skipped:
            return f"REC: epoch 1 of worker {skipped[0]} is skipped, and its data lost"
        return None

    return Scheme(
        Workers(),
        {
            **{
                f"worker {n + 1} is through epoch 1": (
                    lambda s, n=n: not s.crashed and not s.through[n],  # type: ignore[misc]
                    lambda s, n=n: s._replace(through=both(s.through, n)),  # type: ignore[misc]
                )
                for n in (0, 1)
            },
            **{
                f"worker {n + 1} notes its progress": (
                    lambda s, n=n: not s.crashed and s.through[n] and not s.noted[n],  # type: ignore[misc]
                    lambda s, n=n: s._replace(noted=both(s.noted, n)),  # type: ignore[misc]
                )
                for n in (0, 1)
            },
            "the cluster crashes": (lambda s: not s.crashed, to(crashed=True)),
            "the cluster resumes": (lambda s: s.crashed and not s.resumes, resume),
        },
        wrong=wrong,
        faults=("the cluster crashes",),
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

    def makes(state: TimeProgress) -> bool:
        by_frontier = not repaired and state.message != "here" and not state.heard
        return not state.made and by_frontier

    def observed(state: TimeProgress, change: int) -> TimeProgress:
        senders = state.senders + change
        return state._replace(senders=senders, passed=state.passed or senders == 0)

    return Scheme(
        TimeProgress(),
        {
            "another worker takes the message": (lambda s: s.message == "waits", to(message="there", from_other=(-1,))),
            "the operator takes the message, and a capability in its place": (
                lambda s: s.message == "waits" and not s.made,
                to(message="here", capability=True, made=True),
            ),
            "the operator hears that the message was taken": (
                lambda s: s.message == "there" and not s.heard,
                to(heard=True),
            ),
            "the operator makes a capability, since its input is at time 5": (
                makes,
                to(capability=True, made=True, from_operator=(1,)),
            ),
            "the operator drops its capability": (
                lambda s: s.capability,
                lambda s: s._replace(capability=False, from_operator=(*s.from_operator, -1)),
            ),
            "the observer hears of the other worker": (
                lambda s: bool(s.from_other),
                lambda s: observed(s._replace(from_other=()), s.from_other[0]),
            ),
            "the observer hears of the operator": (
                lambda s: bool(s.from_operator),
                lambda s: observed(s._replace(from_operator=s.from_operator[1:]), s.from_operator[0]),
            ),
        },
        wrong=lambda s: (
            "FRONTIER: the observer has passed time 5, at which the operator may still send"
            if s.passed and s.capability
            else None
        ),
        left=lambda s: None if s.passed else "LIVE: the observer never passes time 5",
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

    def save(state: Log) -> Log:
        return state._replace(image=state.applied, position=state.applied if repaired else state.position)

    def wrong(state: Log) -> str | None:
        if not state.replayed or state.image is None or state.position is None or state.image == state.position:
            return None
        return f"REC: event {state.position + 1} is in the state that was saved, and is replayed as well"

    return Scheme(
        Log(),
        {
            "an event is logged and applied": (
                lambda s: s.applied < 3 and not s.replayed,
                lambda s: s._replace(applied=s.applied + 1),
            ),
            "the checkpoint takes the position in the log": (
                lambda s: not repaired and s.position is None,
                lambda s: s._replace(position=s.applied),
            ),
            "the checkpoint saves the state": (
                lambda s: s.image is None and (repaired or s.position is not None),
                save,
            ),
            "after a crash the log is replayed from that position": (
                lambda s: s.image is not None and not s.replayed,
                to(replayed=True),
            ),
        },
        wrong=wrong,
        faults=("after a crash the log is replayed from that position",),
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
    return Scheme(
        LoggedSteps(),
        {
            "a logged step is replayed": (
                lambda s: s.step < 2,
                lambda s: s._replace(step=s.step + 1, log=s.step + 1 if repaired else None),
            ),
            "a new step is made, and logged": (
                lambda s: 2 <= s.step < 4,
                lambda s: s._replace(step=s.step + 1, log=s.step + 1),
            ),
            "a checkpoint is taken": (
                lambda s: s.step >= 2 and s.saved is None,
                lambda s: s._replace(saved=(s.step, s.log)),
            ),
        },
        wrong=lambda s: (
            f"REC: the checkpoint holds step {s.saved[0]}, and not how far its inputs had been read"
            if s.saved is not None and s.saved[0] != s.saved[1]
            else None
        ),
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

    def close(state: Changelog) -> Changelog:
        return state._replace(phase="closed", file=state.restored if repaired else 2, closes=0)

    def position(state: Changelog) -> int:
        return max(state.file, state.restored)

    return Scheme(
        Changelog(),
        {
            "a record is restored": (
                lambda s: s.phase == "restoring" and position(s) < 2,
                lambda s: s._replace(restored=s.restored + 1),
            ),
            "the task is closed, and writes its position": (lambda s: s.phase == "restoring" and s.closes > 0, close),
            "the task is opened again": (lambda s: s.phase == "closed", to(phase="restoring")),
            "the task runs, since its position is the end": (
                lambda s: s.phase == "restoring" and position(s) == 2,
                to(phase="running"),
            ),
        },
        wrong=lambda s: (
            f"REC: the task runs, and {2 - s.restored} records of its changelog are not in its state"
            if s.phase == "running" and s.restored < 2
            else None
        ),
        left=lambda s: None if s.phase == "running" else "LIVE: the task does not run",
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
    """The barrier overtakes the result; repaired, it does not, on the edge to the committer."""

    def save(state: Committer) -> Committer:
        buffered = state.buffered or (state.saved + 1 if state.came else 0)
        return state._replace(saved=state.saved + 1, buffered=buffered)

    def commit(state: Committer) -> Committer:
        return state._replace(committed=state.saved, shown=state.shown or state.buffered > 0)

    def restore(state: Committer) -> Committer:
        """Return what is of a checkpoint that the table has is taken for committed; the result is of checkpoint 1."""
        shown = state.shown or (state.buffered > 0 and state.committed < 1)
        return state._replace(crashed=True, shown=shown, committed=state.saved)

    return Scheme(
        Committer(),
        {
            "the writer sends its result and the barrier of checkpoint 1": (lambda s: not s.sent, to(sent=True)),
            "the result of the writer comes": (lambda s: s.sent and not s.came, to(came=True)),
            "the committer saves what it holds": (
                lambda s: (
                    s.sent and s.saved < 2 and s.saved == s.committed and not s.crashed and (s.came or not repaired)
                ),
                save,
            ),
            "the checkpoint is complete, and is committed": (lambda s: s.saved > s.committed and not s.crashed, commit),
            "the checkpoint is complete; the job crashes, and is restored from it": (
                lambda s: s.saved > s.committed and s.came and not s.crashed,
                restore,
            ),
        },
        wrong=lambda s: (
            "REC: the result of checkpoint 1 is taken for committed, and never comes into the table"
            if s.crashed and s.buffered and not s.shown
            else None
        ),
        faults=("the checkpoint is complete; the job crashes, and is restored from it",),
    )


ENTRIES = (
    entry(
        4,
        "a_checkpoint_begins_before_a_channel_is_recovered",
        FLINK,
        (
            "https://issues.apache.org/jira/browse/FLINK-20654",
            "https://github.com/apache/flink/pull/14581",
            "https://github.com/apache/flink/pull/14582",
        ),
        "A checkpoint begins while recovered buffers are not consumed, or the channel is not yet an ordinary one: what "
        "waits there is skipped.",
        "A task declines as long as one of its channels is not recovered, consumed and converted.",
        SchemeDefect(
            *("FLINK-20654", "safety", "CUT"),
            "A checkpoint begins while recovered buffers wait in the channel.",
            recovered_channel,
        ),
    ),
    entry(
        6,
        "the_recovery_thread_waits_for_its_own_buffers",
        FLINK,
        ("https://issues.apache.org/jira/browse/FLINK-39519", "https://github.com/apache/flink/pull/28001"),
        "One thread takes buffers of one pool for what it reads and for what is left behind the filter: if the first "
        "take all, it waits for a buffer that only itself could give back.",
        "What is read has one buffer of its own, which is not of the pool.",
        SchemeDefect(
            *("FLINK-39519", "liveness", "LIVE"),
            "All buffers of the pool hold what was read.",
            filtering,
        ),
    ),
    entry(
        9,
        "a_local_channel_has_no_buffer_of_its_own",
        FLINK,
        ("https://issues.apache.org/jira/browse/FLINK-19027", "https://github.com/apache/flink/pull/13539"),
        "A local channel needs a buffer of the pool to be restored, and the tasks above it have filled them all and "
        "cannot pass them on before it is.",
        "A local channel that is restored has exclusive buffers, as a remote one.",
        SchemeDefect(
            *("FLINK-19027", "liveness", "LIVE"),
            "The task above has filled all buffers before the channel is restored.",
            local_channel,
        ),
    ),
    entry(
        15,
        "a_late_reply_clears_the_snapshot_that_is_being_restored",
        "Hazelcast Jet",
        (
            "https://github.com/hazelcast/hazelcast-jet/pull/2824",
            "https://github.com/hazelcast/hazelcast-jet/pull/2503",
        ),
        "The master has compared the reply with the execution that runs when the job is forced to restart; it goes on, "
        "and clears the snapshot that the new execution is about to read.",
        "The reply is compared and acted upon under one lock.",
        SchemeDefect(
            *("JET-2824", "crash", "REC"),
            "The job is forced to restart between the look at the reply and what comes of it.",
            late_reply,
        ),
    ),
    entry(
        20,
        "the_tasks_end_before_the_final_checkpoint_is_written",
        "Arroyo",
        ("https://github.com/ArroyoSystems/arroyo/pull/1124",),
        "A job that stops with a checkpoint shuts down when all its tasks have ended, which does not mean that the "
        "metadata of the checkpoint is written: it is skipped at the next start, though it was committed.",
        "The leader shuts down when the final checkpoint is complete.",
        SchemeDefect(
            *("ARROYO-1124", "crash", "REC"),
            "All tasks have ended, and the leader shuts down.",
            final_checkpoint,
        ),
    ),
    entry(
        22,
        "a_worker_that_has_noted_nothing_is_not_waited_for",
        "Bytewax",
        ("https://github.com/bytewax/bytewax/issues/181", "https://github.com/bytewax/bytewax/pull/193"),
        "The epoch to resume from is the least of those that workers have noted; one that had noted nothing before the "
        "crash looks as if it had never been, and its data is skipped.",
        "The number of workers is noted at the start of each execution.",
        SchemeDefect(
            *("BYTEWAX-181", "crash", "REC"),
            "The cluster crashes when one of two workers has noted epoch 1.",
            resume_epoch,
        ),
    ),
    entry(
        23,
        "a_capability_is_made_of_the_frontier_of_an_input",
        "Timely Dataflow",
        ("https://github.com/TimelyDataflow/timely-dataflow/pull/327",),
        "An operator may send at a time because its input still seems to be there, while the change that says that it "
        "is not is on its way; who hears of that first passes the time. The check of progress allowed it; no "
        "operator is known to do it.",
        "A capability is made of a message that was taken, or of another capability, and never of the frontier.",
        SchemeDefect(
            *("TIMELY-327", "safety", "FRONTIER"),
            "Another worker has taken the message, and the operator has not heard of it.",
            capability,
        ),
        "latent",
    ),
    entry(
        24,
        "the_position_in_the_log_is_older_than_the_state",
        "laminardb",
        ("https://github.com/laminardb/laminardb/pull/159",),
        "A checkpoint takes its position in the log before it saves the state of the operators: what comes between is "
        "in the state, and is replayed after a crash.",
        "The position is taken within the checkpoint, behind the state.",
        SchemeDefect(
            *("LAMINARDB-159", "crash", "REC"),
            "An event is applied between the position and the state.",
            log_position,
        ),
    ),
    entry(
        26,
        "a_checkpoint_right_behind_a_replay_lacks_the_last_step",
        "Feldera",
        ("https://github.com/feldera/feldera/pull/4037",),
        "The input log of a step that was replayed is dropped, also of the last one, which a checkpoint that comes at "
        "once needs. It was repaired, came back with another change, and was repaired again with a test. (The report "
        "does not say what a job did that was started from such a checkpoint.)",
        "The input log of the last replayed step is kept.",
        SchemeDefect(
            *("FELDERA-4037", "crash", "REC"),
            "The replay is over, and a checkpoint is taken before any new step.",
            replayed_step,
        ),
    ),
    entry(
        27,
        "a_task_that_is_closed_while_it_restores_writes_the_end",
        KAFKA,
        ("https://issues.apache.org/jira/browse/KAFKA-16017", "https://github.com/apache/kafka/pull/15044"),
        "A task whose state was wiped still holds the positions that it had written; closed while it restores, it "
        "writes these, and is taken for restored when it is opened again.",
        "The positions that it had written are forgotten at the close.",
        SchemeDefect(
            *("KAFKA-16017", "crash", "REC"),
            "The task is closed before its records are restored.",
            changelog,
        ),
    ),
    entry(
        28,
        "a_result_that_was_overtaken_is_taken_for_committed",
        "Iceberg sink on Flink",
        ("https://github.com/apache/iceberg/issues/15846", "https://github.com/apache/iceberg/pull/15913"),
        "With unaligned checkpoints the barrier overtakes the writer's result on its way to the committer; it is saved "
        "with the next checkpoint under a number that the table already has, and is dropped at a restore.",
        "No barrier overtakes between writer and committer.",
        SchemeDefect(
            *("ICEBERG-15846", "crash", "REC"),
            "The result of checkpoint 1 comes behind its commit, and the job crashes before the next.",
            committer,
        ),
        "open",
    ),
)
