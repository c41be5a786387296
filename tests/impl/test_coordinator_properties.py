"""Any sequence of reports, deadlines, writes and failures, against an oracle and what every coordinator owes."""

from __future__ import annotations

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from barrierlab.impl import Acknowledge, CheckpointCoordinator, CoordinatorConfig, Decline, Reason
from tests.breadth import examples
from tests.impl.coordinator_oracle import Oracle, line

TASKS, SOURCES = ["a", "b", "sink"], ["a", "b"]
KINDS = ["trigger"] * 3 + ["ack"] * 4 + ["everybody acks"] * 6 + ["everybody ends"]
KINDS += ["decline", "finished", "time", "time", "abort"]
KINDS += ["well"] * 5 + ["failed", "in doubt", "suspend", "resume", "resume", "replace"]
Move = tuple[str, str, int]


def told(kind: str, task: str, n: int) -> list[Move]:
    """One move, or one of each task."""
    if kind.startswith("everybody"):
        return [("ack" if kind.endswith("acks") else "finished", each, n % 4) for each in TASKS]
    return [(kind, task, n)]


MOVES = st.lists(st.builds(told, st.sampled_from(KINDS), st.sampled_from(TASKS), st.integers(0, 7)), max_size=40).map(
    lambda groups: [move for group in groups for move in group]
)
CONFIGS = st.builds(
    CoordinatorConfig,
    interval_ns=st.sampled_from([None, 7]),
    min_pause_ns=st.sampled_from([0, 3]),
    timeout_ns=st.sampled_from([10, 40]),
    max_concurrent=st.integers(1, 3),
    tolerable_failures=st.sampled_from([None, 0, 2]),
)


def final(task: str) -> Acknowledge:
    """The final snapshot of a task."""
    return Acknowledge(task, 0, image=task, finished=True)


class Run:
    """A coordinator, in its place a new one after a loss, and what was triggered."""

    def __init__(self, config: CoordinatorConfig) -> None:
        self.config = config
        self.machine = CheckpointCoordinator(config, TASKS, SOURCES)
        self.now = 0
        self.newest = 0  # the highest id that was ever triggered

    def move(self, kind: str, task: str, n: int) -> tuple | None:
        """The answer; None if the driver would not do it now."""
        machine = self.machine
        self.now += n
        about = max(self.newest - n % 4, 1)
        writing = [i for i, pending in machine.pending.items() if pending.publishing]
        if kind == "trigger":
            return machine.trigger(self.now)
        if kind == "ack":
            return machine.acknowledge(Acknowledge(task, about), self.now)
        if kind == "decline":
            return machine.decline(Decline(task, about, Reason.SNAPSHOT_FAILED), self.now)
        if kind == "abort":
            return machine.abort(about, Reason.REPLACED, self.now)
        if kind == "finished":
            return machine.finished(task, self.now, final(task))
        if kind == "time":
            return machine.on_time(self.now)
        if kind == "well":
            return machine.published(writing[0], self.now) if writing else None
        if kind in ("failed", "in doubt"):
            return machine.publish_failed(writing[0], self.now, kind == "failed") if writing else None
        if kind == "suspend":
            return machine.suspend(self.now, Reason.JOB_FAILED)
        if kind == "resume":
            return self.resume(n) if machine.suspended and machine.settled else None
        self.machine = CheckpointCoordinator(self.config, TASKS, SOURCES, self.newest + 1)
        return self.resume(n)

    def resume(self, n: int) -> tuple:
        """The first `n` % 4 tasks have finished."""
        self.machine.resume(0, self.now, {task: final(task) for task in TASKS[: n % 4]})
        return ()

    def notice(self, answer: tuple) -> list[str]:
        """The answer in lines."""
        lines = list(map(line, answer))
        self.newest = max([self.newest, *(int(each.split()[1]) for each in lines if each.startswith("trigger "))])
        return lines


