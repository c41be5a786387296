"""A processor: two isolated channels, what is forwarded and when, how it ends, and how it fails."""

from __future__ import annotations

import pytest

from barrierlab.impl.control import (
    AfterEndError,
    ControlProcessor,
    CountingAligner,
    NoUpstreamsError,
    UnequalUpstreamsError,
)
from barrierlab.impl.control.signals import BarrierControlSignal
from barrierlab.impl.errors import ClosedInputError, InputIndexError, LimitError, UnknownMessageError
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput
from barrierlab.model.checkpoint.operators import make
from barrierlab.model.control.operators import Batch
from tests.control.support import CONTROL, DATA, END, GRACEFUL, QUICK, Bench, event, graceful, sync


def fenced(barrier_id: int) -> BarrierControlSignal:
    """A terminal barrier as the head of this package sends it."""
    return BarrierControlSignal(GRACEFUL, barrier_id, fenced=True)


@pytest.mark.parametrize("carrier", [DATA, CONTROL], ids=str)
def test_a_barrier_is_forwarded_where_it_came(carrier) -> None:
    """A signal would leave on the channel on which nobody expects it ("via the same channel type")."""
    bench = Bench(outputs=2)
    assert bench.give(carrier, 0, sync(1)) == []
    assert bench.give(carrier, 1, sync(1)) == [f"{carrier} SyncTest 1"] * 2
    assert not bench.processor.ended


def test_the_channels_know_nothing_of_each_other() -> None:
    """A barrier of one channel would count on the other, or be taken for an overlap there."""
    bench = Bench()
    assert bench.give(DATA, 0, sync(1)) == []
    assert bench.give(CONTROL, 1, sync(2)) == []
    assert bench.give(CONTROL, 0, sync(2)) == ["control SyncTest 2"]
    assert bench.give(DATA, 1, sync(1)) == ["data SyncTest 1"]


def test_data_behind_a_barrier_waits_for_it() -> None:
    """A processor that acts at the barrier would have seen data from behind it (defect S-05)."""
    bench = Bench()
    bench.give(DATA, 0, sync(1))
    assert not bench.processor.can_take(DATA, 0)
    assert not bench.processor.offer(DATA, 0, event("a2"))
    assert not bench.processor.offer(DATA, 0, END)
    assert bench.give(DATA, 1, event("b1"), sync(1)) == ["data b1", "data SyncTest 1"]
    assert bench.give(DATA, 0, event("a2")) == ["data a2"]


def test_data_may_pass_if_only_the_signal_is_to_be_synchronised() -> None:
    """`hold_data` off would hold all the same, or a second barrier would fail (protocol rule 25)."""
    bench = Bench(hold_data=False)
    assert bench.give(DATA, 0, sync(1), event("a2"), sync(2)) == ["data a2"]
    assert bench.give(DATA, 1, sync(1)) == ["data SyncTest 1"]
    assert bench.give(DATA, 1, sync(2)) == ["data SyncTest 2"]


def test_control_signals_wait_their_turn_up_to_a_limit() -> None:
    """Skew would fail the processor, or fill its memory (protocol rule 25)."""
    bench = Bench(max_ahead=2)
    bench.give(CONTROL, 0, sync(1), sync(2))
    assert not bench.processor.offer(CONTROL, 0, sync(3))
    assert bench.give(CONTROL, 1, sync(1)) == ["control SyncTest 1"]
    assert bench.give(CONTROL, 0, sync(3)) == []
    assert bench.give(CONTROL, 1, sync(2)) == ["control SyncTest 2"]


def test_backpressure_is_of_one_channel() -> None:
    """A sink that does not read data would keep a quick end from coming through."""
    bench = Bench()
    assert bench.processor.offer(DATA, 0, event("a1"))
    assert not bench.processor.can_take(DATA, 0)
    assert not bench.processor.offer(DATA, 1, event("b1"))
    assert bench.processor.can_take(CONTROL, 0)
    assert bench.processor.offer(CONTROL, 0, sync(1))
    assert bench.processor.offer(CONTROL, 1, sync(1))
    assert not bench.processor.can_take(CONTROL, 0)
    assert bench.out() == ["data a1", "control SyncTest 1"]


