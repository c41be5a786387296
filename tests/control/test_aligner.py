"""Both aligners on their own: what completes, what waits, and what is an error."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl.control import (
    BarrierOverlapError,
    ControlSignalError,
    CountingAligner,
    DuplicateBarrierError,
    IdentityAligner,
    NoUpstreamsError,
    align_control_signal,
)
from barrierlab.impl.errors import ClosedInputError, InputIndexError
from tests.breadth import examples
from tests.control.support import CONTROL, DATA, QUICK, graceful, sync

BOTH = pytest.mark.parametrize("make", [IdentityAligner, CountingAligner])


@BOTH
def test_a_barrier_is_complete_with_its_last_copy(make) -> None:
    """A processor would act before all its upstreams have come to the point, or never."""
    aligner = make(3, DATA)
    assert align_control_signal(aligner, 0, sync(1)) is None
    assert align_control_signal(aligner, 1, sync(1)) is None
    assert align_control_signal(aligner, 2, sync(1)) == sync(1)
    assert aligner.last_terminated_id == 1


@BOTH
def test_one_upstream_completes_at_once(make) -> None:
    """A chain would wait for upstreams that it does not have ("If expected_upstreams == 1")."""
    aligner = make(1, CONTROL)
    assert [align_control_signal(aligner, 0, sync(n)) for n in (1, 2, 5)] == [sync(1), sync(2), sync(5)]


@BOTH
def test_an_instant_signal_passes(make) -> None:
    """A quick end would wait for other upstreams, or disturb a barrier that is pending."""
    aligner = make(2, DATA)
    aligner.align(0, sync(1))
    before = aligner.capture()
    assert align_control_signal(aligner, 0, QUICK) is QUICK
    assert aligner.capture() == before


@BOTH
@pytest.mark.parametrize("other", [sync(2), graceful(1)], ids=["another id", "another kind"])
def test_another_barrier_while_one_is_pending_is_an_overlap(make, other) -> None:
    """Two barriers would be taken for one ("No overlap"). The error names the channel."""
    aligner = make(2, CONTROL)
    aligner.align(0, sync(1))
    before = aligner.capture()
    with pytest.raises(BarrierOverlapError, match=f"barrier overlap on control channel: {other} while SyncTest 1"):
        aligner.align(1, other)
    assert aligner.capture() == before


@BOTH
def test_a_copy_too_many_is_a_duplicate(make) -> None:
    """A late copy would begin a barrier that nobody else delivers (defect S-02)."""
    aligner = make(2, DATA)
    aligner.align(0, sync(1))
    aligner.align(1, sync(1))
    before = aligner.capture()
    with pytest.raises(DuplicateBarrierError, match="duplicate barrier on data channel: SyncTest 1 after barrier 1"):
        aligner.align(1, sync(1))
    assert aligner.capture() == before


@BOTH
def test_ids_increase(make) -> None:
    """An old barrier would take effect after a newer one (defect S-04)."""
    aligner = make(1, DATA)
    aligner.align(0, sync(5))
    for old in (5, 3):
        with pytest.raises(DuplicateBarrierError, match=f"SyncTest {old} after barrier 5; allowed: ids above 5"):
            aligner.align(0, sync(old))


@BOTH
def test_without_upstreams_there_is_no_aligner(make) -> None:
    """A barrier would be pending for ever, or complete out of nothing (defect S-09)."""
    with pytest.raises(NoUpstreamsError, match="no upstreams on the control channel"):
        make(0, CONTROL)


@BOTH
def test_the_first_copy_is_the_one_that_is_returned(make) -> None:
    """Anything that a processor forwards would depend on who is last (defect S-11, protocol rule 26)."""
    aligner = make(2, DATA)
    aligner.align(1, sync(1, "first"))
    assert aligner.align(0, sync(1, "second")).payload == "first"


@BOTH
def test_what_is_aborted_is_named_and_does_not_come_back(make) -> None:
    """A late copy of a barrier that was aborted would start it again (defect S-07)."""
    aligner = make(2, DATA)
    assert aligner.abort() == ()
    aligner.align(0, sync(4))
    assert aligner.abort() == (sync(4),)
    with pytest.raises(DuplicateBarrierError):
        aligner.align(1, sync(4))
    assert aligner.align(0, sync(5)) is None
    assert aligner.align(1, sync(5)) == sync(5)


def test_a_copy_of_the_same_upstream_does_not_count_twice() -> None:
    """A barrier would be complete that one upstream never delivered (defect S-01)."""
    aligner = IdentityAligner(2, DATA)
    aligner.align(0, sync(1))
    with pytest.raises(DuplicateBarrierError, match="SyncTest 1 after barrier 1"):
        aligner.align(0, sync(1))
    assert aligner.align(1, sync(1)) == sync(1)
    counting = CountingAligner(2, DATA)
    counting.align(0, sync(1))
    assert counting.align(0, sync(1)) == sync(1)


def test_an_upstream_may_be_ahead() -> None:
    """Skew, which is normal, would end the processor (defect S-03, protocol rule 25)."""
    aligner = IdentityAligner(3, CONTROL)
    assert [aligner.align(0, sync(n)) for n in (1, 2, 3)] == [None] * 3
    assert [aligner.align(1, sync(n)) for n in (1, 2)] == [None] * 2
    assert [aligner.ahead(upstream) for upstream in range(3)] == [3, 2, 0]
    assert [aligner.align(2, sync(n)) for n in (1, 2, 3)] == [sync(1), sync(2), None]
    assert [aligner.ahead(upstream) for upstream in range(3)] == [1, 0, 1]
    assert aligner.align(1, sync(3)) == sync(3)


def test_what_waits_is_compared_too() -> None:
    """An upstream could skip a barrier unnoticed, as long as another one is pending."""
    aligner = IdentityAligner(3, DATA)
    for upstream, barrier in ((0, sync(1)), (0, sync(2)), (1, sync(1))):
        aligner.align(upstream, barrier)
    with pytest.raises(BarrierOverlapError, match="SyncTest 3 while SyncTest 2 is pending"):
        aligner.align(1, sync(3))
    with pytest.raises(BarrierOverlapError, match="SyncTest 2 while SyncTest 1 is pending"):
        aligner.align(2, sync(2))


def test_a_closed_upstream_counts_as_delivered() -> None:
    """A barrier would be pending for ever once an upstream has ended without it (defect S-08)."""
    aligner = IdentityAligner(3, CONTROL)
    for barrier in (sync(1), sync(2)):
        aligner.align(0, barrier)
    aligner.align(1, sync(1))
    assert aligner.close(2) == (sync(1),)
    assert aligner.close(1) == (sync(2),)
    assert aligner.align(0, sync(3)) == sync(3)


def test_closing_behind_a_barrier_does_not_count_twice() -> None:
    """An upstream that delivers and ends would stand for another one as well."""
    aligner = IdentityAligner(2, CONTROL)
    aligner.align(0, sync(1))
    assert aligner.close(0) == ()
    assert aligner.align(1, sync(1)) == sync(1)


def test_one_close_may_complete_several() -> None:
    """Barriers that wait behind the one that completes would be left behind."""
    aligner = IdentityAligner(2, CONTROL)
    for n in (1, 2, 3):
        aligner.align(0, sync(n))
    assert aligner.close(1) == (sync(1), sync(2), sync(3))
    assert aligner.last_terminated_id == 3


def test_a_count_cannot_tell_who_closed() -> None:
    """The documented aligner would be said to do what it cannot (defect S-08)."""
    aligner = CountingAligner(2, DATA)
    aligner.align(0, sync(1))
    assert aligner.close(1) == ()
    assert aligner.ahead(0) == 0


def test_indices_are_checked() -> None:
    """A wiring mistake would alias another upstream, or be found much later."""
    aligner = IdentityAligner(2, DATA)
    for upstream in (-1, 2):
        with pytest.raises(InputIndexError):
            aligner.align(upstream, sync(1))
        with pytest.raises(InputIndexError):
            aligner.close(upstream)
    aligner.close(0)
    with pytest.raises(ClosedInputError):
        aligner.align(0, sync(1))
    with pytest.raises(ClosedInputError):
        aligner.close(0)


# Against a plain description, under any order.

STEPS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["next", "skip", "again", "close"])), max_size=14)


class Oracle:
    """Whole sequences by upstream; complete is what every open upstream has, in the order of ids."""

    def __init__(self) -> None:
        self.sequences: list[list[int]] = [[], [], []]
        self.closed: set[int] = set()
        self.completed: list[int] = []

    def allows(self, upstream: int, barrier_id: int) -> bool:
        """Return whether `barrier_id` goes on with what this upstream, and the others, delivered."""
        own = self.sequences[upstream]
        # What came before this upstream was asked for the first time is complete without it only if it had closed.
        longest = max([self.completed, *self.sequences], key=len)
        return longest[len(own)] == barrier_id if len(own) < len(longest) else barrier_id > max([0, *own])

    def settle(self) -> list[int]:
        """The ids that are complete now and were not before."""
        before = len(self.completed)
        if len(self.closed) < 3:
            least = min(len(own) for upstream, own in enumerate(self.sequences) if upstream not in self.closed)
        else:
            least = max(map(len, self.sequences))
        longest = max(self.sequences, key=len)
        self.completed = longest[: max(least, before)]
        return self.completed[before:]


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(STEPS)
def test_any_order_of_arrivals(steps) -> None:
    """Some interleaving of three upstreams would complete another barrier than the definition says, or fail."""
    aligner, oracle = IdentityAligner(3, CONTROL), Oracle()
    for upstream, what in steps:
        if upstream in oracle.closed:
            continue
        before = aligner.capture()
        if what == "close":
            oracle.closed.add(upstream)
            assert [barrier.barrier_id for barrier in aligner.close(upstream)] == oracle.settle()
            continue
        newest = len(oracle.sequences[upstream])
        barrier_id = {"next": newest + 1, "skip": newest + 2, "again": max(newest, 1)}[what]
        if not oracle.allows(upstream, barrier_id):
            with pytest.raises(ControlSignalError):
                aligner.align(upstream, sync(barrier_id))
            assert aligner.capture() == before
            continue
        completed = aligner.align(upstream, sync(barrier_id))
        oracle.sequences[upstream].append(barrier_id)
        assert ([] if completed is None else [completed.barrier_id]) == oracle.settle()


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(STEPS, STEPS)
def test_a_restored_aligner_behaves_the_same(first, then) -> None:
    """An explorer, or a recovery, would go on with another machine than it left."""
    one, other = IdentityAligner(3, DATA), IdentityAligner(3, DATA)

    def answers(aligner, steps) -> list[str]:
        found = []
        for upstream, what in steps:
            try:
                if what == "close":
                    found.append(str(aligner.close(upstream)))
                else:
                    found.append(str(aligner.align(upstream, sync(len(found) // 3 + 1))))
            except (ControlSignalError, ClosedInputError) as error:
                found.append(str(error))
        return found

    answers(one, first)
    value = one.capture()
    hash(value)
    other.restore(value)
    assert other.capture() == value
    assert answers(one, then) == answers(other, then)
    assert one.capture() == other.capture()
