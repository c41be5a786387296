"""Cases that existing implementations of the two documents test, restated for these classes.

Under the names that they have there (laminardb/laminardb), each that is valid for a sound implementation and concerns
what exists here. Where theirs asserts little, the sound value is asserted in full.
"""

from __future__ import annotations

import pytest

from barrierlab.impl import (
    Aborted,
    Acknowledge,
    AlignmentAction,
    BarrierAlignerConfig,
    BarrierInjectorConfig,
    CheckpointBarrier,
    CheckpointBarrierInjector,
    CheckpointCoordinator,
    Completed,
    CoordinatorConfig,
    Event,
    InjectBarrierCommand,
    InputCountError,
    InputIndexError,
    OutputExchange,
    PackedBarrierCmd,
    Reason,
    Refused,
    SourceTask,
    Watermark,
    as_barrier,
    is_barrier,
    is_event,
    is_watermark,
)
from tests.impl.support import Dataflow, Union, aligner, barrier, drain, event, gate

PASS = AlignmentAction.PASS_THROUGH
BUFFERED = AlignmentAction.BUFFERED
BLOCKED = AlignmentAction.BLOCKED
TRIGGER = AlignmentAction.TRIGGER_SNAPSHOT
IGNORED = AlignmentAction.IGNORED


def source(name: str = "a") -> SourceTask:
    """A source with one output."""
    injector = CheckpointBarrierInjector(BarrierInjectorConfig(None, name))
    return SourceTask(name, injector, [OutputExchange("forward", [0])])


def coordinator(*tasks: str, sources: tuple[str, ...] = (), **settings: int) -> CheckpointCoordinator:
    """A coordinator that triggers on demand."""
    return CheckpointCoordinator(CoordinatorConfig(None, **settings), tasks, sources or tasks[:1])


# 2.1 Barrier, message, injector.


def test_barrier_size():
    """If it fails, barriers take another number of bytes on the wire than the document's."""
    assert len(barrier(1).to_bytes()) == 24


def test_barrier_flags():
    """If it fails, a flag is read where none is set."""
    assert CheckpointBarrier.aligned(1, 1).flags == 0
    assert not CheckpointBarrier(1, 1, 2).is_unaligned  # a reserved bit
    assert CheckpointBarrier(1, 1, 3).is_unaligned


def test_pack_unpack_barrier_cmd():
    """If it fails, a command changes on its way to the source."""
    packed = PackedBarrierCmd.new(42, 3)
    assert (packed.checkpoint_id, packed.epoch) == (42, 3)
    assert (PackedBarrierCmd.EMPTY.checkpoint_id, PackedBarrierCmd.EMPTY.epoch) == (0, 0)


def test_barrier_roundtrip_via_injector():
    """If it fails, the flag of a command is lost, or the command is claimed twice."""
    injector = CheckpointBarrierInjector(BarrierInjectorConfig(None))
    injector.coordinator_handle().inject(InjectBarrierCommand(42, 1, is_unaligned=True))
    assert injector.poll_barrier(0) == CheckpointBarrier(42, 1, 1)
    assert injector.poll_barrier(1) is None


def test_stream_message_variants():
    """If it fails, a message is two things at once, or none."""
    for message, expected in (
        (Event("a", 1), (True, False, False)),
        (Watermark(1000), (False, True, False)),
        (barrier(1), (False, False, True)),
    ):
        assert (is_event(message), is_watermark(message), is_barrier(message)) == expected
    found = as_barrier(barrier(1))
    assert found is not None
    assert found.checkpoint_id == 1


def test_injector_poll_no_barrier():
    """If it fails, a fresh source cuts without being asked."""
    assert CheckpointBarrierInjector().poll_barrier(0) is None


def test_injector_trigger_and_poll():
    """If it fails, a command is not claimed exactly once."""
    injector = CheckpointBarrierInjector(BarrierInjectorConfig(None))
    injector.coordinator_handle().inject(InjectBarrierCommand(42, 1))
    assert injector.poll_barrier(1) == CheckpointBarrier(42, 1)
    assert injector.poll_barrier(1) is None
    assert injector.barriers_injected == 1


