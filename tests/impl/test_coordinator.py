"""The coordinator: when it triggers, and how each checkpoint ends."""

from __future__ import annotations

import pytest

from barrierlab.impl import (
    Aborted,
    AbortTask,
    Acknowledge,
    CheckpointCoordinator,
    CheckpointIdError,
    Completed,
    CoordinatorConfig,
    Decline,
    FailJob,
    Ignored,
    Inject,
    Notify,
    NotPublishingError,
    Publish,
    Reason,
    Refused,
    Triggered,
    UnknownTaskError,
    UnsettledError,
)
from tests.impl.support import Dataflow

TASKS = ("a", "b", "join", "sink")


def coordinator(**settings) -> CheckpointCoordinator:
    """Two sources, a join and a sink; on demand unless an interval is given."""
    return CheckpointCoordinator(CoordinatorConfig(**{"interval_ns": None, **settings}), TASKS, ("a", "b"))


def acknowledge(machine, checkpoint_id, now_ns=0, tasks=TASKS):
    """Every task acknowledges; the last answer."""
    actions = ()
    for task in tasks:
        actions = machine.acknowledge(Acknowledge(task, checkpoint_id), now_ns)
    return actions


def complete(machine, checkpoint_id, now_ns=0, tasks=TASKS):
    """Every task acknowledges, and the manifest is written at once; the last answer."""
    assert acknowledge(machine, checkpoint_id, now_ns, tasks) == (Publish(checkpoint_id),)
    return machine.published(checkpoint_id, now_ns)


def notify(checkpoint_id):
    """The announcements of a completion."""
    return tuple(Notify(task, checkpoint_id) for task in TASKS)


def test_every_source_gets_the_same_command():
    """If it fails, sources cut under different ids (rule 2, P-07)."""
    triggered, *actions = coordinator().trigger(0)
    assert triggered == Triggered(1)
    assert [(type(a), a.source, a.command.checkpoint_id, a.command.epoch) for a in actions] == [
        (Inject, "a", 1, 1),
        (Inject, "b", 1, 1),
    ]


def test_interval_runs_from_trigger_to_trigger():
    """If it fails, long checkpoints push the next ones back, or short ones crowd."""
    machine = coordinator(interval_ns=10)
    assert machine.next_deadline_ns() == 10
    assert machine.on_time(9) == ()
    assert machine.on_time(10)[0] == Triggered(1)
    complete(machine, 1, 13)
    assert machine.next_deadline_ns() == 20
    machine.on_time(21)
    complete(machine, 2, 22)
    assert machine.next_deadline_ns() == 31


def test_first_trigger():
    """If it fails, a scenario's first checkpoint is not where it says."""
    assert coordinator(interval_ns=10, first_trigger_ns=3).next_deadline_ns() == 3
    assert coordinator().next_deadline_ns() is None


def test_pause_runs_from_completion():
    """If it fails, a job does nothing but checkpoints."""
    machine = coordinator(interval_ns=10, min_pause_ns=8)
    machine.on_time(10)
    complete(machine, 1, 17)
    assert machine.next_deadline_ns() == 25
    assert machine.trigger(24) == (Refused(Reason.MIN_PAUSE),)
    assert machine.on_time(25)[0] == Triggered(2)


def test_trigger_that_waits_for_a_slot_comes_at_once_when_there_is_one():
    """If it fails, a checkpoint that outlasts its interval costs the next one a whole interval."""
    machine = coordinator(interval_ns=10)
    machine.on_time(10)
    assert machine.next_deadline_ns() == 10 + machine.config.timeout_ns  # only the timeout: the slot is taken
    complete(machine, 1, 27)
    assert machine.next_deadline_ns() == 27
    assert machine.on_time(27)[0] == Triggered(2)
    machine.abort(2, Reason.DECLINED, 60)
    assert machine.next_deadline_ns() == 37  # in the past: now


def test_max_concurrent():
    """If it fails, more checkpoints are under way than allowed, or fewer."""
    machine = coordinator(max_concurrent=2)
    machine.trigger(0)
    machine.trigger(1)
    assert machine.trigger(2) == (Refused(Reason.TOO_MANY_PENDING),)
    assert list(machine.pending) == [1, 2]


