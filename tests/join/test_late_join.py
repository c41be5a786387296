"""The ways of a map to a joiner: soft state, requests, and lost messages (sections 10.1, 10.3 and 10.5)."""

from __future__ import annotations

from typing import Any

import pytest

from barrierlab.impl.errors import LimitError, MergeMapError, StreamIdError
from barrierlab.impl.join import (
    MergeMapAuthority,
    MergeMapJoiner,
    SequenceMergeMapAnnounce,
    SequenceMergeMapRequest,
    TimestampMergeMapRequest,
    decode,
    encode,
)
from tests.join.support import OUT, S, at, at_ns, feed, frame, holds, numbers, outputs, sequence, times, world


def test_a_request_is_answered_with_the_map() -> None:
    """Section 10.3, a MUST: a late joiner would wait for the next announce."""
    authority = MergeMapAuthority()
    by_number, by_time = numbers(at(1), epoch=3), times(at_ns(1), epoch=4)
    assert authority.publish(by_number, 0) == (by_number,)
    assert authority.publish(by_time, 0) == (by_time,)
    assert authority.on_request(SequenceMergeMapRequest(OUT, 3)) == (by_number,)
    assert authority.on_request(TimestampMergeMapRequest(OUT, 4)) == (by_time,)


def test_a_request_for_another_epoch_is_answered_with_the_one_there_is() -> None:
    """A joiner that cannot know the epoch would ask in vain (defects J-05, J-23)."""
    authority = MergeMapAuthority()
    said = numbers(at(1), epoch=3)
    authority.publish(said, 0)
    for epoch in (0, 2, 9):
        assert authority.on_request(SequenceMergeMapRequest(OUT, epoch)) == (said,)
    assert authority.on_request(TimestampMergeMapRequest(OUT, 3)) == ()
    assert authority.on_request(SequenceMergeMapRequest(OUT + 1, 3)) == ()


def test_maps_are_said_again_at_intervals() -> None:
    """Section 10.1: soft state; a joiner whose request was lost would never hear."""
    authority = MergeMapAuthority(interval_ns=10)
    assert authority.next_deadline_ns() is None
    first, second = numbers(at(1)), times(at_ns(1))
    authority.publish(first, 0)
    authority.publish(second, 4)
    assert authority.next_deadline_ns() == 10
    assert authority.on_time(9) == ()
    assert authority.on_time(10) == (first,)
    assert authority.next_deadline_ns() == 14
    assert authority.on_time(25) == (first, second)
    assert authority.next_deadline_ns() == 35
    authority.on_request(SequenceMergeMapRequest(OUT, 1))
    assert authority.next_deadline_ns() == 35


def test_a_changed_map_takes_a_new_epoch() -> None:
    """A delayed copy of the map before could not be distinguished from it (defect J-13)."""
    authority = MergeMapAuthority()
    said = numbers(at(1), epoch=3)
    authority.publish(said, 0)
    assert authority.publish(said, 5) == (said,)
    for bad in (numbers(at(2), epoch=3), numbers(at(1), epoch=2)):
        with pytest.raises(MergeMapError, match="take a new epoch for a changed map"):
            authority.publish(bad, 6)
    assert authority.on_request(SequenceMergeMapRequest(OUT, 3)) == (said,)
    newer = numbers(at(2), epoch=4)
    assert authority.publish(newer, 7) == (newer,)


def test_a_joiner_asks_until_it_hears() -> None:
    """One lost message would block it (section 10.3; defect J-23)."""
    joiner = MergeMapJoiner(SequenceMergeMapRequest, OUT, interval_ns=10, most_requests=3)
    assert (joiner.is_waiting, joiner.next_deadline_ns(), joiner.on_time(0)) == (False, None, None)
    asked = joiner.start(2, 0)
    assert asked == SequenceMergeMapRequest(OUT, 2)
    assert joiner.next_deadline_ns() == 10
    assert (joiner.on_time(9), joiner.on_time(10), joiner.on_time(15), joiner.on_time(20)) == (None, asked, None, asked)
    assert (joiner.requests, joiner.next_deadline_ns(), joiner.on_time(99)) == (3, None, None)
    assert joiner.is_waiting  # for the next announce
    for other in (times(at_ns(1), epoch=2), numbers(at(1), epoch=1), SequenceMergeMapAnnounce(OUT + 1, 2, (at(1),))):
        assert not joiner.heard(other)
    assert joiner.heard(numbers(at(1), epoch=2))
    assert not joiner.is_waiting
    assert not joiner.heard(numbers(at(1), epoch=2))
    assert (joiner.start(3, 100), joiner.requests) == (SequenceMergeMapRequest(OUT, 3), 1)
    assert joiner.heard(numbers(at(1), epoch=5))


def test_what_cannot_be_asked_for_is_told_at_once() -> None:
    """The error would come when the first request is made, in the middle of a run."""
    with pytest.raises(StreamIdError):
        MergeMapJoiner(SequenceMergeMapRequest, 0)
    for bad in ({"interval_ns": 0}, {"most_requests": 0}):
        with pytest.raises(LimitError):
            MergeMapJoiner(SequenceMergeMapRequest, OUT, **bad)
    with pytest.raises(LimitError):
        MergeMapAuthority(interval_ns=0)


@pytest.mark.parametrize("lost", [0, 1, 2, 4, 6])
def test_a_late_joiner_gets_its_map_over_the_wire(lost: int) -> None:
    """All of it together: requests as bytes, of which some are lost, the answer as bytes, outputs from then on."""
    authority, joiner = MergeMapAuthority(interval_ns=10 * S), MergeMapJoiner(SequenceMergeMapRequest, OUT, S)
    authority.publish(numbers(at(1), epoch=7), 0)
    it = world(sequence(), slots=8)
    wire: list[bytes] = []
    sent = 0

    def carry(data: bytes) -> None:
        nonlocal sent
        sent += 1
        if sent > lost:
            wire.append(data)

    carry(encode(joiner.start(0, S // 2)))
    for now in range(S, 6 * S, S // 2):
        feed(it, frame(1, now // (S // 2)), now)
        request = joiner.on_time(now)
        if request is not None:
            carry(encode(request))
        for data in wire:
            for said in authority.on_request(decode(data)):  # type: ignore[arg-type]
                answer: Any = decode(encode(said))
                joiner.heard(answer)
                it.announce(answer, now)
        wire.clear()
        it.run(now)
    expected = (7, False) if lost < 6 else (None, True)
    assert (it.stage.barrier.epoch, joiner.is_waiting) == expected
    assert bool(outputs(it)) is (lost < 6)
    assert holds(it)


def test_both_are_restored() -> None:
    """An exploration would go on from another state than it came to."""
    authority, joiner = MergeMapAuthority(10), MergeMapJoiner(SequenceMergeMapRequest, OUT, 10)
    authority.publish(numbers(at(1)), 0)
    authority.publish(times(at_ns(1)), 3)
    joiner.start(1, 0)
    joiner.on_time(10)
    said, asked = MergeMapAuthority(10), MergeMapJoiner(SequenceMergeMapRequest, OUT, 10)
    said.restore(authority.capture())
    asked.restore(joiner.capture())
    assert (said.capture(), asked.capture()) == (authority.capture(), joiner.capture())
    hash((said.capture(), asked.capture()))
    assert said.on_time(13) == authority.on_time(13)
    assert asked.on_time(20) == joiner.on_time(20) is not None
