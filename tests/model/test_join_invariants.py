"""Each invariant of joins is seen to fail: on a journal that is wrong in that one way."""

from __future__ import annotations

from typing import Any

import pytest

from barrierlab.model.join.history import ALLOWS, VERBS, FrameFacts, JoinEntry, JoinSpec, MapFacts, RuleFacts, text
from barrierlab.model.join.invariants import JOIN_INVARIANTS, judge_join, violations

OUT = 9
NUMBERS = MapFacts("sequence", 1, (RuleFacts(1, "seq", 0, None), RuleFacts(2, "seq", -2, None)))
NEXT = MapFacts("sequence", 2, NUMBERS.rules)
STALE = MapFacts("sequence", 1, NUMBERS.rules, stale_ns=10)
TIMES = MapFacts(
    "timestamp", 1, (RuleFacts(1, "frame", 0, None), RuleFacts(2, "slot", None, 10)), lateness_ns=4, clock="MONOTONIC"
)
SEQUENCE = JoinSpec("sequence", "sequence", slots={1: 4, 2: 4})
TIMESTAMP = JoinSpec("timestamp", "timestamp")
LATEST = JoinSpec("latest", "sequence", slots={1: 4, 2: 4})


def frame(seq: int, at: int | None = None, epoch: int = 1) -> FrameFacts:
    """A frame, its slot header's time the same as its descriptor's."""
    return FrameFacts(epoch, seq, at, at)


def came(stream: int, each: FrameFacts, now: int = 0) -> list[JoinEntry]:
    """A frame is published and observed."""
    return [(now, "publish", stream, each), (now, "observe", stream, each)]


def both(*seqs: int, now: int = 0) -> list[JoinEntry]:
    """These frames of both streams."""
    return [entry for seq in seqs for stream in (1, 2) for entry in came(stream, frame(seq, seq), now)]


def asked(out: int, answer: str = "ready", absent: tuple[int, ...] = (), now: int = 0) -> JoinEntry:
    """A question and its answer."""
    return now, "ask", OUT, (out, answer, absent)


def emitted(out: int, *frames: tuple[int, FrameFacts], absent: tuple[int, ...] = (), now: int = 0) -> JoinEntry:
    """An output."""
    return now, "emit", OUT, (out, frames, absent)


SAID: JoinEntry = (0, "announce", OUT, NUMBERS)
PAIR = ((1, frame(3, 3)), (2, frame(1, 1)))
GOOD = [SAID, *both(0, 1, 2, 3), asked(4, "waiting"), asked(3), emitted(3, *PAIR)]


def test_a_good_journal_holds() -> None:
    """The judge would find fault with everything."""
    for journal, spec in (
        (GOOD, SEQUENCE),
        ([SAID, *both(0, 1, 2, 3), asked(3), (0, "skip", OUT, (3, 5, "failed", ()))], SEQUENCE),
        ([(0, "announce", OUT, TIMES), *both(20), asked(20), asked(24), asked(25, "waiting")], TIMESTAMP),
        ([SAID, *came(1, frame(7)), asked(1, "waiting"), *came(2, frame(3)), asked(1)], LATEST),
        ([SAID, (0, "invalid", OUT, ("sequence", 1)), *both(2), asked(2, "no map"), SAID, asked(2)], SEQUENCE),
        ([SAID, (0, "epoch", OUT, 2), *both(2), (0, "announce", OUT, NEXT), asked(2)], SEQUENCE),
    ):
        assert judge_join(journal, spec).verdict == "holds", violations(journal, spec)