def test_a_terminal_barrier_is_aligned_before_it_ends() -> None:
    """A processor would end while an upstream still sends ("Terminal Semantics")."""
    bench = Bench()
    bench.give(DATA, 0, graceful(9))
    assert not bench.processor.ended
    assert bench.give(DATA, 1, event("b1"), graceful(9)) == ["data b1", "data StreamGracefulEnd 9"]
    assert bench.processor.ended
    assert bench.processor.failure == ""
    assert bench.lines[-1] == "end - StreamGracefulEnd 9"


def test_behind_its_end_both_channels_are_closed() -> None:
    """Downstream would wait for a processor that is gone."""
    bench = Bench(data=1, control=1, outputs=2)
    assert bench.processor.offer(CONTROL, 0, QUICK)
    boxes = bench.processor.outbox
    assert list(boxes[CONTROL]) == [(0, QUICK), (1, QUICK), (0, END), (1, END)]
    assert list(boxes[DATA]) == [(0, END), (1, END)]


def test_what_the_operator_has_goes_ahead_of_a_terminal_barrier() -> None:
    """A graceful end would lose windows and batches."""
    bench = Bench(data=2, operator=Batch("p", 8, inputs=2))
    bench.give(DATA, 0, event("a1"), graceful(1))
    assert bench.give(DATA, 1, event("b1"), graceful(1)) == ["data p(a1+b1)1", "data StreamGracefulEnd 1"]


def test_a_fenced_barrier_on_the_control_channel_waits_for_older_data() -> None:
    """The end would overtake data that was sent before it (defect S-06, protocol rule 26)."""
    bench = Bench(operator=Batch("p", 8, inputs=2))
    bench.give(CONTROL, 0, fenced(2))
    assert bench.give(CONTROL, 1, fenced(2)) == []
    assert bench.give(DATA, 0, event("a1"), END) == []
    assert not bench.processor.ended
    assert bench.give(DATA, 1, event("b1"), END) == ["data p(a1+b1)1", "control StreamGracefulEnd 2"]
    assert bench.processor.ended


def test_a_fenced_barrier_on_the_data_channel_waits_for_older_control_signals() -> None:
    """A barrier that the head sent before the end would be aborted (rule 26 speaks of one direction only)."""
    bench = Bench()
    bench.give(DATA, 0, fenced(2))
    bench.give(DATA, 1, fenced(2))
    bench.give(CONTROL, 0, sync(1), END)
    assert bench.give(CONTROL, 1, sync(1)) == ["control SyncTest 1"]
    assert not bench.processor.ended
    assert bench.give(CONTROL, 1, END) == ["data StreamGracefulEnd 2"]
    assert bench.processor.ended


def test_the_fence_may_come_first() -> None:
    """A fence that is faster than its barrier would be forgotten, and the processor never end."""
    bench = Bench(data=1, control=1)
    assert bench.give(DATA, 0, END) == []
    assert bench.give(CONTROL, 0, fenced(1)) == ["control StreamGracefulEnd 1"]
    assert bench.processor.ended


def test_a_quick_end_is_for_everybody_at_once() -> None:
    """A quick end would wait, or leave pending barriers in the dark (defect S-07)."""
    bench = Bench()
    bench.give(DATA, 0, sync(1))
    bench.give(CONTROL, 1, sync(2), sync(3))
    assert bench.give(CONTROL, 0, QUICK) == ["control StreamQuickEnd"]
    assert bench.processor.ended
    assert bench.told("abort", "end") == [
        *("abort data SyncTest 1", "abort control SyncTest 2", "abort control SyncTest 3"),
        "end - StreamQuickEnd",
    ]