def test_request_of_a_periodic_injector():
    """If it fails, each source's request makes its own checkpoint (rule 2, P-08)."""
    machine = coordinator()
    assert machine.request(10)[0] == Triggered(1)
    assert machine.request(10) == (Refused(Reason.TOO_MANY_PENDING),)


def test_timeout_tells_every_task():
    """If it fails, tasks stay blocked for a checkpoint that was aborted (rule 11, LIVE)."""
    machine = coordinator(timeout_ns=50)
    machine.trigger(5)
    machine.acknowledge(Acknowledge("a", 1), 6)
    assert machine.next_deadline_ns() == 55
    assert machine.on_time(54) == ()
    assert machine.on_time(55) == (
        Aborted(1, Reason.EXPIRED),
        *(AbortTask(task, 1, Reason.EXPIRED) for task in TASKS),
    )
    assert machine.acknowledge(Acknowledge("b", 1), 56) == (Ignored("b", 1),)
    assert machine.trigger(60)[0] == Triggered(2)  # a failed attempt burns its id


def test_decline_aborts_all_that_is_older_too():
    """If it fails, an older checkpoint waits for tasks that have closed it (rule 10)."""
    machine = coordinator(max_concurrent=3)
    for n in range(3):
        machine.trigger(n)
    actions = machine.decline(Decline("join", 2, Reason.BUFFER_LIMIT), 5)
    assert actions[:2] == (Aborted(1, Reason.BUFFER_LIMIT), Aborted(2, Reason.BUFFER_LIMIT))
    assert actions[2:] == tuple(AbortTask(task, 2, Reason.BUFFER_LIMIT) for task in TASKS)
    assert list(machine.pending) == [3]
    assert machine.decline(Decline("sink", 2, Reason.BUFFER_LIMIT), 6) == (Ignored("sink", 2),)


def test_duplicate_and_unknown_acknowledgements():
    """If it fails, one task twice completes a checkpoint without another (ONCE)."""
    machine = coordinator()
    machine.trigger(0)
    assert machine.acknowledge(Acknowledge("a", 1), 1) == ()
    assert machine.acknowledge(Acknowledge("a", 1), 1) == (Ignored("a", 1),)
    assert machine.acknowledge(Acknowledge("a", 9), 1) == (Ignored("a", 9),)
    assert machine.pending[1].outstanding == {"b", "join", "sink"}


def test_completion_drops_older_checkpoints():
    """If it fails, an overtaken checkpoint stays pending (rule 20)."""
    machine = coordinator(max_concurrent=2)
    machine.trigger(0)
    machine.trigger(1)
    assert complete(machine, 2, 5) == (Completed(2), *notify(2), Aborted(1, Reason.SUBSUMED))
    assert (machine.last_completed, machine.pending) == (2, {})


def test_finished_task_counts_as_acknowledged():
    """If it fails, a source that ends stops every later checkpoint (rule 13)."""
    machine = coordinator(max_concurrent=2)
    machine.trigger(0)
    machine.trigger(0)
    for n in (1, 2):
        acknowledge(machine, n, 1, ("a", "join", "sink"))
    assert machine.finished("b", 2) == (Publish(1),)
    assert machine.published(1, 2) == (Completed(1), *notify(1), Publish(2))
    machine.published(2, 2)
    (_, inject) = machine.trigger(3)
    assert inject.source == "a"
    assert machine.pending[3].outstanding == {"a", "join", "sink"}
    machine.finished("a", 4)
    assert complete(machine, 3, 5, ("join", "sink")) == (Completed(3), *notify(3))
    assert machine.trigger(6) == (Refused(Reason.SOURCES_FINISHED),)
    assert machine.next_deadline_ns() is None


def test_finished_tasks_are_not_told_of_aborts():
    """If it fails, the driver looks for a task that is no more."""
    machine = coordinator()
    machine.finished("b", 0)
    machine.trigger(0)
    told = [action.task for action in machine.abort(1, Reason.REPLACED, 1) if type(action) is AbortTask]
    assert told == ["a", "join", "sink"]
    assert machine.abort(1, Reason.REPLACED, 1) == ()