def test_injector_multiple_handles():
    """If it fails, two handles of one injector make two barriers of one command."""
    injector = CheckpointBarrierInjector(BarrierInjectorConfig(None))
    handles = [injector.coordinator_handle() for _ in range(2)]
    handles[0].inject(InjectBarrierCommand(1, 1))
    assert handles[1].inject(InjectBarrierCommand(1, 1)).status.name == "DUPLICATE"
    assert [injector.poll_barrier(0) is not None for _ in range(2)] == [True, False]


def test_source_task_produces_batches():
    """If it fails, a source loses events or miscounts its position."""
    task = source()
    for n in range(1, 16):
        task.emit(Event("a", n))
    assert [str(message) for _, message in task.outbox] == [f"a{n}" for n in range(1, 16)]
    assert task.position == 16


def test_source_task_shutdown():
    """If it fails, a source that stops under backpressure leaves its readers without an end."""
    flow = Dataflow("a->sink", capacity=4)
    flow.emit("a", 100)
    flow.step()
    flow.tasks["a"].end()
    flow.run()
    assert flow.tasks["sink"].finished
    assert len(flow.tasks["sink"].operator.seen) == 100


def test_source_task_emits_barrier():
    """If it fails, a source does not answer the coordinator."""
    task = source()
    task.emit(event("a1"))
    task.injector.coordinator_handle().inject(InjectBarrierCommand(42, 42))
    task.poll(0)
    assert [str(message) for _, message in task.outbox] == ["a1", "barrier 42"]


def test_source_task_captures_checkpoint_at_barrier():
    """If it fails, the position in the checkpoint is not the place of the barrier (P-10); theirs asserts only >=."""
    task = source()
    for n in (1, 2, 3):
        task.emit(event(f"a{n}"))
    task.injector.coordinator_handle().inject(InjectBarrierCommand(99, 99))
    task.poll(0)
    task.emit(event("a4"))
    (report,) = task.reports
    assert (report.checkpoint_id, report.position) == (99, 4)


def test_coordinator_barrier_alignment():
    """If it fails, two sources under load do not checkpoint consistently; theirs asserts only a clean stop."""
    flow = Dataflow("a->u b->u u->sink", config=CoordinatorConfig(10, first_trigger_ns=0))
    for now_ns in range(100):
        flow.on_time(now_ns)
        flow.emit("a", 5)
        flow.emit("b", 5)
        flow.run()
    assert flow.completed == list(range(1, 11))
    assert len(flow.tasks["sink"].operator.seen) == 1000


def test_coordinator_barrier_timeout():
    """If it fails, a checkpoint that one source never joins stays pending."""
    flow = Dataflow("a->u b->u u->sink", config=CoordinatorConfig(None, timeout_ns=50))
    flow.trigger()
    flow.run(stalled=("b",))
    flow.on_time(50)
    flow.run(stalled=("b",))
    assert flow.aborted() == [(1, Reason.EXPIRED)]
    assert not flow.coordinator.pending
    assert not flow.tasks["u"].gate.is_blocked(0)


def test_pending_barrier_creation_and_reset():
    """If it fails, a new checkpoint begins with the inputs of the one before."""
    machine = aligner(3)
    assert not machine.is_aligning()
    machine.process_message(0, barrier(1))
    assert (machine.is_aligning(), machine.barrier, machine.aligned_input_count()) == (True, barrier(1), 1)
    machine.process_message(1, barrier(2))
    assert (machine.barrier, machine.aligned_input_count()) == (barrier(2), 1)
    assert not machine.is_blocked(0)


def test_barrier_excludes_post_barrier_data():
    """If it fails, what comes behind a barrier is in the snapshot, or a position is committed before all are whole."""
    flow = Dataflow("s->u t->u u->sink")
    flow.emit("s")
    flow.emit("t")
    flow.trigger()
    behind = (("t", "u"),)  # the channel that is not read
    flow.run(stalled=behind)
    flow.emit("s")
    flow.run(stalled=behind)
    assert flow.said("u", "deliver") == ["deliver s1"]
    assert flow.said("u", "buffer") == ["buffer s2"]
    assert flow.parts == {}
    flow.run()
    assert sorted(flow.cut(1, "u")) == ["s1", "t1"]
    assert (flow.parts[1]["s"].position, flow.parts[1]["t"].position) == (2, 2)