def test_a_quick_end_is_taken_from_an_upstream_that_waits() -> None:
    """Whoever is ahead, or does not send on, could not be ended quickly ("On `ControlSignal::Instant`...")."""
    bench = Bench()
    bench.give(DATA, 0, sync(1))
    assert not bench.processor.can_take(DATA, 0)
    assert bench.give(DATA, 0, QUICK) == ["data StreamQuickEnd"]


def test_behind_the_end_everything_is_taken_and_told() -> None:
    """Senders would stay blocked by a processor that is gone, and what is lost would not be seen."""
    bench = Bench()
    bench.give(CONTROL, 0, QUICK)
    bench.lines.clear()
    assert bench.give(DATA, 0, event("a1"), sync(1), QUICK, END) == []
    assert bench.give(CONTROL, 1, sync(3), END) == []
    assert bench.lines == ["drop data 0 a1", "abort data 0 SyncTest 1", "abort control 1 SyncTest 3"]
    with pytest.raises(ClosedInputError):
        bench.processor.offer(DATA, 0, event("a2"))


def test_an_overlap_ends_the_processor_and_says_which_channel() -> None:
    """A wiring mistake would hang the pipeline, or be found nowhere."""
    bench = Bench()
    bench.give(DATA, 0, sync(3))
    bench.give(CONTROL, 0, sync(1))
    assert bench.give(CONTROL, 1, sync(2)) == []
    assert bench.processor.failure.startswith(
        "barrier overlap on control channel: SyncTest 2 while SyncTest 1 is pending;"
    )
    assert bench.processor.failure.endswith("let one head give all ids, and send every barrier to every upstream")
    assert bench.processor.ended
    assert bench.told("fail")[0].startswith("fail control 1 barrier overlap on control channel")
    assert bench.told("abort") == ["abort data SyncTest 3", "abort control SyncTest 1"]
    assert bench.lines[-1] == "end - failure"


def test_a_duplicate_ends_the_processor_too() -> None:
    """A repeating transport would complete barriers that nobody sent."""
    bench = Bench(data=1, control=2)
    bench.give(DATA, 0, sync(1))
    bench.give(DATA, 0, sync(1))
    assert "duplicate barrier on data channel: SyncTest 1" in bench.processor.failure


def test_a_processor_can_break_down() -> None:
    """Downstream would wait for ever for a processor that cannot go on."""
    bench = Bench(operator=Batch("p", 8, inputs=2))
    bench.give(DATA, 0, event("a1"))
    bench.processor.fail("the disk is full")
    assert bench.out() == []
    assert bench.processor.failure == "the disk is full"
    with pytest.raises(AfterEndError, match="nothing after the end"):
        bench.processor.fail("again")


def test_without_upstreams_left_a_processor_ends() -> None:
    """A pipeline whose head broke down would never end, and lose what operators still have."""
    bench = Bench(data=1, operator=Batch("p", 8))
    assert bench.give(DATA, 0, event("a1"), END) == ["data p(a1)1"]
    bench.give(CONTROL, 0, END)
    assert not bench.processor.ended
    bench.give(CONTROL, 1, END)
    assert bench.processor.ended
    assert bench.lines[-1] == "end - every upstream has closed"


def test_the_end_of_an_input_is_told_to_the_operator_once() -> None:
    """An operator would flush twice, or count an input as ended that it had counted before."""
    ends: list[int] = []

    class Notes(Batch):
        """Notes which inputs have ended."""

        def on_end(self, input_id):
            ends.append(input_id)
            return super().on_end(input_id)

    bench = Bench(operator=Notes("p", 8, inputs=2))
    bench.give(DATA, 0, event("a1"), END)
    assert bench.give(DATA, 1, event("b1"), graceful(1)) == ["data p(a1+b1)1", "data StreamGracefulEnd 1"]
    assert bench.told("flush") == ["flush data 1"]
    assert ends == [0, 1]


