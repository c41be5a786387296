"""Flink's barrier handler as an oracle: rules R1-R4, R6, R12 and the aligned vectors B-A1 to B-A12.

Restated from the tests of apache/flink (`SingleCheckpointBarrierHandler`, `AlignedCheckpointsTest`). A vector runs step
by step: what it feeds, then what must be so.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from barrierlab.impl import Reason
from tests.impl.support import barrier, cancel
from tests.impl.vectors import Arrival, Handler, read


class Step(NamedTuple):
    """The messages fed, and what must be so afterwards; None is not asked."""

    feed: str
    triggered: list[int]
    aborted: list[int] = []
    blocked: set[int] = set()
    current: int | None = None


VECTORS: dict[str, tuple[int, list[Step]]] = {
    "B-A1 many channels": (
        3,
        [
            Step("D0 D2 D0 B(1,1) B(1,2) D0", [], [], {1, 2}, 1),
            Step("B(1,0)", [1]),
            Step("| D0 D0 D1 D1 D2 B(2,0) B(2,1)", [1], [], {0, 1}, 2),
            Step("B(2,2)", [1, 2]),
            Step("| D2 D2 B(3,2) D0 D0 B(3,0) B(3,1)", [1, 2, 3]),
            Step("| B(4,1) B(4,2) B(4,0)", [1, 2, 3, 4]),
            Step("| D0 E0 E1 E2", [1, 2, 3, 4]),
        ],
    ),
    "B-A2 one channel": (1, [Step("D D D B1 D D D D B2 B3 D D B4 B5 B6 D E", [1, 2, 3, 4, 5, 6])]),
    "B-A3 jumping over checkpoints": (
        3,
        [
            Step("D0 B(1,0) B(1,1) B(1,2)", [1]),
            Step("B(2,1) D2 B(2,0) D2", [1], [], {0, 1}, 2),
            Step("B(3,2)", [1], [2], {2}, 3),
            Step("D1 D0 B(3,0)", [1], [2], {0, 2}, 3),
            Step("B(4,1)", [1], [2, 3], {1}, 4),
            # With checkpoints after the end (rule 13) E0 counts for 4 and does not abort it.
            Step("D2 D0 E0", [1], [2, 3], {1}, 4),
            Step("E2", [1, 4], [2, 3], set(), 4),
        ],
    ),
    "B-A4 missing cancels": (
        2,
        [
            Step("B(1,0)", [], [], {0}, 1),
            Step("X(3,1)", [], [3], set(), 3),
            Step("X(2,0) X(3,0) D0", [], [3], set(), 3),
        ],
    ),
    "B-A5 closed channels": (
        4,
        [
            Step("E2 E1 D0 D0 D3 B(2,3) B(2,0)", [2]),
            Step("B(3,0) B(3,3)", [2, 3]),
            Step("D0 D0 D3 E0 D3 B(4,3)", [2, 3, 4]),
        ],
    ),
    "B-A6 one channel with cancels": (
        1,
        [
            Step("D B1 D B2 D X4", [1, 2], [4], set(), 4),
            Step("B5", [1, 2, 5], [4], set(), 5),
            Step("D X6 D", [1, 2, 5], [4, 6], set(), 6),
        ],
    ),
    "B-A10 the end is the last barrier": (3, [Step("B(1,0) B(1,1) E2", [1], [], set(), 1)]),
    "B-A11 barrier and end of one channel count once": (
        3,
        [Step("B(2,0) B(2,1) E1", [], [], {0, 1}, 2), Step("B(2,2)", [2])],
    ),
    "B-A12 the end before the barriers": (
        3,
        [Step("E2 B(6,0) B(6,1)", [6]), Step("E1 B(7,0)", [6, 7], [])],
    ),
}


@pytest.mark.parametrize(("channels", "steps"), VECTORS.values(), ids=VECTORS)
def test_vector(channels, steps):
    """If it fails, tasks here decide otherwise than Flink's on the same sequence of barriers, cancels and ends."""
    handler = Handler(channels)
    for step in steps:
        handler.feed(step.feed)
        assert handler.triggered == step.triggered, step
        assert handler.aborted == step.aborted, step
        assert handler.blocked == step.blocked, step
        assert step.current is None or handler.current == step.current, step
    assert handler.gate.aligner.buffered_event_count() == 0


