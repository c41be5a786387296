"""F-DCKP-006, the integration tests that it plans under their names, on a small dataflow."""

from __future__ import annotations

from barrierlab.impl import Acknowledge, CoordinatorConfig, InFlight
from barrierlab.impl.storage.encoding import decode, encode
from barrierlab.impl.storage.snapshot import decode_in_flight, encode_in_flight
from tests.impl.support import Join, UnalignedDataflow

S = 1_000_000_000
ASKED = CoordinatorConfig(None, unaligned=True)


def saved(flow: UnalignedDataflow, checkpoint_id: int) -> dict[tuple[str, str, int], bytes]:
    """The in-flight files of a checkpoint: (task, side, channel) to bytes."""
    files = {}
    for task, part in flow.parts[checkpoint_id].items():
        for side, record in (("input", part.inflight), ("output", part.inflight_output)):
            for data in record:
                kept = InFlight(data.input_id, tuple(map(encode, data.events)))
                files[task, side, data.input_id] = encode_in_flight(0, kept, side == "output")
    return files


def restored(edges: str, parts: dict[str, Acknowledge], files: dict, **options) -> UnalignedDataflow:
    """A new dataflow with states, channels and positions of a checkpoint; no barrier is restored (U-13)."""
    flow = UnalignedDataflow(edges, capacity=1000, **options)
    for channel in flow.channels:  # the receiver's record, and behind it the sender's
        for key in ((channel.receiver, "input", channel.input_id), (channel.sender, "output", channel.output)):
            if key in files:
                channel.queue.extend(map(decode, decode_in_flight(files[key], 0, key[1] == "output").events))
    for name, part in parts.items():
        if part.position is not None:
            flow.tasks[name].position = part.position
        elif isinstance(flow.tasks[name].operator, Join):
            flow.tasks[name].operator.sides = tuple(map(list, part.image))
        else:
            flow.tasks[name].operator.seen = list(part.image)
    return flow


def backpressured(settings=None, config=None, stalled=("sink",), **options) -> UnalignedDataflow:
    """A join whose sink stands still, so that every queue on the way is full."""
    flow = UnalignedDataflow("a->join b->join join->sink", settings, capacity=2, config=config, **options)
    for _ in range(10):
        flow.emit("a")
        flow.emit("b")
    flow.run(stalled=stalled)
    return flow


def test_unaligned_checkpoint_with_backpressure():
    """If it fails, a checkpoint waits as long as the queues are: nothing is read here, and the snapshots are in."""
    flow = backpressured(config=ASKED)
    assert len(flow.tasks["join"].outbox) > 0
    before = len(flow.said("join", "deliver"))
    flow.trigger()
    flow.run(stalled=("sink",))
    assert flow.said("join", "snapshot", "complete")[-1] == "complete 1"
    assert len(flow.said("join", "deliver")) == before
    assert flow.coordinator.pending[1].outstanding == {"sink"}  # which takes its barrier ahead of the sender's queue
    flow.run()
    assert flow.completed == [1]
    parts = flow.parts[1]
    assert [parts[name].is_unaligned for name in ("a", "b", "join", "sink")] == [True, True, True, False]
    assert sum(len(data.events) for part in parts.values() for data in part.inflight + part.inflight_output) > 5
    # A slow input alone, and the switch by time:
    flow = UnalignedDataflow("a->join b->join join->sink", capacity=2)
    flow.trigger()
    flow.run(stalled=(("b", "join"),))
    flow.emit("a", 3)
    flow.run(stalled=(("b", "join"),))
    assert flow.said("join", "snapshot") == []
    flow.on_time(30 * S)
    flow.run(stalled=(("b", "join"),))
    assert len(flow.said("join", "snapshot")) == 1
    assert flow.said("sink", "deliver") == ["deliver a1", "deliver a2", "deliver a3"]
    flow.run()
    assert flow.parts[1]["join"].was_threshold_triggered


def test_unaligned_checkpoint_save_and_load():
    """If it fails, what was in flight does not survive the way through bytes."""
    flow = backpressured(config=ASKED)
    flow.trigger()
    flow.run()
    files = saved(flow, 1)
    assert {("a", "output", 0), ("b", "output", 0), ("join", "input", 0), ("join", "output", 0)} <= files.keys()
    for (task, side, channel), data in files.items():
        part = flow.parts[1][task]
        record = {each.input_id: each for each in (part.inflight if side == "input" else part.inflight_output)}
        loaded = decode_in_flight(data, 0, side == "output")
        assert loaded.channel == channel
        assert tuple(map(decode, loaded.events)) == record[channel].events


def test_unaligned_recovery_replays_inflight():
    """If it fails, a record in flight is lost or doubled after recovery (U-04, U-05, U-13)."""
    edges = "a->join b->join join->sink"
    flow = backpressured(config=ASKED)
    flow.trigger()
    flow.run(stalled=("sink",))
    flow.run()
    again = restored(edges, flow.parts[1], saved(flow, 1))
    replayed = len(again.channels[0].queue) + len(again.channels[1].queue) + len(again.channels[2].queue)
    assert replayed > 0
    again.run()
    again.emit("a", 12 - again.tasks["a"].position + 1)
    again.emit("b", 12 - again.tasks["b"].position + 1)
    again.trigger()
    again.run()
    seen = [str(event) for event in again.tasks["sink"].operator.seen]
    for source in "ab":  # once each, and in order
        assert [name for name in seen if name[0] == source] == [f"{source}{n}" for n in range(1, 13)]
    assert again.completed == [1]


def test_unaligned_then_aligned_sequence():
    """If it fails, a checkpoint in one mode leaves something behind that spoils the next in the other."""
    flow = UnalignedDataflow("a->join b->join join->sink", capacity=4)
    kinds = []
    for n in range(1, 7):
        flow.emit("a", 3)
        flow.emit("b", 3)
        flow.trigger()
        flow.run(stalled=(("b", "join"),))
        if n % 2:
            flow.on_time(flow.now_ns + 30 * S)
        flow.run()
        kinds.append(flow.parts[n]["join"].is_unaligned)
        total = len(flow.cut(n, "join")) + sum(len(data.events) for data in flow.parts[n]["join"].inflight)
        overtaken = sum(len(d.events) for source in "ab" for d in flow.parts[n][source].inflight_output)
        assert total + overtaken == 6 * n
    assert flow.completed == [1, 2, 3, 4, 5, 6]
    assert kinds == [True, False] * 3


def test_unaligned_with_join_operator():
    """If it fails, a join restored from an unaligned checkpoint misses pairs, or has some twice (rule 23)."""
    edges = "a->join b->join join->sink"
    flow = UnalignedDataflow(edges, operators={"join": Join}, capacity=2, config=ASKED)
    flow.emit("a", 4)
    flow.run(stalled=(("b", "join"),))
    flow.emit("b", 4)
    flow.run(stalled=(("b", "join"), "sink"))
    flow.trigger()
    flow.run(stalled=(("b", "join"), "sink"))
    flow.run()
    assert flow.completed == [1]
    left, right = flow.parts[1]["join"].image
    assert len(left) + len(right) < 8  # the rest is in flight
    again = restored(edges, flow.parts[1], saved(flow, 1), operators={"join": Join})
    again.run()
    pairs = [sorted(map(str, event.value)) for event in again.tasks["sink"].operator.seen]
    assert sorted(pairs) == [[f"a{m}", f"b{n}"] for m in range(1, 5) for n in range(1, 5)]