def test_too_many_failures_in_a_row():
    """If it fails, a job that cannot checkpoint goes on as if it could, or aborts after failures far apart."""
    machine = coordinator(tolerable_failures=1, interval_ns=10)
    machine.on_time(10)
    machine.decline(Decline("join", 1, Reason.SNAPSHOT_FAILED), 11)
    machine.on_time(20)
    complete(machine, 2, 21)
    assert machine.failures_in_row == 0
    answers = []
    for n in (3, 4):
        machine.trigger(n * 10)
        answers.append(machine.decline(Decline("join", n, Reason.SNAPSHOT_FAILED), n * 10 + 1)[-1])
    assert answers == [AbortTask("sink", 3, Reason.SNAPSHOT_FAILED), FailJob(Reason.TOO_MANY_FAILURES)]
    assert machine.trigger(60) == (Refused(Reason.TOO_MANY_FAILURES),)
    assert machine.next_deadline_ns() is None


# Apache Flink, `CheckpointFailureManager.checkFailureCounter`, and FLINK-27570 for the last two of the first line.
COUNTED = {Reason.EXPIRED, Reason.DECLINED, Reason.SNAPSHOT_FAILED, Reason.STORE_FAILED, Reason.STORE_IN_DOUBT}
COUNTED |= {Reason.BARRIER_MISMATCH, Reason.IN_FLIGHT_LIMIT}  # without a counterpart there: a task declines


@pytest.mark.parametrize("reason", Reason)
def test_what_counts_as_a_failure(reason):
    """If it fails, a job dies of a checkpoint that was cancelled or overtaken, or lives on though none is stored."""
    machine = coordinator(tolerable_failures=0, max_concurrent=2)
    machine.trigger(0)
    answer = machine.decline(Decline("join", 1, reason), 1)
    assert (FailJob(Reason.TOO_MANY_FAILURES) in answer) == (reason in COUNTED)
    assert machine.failures_in_row == (1 if reason in COUNTED else 0)


def test_a_checkpoint_counts_once_and_what_goes_with_it_does_not():
    """If it fails, one report fails a job that is to tolerate one failure."""
    machine = coordinator(tolerable_failures=1, max_concurrent=3)
    for n in range(3):
        machine.trigger(n)
    answer = machine.decline(Decline("a", 2, Reason.SNAPSHOT_FAILED), 5)
    assert answer[:2] == (Aborted(1, Reason.SNAPSHOT_FAILED), Aborted(2, Reason.SNAPSHOT_FAILED))
    assert machine.decline(Decline("b", 2, Reason.SNAPSHOT_FAILED), 6) == (Ignored("b", 2),)
    assert machine.failures_in_row == 1
    assert machine.abort(3, Reason.EXPIRED, 7)[-1] == FailJob(Reason.TOO_MANY_FAILURES)


def test_a_job_is_failed_once():
    """If it fails, a job that is on its way down is failed again, and recovered twice."""
    machine = coordinator(tolerable_failures=0, max_concurrent=2)
    machine.trigger(0)
    machine.trigger(1)
    assert machine.abort(1, Reason.EXPIRED, 2)[-1] == FailJob(Reason.TOO_MANY_FAILURES)
    assert machine.abort(2, Reason.EXPIRED, 3)[-1] == AbortTask("sink", 2, Reason.EXPIRED)


def test_sources_that_end_one_after_another():
    """If it fails, checkpoints of a job whose sources end do not complete, or events are lost at the end."""
    flow = Dataflow("a->join b->join join->sink", capacity=2)
    flow.emit("a", 3)
    flow.emit("b", 3)
    flow.trigger()
    flow.run()
    flow.tasks["b"].end()
    flow.trigger()
    flow.emit("a", 2)
    flow.run()
    assert flow.completed == [1, 2]
    flow.tasks["a"].end()
    flow.run()
    assert len(flow.tasks["sink"].operator.seen) == 8
    assert flow.coordinator.finished_tasks == {"a", "b", "join", "sink"}


def test_replaced_command_is_aborted():
    """If it fails, a checkpoint that one source never saw blocks the others for ever (rule 3, P-02)."""
    flow = Dataflow("a->join b->join join->sink", config=CoordinatorConfig(None, max_concurrent=2))
    flow.trigger()
    flow.run(stalled=("b",))
    replaced: list[int] = []
    for action in flow.coordinator.trigger(0)[1:]:
        replaced += flow.handles[action.source].inject(action.command).replaced
    assert replaced == [1]
    flow.act(flow.coordinator.abort(1, Reason.REPLACED, 0))
    flow.run()
    assert flow.completed == [2]
    assert flow.aborted() == [(1, "replaced")]