BROKEN: list[tuple[str, JoinSpec, list[Any], str]] = [
    ("READY", SEQUENCE, [SAID, asked(2)], "of stream 1 nothing is observed, 2 is required"),
    ("READY", SEQUENCE, [SAID, *both(5), asked(1)], "of stream 2 5 is observed, nothing would be enough"),
    (
        "READY",
        SEQUENCE,
        [SAID, *both(5), *came(2, frame(0, epoch=2)), asked(5)],
        "of stream 2 0 is observed, 3 is required",
    ),
    (
        "READY",
        SEQUENCE,
        [SAID, *both(5), (0, "announce", OUT, MapFacts("sequence", 2, NUMBERS.rules)), asked(5)],
        "of stream 1 nothing",
    ),
    ("READY", SEQUENCE, [SAID, *both(2**64 - 1), asked(2)], "of stream 1 nothing is observed"),
    ("READY", SEQUENCE, [*GOOD[:-2], emitted(3, *PAIR)], "output 3 comes out and was not called ready"),
    (
        "READY",
        TIMESTAMP,
        [(0, "announce", OUT, TIMES), *both(15), asked(20)],
        "of stream 1 15 is observed, 16 is required",
    ),
    (
        "READY",
        TIMESTAMP,
        [(0, "announce", OUT, TIMES), *both(20, 19, 30), asked(20)],
        "of stream 1 nothing is observed",
    ),
    (
        "READY",
        TIMESTAMP,
        [(0, "announce", OUT, TIMES), *both(20), asked(9)],
        "of stream 2 20 is observed, nothing would",
    ),
    (
        "READY",
        JoinSpec("timestamp", "timestamp", lateness_for_all=False),
        [(0, "announce", OUT, TIMES), *both(17), asked(20)],
        "of stream 1 17 is observed, 20 is required",
    ),
    (
        "READY",
        TIMESTAMP,
        [
            (0, "announce", OUT, MapFacts("timestamp", 1, (RuleFacts(1, "frame", None, 10),), lateness_ns=50)),
            *both(55),
            asked(100),
        ],
        "of stream 1 55 is observed, 90 is required",
    ),
    (
        "READY",
        JoinSpec("sequence", "sequence", use_processed=True),
        [SAID, *both(5), (0, "process", 1, (1, "seq", 4)), (0, "process", 2, (1, "seq", 3)), asked(5)],
        "of stream 1 5 is observed",
    ),
    (
        "READY",
        LATEST,
        [SAID, *both(5), (0, "again", OUT, (4, "next tick", (2,))), asked(4)],
        "of stream 2 5 is observed",
    ),
    ("LIVE", SEQUENCE, [SAID, *both(5), asked(5, "waiting")], "output 5 is kept back (waiting)"),
    (
        "LIVE",
        SEQUENCE,
        [(0, "announce", OUT, STALE), *both(5), *came(1, frame(9), 20), asked(9, "waiting", (), 20)],
        "output 9",
    ),
    (
        "LIVE",
        SEQUENCE,
        [SAID, *both(5), (0, "invalid", OUT, ("sequence", 2)), asked(5, "no map")],
        "output 5 is kept back (no map)",
    ),
    (
        "LIVE",
        SEQUENCE,
        [SAID, *both(5), (0, "announce", OUT, MapFacts("sequence", 0, NUMBERS.rules)), asked(5, "no map")],
        "no map",
    ),
    ("LIVE", SEQUENCE, [*GOOD, *both(4), asked(4, "passed")], "output 4 is kept back (passed)"),
    ("LIVE", SEQUENCE, [SAID, *both(5), *came(2, frame(7, epoch=0)), asked(5, "waiting")], "output 5"),
    ("ORDER", SEQUENCE, [*GOOD, asked(3), emitted(3, *PAIR)], "output 3 after 3"),
    ("ORDER", SEQUENCE, [*GOOD, *both(4), (0, "skip", OUT, (2, 2, "failed", ()))], "output 2 after 3"),
    (
        "ORDER",
        TIMESTAMP,
        [
            (0, "announce", OUT, TIMES),
            *both(20),
            asked(20),
            emitted(20, (1, frame(20, 20)), (2, frame(20, 20))),
            asked(19),
            emitted(19, (1, frame(20, 20)), (2, frame(20, 20))),
        ],
        "output 19 after 20",
    ),
    (
        "ABSENT",
        SEQUENCE,
        [(0, "announce", OUT, STALE), *both(3), *came(1, frame(6), 5), asked(6, "degraded", (2,), 10)],
        "stream 2 is absent from output 6, and is not stale",
    ),
    (
        "ABSENT",
        SEQUENCE,
        [(0, "announce", OUT, STALE), *both(3), asked(9, "degraded", (1, 2), 50)],
        "without any input",
    ),
    ("ABSENT", SEQUENCE, [*GOOD[:-1], emitted(3)], "output 3 comes out without any input"),
    ("ABSENT", SEQUENCE, [*GOOD[:-1], emitted(3, PAIR[0])], "without stream 2, which is not absent"),
    ("MAP", SEQUENCE, [*both(3), asked(3)], "output 3 is called ready without a map of epoch None"),
    ("MAP", SEQUENCE, [SAID, *both(3), (0, "invalid", OUT, ("sequence", 1)), asked(3)], "without a map of epoch 1"),
    ("MAP", SEQUENCE, [SAID, *both(3), (0, "epoch", OUT, 2), asked(3)], "without a map of epoch 2"),
    ("MAP", SEQUENCE, [(0, "announce", OUT, TIMES), *both(3), asked(3)], "without a map"),
    (
        "MAP",
        SEQUENCE,
        [*GOOD[:-1], (0, "epoch", OUT, 2), emitted(3, *PAIR)],
        "output 3 comes out without a map of epoch 2",
    ),
    (
        "CLOCK",
        TIMESTAMP,
        [(0, "announce", OUT, TIMES), *both(20), (0, "clock", 2, "REALTIME_SYNCED"), asked(20)],
        "output 20",
    ),
    (
        "CLOCK",
        JoinSpec("timestamp", "timestamp", clock="REALTIME_SYNCED"),
        [(0, "announce", OUT, TIMES), *both(20), asked(20)],
        "20",
    ),
    (
        "CHOICE",
        SEQUENCE,
        [*GOOD[:-1], emitted(3, PAIR[0], (2, frame(1, 7)))],
        "frame 1 of stream 2 for output 3 was never published",
    ),
    ("CHOICE", SEQUENCE, [*GOOD[:-1], emitted(3, PAIR[0], (2, frame(2, 2)))], "is none that its rule asks for"),
    (
        "CHOICE",
        SEQUENCE,
        [*GOOD[:-1], (0, "publish", 2, frame(5)), emitted(3, *PAIR)],
        "frame 1 of stream 2 for output 3 was overwritten",
    ),
    (
        "CHOICE",
        SEQUENCE,
        [*GOOD[:-1], *came(2, frame(0, epoch=2)), emitted(3, *PAIR)],
        "is of epoch 1, its stream in 2",
    ),
    (
        "CHOICE",
        LATEST,
        [SAID, *both(1, 2), asked(1), emitted(1, (1, frame(1, 1)), (2, frame(2, 2)))],
        "is not the newest: 2 was observed",
    ),
]


