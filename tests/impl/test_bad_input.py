"""A mistake of the caller raises, says what came, what is allowed and what to do, and changes nothing."""

from __future__ import annotations

import pickle

import pytest

import barrierlab.impl
from barrierlab.impl import (
    BarrierAlignerConfig,
    BarrierError,
    BarrierInjectorConfig,
    CancelBarrier,
    CheckpointBarrier,
    CheckpointBarrierInjector,
    CheckpointCoordinator,
    CheckpointIdError,
    ClosedInputError,
    CoordinatorConfig,
    EpochError,
    InjectBarrierCommand,
    InputCountError,
    InputIndexError,
    LimitError,
    NotTriggeredError,
    OutputExchange,
    Reason,
    RegressingIdError,
    SequenceError,
    SourceTask,
    UnknownMessageError,
    UnknownTaskError,
    Watermark,
)
from barrierlab.impl.checkpoint.report import Acknowledge
from tests.impl.support import END, Recorder, aligner, barrier, cancel, event

MESSAGES = [event("a1"), Watermark(1), barrier(1), cancel(1), END]


def says_it_all(error: BarrierError, actual: str, expected: str) -> None:
    """The three parts are there, in the text and as attributes."""
    assert actual in error.actual
    assert expected in error.expected
    assert error.hint
    assert str(error) == f"{error.actual}; allowed: {error.expected}; {error.hint}"


@pytest.mark.parametrize("message", MESSAGES, ids=str)
@pytest.mark.parametrize("input_id", [-1, -2, 2, 128, 130])
@pytest.mark.parametrize("aligning", [False, True], ids=["idle", "aligning"])
def test_input_index_out_of_range(input_id, message, aligning):
    """If it fails, a wrong index counts for another input (A-14), or kills a task after it changed something."""
    machine = aligner()
    if aligning:
        machine.process_message(0, barrier(1))
        machine.process_message(0, event("a9"))
    before = machine.capture()
    with pytest.raises(InputIndexError) as raised:
        machine.process_message(input_id, message)
    says_it_all(raised.value, f"input {input_id}", "0 to 1")
    assert machine.capture() == before


@pytest.mark.parametrize("input_id", [-1, 2, 128])
@pytest.mark.parametrize("question", ["is_blocked", "can_take"])
def test_questions_about_no_input(question, input_id):
    """If it fails, a driver waits for an input that does not exist."""
    with pytest.raises(InputIndexError):
        getattr(aligner(), question)(input_id)


@pytest.mark.parametrize("input_id", [-1, 2])
def test_input_index_out_of_range_through_a_gate(input_id):
    """If it fails, the gate's shortcut lets an event of no input through."""
    port = Recorder()
    with pytest.raises(InputIndexError):
        barrierlab.impl.Gate(aligner(), port).offer(input_id, event("a1"), 0)
    assert port.lines == []


@pytest.mark.parametrize("num_inputs", [0, 129, -1])
def test_input_count(num_inputs):
    """If it fails, a task without inputs, or with more than its bit set holds, starts and never aligns."""
    with pytest.raises(InputCountError) as raised:
        BarrierAlignerConfig(num_inputs=num_inputs)
    says_it_all(raised.value, f"{num_inputs} inputs", "1 to 128")


@pytest.mark.parametrize("name", ["max_buffer_per_input", "max_buffer_memory_bytes", "alignment_timeout_ns"])
@pytest.mark.parametrize("value", [0, -5])
def test_limits_of_an_aligner(name, value):
    """If it fails, a limit of 0 stops every job at its first checkpoint, without a word."""
    with pytest.raises(LimitError) as raised:
        BarrierAlignerConfig(**{name: value})
    says_it_all(raised.value, f"{name} = {value}", "1 or more")