@pytest.mark.parametrize(("channels", "steps"), VECTORS.values(), ids=VECTORS)
def test_vector_loses_nothing(channels, steps):
    """If it fails, an event of a vector is lost, doubled or overtaken within its channel."""
    handler = Handler(channels)
    arrivals: list[Arrival] = []
    for step in steps:
        handler.feed(step.feed)
    numbering = read(" ".join(step.feed for step in steps), channels)  # as `feed`, but with one numbering
    arrivals = [a for a in numbering if str(a.message).startswith("d")]
    delivered = [line.split()[0] for line in handler.port.of("deliver")]
    for channel in range(channels):
        sent = sum(a.channel == channel for a in arrivals)
        assert delivered.count(str(channel)) == sent


def test_output_order_is_input_order_where_no_channel_waits_with_data():
    """If it fails, alignment reorders even what it need not hold (B-A1)."""
    text = "D0 D2 D0 B(1,1) B(1,2) D0 B(1,0) D0 D0 D1 D1 D2 B(2,0) B(2,1) B(2,2) D2 D2 B(3,2) D0 D0 B(3,0) B(3,1) D0"
    handler = Handler(3).feed(text)
    sent = [f"{a.channel} {a.message}" for a in read(text, 3) if str(a.message).startswith("d")]
    assert handler.port.of("deliver") == sent


@pytest.mark.parametrize("text", ["D D D B1 D D D D B2 B3 D D B4 B5 B6 D E", "D B1 D B2 D X4 B5 D X6 D"])
def test_one_channel_never_aligns(text):
    """If it fails, a chain shows alignment time although there is nothing to wait for (B-A2, B-A6)."""
    handler = Handler(1).feed(text)
    assert handler.gate.aligner.metrics().max_alignment_duration_ns == 0
    assert handler.port.of("buffer") == []


def test_cancels_are_not_declined():
    """If it fails, each task answers a cancel marker with a decline of its own, and the coordinator drowns (B-A6)."""
    handler = Handler(1).feed("D B1 D B2 D X4 B5 D X6 D")
    assert handler.declined == []


def test_r1_an_older_barrier_is_ignored():
    """If it fails, a stale barrier blocks its channel (R1: lower id, or current id with nothing pending)."""
    handler = Handler(2).feed("B(3,0) B(2,1)")
    assert handler.blocked == {0}
    assert handler.port.of("ignore") == ["1 barrier 2"]
    handler.feed("B(3,1) B(3,0) B(1,1)")
    assert handler.triggered == [3]
    assert handler.blocked == set()


def test_r2_a_newer_barrier_subsumes():
    """If it fails, two checkpoints mix at one task (R2)."""
    handler = Handler(3).feed("B(1,0) D0 B(2,1)")
    assert handler.declined == [f"1 {Reason.SUBSUMED}"]
    assert handler.aborted == [1]
    assert (handler.blocked, handler.current) == ({1}, 2)
    assert handler.port.of("deliver") == ["0 d1"]


def test_r3_a_cancel_acts_once():
    """If it fails, a cancel marker of a checkpoint that nobody has seen is lost, or acts twice (R3)."""
    handler = Handler(2).feed("X(5,0) X(5,1) B(4,0) B(5,1) D0")
    assert handler.aborted == [5]
    assert (handler.triggered, handler.blocked, handler.current) == ([], set(), 5)
    assert handler.feed("B(6,0) B(6,1)").triggered == [6]


def test_r3_a_cancel_of_an_older_checkpoint_is_ignored():
    """If it fails, the cancel of a failed attempt kills the running checkpoint (R3)."""
    handler = Handler(2).feed("B(6,0) X(5,1)")
    assert (handler.aborted, handler.blocked, handler.current) == ([], {0}, 6)


