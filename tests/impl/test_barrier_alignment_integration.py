"""F-DCKP-002, "Test Plan", integration tests: joins and unions under a coordinator."""

from __future__ import annotations

from barrierlab.impl import CoordinatorConfig
from tests.impl.support import Dataflow, Join


def test_join_operator_with_barrier_alignment():
    """If it fails, a join's snapshot pairs events of different sides of the cut."""
    flow = Dataflow("a->join b->join join->sink", operators={"join": Join})
    flow.emit("a", 2)
    flow.emit("b")
    flow.run()
    flow.trigger()
    flow.run(stalled=("b",))  # a's barrier is in, b's is not
    flow.emit("a", 2)
    flow.run(stalled=("b",))
    assert flow.said("join", "buffer") == ["buffer a3", "buffer a4"]
    flow.run()
    assert flow.completed == [1]
    left, right = flow.parts[1]["join"].image
    assert ([str(e) for e in left], [str(e) for e in right]) == (["a1", "a2"], ["b1"])
    assert len(flow.parts[1]["sink"].image) == 2  # (a1, b1), (a2, b1): nothing that a3 or a4 caused


def test_union_operator_with_three_inputs():
    """If it fails, a union of three forwards its barrier before the third has come."""
    flow = Dataflow("a->u b->u c->u u->sink")
    for source in "abc":
        flow.emit(source)
    flow.run()
    flow.trigger()
    flow.run(stalled=("c",))
    assert flow.said("u", "forward") == []
    flow.run()
    assert flow.completed == [1]
    assert sorted(flow.cut(1, "u")) == ["a1", "b1", "c1"]


def test_alignment_under_backpressure():
    """If it fails, a slow input makes the fast one lose, reorder or overrun what is buffered."""
    flow = Dataflow("a->join b->join join->sink", capacity=2, aligner_config={"max_buffer_per_input": 3})
    flow.emit("a")
    flow.run()
    flow.trigger()
    flow.run(stalled=("b",))
    flow.emit("a", 20)
    flow.run(stalled=("b",))
    gate = flow.tasks["join"].gate
    assert gate.aligner.buffered_event_count() == 3
    assert not gate.can_take(0)
    assert len(flow.tasks["a"].outbox) == 15  # 20 less 3 buffered and 2 in the channel: backpressure reaches the source
    flow.run()
    assert flow.completed == [1]
    assert flow.cut(1, "sink") == ["a1"]
    assert [str(seen) for seen in flow.tasks["sink"].operator.seen] == [f"a{n}" for n in range(1, 22)]


def test_alignment_timeout_triggers_abort():
    """If it fails, a lost barrier blocks an input for ever, or an abandoned checkpoint blocks it again (A-09, A-10)."""
    flow = Dataflow("a->join b->join join->sink", aligner_config={"alignment_timeout_ns": 100})
    flow.trigger()
    flow.run(stalled=("b",))
    flow.emit("a", 2)
    flow.run(stalled=("b",))
    assert flow.said("sink", "deliver") == []
    flow.on_time(99)
    assert flow.aborted() == []
    flow.on_time(100)
    flow.run(stalled=("b",))
    assert flow.aborted() == [(1, "expired")]
    assert flow.said("sink", "deliver") == ["deliver a1", "deliver a2"]
    flow.run()  # b's late barrier, if any, and the cancel
    assert flow.completed == []
    assert not flow.tasks["join"].gate.is_blocked(1)
    flow.trigger()
    flow.run()
    assert flow.completed == [2]


def test_alignment_then_normal_processing():
    """If it fails, a checkpoint leaves a task that holds or drops what comes afterwards."""
    flow = Dataflow("a->join b->join join->sink")
    flow.trigger()
    flow.run()
    flow.emit("a", 5)
    flow.emit("b", 5)
    flow.run()
    assert flow.completed == [1]
    assert flow.said("join", "buffer") == []
    assert len(flow.tasks["sink"].operator.seen) == 10


def test_consecutive_checkpoints():
    """If it fails, checkpoints back to back mix, or one input that is several ahead spoils them (A-05)."""
    flow = Dataflow("a->join b->join join->sink", capacity=20, config=CoordinatorConfig(None, max_concurrent=5))
    for _ in range(5):
        flow.emit("a")
        flow.emit("b")
        flow.trigger()
        for _ in range(3):
            flow.step(stalled=(("b", "join"),))  # b's channel is not read: a runs ahead by whole checkpoints
    assert flow.completed == []
    flow.run()
    assert flow.completed == [1, 2, 3, 4, 5]
    for checkpoint_id in range(1, 6):
        expected = sorted(f"{source}{n}" for source in "ab" for n in range(1, checkpoint_id + 1))
        assert sorted(flow.cut(checkpoint_id, "join")) == expected
        assert sorted(flow.cut(checkpoint_id, "sink")) == expected