def final(task):
    """The final snapshot of a task."""
    return Acknowledge(task, 0, image=task, finished=True)


def finish(machine, now_ns, tasks=TASKS):
    """Tasks end; the last answer."""
    actions = ()
    for task in tasks:
        actions = machine.finished(task, now_ns, final(task))
    return actions


def test_a_checkpoint_is_complete_when_its_manifest_is_written():
    """If it fails, sinks commit what no recovery would find (rule 20)."""
    machine = coordinator()
    machine.trigger(0)
    (publish,) = acknowledge(machine, 1, 5)
    assert [part.task for part in publish.parts] == ["a", "b", "join", "sink"]
    assert (machine.last_completed, machine.settled, list(machine.pending)) == (0, False, [1])
    completed, *told = machine.published(1, 8)
    assert completed.parts == publish.parts
    assert tuple(told) == notify(1)
    with pytest.raises(NotPublishingError, match=r"published\(1\); allowed: none: no manifest is being written"):
        machine.published(1, 9)


def test_what_is_being_published_is_not_aborted():
    """If it fails, a checkpoint is called aborted, and a recovery finds it complete."""
    machine = coordinator(timeout_ns=50)
    machine.trigger(0)
    acknowledge(machine, 1, 5)
    assert machine.next_deadline_ns() is None
    assert machine.on_time(60) == ()
    assert machine.abort(1, Reason.REPLACED, 60) == ()
    assert machine.decline(Decline("join", 1, Reason.EXPIRED), 60) == (Ignored("join", 1),)
    assert machine.trigger(60) == (Refused(Reason.TOO_MANY_PENDING),)
    assert machine.published(1, 61)[0] == Completed(1)


def test_manifests_are_written_one_at_a_time_the_oldest_first():
    """If it fails, an older checkpoint lands after a newer one that dropped it."""
    machine = coordinator(max_concurrent=3)
    for n in range(3):
        machine.trigger(n)
    assert acknowledge(machine, 2, 5) == (Publish(2),)
    assert acknowledge(machine, 1, 6) == ()
    assert acknowledge(machine, 3, 7) == ()
    assert machine.published(2, 8) == (Completed(2), *notify(2), Aborted(1, Reason.SUBSUMED), Publish(3))


@pytest.mark.parametrize(("definite", "reason"), [(True, Reason.STORE_FAILED), (False, Reason.STORE_IN_DOUBT)])
def test_a_manifest_that_was_not_written_gives_the_checkpoint_up(definite, reason):
    """If it fails, a checkpoint that may be there is called surely aborted, or the job waits for it for ever."""
    machine = coordinator(tolerable_failures=0)
    machine.trigger(0)
    acknowledge(machine, 1, 5)
    told = (AbortTask(task, 1, reason) for task in TASKS)
    fail = FailJob(Reason.TOO_MANY_FAILURES)
    assert machine.publish_failed(1, 6, definite) == (Aborted(1, reason), *told, fail)
    assert reason.definite is definite
    assert machine.settled


def test_the_final_part_of_a_task_stands_for_its_part():
    """If it fails, a checkpoint is complete without a part of a task that has ended, and cannot be restored."""
    machine = coordinator()
    machine.trigger(0)
    acknowledge(machine, 1, 1, ("a", "join", "sink"))
    (publish,) = machine.finished("b", 2, final("b"))
    machine.published(1, 2)
    machine.trigger(3)
    assert machine.pending[2].outstanding == {"a", "join", "sink"}
    (later,) = acknowledge(machine, 2, 4, ("a", "join", "sink"))
    for n, action in ((1, publish), (2, later)):
        assert [(part.task, part.checkpoint_id, part.finished) for part in action.parts] == [
            ("a", n, False),
            ("b", n, True),
            ("join", n, False),
            ("sink", n, False),
        ]


