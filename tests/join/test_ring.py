"""Slots that are overwritten: one look each, and what was torn in between is not taken (sections 5, 7.2, 8.3)."""

from __future__ import annotations

import pytest

from barrierlab.impl.errors import LimitError
from barrierlab.impl.join import Frame, Miss, Opened, Read, SlotRing
from tests.join.support import FRAME, SLOT, frame


def ring(*seqs: int, slots: int = 4, epoch: int = 1) -> SlotRing:
    """A ring to which these frames were written; frame n is of time 10 n, captured at 10 n - 3."""
    it = SlotRing(slots)
    for seq in seqs:
        it.publish(frame(1, seq, 10 * seq, 10 * seq - 3, epoch))
    return it


def look(it: SlotRing, first: int, last: int, source: object = None, epoch: int = 1) -> int | Miss:
    """The number of the frame that is found, or why none is."""
    opened = it.open(Read(1, epoch, source, first, last))  # type: ignore[arg-type]
    found = it.close(opened) if isinstance(opened, Opened) else opened
    return found.seq if isinstance(found, Frame) else found


def test_a_frame_is_found_where_it_lies() -> None:
    """An attempt would read its neighbour."""
    it = ring(0, 1, 2, 3)
    assert [look(it, seq, seq) for seq in range(4)] == [0, 1, 2, 3]
    assert look(it, 4, 4) is Miss.MISSING


def test_an_overwritten_frame_and_a_dropped_one_are_told_apart() -> None:
    """A stage could not say whether it is too slow or the network loses frames."""
    it = ring(0, 1, 2, 4, 5)  # 3 was never written
    assert look(it, 0, 0) is Miss.OVERWRITTEN
    assert look(it, 3, 3) is Miss.MISSING
    it.publish(frame(1, 7))
    assert look(it, 3, 3) is Miss.OVERWRITTEN


def test_the_newest_of_a_window_is_taken_and_older_ones_stand_in() -> None:
    """A.3.3: "the newest valid frame within the window"; the window is looked through once."""
    it = ring(0, 1, 2, 3, 4)
    assert look(it, 0, 4) == 4
    it.begin(frame(1, 5))
    assert look(it, 1, 5) == 4
    assert look(it, 5, 5) is Miss.NOT_COMMITTED
    assert look(it, 0, 1) is Miss.OVERWRITTEN  # 1 made room for 5, and 0 for 4
    assert look(it, 6, 2**32) is Miss.MISSING  # never more looks than slots


def test_what_is_overwritten_while_it_is_read_is_not_taken() -> None:
    """Half of one frame and half of another would go into an output."""
    it = ring(0, 1, 2, 3)
    opened = it.open(Read(1, 1, None, 2, 2))
    assert isinstance(opened, Opened)
    assert it.close(opened) == frame(1, 2, 20, 17)
    later = frame(1, 6)
    it.begin(later)
    assert it.close(opened) is Miss.OVERWRITTEN
    it.commit(later)
    assert it.close(opened) is Miss.OVERWRITTEN
    assert look(it, 6, 6) == 6


def test_a_frame_begun_twice_is_not_whole() -> None:
    """A writer that aborted and began again would leave a slot that looks whole."""
    it = ring(0, 1, 2, 3)
    first, second = frame(1, 4), frame(1, 8)
    it.begin(first)
    it.begin(second)
    assert look(it, 4, 4) is Miss.OVERWRITTEN
    it.commit(first)  # too late
    assert look(it, 8, 8) is Miss.NOT_COMMITTED
    it.commit(second)
    assert look(it, 8, 8) == 8
    it.commit(second)
    assert look(it, 8, 8) == 8


@pytest.mark.parametrize(("source", "shift"), [(FRAME, 0), (SLOT, 3)])
def test_by_time_it_is_the_newest_that_is_not_newer(source: object, shift: int) -> None:
    """An output would be made of what comes after it."""
    it = ring(0, 1, 2, 3, 4, 5)
    assert look(it, 0, 45 - shift, source) == 4
    assert look(it, 0, 50 - shift, source) == 5
    assert look(it, 0, 49 - shift, source) == 4
    assert look(it, 31 - shift, 39 - shift, source) is Miss.MISSING
    assert look(it, 30 - shift, 39 - shift, source) == 3
    assert look(it, 0, 19 - shift, source) is Miss.MISSING  # 0 and 1 are overwritten


def test_by_time_frames_without_one_are_passed_over() -> None:
    """One frame without a timestamp would hide all before it."""
    it = ring(0, 1)
    it.publish(Frame(1, 1, 2, None, None))
    it.begin(frame(1, 3, 30))
    assert look(it, 0, 99, FRAME) == 1
    assert look(SlotRing(4), 0, 99, FRAME) is Miss.MISSING


def test_a_frame_of_another_epoch_is_none() -> None:
    """A restarted stream's frame 2 would be taken for the one of before (section 9.1)."""
    it = ring(0, 1, 2)
    it.publish(frame(1, 0, 500, 500, epoch=2))
    assert look(it, 0, 0) is Miss.OVERWRITTEN
    assert look(it, 2, 2, epoch=2) is Miss.MISSING
    assert look(it, 0, 999, FRAME, epoch=2) == 0
    assert look(it, 0, 999, FRAME, epoch=1) == 2  # it lies whole; a stage that knows of the new epoch does not take it


def test_a_ring_has_slots_and_is_restored() -> None:
    """A ring of no slots has no place for anything."""
    with pytest.raises(LimitError, match="slots"):
        SlotRing(0)
    it, other = ring(0, 1, 2), SlotRing(4)
    it.begin(frame(1, 3))
    other.restore(it.capture())
    assert other.capture() == it.capture()
    other.commit(frame(1, 3))
    assert look(other, 3, 3) is Miss.NOT_COMMITTED  # another object is another writer


def test_a_frame_that_lies_whole_is_found_however_many_were_dropped_since() -> None:
    """A join would skip an output all of whose frames are there: numbers 1 to 4 were dropped, slot 0 still has 0."""
    it = ring(0, 5, 6, 7)
    assert look(it, 0, 20, FRAME) == 0
    assert look(it, 0, 4) == 0


def test_a_frame_of_the_epoch_before_is_found_until_it_is_overwritten() -> None:
    """A writer that restarts from the initial state would make its old frames unreadable at once, and not slot by
    slot."""
    it = ring(6, 7)
    it.publish(frame(1, 0, 80, epoch=2))
    assert look(it, 0, 70, FRAME) == 7
    assert look(it, 4, 7) == 7


def test_the_newest_by_time_is_found_behind_a_later_number() -> None:
    """The latest value by timestamp would never come of a stream whose times are not in the order of its numbers."""
    it = SlotRing(4)
    it.publish(frame(1, 0, 5))
    it.publish(frame(1, 1, 3))
    assert look(it, 5, 5, FRAME) == 0
