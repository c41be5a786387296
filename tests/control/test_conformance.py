"""The tests that an existing implementation of barrier-control-signals carries (Yisaer/veloFlux), under their names.

The first two are those that the document itself plans ("Testing Support: `SyncTest`"). "Nothing for 200 ms" is, of a
machine that gets everything, that nothing came out.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barrierlab.impl.control import ControlProcessor
from barrierlab.model.checkpoint.operators import make
from barrierlab.model.control.operators import Gathering, Tumbling
from barrierlab.model.control.topology import ControlWiring
from barrierlab.model.control.world import ControlBounds, ControlWorld, PipelineState, Processors
from tests.control.support import CONTROL, DATA, GRACEFUL, QUICK, Bench, event, graceful, sync


def test_data_channel_barrier_waits_until_all_upstreams_arrive() -> None:
    """A result collector would handle a sync signal before every sink has produced it."""
    bench = Bench(data=2, control=2)
    assert bench.give(DATA, 0, sync(1)) == []
    assert bench.give(DATA, 1, sync(1)) == ["data SyncTest 1"]
    assert bench.out() == []
    bench.give(CONTROL, 0, QUICK)
    assert bench.processor.ended
    assert bench.processor.failure == ""


def test_control_channel_barrier_waits_until_all_upstreams_arrive() -> None:
    """The same on the control channel."""
    bench = Bench(data=2, control=2)
    assert bench.give(CONTROL, 0, sync(1)) == []
    assert bench.give(CONTROL, 1, sync(1)) == ["control SyncTest 1"]
    assert bench.out() == []
    bench.give(DATA, 0, QUICK)
    assert bench.processor.ended
    assert bench.processor.failure == ""


def test_terminal_barrier_waits_until_all_data_upstreams_arrive_before_forwarding() -> None:
    """A processor would end while one of its upstreams still sends."""
    bench = Bench(data=2, control=2)
    assert bench.give(DATA, 0, graceful(9)) == []
    assert not bench.processor.ended
    assert bench.give(DATA, 1, graceful(9)) == ["data StreamGracefulEnd 9"]
    assert bench.processor.ended
    assert bench.processor.failure == ""


def test_overlapping_barriers_on_same_channel_return_error() -> None:
    """Two barriers would be taken for one."""
    bench = Bench(data=2, control=2)
    bench.give(CONTROL, 0, sync(1))
    bench.give(CONTROL, 1, sync(2))
    assert "barrier overlap on control channel" in bench.processor.failure


def test_barrier_alignment_state_is_isolated_per_channel() -> None:
    """An arrival on one channel would count on the other, where the same id happens to be."""
    bench = Bench(data=2, control=2)
    assert bench.give(DATA, 0, sync(11)) == []
    assert bench.give(CONTROL, 0, sync(11)) == []
    assert bench.give(DATA, 1, sync(11)) == ["data SyncTest 11"]
    assert bench.give(CONTROL, 1, sync(11)) == ["control SyncTest 11"]
    assert not bench.processor.ended


def test_plan_explain_two_sinks_inserts_physical_barrier() -> None:
    """Sinks would meet at a processor that does not align.

    There a node is inserted; here every processor aligns, so the collector is that node itself.
    """
    wiring = ControlWiring("source->sink_a source->sink_b sink_a->collector sink_b->collector")
    counts = [len(wiring.inputs(carrier, "collector")) for carrier in ("data", "control")]
    assert counts == [2, 2]
    assert wiring.processors[-1] == "collector"
    ControlProcessor("collector", make("sink"), *counts, 0, 0, equal_upstreams=True)


def drive(world: ControlWorld, state: PipelineState, *wanted: str) -> tuple[PipelineState, list[str]]:
    """Do `wanted`, and deliver in between until nothing is left; what took effect at the collector."""
    seen: list[str] = []
    for move in (*wanted, ""):
        moves = world.moves(state)
        while delivers := [each for each in moves if each.startswith("deliver")]:
            entries = world.entries(state, delivers[0])
            seen += [str(subject) for _, verb, node, _, subject in entries if (verb, node) in TAKES_EFFECT]
            state = world.after(state, delivers[0])
            moves = world.moves(state)
        if move:
            assert move in moves, (move, moves)
            state = world.after(state, move)
    return state, seen


TAKES_EFFECT = {("deliver", "collector"), ("end", "collector")}


@pytest.mark.parametrize("carrier", [DATA, CONTROL], ids=str)
def test_shared_tail_barrier_graceful_close_flushes_batched_sibling_before_shutdown(carrier) -> None:
    """Anything that a slower sink still gathers would be lost when the pipeline is closed."""
    world = ControlWorld(
        ControlBounds(
            ControlWiring("source->sink_a source->sink_b sink_a->collector sink_b->collector"),
            script=((GRACEFUL, carrier),),
            events=3,
            make_processor=Processors({"sink_b": "batch"}, {"sink_b": {"batch_count": 8}}),
        )
    )
    state, seen = drive(world, world.start(), "emit source", "emit source", "emit source")
    assert seen == ["source1", "source2", "source3"]
    state, seen = drive(world, state)
    assert seen == []
    state, seen = drive(world, state, "signal")
    assert seen == ["sink_b(source1+source2+source3)1", "StreamGracefulEnd 1"]
    assert world.moves(state) == ()
    assert world.quiescent(state) == ()


class Sliding(Gathering):
    """A window for each row: what is from `back_s` before to `ahead_s` after it."""

    back_s, ahead_s = 10, 15

    def flush(self):
        rows, self.rows = self.rows, []
        return [
            self.gathered(
                [r for r in rows if -self.back_s <= (r.timestamp_ms - row.timestamp_ms) // 1000 <= self.ahead_s]
            )
            for row in rows
        ]


class ByKey(Gathering):
    """A window for each key."""

    def flush(self):
        rows, self.rows = self.rows, []
        return [self.gathered([row for row in rows if row.key == key]) for key in sorted({row.key for row in rows})]


def collections(operator: Gathering, *rows) -> list[tuple[object, ...]]:
    """Return what comes out of an operator by a graceful end, which must come last."""
    bench = Bench(data=1, control=1, operator=operator)
    assert bench.give(DATA, 0, *rows) == []
    assert bench.processor.offer(DATA, 0, graceful(1))
    *data, barrier, _end = [message for _, message in bench.processor.outbox[DATA]]
    assert barrier == graceful(1)
    return [message.value for message in data]


def seconds(*times_s: int, keys: Callable[[int], int] = lambda n: 0):
    """Rows at these times."""
    return [event(f"r{n}", 1000 * time_s, keys(n)) for n, time_s in enumerate(times_s, 1)]


def test_tumbling_window_graceful_end_flushes_buffer_before_terminal_control() -> None:
    """The last window would be lost, or come behind the end."""
    rows = seconds(1, 2)
    assert collections(Tumbling("window", 10_000), *rows) == [tuple(rows)]


def test_sliding_window_with_lookahead_graceful_end_flushes_pending_windows_before_terminal_control() -> None:
    """Windows that still wait for later rows would be lost."""
    assert [len(rows) for rows in collections(Sliding("window"), *seconds(100, 110, 115))] == [3, 3, 2]


def test_statewindow_partition_by_graceful_end_flushes_all_partitions() -> None:
    """Only one key's window would be given off."""
    found = collections(ByKey("window"), *seconds(1, 2, keys=lambda n: n))
    assert [[row.key for row in rows] for rows in found] == [[1], [2]]