@pytest.mark.parametrize(
    "settings",
    [
        {"interval_ns": 0},
        {"timeout_ns": 0},
        {"max_concurrent": 0},
        {"min_pause_ns": -1},
        {"tolerable_failures": -1},
        {"first_trigger_ns": -1},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_limits_of_a_coordinator(settings):
    """If it fails, a coordinator triggers without end, or never."""
    with pytest.raises(LimitError) as raised:
        CoordinatorConfig(**settings)
    says_it_all(raised.value, next(iter(settings)), "or more")


def test_interval_of_an_injector():
    """If it fails, a source asks for a checkpoint at every poll."""
    with pytest.raises(LimitError) as raised:
        BarrierInjectorConfig(periodic_interval_ns=0)
    says_it_all(raised.value, "periodic_interval_ns = 0", "1 or more")


@pytest.mark.parametrize(
    ("command", "error", "actual"),
    [
        (InjectBarrierCommand(0, 9), CheckpointIdError, "checkpoint id 0"),
        (InjectBarrierCommand(-1, 9), CheckpointIdError, "checkpoint id -1"),
        (InjectBarrierCommand(2**64, 9), CheckpointIdError, str(2**64)),
        (InjectBarrierCommand(9, 2**48), EpochError, f"epoch {2**48}"),
        (InjectBarrierCommand(9, -1), EpochError, "epoch -1"),
        (InjectBarrierCommand(4, 9), RegressingIdError, "checkpoint id 4 after 5"),
        (InjectBarrierCommand(6, 4), EpochError, "epoch 4"),
        (InjectBarrierCommand(6, 5), EpochError, "epoch 5"),
        (InjectBarrierCommand(5, 6), RegressingIdError, "checkpoint id 5 after 5"),
    ],
    ids=lambda value: f"{value.checkpoint_id}-{value.epoch}" if isinstance(value, InjectBarrierCommand) else None,
)
@pytest.mark.parametrize("claimed", [False, True], ids=["pending", "claimed"])
def test_injected_command(command, error, actual, claimed):
    """If it fails, ids or epochs repeat, go back or are cut to fit (P-04, P-05, P-06)."""
    injector = CheckpointBarrierInjector(BarrierInjectorConfig(None))
    handle = injector.coordinator_handle()
    handle.inject(InjectBarrierCommand(5, 5))
    if claimed:
        injector.poll_barrier(0)
    before = injector.capture()
    with pytest.raises(error) as raised:
        handle.inject(command)
    says_it_all(raised.value, actual, "")
    assert injector.capture() == before


def test_barrier_on_the_wire():
    """If it fails, a barrier that no peer could have meant comes into being."""
    for make in (lambda: CheckpointBarrier(0, 1), lambda: CheckpointBarrier(2**64, 1), lambda: CancelBarrier(0)):
        with pytest.raises(CheckpointIdError) as raised:
            make()
        says_it_all(raised.value, "checkpoint id", f"1 to {2**64 - 1}")
    with pytest.raises(EpochError):
        CheckpointBarrier(1, 2**64)
    with pytest.raises(LimitError):
        CheckpointBarrier(1, 1, -1)
    with pytest.raises(LimitError) as raised:
        CheckpointBarrier.from_bytes(b"\0" * 23)
    says_it_all(raised.value, "23", "24")
    with pytest.raises(CheckpointIdError):
        CheckpointBarrier.from_bytes(b"\0" * 24)


@pytest.mark.parametrize("call", ["complete_alignment", "fail_alignment"])
@pytest.mark.parametrize("barriers", [0, 1], ids=["idle", "aligning"])
def test_completion_without_a_trigger(call, barriers):
    """If it fails, a caller's slip drains what is buffered and marks a checkpoint done that was not taken."""
    machine = aligner()
    for input_id in range(barriers):
        machine.process_message(input_id, barrier(1))
    before = machine.capture()
    with pytest.raises(NotTriggeredError) as raised:
        getattr(machine, call)()
    says_it_all(raised.value, call, "TRIGGER_SNAPSHOT")
    assert machine.capture() == before


@pytest.mark.parametrize("message", MESSAGES, ids=str)
@pytest.mark.parametrize("buffered", [False, True], ids=["taken", "buffered"])
def test_message_behind_the_end(message, buffered):
    """If it fails, an event behind the end of its input is lost without a word."""
    machine = aligner()
    if buffered:
        machine.process_message(0, barrier(1))
    machine.process_message(0, END)
    before = machine.capture()
    with pytest.raises(ClosedInputError) as raised:
        machine.process_message(0, message)
    says_it_all(raised.value, str(message), "nothing after the end")
    assert machine.capture() == before
    assert not machine.can_take(0)


@pytest.mark.parametrize("blocked", [False, True], ids=["free", "blocked"])
def test_no_message_at_all(blocked):
    """If it fails, a bare payload is counted as an end, or fails only long after."""
    machine = aligner()
    if blocked:
        machine.process_message(0, barrier(1))
    before = machine.capture()
    with pytest.raises(UnknownMessageError) as raised:
        machine.process_message(0, "a1")  # type: ignore[arg-type]
    says_it_all(raised.value, "a str", "Event")
    assert machine.capture() == before


def test_abort_of_no_checkpoint():
    """If it fails, a zeroed id closes nothing and says so to nobody."""
    with pytest.raises(CheckpointIdError):
        aligner().abort(0, Reason.EXPIRED)


def test_exchange_that_cannot_be():
    """If it fails, events go nowhere."""
    for kind, channels in (("shuffle", [0]), ("forward", [0, 1]), ("hash", [])):
        with pytest.raises(LimitError):
            OutputExchange(kind, channels)


def test_source_out_of_sequence():
    """If it fails, a source's position does not say what it has sent, and recovery loses or doubles (P-10)."""
    source = SourceTask("a", exchanges=[OutputExchange("forward", [0])])
    source.emit(event("a1"))
    before = source.capture()
    for wrong in ("a1", "a3"):
        with pytest.raises(SequenceError) as raised:
            source.emit(event(wrong))
        says_it_all(raised.value, wrong, "sequence 2")
    assert source.capture() == before
    with pytest.raises(LimitError):
        source.close_output(1)


def test_unknown_task():
    """If it fails, a report of another job completes a checkpoint of this one."""
    coordinator = CheckpointCoordinator(CoordinatorConfig(None), ["a", "b"], ["a"])
    coordinator.trigger(0)
    before = coordinator.capture()
    with pytest.raises(UnknownTaskError) as raised:
        coordinator.acknowledge(Acknowledge("c", 1), 0)
    says_it_all(raised.value, "'c'", "a, b")
    with pytest.raises(UnknownTaskError):
        coordinator.finished("c", 0)
    assert coordinator.capture() == before


def test_errors_cross_a_process_border():
    """If it fails, an error in a worker of a sweep arrives as a failure to read it."""
    for error in (
        InputIndexError(3, 2),
        LimitError("x", 0, "1"),
        barrierlab.impl.SnapshotFailedError("disk", Reason.EXPIRED),
    ):
        twin = pickle.loads(pickle.dumps(error))
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert twin.__dict__ == error.__dict__
