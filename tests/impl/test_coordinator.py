"""The coordinator: when it triggers, and how each checkpoint ends."""

from __future__ import annotations

from impl import (
    Aborted,
    AbortTask,
    Acknowledge,
    CheckpointCoordinator,
    Completed,
    CoordinatorConfig,
    Decline,
    FailJob,
    Ignored,
    Inject,
    Notify,
    Publish,
    Reason,
    Refused,
    Triggered,
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
    """If it fails, tasks stay blocked for a checkpoint that was given up (rule 11, LIVE)."""
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


def test_decline_gives_up_all_that_is_older_too():
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
    """If it fails, a job that cannot checkpoint goes on as if it could, or gives up after failures far apart."""
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
