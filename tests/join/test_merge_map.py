"""The merge maps that are allowed: sections 6.2 and 6.3, what the wire can hold, and protocol rule 28."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from barrierlab.impl.errors import ContractError, LimitError, MergeMapError, StreamIdError
from barrierlab.impl.join import (
    ClockDomain,
    JoinConfig,
    MergeRuleType,
    MergeTimeRuleType,
    SequenceMergeMapAnnounce,
    SequenceMergeMapRequest,
    SequenceMergeRule,
    TimestampMergeMapAnnounce,
    TimestampMergeMapRequest,
    TimestampMergeRule,
    TimestampSource,
)
from tests.join.support import FRAME, MS, OUT, SLOT, at, at_ns, numbers, times, window, window_ns

OFFSET, WINDOW = MergeRuleType
OFFSET_NS, WINDOW_NS = MergeTimeRuleType


def made(make: Any, *parts: Any) -> str:
    """The name of the error that making it raises; empty if it can be made."""
    try:
        make(*parts)
    except ContractError as error:
        return type(error).__name__
    return ""


@pytest.mark.parametrize(
    ("rule_type", "offset", "size", "error"),
    [
        (OFFSET, 0, None, ""),
        (OFFSET, None, None, "MergeMapError"),
        (OFFSET, 0, 4, "MergeMapError"),
        (OFFSET, None, 4, "MergeMapError"),
        (WINDOW, None, 4, ""),
        (WINDOW, None, None, "MergeMapError"),
        (WINDOW, 0, 4, "MergeMapError"),
        (WINDOW, 0, None, "MergeMapError"),
        (WINDOW, None, 0, "LimitError"),
        (WINDOW, None, -1, "LimitError"),
        (WINDOW, None, 2**32 - 2, ""),
        (WINDOW, None, 2**32 - 1, "LimitError"),  # what stands for null
        (OFFSET, 2**31 - 1, None, ""),
        (OFFSET, 2**31, None, "LimitError"),
        (OFFSET, -(2**31) + 1, None, ""),
        (OFFSET, -(2**31), None, "LimitError"),  # what stands for null
        (0, 0, None, "MergeMapError"),
        (OFFSET, 0.5, None, "LimitError"),
        (OFFSET, True, None, "LimitError"),
    ],
)
def test_a_sequence_rule_has_its_own_parameter_alone(rule_type: Any, offset: Any, size: Any, error: str) -> None:
    """A rule that says two things, or nothing, would be read as one of them (section 6.2)."""
    assert made(SequenceMergeRule, 1, rule_type, offset, size) == error


@pytest.mark.parametrize(
    ("rule_type", "offset", "size", "error"),
    [
        (OFFSET_NS, 0, None, ""),
        (OFFSET_NS, None, None, "MergeMapError"),
        (OFFSET_NS, 0, 4, "MergeMapError"),
        (WINDOW_NS, None, 4, ""),
        (WINDOW_NS, None, None, "MergeMapError"),
        (WINDOW_NS, 0, 4, "MergeMapError"),
        (WINDOW_NS, None, 0, "LimitError"),
        (WINDOW_NS, None, 2**64 - 2, ""),
        (WINDOW_NS, None, 2**64 - 1, "LimitError"),
        (OFFSET_NS, 2**63 - 1, None, ""),
        (OFFSET_NS, 2**63, None, "LimitError"),
        (OFFSET_NS, -(2**63) + 1, None, ""),
        (OFFSET_NS, -(2**63), None, "LimitError"),
        (1, None, 4, "MergeMapError"),
    ],
)
def test_a_timestamp_rule_has_its_own_parameter_alone(rule_type: Any, offset: Any, size: Any, error: str) -> None:
    """As above (section 6.3)."""
    assert made(TimestampMergeRule, 1, rule_type, FRAME, offset, size) == error


def test_a_timestamp_rule_declares_its_source() -> None:
    """A rule would be gated by arrival times where capture times are meant (section 8.2)."""
    assert made(TimestampMergeRule, 1, OFFSET_NS, 2, 0, None) == "MergeMapError"
    assert at_ns(1, 0, SLOT).timestamp_source is TimestampSource.SLOT_HEADER


@pytest.mark.parametrize("stream", [0, -1, 2**32 - 1, 2**32, 1.0, None, True])
def test_no_stream_has_such_an_id(stream: Any) -> None:
    """A config without a stream would join nothing, or what does not fit the wire would be cut off."""
    for make in (
        lambda: SequenceMergeRule.at_offset(stream),
        lambda: TimestampMergeRule.in_window(stream, 1),
        lambda: SequenceMergeMapAnnounce(stream, 1, (at(1),)),
        lambda: SequenceMergeMapRequest(stream, 1),
        lambda: TimestampMergeMapRequest(stream, 1),
        lambda: JoinConfig(stream),
    ):
        with pytest.raises(StreamIdError, match="allowed: 1 to 4294967294"):
            make()


@pytest.mark.parametrize("epoch", [-1, 2**64 - 1, None])
def test_an_epoch_fits_its_eight_bytes(epoch: Any) -> None:
    """It would be cut off on the wire, and an old map be taken for a new one."""
    for make in (
        lambda: numbers(at(1), epoch=epoch),
        lambda: times(at_ns(1), epoch=epoch),
        lambda: SequenceMergeMapRequest(OUT, epoch),
        lambda: TimestampMergeMapRequest(OUT, epoch),
    ):
        with pytest.raises(LimitError, match="epoch"):
            make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: numbers(), "0 rules; allowed: a tuple of 1 to 65534"),
        (lambda: times(), "0 rules"),
        (lambda: SequenceMergeMapAnnounce(OUT, 1, [at(1)]), "1 rules; allowed: a tuple"),  # type: ignore[arg-type]
        (lambda: numbers(at(OUT)), "a rule of stream 9 for itself"),
        (lambda: times(at_ns(1), window_ns(OUT, 5)), "a rule of stream 9 for itself"),
        (lambda: numbers(at(1), window(1, 4)), "two rules for stream 1"),
        (lambda: times(at_ns(1), window_ns(1, 5)), "two rules for stream 1 by FRAME_DESCRIPTOR"),
        (lambda: times(at_ns(1), window_ns(2, 9), late=10), "a window of 9 ns on stream 2 with a lateness of 10 ns"),
        (lambda: times(at_ns(1), clock=1), "clock_domain = 1; allowed: MONOTONIC, REALTIME_SYNCED"),
    ],
)
def test_a_map_that_says_nothing_is_none(make: Any, words: str) -> None:
    """An empty map would always be ready, one of itself never, an empty window ready all the same (rule 28)."""
    with pytest.raises(MergeMapError) as raised:
        make()
    assert words in str(raised.value)


def test_what_is_nearly_too_much_is_allowed() -> None:
    """A good map would be refused."""
    assert len(times(at_ns(1), window_ns(1, 5, SLOT)).rules) == 2
    assert times(window_ns(1, 10), late=10).lateness_ns == 10
    assert numbers(*(at(stream) for stream in range(10, 10 + 65_534))).first_output == 0
    with pytest.raises(MergeMapError, match="65535 rules"):
        numbers(*(at(stream) for stream in range(10, 10 + 65_535)))


@pytest.mark.parametrize(("value", "error"), [(0, "LimitError"), (2**64 - 1, "LimitError"), (1, ""), (None, "")])
def test_a_stale_timeout_is_a_time(value: Any, error: str) -> None:
    """With 0 every input would be stale at once (rule 32)."""
    assert made(SequenceMergeMapAnnounce, OUT, 1, (at(1),), value) == error
    assert made(TimestampMergeMapAnnounce, OUT, 1, ClockDomain.MONOTONIC, (at_ns(1),), value) == error


@pytest.mark.parametrize(("value", "error"), [(-1, "LimitError"), (2**64 - 1, "LimitError"), (0, ""), (None, "")])
def test_a_lateness_is_a_time(value: Any, error: str) -> None:
    """A negative one would ask for more than the rule."""
    assert made(TimestampMergeMapAnnounce, OUT, 1, ClockDomain.MONOTONIC, (at_ns(1),), None, value) == error


def test_the_first_output_is_where_every_rule_can_be_met() -> None:
    """A stage that begins before it waits for an output that never becomes ready (sections 6.2.1 and 6.2.2)."""
    assert numbers(at(1), at(2, -2)).first_output == 2
    assert numbers(at(1, 3)).first_output == 0
    assert numbers(window(1, 5), at(2, -2)).first_output == 4
    assert times(at_ns(1, -30 * MS), window_ns(2, 50 * MS)).first_output == 50 * MS


def test_a_rule_is_valid_exactly_when_its_pair_is() -> None:
    """200 drawn rules of each kind; as "JoinBarrier validation fuzz" of AeronTensorPool has it."""
    random = Random(2024)
    for kinds, make in (
        ((OFFSET, WINDOW), lambda k, o, w: made(SequenceMergeRule, 1, k, o, w)),
        ((OFFSET_NS, WINDOW_NS), lambda k, o, w: made(TimestampMergeRule, 1, k, FRAME, o, w)),
    ):
        seen = set()
        for _ in range(200):
            kind = random.choice(kinds)
            offset = random.choice([None, random.randint(-100, 100)])
            size = random.choice([None, random.randint(-3, 100)])
            right = offset is not None and size is None
            if kind is kinds[1]:
                right = offset is None and size is not None and size > 0
            assert (make(kind, offset, size) == "") is right
            seen.add((kind, right))
        assert len(seen) == 4