def test_drain_skip_under_backpressure():
    """If it fails, a task whose output is full goes on taking input, without bound."""
    flow = Dataflow("a->map map->sink", capacity=1)
    flow.emit("a", 5)
    for _ in range(50):
        flow.step(stalled=("sink",))
    assert len(flow.tasks["map"].outbox) <= 1
    assert len(flow.tasks["map"].operator.seen) == 2  # one in the channel, one in the outbox
    flow.run()
    assert len(flow.tasks["sink"].operator.seen) == 5


def test_exhausted_sources_with_shutdown():
    """If it fails, the last events of sources that end are lost: exactly 30, as the first version asserted."""
    flow = Dataflow("a->u b->u u->sink", capacity=2)
    for name in "ab":
        flow.emit(name, 15)
        flow.tasks[name].end()
    flow.run()
    assert len(flow.tasks["sink"].operator.seen) == 30
    assert flow.coordinator.finished_tasks == {"a", "b", "u", "sink"}


def test_notify_epoch_committed_propagates_to_sources():
    """If it fails, completions are announced out of order."""
    flow = Dataflow("a->u b->u u->sink")
    for _ in range(4):
        flow.trigger()
        flow.run()
    completed = [answer.checkpoint_id for answer in flow.answers if type(answer) is Completed]
    assert completed == [1, 2, 3, 4]


def test_barrier_checkpoint_recovery_round_trip():
    """If it fails, a coordinator that is restored has forgotten what it had, or begins ids anew."""
    first = coordinator("a", "b", sources=("a", "b"))
    first.trigger(0)
    first.acknowledge(Acknowledge("a", 1, position=500), 1)
    second = coordinator("a", "b", sources=("a", "b"))
    second.restore(first.capture())
    (done,) = second.acknowledge(Acknowledge("b", 1, position=300), 2)
    assert {part.task: part.position for part in done.parts} == {"a": 500, "b": 300}


def test_coordinator_resumes_epoch_after_recovery():
    """If it fails, an id is used twice after a recovery (rule 2)."""
    first = coordinator("a")
    for n in (1, 2):
        first.trigger(n)
        first.acknowledge(Acknowledge("a", n), n)
        first.published(n, n)
    second = coordinator("a")
    second.restore(first.capture())
    for machine in (first, second):
        (_, inject) = machine.trigger(3)
        assert (inject.command.checkpoint_id, inject.command.epoch) == (3, 3)


def test_recover_latest_of_multiple_checkpoints():
    """If it fails, recovery starts from an older checkpoint than it could."""
    machine = coordinator("a")
    for n in (1, 2, 3):
        machine.trigger(n)
        machine.acknowledge(Acknowledge("a", n), n)
        machine.published(n, n)
    assert machine.last_completed == 3


# 2.2 Alignment.


def test_single_input_immediate_alignment():
    """If it fails, a chain does not checkpoint."""
    assert aligner(1).process_message(0, barrier(1)) is TRIGGER


def test_two_inputs_alignment():
    """If it fails, events of a blocked input pass, or those of a free one wait."""
    machine = aligner()
    script = [(0, event("a1"), PASS), (0, barrier(1), BLOCKED), (0, event("a2"), BUFFERED), (1, event("b3"), PASS)]
    for input_id, message, action in script:
        assert machine.process_message(input_id, message) is action
    assert machine.process_message(1, barrier(1)) is TRIGGER
    machine.complete_alignment()
    assert drain(machine) == [(0, "a2", "DRAIN_BUFFERED")]
    assert machine.drain_next() is None


