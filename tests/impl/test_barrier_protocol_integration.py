"""F-DCKP-001, "Test Plan", integration tests: sources, operators and sinks under a coordinator."""

from __future__ import annotations

from barrierlab.impl import CheckpointBarrier, CoordinatorConfig, Event, InjectBarrierCommand
from tests.impl.support import Dataflow


def test_barrier_flows_through_single_operator():
    """If it fails, a checkpoint of the smallest job never completes."""
    flow = Dataflow("a->map map->sink")
    flow.emit("a", 2)
    flow.run()
    flow.trigger()
    flow.run()
    assert flow.completed == [1]
    assert flow.said("map", "snapshot", "forward", "complete", "resume", "block") == [
        "block 1",
        f"snapshot {(1, flow.parts[1]['map'].digest)}",
        "forward barrier 1",
        "complete 1",
        "resume 1",
    ]
    assert flow.cut(1, "map") == ["a1", "a2"]
    assert flow.parts[1]["a"].position == 3


def test_barrier_flows_through_linear_chain():
    """If it fails, a task down the chain cuts at another place than the source did."""
    flow = Dataflow("a->f f->g g->h h->sink", capacity=1)
    flow.emit("a", 3)
    flow.trigger()
    flow.emit("a", 3)
    flow.run()
    assert flow.completed == [1]
    position = flow.parts[1]["a"].position
    expected = [f"a{n}" for n in range(1, position)]
    assert [flow.cut(1, task) for task in ("f", "g", "h", "sink")] == [expected] * 4
    assert [str(seen) for seen in flow.tasks["sink"].operator.seen] == [f"a{n}" for n in range(1, 7)]


def test_barrier_fan_out_to_multiple_channels():
    """If it fails, one branch of a fan-out is never told of the checkpoint."""
    flow = Dataflow("a->left a->mid a->right left->sink mid->sink right->sink")
    flow.emit("a")
    flow.run()
    flow.trigger()
    flow.run()
    assert flow.completed == [1]
    for branch in ("left", "mid", "right"):
        assert flow.said(branch, "forward") == ["forward barrier 1"]
        assert flow.cut(1, branch) == ["a1"]
    assert sorted(flow.cut(1, "sink")) == ["a1", "a1", "a1"]


def test_barrier_interleaved_with_events():
    """If it fails, events of one side of the barrier are in the snapshot of the other."""
    flow = Dataflow("a->map map->sink")
    for checkpoint_id in (1, 2, 3):
        flow.emit("a", 2)
        flow.run()
        flow.trigger()
        flow.run()
        assert flow.cut(checkpoint_id, "sink") == [f"a{n}" for n in range(1, 2 * checkpoint_id + 1)]
    assert flow.completed == [1, 2, 3]
    assert [str(s).split()[0] for s in flow.said("sink", "deliver", "block")] == (["deliver"] * 2 + ["block"]) * 3


def test_periodic_injection_under_load():
    """If it fails, checkpoints stop under sustained load, drift apart, or run over one another (rule 2, P-08)."""
    flow = Dataflow(
        "a->join b->join join->sink", capacity=2, config=CoordinatorConfig(interval_ns=10, first_trigger_ns=0)
    )
    for now_ns in range(100):
        flow.on_time(now_ns)
        if not flow.tasks["a"].outbox:
            flow.emit("a", 2)
        if now_ns % 3 == 0 and not flow.tasks["b"].outbox:
            flow.emit("b")
        flow.step()
    flow.run()
    assert flow.completed == list(range(1, len(flow.completed) + 1))
    assert len(flow.completed) >= 5
    assert flow.aborted() == []
    for checkpoint_id in flow.completed:
        parts = flow.parts[checkpoint_id]
        before = {f"{source}{n}" for source in "ab" for n in range(1, parts[source].position)}
        assert set(flow.cut(checkpoint_id, "join")) == before
        assert set(flow.cut(checkpoint_id, "sink")) == before


def test_coordinator_triggered_injection():
    """If it fails, an idle source never cuts, or cuts without being asked (P-09)."""
    flow = Dataflow("a->map map->sink")
    flow.run()
    assert flow.said("a", "forward") == []
    flow.handles["a"].inject(InjectBarrierCommand(1, 1))
    assert flow.tasks["a"].poll(0) == CheckpointBarrier(1, 1)
    flow.tasks["a"].emit(Event("a", 1))
    flow.run()
    assert flow.said("sink", "block", "deliver") == ["block 1", "deliver a1"]
