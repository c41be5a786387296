"""Any schedule of messages on one to five inputs, against the rules and against an oracle that is plain lists."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl import (
    BarrierInjectorConfig,
    CheckpointBarrierInjector,
    EndOfInput,
    Event,
    InjectBarrierCommand,
    OperatorTask,
    OutputExchange,
    Reason,
    SourceTask,
    StreamMessage,
    Watermark,
)
from barrierlab.impl.errors import ContractError
from tests.breadth import examples
from tests.impl.oracle import Oracle
from tests.impl.support import END, Union, aligner, barrier, cancel, gate

TIMEOUT_NS = 10


class Schedule(NamedTuple):
    """An input of one task: (input, message), or ("abort", id), or ("time", nanoseconds to pass)."""

    num_inputs: int
    fails: set[int]
    moves: list[tuple[int | str, object]]


@st.composite
def schedules(draw, ends=True) -> Schedule:
    """Ids increase on each input, with gaps and copies; nothing follows an end."""
    num_inputs = draw(st.integers(1, 5))
    newest = [0] * num_inputs
    count = [0] * num_inputs
    open_inputs = list(range(num_inputs))
    moves: list[tuple[int | str, object]] = []
    kinds = st.sampled_from(["event"] * 6 + ["barrier"] * 6 + ["watermark", "cancel", "end", "abort", "time"])
    for kind in draw(st.lists(kinds, max_size=60)):
        if kind == "abort":
            moves.append(("abort", draw(st.integers(1, 8))))
        elif kind == "time":
            moves.append(("time", draw(st.integers(1, TIMEOUT_NS))))
        elif open_inputs:
            i = draw(st.sampled_from(open_inputs))
            if kind == "event":
                count[i] += 1
                moves.append((i, Event("abcde"[i], count[i])))
            elif kind == "watermark":
                moves.append((i, Watermark(draw(st.integers(0, 9)))))
            elif kind == "cancel":
                moves.append((i, cancel(draw(st.integers(1, 8)))))
            elif kind == "barrier":
                newest[i] = max(1, newest[i] + draw(st.sampled_from([0, 1, 1, 1, 1, 2])))
                moves.append((i, barrier(newest[i])))
            elif ends:
                open_inputs.remove(i)
                moves.append((i, END))
    return Schedule(num_inputs, draw(st.sets(st.integers(1, 6), max_size=2)), moves)


def play(schedule: Schedule):
    """Run it through a gate; the gate, its port, and for each line of the port how far each input had been read."""
    machine, port = gate(schedule.num_inputs, alignment_timeout_ns=TIMEOUT_NS)
    port.fails = schedule.fails
    now_ns = 0
    for where, what in schedule.moves:
        if where == "abort":
            machine.abort(what, Reason.EXPIRED, now_ns)
        elif where == "time":
            now_ns += what
            machine.on_time(now_ns)
        else:
            assert machine.offer(where, what, now_ns)
        machine.drain_all(now_ns)
        assert all(machine.is_blocked(i) <= machine.aligner.is_aligning() for i in range(schedule.num_inputs))
    return machine, port


@given(schedules())
@settings(max_examples=examples(400), deadline=None)
def test_any_schedule_does_what_the_oracle_does(schedule):
    """If it fails, the fast machine and the plain reading of the rules part ways, at the first line that differs."""
    assert_as_the_oracle(schedule)


def test_two_barriers_of_a_new_checkpoint_in_one_move_begin_its_timeout():
    """The oracle would expire checkpoint 2 a nanosecond early: its second barrier is drained in the same move."""
    moves = [(0, barrier(1)), (0, barrier(2)), ("time", 1), (1, barrier(2)), ("time", 9)]
    lines = assert_as_the_oracle(Schedule(3, set(), moves))
    assert lines[-2:] == ["block 1 2", "block 0 2"]
    assert assert_as_the_oracle(Schedule(3, set(), [*moves, ("time", 1)]))[-3:] == [
        *("decline 2 expired", "cancel 2", "resume 2"),
    ]


def assert_as_the_oracle(schedule: Schedule) -> list[str]:
    """Play a schedule to gate and oracle, and return the lines on which they agree."""
    _, port = play(schedule)
    oracle = Oracle(schedule.num_inputs, schedule.fails)
    now_ns, begun_ns, seen = 0, 0, 0
    for where, what in schedule.moves:
        if where == "abort":
            oracle.abort_checkpoint(what)
        elif where == "time":
            now_ns += what
            if oracle.current and now_ns >= begun_ns + TIMEOUT_NS:
                oracle.abort_checkpoint(oracle.current, "expired")
        else:
            oracle.arrive(where, what)
        oracle.drain()
        for place, line in enumerate(oracle.lines[seen:], seen):
            verb, *_, checkpoint_id = line.split()
            barriers = {f"block {i} {checkpoint_id}" for i in range(schedule.num_inputs)}
            if verb == "block" and barriers.isdisjoint(oracle.lines[:place]):
                begun_ns = now_ns  # the first barrier of its id
        seen = len(oracle.lines)
    assert port.lines == oracle.lines
    return oracle.lines


@given(schedules())
@settings(max_examples=examples(300), deadline=None)
def test_any_schedule_keeps_order_and_loses_nothing(schedule):
    """If it fails, an event is lost, doubled, or overtakes another of its input (FIFO, NOLOSS, WM)."""
    machine, port = play(schedule)
    machine.abort(99, Reason.EXPIRED, 0)
    machine.drain_all(0)
    sent: dict[int, list[str]] = {i: [] for i in range(schedule.num_inputs)}
    for where, what in schedule.moves:
        if isinstance(where, int) and type(what) in (Event, Watermark, EndOfInput):
            sent[where].append("end" if what is END else str(what))
    applied: dict[int, list[str]] = {i: [] for i in range(schedule.num_inputs)}
    for line in port.lines:
        verb, rest = line.split(" ", 1)
        if verb == "deliver":
            i, message = rest.split(" ", 1)
            applied[int(i)].append(message)
        elif verb == "end":
            applied[int(rest)].append("end")
    assert applied == sent
    if all("end" in messages for messages in sent.values()):
        ends = [place for place, line in enumerate(port.lines) if line.startswith("end ")]
        assert not any(line.startswith(("cancel", "forward")) for line in port.lines[ends[-1] :])
    assert machine.aligner.buffered_bytes() == 0
    assert not any(machine.is_blocked(i) for i in range(schedule.num_inputs))


@given(schedules())
@settings(max_examples=examples(300), deadline=None)
def test_any_schedule_cuts_at_the_barriers(schedule):
    """If it fails, a snapshot has an event from behind a barrier, or lacks one from before it (CUT, ONCE, ID)."""
    _, port = play(schedule)
    before: dict[tuple[int, int], list[str]] = {}  # (input, id): its events ahead of its first barrier of that id
    events: dict[int, list[str]] = {i: [] for i in range(schedule.num_inputs)}
    ended = set()
    for where, what in schedule.moves:
        if isinstance(where, int):
            if type(what) is Event:
                events[where].append(str(what))
            elif what is END:
                ended.add(where)
            elif type(what) is not Watermark and str(what).startswith("barrier"):
                before.setdefault((where, what.checkpoint_id), list(events[where]))
    applied: dict[int, list[str]] = {i: [] for i in range(schedule.num_inputs)}
    snapshots: list[int] = []
    over: set[int] = set()
    for line in port.lines:
        verb, *rest = line.split()
        if verb == "deliver" and rest[1] != "watermark":
            applied[int(rest[0])].append(rest[1])
        elif verb == "end":
            over.add(int(rest[0]))
        elif verb == "snapshot":
            n = int(rest[0])
            snapshots.append(n)
            for i, seen in applied.items():
                assert seen == (events[i] if i in over else before[(i, n)])
    assert snapshots == sorted(set(snapshots))
    assert not set(snapshots) & schedule.fails


@given(st.integers(1, 5), st.integers(1, 5), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_all_barriers_in_means_all_checkpoints_complete(num_inputs, checkpoints, data):
    """If it fails, a checkpoint that every input delivered does not complete, or something stays blocked (LIVE)."""
    machine, port = gate(num_inputs)
    rest = {
        i: [m for n in range(1, checkpoints + 1) for m in (Event("abcde"[i], n), barrier(n))] for i in range(num_inputs)
    }
    while rest:
        i = data.draw(st.sampled_from(sorted(rest)))
        machine.offer(i, rest[i].pop(0), 0)
        machine.drain_all(0)
        if not rest[i]:
            del rest[i]
    assert port.of("complete") == [str(n) for n in range(1, checkpoints + 1)]
    assert port.of("decline") == []
    assert not any(machine.is_blocked(i) for i in range(num_inputs))


@given(st.integers(1, 4), st.integers(1, 60), st.integers(2, 4), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_limits_are_kept_and_cost_no_message(per_input, in_bytes, num_inputs, data):
    """If it fails, a limit is passed, a refused message is lost or reordered, or backpressure never ends (BOUND)."""
    machine, port = gate(num_inputs, max_buffer_per_input=per_input, max_buffer_memory_bytes=in_bytes)
    sizes = st.integers(0, 30)
    channels: dict[int, deque[StreamMessage]] = {}
    for i in range(num_inputs):
        script = data.draw(st.lists(st.sampled_from("eebw"), max_size=12))
        channels[i] = deque(
            Event("abcd"[i], place, size_bytes=data.draw(sizes))
            if kind == "e"
            else Watermark(place)
            if kind == "w"
            else kind
            for place, kind in enumerate(script)
        )
        numbers = iter(range(1, 99))
        channels[i] = deque(barrier(next(numbers)) if message == "b" else message for message in channels[i])
    sent = {i: [str(m) for m in channel if type(m) in (Event, Watermark)] for i, channel in channels.items()}

    def pump(i: int) -> bool:
        taken = bool(channels[i]) and machine.offer(i, channels[i][0], 0)
        if taken:
            channels[i].popleft()
        for queue in machine.aligner.inputs.queues.values():
            assert len(queue) <= per_input
        assert 0 <= machine.aligner.buffered_bytes() <= in_bytes
        machine.drain_all(0)
        return taken

    for i in data.draw(st.lists(st.integers(0, num_inputs - 1), max_size=40)):
        pump(i)
    for _ in range(200):
        moved = [pump(i) for i in range(num_inputs)]
        if not any(channels.values()):
            break
        if not any(moved) and machine.aligner.barrier is not None:  # inputs wait for barriers that never come
            machine.abort(machine.aligner.barrier.checkpoint_id, Reason.EXPIRED, 0)
            machine.drain_all(0)
    machine.abort(999, Reason.EXPIRED, 0)
    machine.drain_all(0)
    assert not any(channels.values())
    got: dict[int, list[str]] = {i: [] for i in range(num_inputs)}
    for line in port.of("deliver"):
        i, message = line.split(" ", 1)
        got[int(i)].append(message)
    assert got == sent


# Capture and restore: put into a fresh machine of the same making, the value behaves as the machine did.


@given(schedules(), st.integers(0, 60))
@settings(max_examples=examples(200), deadline=None)
def test_aligner_is_what_it_captured(schedule, at):
    """If it fails, a task that is restored aligns otherwise than the one that was captured."""

    def moves(machine, part, answers):
        for where, what in part:
            if where == "abort":
                answers.append(machine.abort(what, Reason.EXPIRED))
            elif where == "time":
                answers.append((machine.next_deadline_ns(), machine.on_time(what * 3)))
            else:
                answers.append(machine.process_message(where, what, len(answers)))
            if machine.triggered and len(answers) % 2:
                machine.complete_alignment()
            if len(answers) % 3 == 0:
                answers.append(machine.drain_next(len(answers)))
        return answers, machine.metrics(), list(machine.aborts), machine.capture()

    first = aligner(schedule.num_inputs, alignment_timeout_ns=TIMEOUT_NS)
    first.note_trigger(3, 5)
    done, *_ = moves(first, schedule.moves[:at], [])
    value = first.capture()
    assert hash(value) == hash(first.capture())
    second = aligner(schedule.num_inputs, alignment_timeout_ns=TIMEOUT_NS)
    second.process_message(0, barrier(50))  # it need not be fresh
    second.restore(value)
    assert second.capture() == value
    ahead = schedule.moves[at:]
    assert moves(second, ahead, list(done)) == moves(first, ahead, list(done))


def operator_task() -> tuple[OperatorTask, list]:
    """A task with five inputs and three kinds of exchange, and what it tells."""
    told: list[object] = []
    exchanges = [
        OutputExchange("rebalance", [0, 1, 2]),
        OutputExchange("hash", [3, 4]),
        OutputExchange("broadcast", [5, 6]),
    ]
    return OperatorTask("t", Union(), aligner(5), exchanges, lambda *what: told.append(what)), told


@given(schedules(), st.integers(0, 60))
@settings(max_examples=examples(100), deadline=None)
def test_operator_task_and_gate_are_what_they_captured(schedule, at):
    """If it fails, outputs, reports, watermarks or routing differ after a task was restored."""

    def moves(task, part):
        for where, what in part:
            if where == "abort":
                task.abort(what, Reason.EXPIRED, 0)
            elif where == "time":
                task.on_time(what * TIMEOUT_NS**10)
            else:
                task.offer(where, what, 0)
            task.drain_next(0)
        return task.capture()

    first, told = operator_task()
    first.close_output(4)
    moves(first, schedule.moves[:at])
    value = first.capture()
    assert hash(value) == hash(first.capture())
    second, told_again = operator_task()
    second.restore(value)
    assert second.capture() == value
    del told[:]
    assert moves(second, schedule.moves[at:]) == moves(first, schedule.moves[at:])
    assert told_again == told


@given(
    st.lists(st.tuples(st.sampled_from(["inject", "poll", "due"]), st.integers(1, 6)), max_size=30), st.integers(0, 30)
)
@settings(max_examples=examples(200), deadline=None)
def test_injector_is_what_it_captured(moves, at):
    """If it fails, a source that is restored forgets a command, or emits one twice."""

    def play(machine, part):
        answers: list[object] = []
        for kind, n in part:
            try:
                if kind == "inject":
                    answers.append(machine.coordinator_handle().inject(InjectBarrierCommand(n, n, bool(n % 2))))
                elif kind == "poll":
                    answers.append(machine.poll_barrier(n))
                else:
                    answers.append((machine.due_request(4 * n), machine.next_deadline_ns()))
            except ContractError as error:
                answers.append(str(error))
        return answers, machine.capture()

    first = CheckpointBarrierInjector(BarrierInjectorConfig(3, "a"))
    play(first, moves[:at])
    value = first.capture()
    second = CheckpointBarrierInjector(BarrierInjectorConfig(3, "a"), now_ns=77)
    second.coordinator_handle().inject(InjectBarrierCommand(50, 50))
    second.restore(value)
    assert second.capture() == value
    assert hash(value) == hash(first.capture())
    assert play(second, moves[at:]) == play(first, moves[at:])


SOURCE_MOVES = st.lists(
    st.tuples(st.sampled_from(["emit", "inject", "poll", "abort", "watermark", "close", "end"]), st.integers(1, 6)),
    max_size=30,
)


@given(SOURCE_MOVES, st.integers(0, 30))
@settings(max_examples=examples(200), deadline=None)
def test_source_task_is_what_it_captured(moves, at):
    """If it fails, a source that is restored emits from another position, or another barrier."""

    def play(task, part):
        for kind, n in part:
            try:
                if kind == "emit":
                    task.emit(Event("a", task.position, key=n))
                elif kind == "inject":
                    task.injector.coordinator_handle().inject(InjectBarrierCommand(n, n))
                elif kind == "poll":
                    task.poll(n)
                elif kind == "abort":
                    task.abort(n, Reason.EXPIRED, 0)
                elif kind == "watermark":
                    task.emit_watermark(n)
                elif kind == "close" and n == 1:
                    task.close_output(1)
                elif kind == "end" and n == 1:
                    task.end()
            except ContractError:
                pass
        return task.capture()

    def source():
        injector = CheckpointBarrierInjector(BarrierInjectorConfig(5, "a"))
        return SourceTask("a", injector, [OutputExchange("rebalance", [0, 1]), OutputExchange("forward", [2])])

    first, second = source(), source()
    play(first, moves[:at])
    value = first.capture()
    second.restore(value)
    assert second.capture() == value
    assert hash(value) == hash(first.capture())
    assert play(second, moves[at:]) == play(first, moves[at:])