@pytest.mark.parametrize(("invariant", "spec", "journal", "words"), BROKEN, ids=[f"{b[0]} {b[3]}" for b in BROKEN])
def test_what_is_wrong_is_found(invariant: str, spec: JoinSpec, journal: list[Any], words: str) -> None:
    """A join that is wrong in this way would be said to hold."""
    verdict = judge_join(journal, spec)
    assert verdict.verdict == "broken"
    found = [violation for violation in verdict.violations if violation.invariant == invariant]
    assert any(words in violation.reason for violation in found), verdict.violations


def test_every_invariant_is_seen_to_fail() -> None:
    """One could be there by name only."""
    assert {invariant for invariant, *_ in BROKEN} == set(JOIN_INVARIANTS)


def test_a_verdict_tells_twenty_and_counts_the_rest() -> None:
    """A journal that is wrong throughout would fill the screen."""
    verdict = judge_join([SAID, *(asked(out) for out in range(2, 32))], SEQUENCE)
    assert [violation.invariant for violation in verdict.violations] == ["READY"] * 20 + ["ABSENT"] * 20
    assert verdict.more == {"READY": 40, "ABSENT": 10}


def test_an_entry_is_a_line() -> None:
    """A journal could not be read."""
    assert text(asked(4, "waiting", (), 1_500_000_000)) == "1.500000000 ask 9 (4, 'waiting', ())"
    assert set(VERBS) >= {entry[1] for entry in GOOD}
    assert ALLOWS == ("ready", "degraded")