def test_a_close_may_complete_a_terminal_barrier_with_others_behind() -> None:
    """Anything that waits behind the end would be neither complete nor aborted."""
    bench = Bench(hold_data=False)
    bench.give(DATA, 0, graceful(1), sync(2))
    assert bench.give(DATA, 1, END) == ["data StreamGracefulEnd 1"]
    assert bench.told("complete", "abort") == ["complete data StreamGracefulEnd 1", "abort data SyncTest 2"]


def test_a_source_gives_off_until_its_end() -> None:
    """An event would follow the end of its channel."""
    bench = Bench(data=1, control=1)
    bench.processor.emit(event("a1"))
    assert bench.out() == ["data a1"]
    bench.give(CONTROL, 0, QUICK)
    with pytest.raises(AfterEndError, match="'a2' from p, which has ended"):
        bench.processor.emit(event("a2"))


def test_configuration_is_checked_when_a_processor_is_made() -> None:
    """A mistake would show with the first barrier, hours later (defects S-09, S-10)."""
    union = make("union")
    with pytest.raises(NoUpstreamsError, match="no upstreams on the data channel"):
        ControlProcessor("p", union, 0, 1)
    with pytest.raises(NoUpstreamsError, match="no upstreams on the control channel"):
        ControlProcessor("p", union, 1, 0)
    with pytest.raises(LimitError, match="max_ahead = 0"):
        ControlProcessor("p", union, 1, 1, max_ahead=0)
    with pytest.raises(UnequalUpstreamsError, match="p has 2 upstreams on the data channel and 1 on the control"):
        ControlProcessor("p", union, 2, 1, equal_upstreams=True)
    assert not ControlProcessor("p", union, 2, 1).ended
    assert not ControlProcessor("p", union, 2, 2, equal_upstreams=True).ended


def test_messages_are_checked() -> None:
    """A message on the wrong channel would be swallowed."""
    bench = Bench()
    before = bench.processor.capture()
    with pytest.raises(UnknownMessageError):
        bench.processor.offer(CONTROL, 0, event("a1"))
    with pytest.raises(UnknownMessageError):
        bench.processor.offer(DATA, 0, CheckpointBarrier(1, 1))
    for upstream in (-1, 2):
        with pytest.raises(InputIndexError):
            bench.processor.offer(DATA, upstream, sync(1))
    assert bench.processor.capture() == before


def test_the_documented_aligner_can_be_chosen() -> None:
    """A rule of the document could not be tried."""
    bench = Bench(make_aligner=CountingAligner)
    assert bench.give(DATA, 0, sync(1), event("a1")) == ["data a1"]
    assert bench.give(DATA, 0, sync(1)) == ["data SyncTest 1"]


def test_a_restored_processor_behaves_the_same() -> None:
    """An explorer would go on with another processor than it left."""
    script = [
        *((DATA, 0, event("a1")), (CONTROL, 1, sync(1)), (DATA, 1, sync(2)), (CONTROL, 0, sync(1))),
        *((DATA, 0, sync(2)), (DATA, 1, event("b1")), (CONTROL, 0, fenced(3)), (DATA, 0, EndOfInput())),
        *((CONTROL, 1, fenced(3)), (DATA, 1, EndOfInput())),
    ]
    whole = Bench(operator=Batch("p", 8, inputs=2))
    ends = set()
    for place, step in enumerate(script):
        again = Bench(operator=Batch("p", 8, inputs=2))
        value = whole.processor.capture()
        hash(value)
        again.processor.restore(value)
        assert again.processor.capture() == value
        for later in script[place:]:
            again.processor.offer(*later)
            again.out()
        whole.processor.offer(*step)
        whole.out()
        ends.add(again.processor.capture())
    assert ends == {whole.processor.capture()}
    assert whole.processor.ended