def test_r3_a_cancel_closes_everything_up_to_its_id():
    """If it fails, an older checkpoint stays pending under a newer cancel (R3, corner fact; rule 10)."""
    handler = Handler(3).feed("B(4,0) D0 X(7,1) B(4,2)")
    assert (handler.aborted, handler.blocked, handler.current) == ([7], set(), 7)
    assert handler.port.of("resume") == ["4"]  # what blocked is what resumes
    assert handler.port.of("deliver") == ["0 d1"]


def test_r3_a_cancel_behind_its_own_barrier_acts_at_once():
    """If it fails, the marker that would end the wait waits itself behind the barrier (R3, B-T11)."""
    handler = Handler(2).feed("B(1,0) D0 X(1,0)")
    assert (handler.aborted, handler.blocked) == ([1], set())
    assert handler.port.of("deliver") == ["0 d1"]
    assert handler.feed("X(1,1) B(1,1)").triggered == []


def test_r4_a_channel_waits_from_its_barrier_to_the_last():
    """If it fails, events behind the cut are applied before it (R4)."""
    handler = Handler(3).feed("B(1,1) D1 D0 B(1,0) D0 D1")
    assert handler.blocked == {0, 1}
    assert handler.port.of("deliver") == ["0 d2"]
    handler.feed("D2 B(1,2)")
    assert handler.triggered == [1]
    assert handler.port.lines.index("snapshot 1") < handler.port.lines.index("deliver 0 d3")
    assert handler.blocked == set()


def test_r6_an_end_counts_as_the_barrier_once():
    """If it fails, a finished source stops all later checkpoints, or counts twice (R6)."""
    handler = Handler(3).feed("B(1,0) E0")
    assert handler.blocked == {0}
    assert handler.feed("B(1,1) B(1,2)").triggered == [1]
    assert handler.port.of("end") == ["0"]
    assert handler.feed("B(2,1) B(2,2)").triggered == [1, 2]
    handler.feed("E1 B(3,2)")
    assert handler.triggered == [1, 2, 3]
    assert handler.feed("B(4,2) E2").triggered == [1, 2, 3, 4]


def test_r6_the_end_takes_effect_before_the_snapshot_that_it_completes():
    """If it fails, what the end caused is missing in the image, though the input is over (rule 13)."""
    handler = Handler(2).feed("B(1,0) E1")
    assert handler.port.lines[-5:] == ["end 1", "snapshot 1", "forward barrier 1", "complete 1", "resume 1"]


def test_r12_an_abort_known_before_the_barrier():
    """If it fails, a task aligns for a checkpoint that is dead, or its successors never hear that it is (R12)."""
    handler = Handler(2)
    assert handler.gate.abort(5, Reason.EXPIRED, 0) is True
    assert handler.gate.abort(5, Reason.EXPIRED, 0) is False
    handler.feed("B(5,0) D0 B(5,1) X(5,0)")
    assert handler.aborted == [5]
    assert handler.declined == []  # the coordinator knows
    assert (handler.triggered, handler.blocked) == ([], set())
    assert handler.port.of("ignore") == ["0 barrier 5", "1 barrier 5", "0 cancel 5"]
    assert handler.feed("B(6,0) B(6,1)").triggered == [6]


def test_a_duplicate_barrier_of_one_channel_is_harmless():
    """If it fails, two copies on one channel count for two channels (corner fact: a set, not a counter)."""
    assert Handler(2).feed("B(1,0) B(1,0)").triggered == []


def test_reader():
    """If it fails, the vectors say something else than Flink's tests do."""
    assert read("B(1,0) X(3,1) | E2", 3) == [Arrival(0, barrier(1)), Arrival(1, cancel(3)), read("E2", 3)[0]]
    assert [(a.channel, str(a.message)) for a in read("D0 D(2) B1 X4 E", 3)] == [
        (0, "d1"),
        (2, "d2"),
        (0, "barrier 1"),
        (0, "cancel 4"),
        (0, "end"),
    ]
    with pytest.raises(ValueError, match="U"):
        read("U(1,1)", 2)
    with pytest.raises(ValueError, match="channels 0 to 1"):
        read("D2", 2)
