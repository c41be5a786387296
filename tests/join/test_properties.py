"""Anything that can happen to a join, in any order: its journal holds, and it can be restored at every step."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl.errors import MergeMapError
from barrierlab.impl.join import (
    ClockDomain,
    Frame,
    InvalidMergeMap,
    JoinConfig,
    JoinStage,
    LatenessScope,
    LatestValueJoinBarrier,
    MergeMap,
    OnFailure,
    PendingPolicy,
    Readiness,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    StageConfig,
    TimestampJoinBarrier,
    TimestampMergeMapAnnounce,
)
from barrierlab.model.join.invariants import judge_join
from barrierlab.model.join.world import JoinWorld
from tests.breadth import examples
from tests.join.support import FRAME, OUT, SLOT, at, at_ns, window, window_ns

STREAMS = (1, 2, 3)


@st.composite
def maps(draw: st.DrawFn, by_time: bool) -> MergeMap:
    """A small map, of numbers that runs reach."""
    streams = draw(st.lists(st.sampled_from(STREAMS), min_size=1, max_size=3, unique=True))
    epoch, stale = draw(st.integers(1, 3)), draw(st.sampled_from([None, None, 5, 20]))
    if not by_time:
        rules = [draw(st.sampled_from([at(s), at(s, -2), at(s, 1), window(s, 3)])) for s in streams]
        return SequenceMergeMapAnnounce(OUT, epoch, tuple(rules), stale)
    late = draw(st.sampled_from([None, 0, 3, 8]))
    times = [
        draw(st.sampled_from([at_ns(s), at_ns(s, -4), window_ns(s, 8), window_ns(s, 12, SLOT), at_ns(s, 2, SLOT)]))
        for s in streams
    ]
    if draw(st.booleans()):
        times.append(at_ns(streams[0], 0, SLOT if times[0].timestamp_source is FRAME else FRAME))
    domain = draw(st.sampled_from([ClockDomain.MONOTONIC, ClockDomain.MONOTONIC, ClockDomain.REALTIME_SYNCED]))
    return TimestampMergeMapAnnounce(OUT, epoch, domain, tuple(times), stale, late)


@st.composite
def worlds(draw: st.DrawFn) -> Any:
    """Return a maker of worlds, twice the same."""
    kind = draw(st.sampled_from(["sequence", "timestamp", "latest", "latest by time", "latest of times"]))
    by_time = kind not in ("sequence", "latest")
    use_processed = draw(st.booleans()) and not kind.startswith("latest")
    config = JoinConfig(
        OUT,
        draw(st.sampled_from([None, None, 2])),
        use_processed,
        draw(st.sampled_from(LatenessScope)),
        draw(st.sampled_from([None, None, ClockDomain.MONOTONIC])),
    )
    slots = {stream: draw(st.integers(1, 6)) for stream in STREAMS}
    stage = StageConfig(
        draw(st.sampled_from(OnFailure)),
        draw(st.sampled_from([None, *PendingPolicy])),
        draw(st.sampled_from([1, 3, 100])),
        tuple(slots.items()) if draw(st.booleans()) else (),
    )

    def make() -> JoinWorld:
        if kind == "sequence":
            barrier: Any = SequenceJoinBarrier(config)
        elif kind == "timestamp":
            barrier = TimestampJoinBarrier(config)
        else:
            map_kind = TimestampMergeMapAnnounce if by_time else SequenceMergeMapAnnounce
            barrier = LatestValueJoinBarrier(config, map_kind, kind == "latest by time")
        return JoinWorld(JoinStage(barrier, stage), slots)

    return make, by_time, use_processed


moves = st.sampled_from(
    ["frame"] * 12
    + ["late", "process", "process", "time", "offer", "offer", "run", "run", "begin", "end", "ask"]
    + ["announce", "again", "invalid", "epoch", "restart", "clock", "restored"]
)


@settings(max_examples=examples(120), deadline=None)
@given(st.data())
def test_whatever_happens_the_invariants_hold(data: st.DataObject) -> None:
    """A join would go wrong in an order of things that nobody thought of."""
    make, by_time, use_processed = data.draw(worlds())
    it: JoinWorld = make()
    journal: list[Any] = []
    now, wanted = 0, 0
    epochs, seqs, stamps = dict.fromkeys(STREAMS, 1), dict.fromkeys(STREAMS, -1), dict.fromkeys(STREAMS, 0)
    sent: list[Frame] = []
    said = data.draw(maps(by_time))
    for move in data.draw(st.lists(moves, min_size=10, max_size=70)):
        stream = data.draw(st.sampled_from(STREAMS))
        if move == "frame":
            seqs[stream] += data.draw(st.sampled_from([1, 1, 1, 2]))
            stamps[stream] += data.draw(st.sampled_from([2, 3, 4, 4, 5, -1]))
            at_frame = data.draw(st.sampled_from([max(0, stamps[stream])] * 5 + [None]))
            each = Frame(stream, epochs[stream], seqs[stream], at_frame, max(0, stamps[stream] - 1))
            sent.append(each)
            it.publish(each, now)
            it.observe(each, now)
        elif move == "late" and sent:
            it.observe(data.draw(st.sampled_from(sent)), now)
        elif move == "process" and use_processed and sent:
            it.process(data.draw(st.sampled_from(sent[-4:])), now)
        elif move == "time":
            now += data.draw(st.integers(1, 12))
        elif move == "offer":
            wanted += data.draw(st.sampled_from([0, 3, 5, 9]))
            it.offer(wanted, now)
        elif move == "run":
            it.run(now)
        elif move == "begin":
            it.try_next(now)
        elif move == "end" and it.stage.attempt is not None:
            it.end(now)
        elif move == "ask" and it.stage.attempt is None:
            asked = it.ask(data.draw(st.integers(0, 60)), now)
            assert isinstance(asked, Readiness)
        elif move == "announce":
            said = data.draw(maps(by_time))
            it.announce(said, now)
        elif move == "again":
            it.announce(said, now)
        elif move == "invalid":
            it.announce(InvalidMergeMap(type(said), OUT, data.draw(st.integers(1, 3)), "no rules"), now)
        elif move == "epoch":
            it.begin_epoch(data.draw(st.integers(1, 3)), now)
        elif move == "restart":
            epochs[stream] += 1
            seqs[stream], stamps[stream] = -1, 0
        elif move == "clock":
            it.declare_clock(stream, data.draw(st.sampled_from(ClockDomain)), now)
        elif move == "restored":
            journal += it.entries
            other = make()
            other.restore(it.capture())
            assert other.capture() == it.capture()
            it = other
    it.run(now)
    verdict = judge_join(journal + it.entries, it.spec)
    assert verdict.violations == (), "\n".join(map(str, [*verdict.violations, *journal, *it.entries]))


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 30))
def test_a_shorter_window_than_the_lateness_is_never_a_map(window_of: int, lateness: int, out: int) -> None:
    """A ready window might be empty for sure (defect J-08)."""
    rule = window_ns(1, window_of + 1)
    try:
        said = TimestampMergeMapAnnounce(OUT, 1, ClockDomain.MONOTONIC, (rule,), None, lateness)
    except MergeMapError:
        assert window_of + 1 < lateness
        return
    barrier = TimestampJoinBarrier(JoinConfig(OUT))
    barrier.announce(said, 0)
    for observed in range(out + 1):
        barrier.observe_time(1, 1, FRAME, observed, 0)
        if barrier.ready(out, 0).may_attempt:
            assert out - (window_of + 1) <= observed <= out
            return