def test_watermark_passthrough():
    """If it fails, event time of an input that is still to deliver stands still."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    assert machine.process_message(1, Watermark(5000)) is AlignmentAction.WATERMARK_PASS_THROUGH


def test_multiple_checkpoints():
    """If it fails, the second checkpoint is not like the first when the inputs change places."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    machine.process_message(0, event("a10"))
    assert machine.process_message(1, barrier(1)) is TRIGGER
    machine.complete_alignment()
    assert drain(machine) == [(0, "a10", "DRAIN_BUFFERED")]
    assert machine.process_message(0, event("a20")) is PASS
    machine.process_message(1, barrier(2))
    assert machine.process_message(1, event("b30")) is BUFFERED
    assert machine.process_message(0, barrier(2)) is TRIGGER
    machine.complete_alignment()
    assert drain(machine) == [(1, "b30", "DRAIN_BUFFERED")]


def test_aligned_count():
    """If it fails, a person looking at a stuck alignment sees a wrong number of inputs."""
    machine = aligner(4)
    counts = [machine.aligned_input_count()]
    for input_id in (0, 2):
        machine.process_message(input_id, barrier(1))
        counts.append(machine.aligned_input_count())
    assert counts == [0, 1, 2]


def test_zero_inputs_panics():
    """If it fails, a task without inputs is built and aligns at nothing."""
    with pytest.raises(InputCountError):
        BarrierAlignerConfig(num_inputs=0)


def test_barrier_aligner_three_inputs():
    """If it fails, three inputs align after two."""
    machine = aligner(3)
    assert [machine.process_message(i, barrier(1)) for i in range(3)] == [BLOCKED, BLOCKED, TRIGGER]


def test_barrier_aligner_buffered_events():
    """If it fails, a buffered event loses its payload or its place."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    for n, value, timestamp_ms in ((1, 42, 2000), (2, 99, 3000)):
        machine.process_message(0, Event("a", n, value=value, timestamp_ms=timestamp_ms))
    assert machine.process_message(1, Event("b", 1, timestamp_ms=4000)) is PASS
    assert machine.process_message(1, barrier(1)) is TRIGGER
    machine.complete_alignment()
    assert [(e.value, e.timestamp_ms) for _, e in machine.drained()] == [(42, 2000), (99, 3000)]


def test_barrier_aligner_cleanup():
    """If it fails, a completed checkpoint leaves inputs marked."""
    machine = aligner()
    machine.process_message(0, barrier(1))
    machine.process_message(1, barrier(1))
    machine.complete_alignment()
    assert machine.aligned_input_count() == 0
    assert not any(machine.is_blocked(i) for i in (0, 1))


def test_coordinator_trigger():
    """If it fails, ids do not begin at 1."""
    machine = coordinator("a")
    (_, inject) = machine.trigger(0)
    assert inject.command == InjectBarrierCommand(1, 1)
    assert list(machine.pending) == [1]


def test_coordinator_trigger_while_in_progress():
    """If it fails, checkpoints run over one another although one at a time is allowed."""
    machine = coordinator("a")
    machine.trigger(0)
    assert machine.trigger(1) == (Refused(Reason.TOO_MANY_PENDING),)
    assert list(machine.pending) == [1]


def test_coordinator_progress():
    """If it fails, a checkpoint completes without some of its tasks."""
    machine = coordinator("a", "b", "c")
    machine.trigger(0)
    assert machine.acknowledge(Acknowledge("a", 1), 1) == ()
    assert machine.pending[1].outstanding == {"b", "c"}


def test_coordinator_finalize():
    """If it fails, a complete checkpoint lacks a part, or stays pending."""
    machine = coordinator("a", "b")
    machine.trigger(0)
    machine.acknowledge(Acknowledge("a", 1), 1)
    (whole,) = machine.acknowledge(Acknowledge("b", 1), 2)
    (done, *_) = machine.published(1, 2)
    assert (done.checkpoint_id, done.parts) == (1, whole.parts)
    assert len(done.parts) == 2
    assert not machine.pending


def test_coordinator_multiple_checkpoints():
    """If it fails, ids or epochs repeat."""
    machine = coordinator("a")
    commands = []
    for n in (1, 2):
        (_, inject) = machine.trigger(n)
        commands.append((inject.command.checkpoint_id, inject.command.epoch))
        machine.acknowledge(Acknowledge("a", n), n)
        machine.published(n, n)
    assert commands == [(1, 1), (2, 2)]


def test_checkpoint_linear_dag():
    """If it fails, a chain's state is not in its checkpoint."""
    flow = Dataflow("src->double double->sink")
    flow.emit("src")
    flow.run()
    flow.trigger()
    flow.run()
    assert flow.cut(1, "double") == ["src1"]