def test_a_job_that_ends_takes_a_final_checkpoint():
    """If it fails, sinks never commit the last of a job that ends (FLIP-147)."""
    machine = coordinator(interval_ns=100)
    machine.on_time(100)
    acknowledge(machine, 1, 110)
    machine.stop_scheduler()
    assert finish(machine, 120) == ()  # another one is still being published
    completed, *told, triggered, publish = machine.published(1, 130)
    assert (completed, tuple(told)) == (Completed(1), notify(1))
    assert (triggered, publish) == (Triggered(2), Publish(2))
    assert all(part.finished and part.checkpoint_id == 2 for part in publish.parts)
    assert machine.publish_failed(2, 140, definite=True) == (Aborted(2, Reason.STORE_FAILED),)
    assert machine.next_deadline_ns() == 240  # again, an interval later
    assert machine.on_time(239) == ()
    assert machine.on_time(240) == (Triggered(3), Publish(3))
    assert not machine.ended
    assert machine.published(3, 250) == (Completed(3), *notify(3))
    assert machine.ended
    assert machine.next_deadline_ns() is None


def test_no_second_final_checkpoint():
    """If it fails, a job that has ended goes on with checkpoints."""
    machine = coordinator()
    machine.trigger(0)
    assert finish(machine, 1) == (Publish(1),)  # before a barrier was sent anywhere
    assert machine.published(1, 2) == (Completed(1), *notify(1))
    assert machine.ended


def test_tasks_without_final_parts_end_the_job_without_a_final_checkpoint():
    """If it fails, something is published that lacks parts, or a job without them never ends."""
    machine = coordinator()
    for task in TASKS[1:]:
        machine.finished(task, 0, final(task))
    assert machine.finished("a", 1) == ()
    assert machine.ended


def test_a_job_that_fails_aborts_what_is_pending_and_waits_for_the_store():
    """If it fails, a recovery reads the store while a manifest lands, or an old report completes something."""
    machine = coordinator(max_concurrent=3, interval_ns=10, tolerable_failures=0)
    for n in range(3):
        machine.trigger(n)
    machine.finished("sink", 4, final("sink"))
    acknowledge(machine, 2, 5, ("a", "b", "join"))
    assert machine.suspend(6, Reason.JOB_FAILED) == (Aborted(1, Reason.JOB_FAILED), Aborted(3, Reason.JOB_FAILED))
    assert not machine.settled
    with pytest.raises(UnsettledError, match=r"resume\(\) with checkpoint 2 under way; allowed: none under way"):
        machine.resume(2, 7, {})
    assert machine.acknowledge(Acknowledge("a", 3), 7) == (Ignored("a", 3),)
    assert machine.finished("a", 7, final("a")) == (Ignored("a", 0),)
    assert machine.trigger(7) == (Refused(Reason.JOB_FAILED),)
    assert machine.next_deadline_ns() is None
    assert machine.published(2, 8) == (Completed(2),)  # nobody is there to be notified
    assert machine.settled
    machine.resume(2, 20, {"b": final("b")})
    assert (machine.finished_tasks, list(machine.final_snapshots)) == ({"b"}, ["b"])
    assert machine.next_deadline_ns() == 30
    triggered, *injects = machine.on_time(30)
    assert triggered == Triggered(4)
    assert [each.source for each in injects] == ["a"]
    assert machine.pending[4].outstanding == {"a", "join", "sink"}


def test_what_was_in_doubt_when_the_job_failed():
    """If it fails, the coordinator is never settled, and the job never recovered."""
    machine = coordinator()
    machine.trigger(0)
    acknowledge(machine, 1, 5)
    machine.suspend(6, Reason.JOB_FAILED)
    assert machine.publish_failed(1, 7, definite=False) == (Aborted(1, Reason.STORE_IN_DOUBT),)
    machine.resume(1, 8, {task: final(task) for task in TASKS})
    assert machine.ended  # it was the final one


def test_a_new_coordinator_goes_on_above_every_id():
    """If it fails, an id is used twice, and a late barrier counts for another checkpoint (rule 2)."""
    machine = CheckpointCoordinator(CoordinatorConfig(None), TASKS, ("a", "b"), first_id=8)
    triggered, inject, _ = machine.trigger(0)
    assert (triggered, inject.command.checkpoint_id, inject.command.epoch) == (Triggered(8), 8, 8)
    with pytest.raises(CheckpointIdError):
        CheckpointCoordinator(CoordinatorConfig(None), TASKS, ("a", "b"), first_id=0)
    with pytest.raises(UnknownTaskError):
        machine.resume(3, 0, {"nobody": final("nobody")})