def tell(oracle: Oracle, run: Run, kind: str, task: str, n: int) -> Oracle:
    """The same move to the oracle; it is replaced where the coordinator was."""
    now, about, writing = run.now, max(run.newest - n % 4, 1), oracle.at("writing")
    if kind == "trigger":
        oracle.trigger(now)
    elif kind == "ack":
        oracle.acknowledge(task, about, now)
    elif kind == "decline":
        oracle.decline(task, about, "snapshot failed", now)
    elif kind == "abort":
        if oracle.stage.get(about) == "open":
            oracle.decline(task, about, "replaced", now)
    elif kind == "finished":
        oracle.finish(task, now)
    elif kind == "time":
        oracle.time(now)
    elif kind in ("well", "failed", "in doubt"):
        oracle.written(writing[0], now, kind)
    elif kind == "suspend":
        oracle.suspend("job failed")
    elif kind == "resume":
        oracle.resume(now, TASKS[: n % 4])
    else:
        oracle = Oracle(run.config, TASKS, SOURCES, run.newest + 1)
        oracle.resume(now, TASKS[: n % 4])
    return oracle


RETRY_IS_DUE = [
    ("finished", "a", 0),
    ("finished", "b", 0),
    ("finished", "sink", 0),
    ("failed", "a", 0),
    ("ack", "a", 7),
]


@given(CONFIGS, MOVES)
@example(CoordinatorConfig(interval_ns=7, timeout_ns=10), RETRY_IS_DUE)
@settings(max_examples=examples(400), deadline=None)
def test_every_answer_is_the_oracles(config, moves):
    """If it fails, a checkpoint ends otherwise than the rules say (rules 2, 10, 11, 13 and 20)."""
    run, oracle = Run(config), Oracle(config, TASKS, SOURCES)
    for kind, task, n in moves:
        answer = run.move(kind, task, n)
        if answer is not None:
            oracle = tell(oracle, run, kind, task, n)
            lines = oracle.take()
            assert run.notice(answer) == lines
            for each in lines:
                event(each.split()[0])
        machine = run.machine
        assert list(machine.pending) == sorted(oracle.at("open") + oracle.at("writing"))
        assert (machine.next_deadline_ns(), machine.ended, machine.failures_in_row) == (
            oracle.deadline(),
            oracle.over,
            oracle.failures,
        )
        assert machine.settled == (not oracle.at("writing"))


@given(CONFIGS, MOVES)
@settings(max_examples=examples(300), deadline=None)
def test_ids_never_go_back_and_each_checkpoint_ends_once(config, moves):
    """If it fails, two attempts share an id, or one checkpoint is complete and aborted (ID, ONCE, rule 2).

    Also after a failure of the job, and when a new coordinator takes over.
    """
    run = Run(config)
    begun: list[int] = []
    over: list[int] = []
    lost: set[int] = set()  # with their coordinator
    for kind, task, n in moves:
        if kind == "replace":
            lost |= set(run.machine.pending)
        for each in run.notice(run.move(kind, task, n) or ()):
            verb, number = each.split()[:2]
            if verb == "trigger":
                begun.append(int(number))
            elif verb in ("completed", "aborted"):
                over.append(int(number))
        assert begun == sorted(set(begun))
        assert len(over) == len(set(over))
        assert set(over) | set(run.machine.pending) | lost == set(begun)
        assert not set(over) & set(run.machine.pending)


@given(CONFIGS, MOVES)
@settings(max_examples=examples(300), deadline=None)
def test_what_is_due_is_done_at_its_deadline(config, moves):
    """If it fails, a driver that sleeps until the deadline sleeps for ever, or is woken for nothing."""
    run = Run(config)
    for kind, task, n in moves:
        run.notice(run.move(kind, task, n) or ())
        due_ns = run.machine.next_deadline_ns()
        if due_ns is not None and due_ns <= run.now:
            assert run.notice(run.machine.on_time(run.now))
            due_ns = run.machine.next_deadline_ns()
        assert due_ns is None or due_ns > run.now


@given(CONFIGS, MOVES, MOVES)
@settings(max_examples=examples(300), deadline=None)
def test_coordinator_is_what_it_captured(config, before, after):
    """If it fails, a coordinator that is restored reuses an id, or waits for what it had."""

    def play(run, part):
        return [run.notice(answer) for each in part if (answer := run.move(*each)) is not None]

    first = Run(config)
    play(first, before)
    value = first.machine.capture()
    second = Run(config)
    second.machine.trigger(3)
    second.now, second.newest = first.now, first.newest
    second.machine.restore(value)
    assert second.machine.capture() == value
    assert hash(value) == hash(first.machine.capture())
    assert play(second, after) == play(first, after)
    assert second.machine.capture() == first.machine.capture()