def test_checkpoint_fan_out_dag():
    """If it fails, one of two branches is not in the checkpoint."""
    flow = Dataflow("src->shared shared->double shared->add double->x add->y")
    flow.emit("src")
    flow.run()
    flow.trigger()
    flow.run()
    assert sorted(flow.parts[1]) == ["add", "double", "shared", "src", "x", "y"]


def test_checkpoint_diamond_dag():
    """If it fails, a merge cuts at the first of two branches."""
    flow = Dataflow("src->left src->right left->merge right->merge merge->sink")
    flow.emit("src", 3)
    flow.trigger()
    flow.run(stalled=("right",))
    assert flow.said("merge", "block", "snapshot") == ["block 1"]
    flow.run()
    assert flow.completed == [1]


def test_full_checkpoint_recovery_cycle():
    """If it fails, state that is restored is not the state that was taken; theirs has a stateless operator."""
    operator = Union()
    operator.process(0, event("a7"))
    image = operator.checkpoint()
    operator.process(0, event("a8"))
    again = Union()
    again.restore(image)
    again.process(0, event("a10"))
    assert [str(e) for e in again.checkpoint()] == ["a7", "a10"]
    assert [str(e) for e in image] == ["a7"]


def test_aligns_when_every_input_observed():
    """If it fails, three inputs do not make one alignment."""
    machine = aligner(3)
    assert [machine.process_message(i, barrier(1)) for i in (0, 1, 2)] == [BLOCKED, BLOCKED, TRIGGER]
    machine.complete_alignment()
    assert not machine.is_aligning()


def test_duplicate_observation_is_idempotent():
    """If it fails, one input twice makes two inputs."""
    machine = aligner()
    assert [machine.process_message(i, barrier(5)) for i in (0, 0, 1)] == [BLOCKED, IGNORED, TRIGGER]


def test_independent_checkpoints_align_independently():
    """If it fails, 10 and 11 mix when one input delivers both before the other delivers any."""
    port_gate, port = gate()
    for input_id, n in ((0, 10), (0, 11), (1, 10), (1, 11)):
        port_gate.offer(input_id, barrier(n), 0)
        port_gate.drain_all(0)
    assert port.of("complete") == ["10", "11"]
    assert not port_gate.aligner.is_aligning()


def test_observe_rejects_out_of_range_input():
    """If it fails, a ninth input of two counts."""
    with pytest.raises(InputIndexError):
        aligner().process_message(9, barrier(1))


def test_barrier_fan_out_aligns_on_both_receivers():
    """If it fails, a barrier changes on its way over the wire, or reaches one receiver only."""
    sent = CheckpointBarrier(42, 7)
    received = CheckpointBarrier.from_bytes(sent.to_bytes())
    assert received == sent
    for machine in (aligner(), aligner()):
        assert machine.process_message(0, sent) is BLOCKED
        assert machine.process_message(1, received) is TRIGGER


def test_align_shuffle_barriers_folds_peer_rows_then_aligns():
    """If it fails, a peer's rows ahead of its barrier miss the snapshot (A-08)."""
    port_gate, port = gate()
    port_gate.offer(0, barrier(7), 0)
    port_gate.offer(1, event("p1"), 0)
    port_gate.offer(1, barrier(7), 0)
    assert port.lines.index("deliver 1 p1") < port.lines.index("snapshot 7")
    assert port.of("forward") == ["barrier 7"]


def test_abort_is_not_a_completion():
    """If it fails, an abandoned checkpoint is announced as complete."""
    machine = coordinator("a", "b", timeout_ns=5)
    machine.trigger(0)
    actions = machine.on_time(5)
    assert actions[0] == Aborted(1, Reason.EXPIRED)
    assert not any(type(action) is Completed for action in actions)
