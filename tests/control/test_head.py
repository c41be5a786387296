"""The head, and the signals it makes."""

from __future__ import annotations

import pytest

from barrierlab.impl.control import (
    AfterEndError,
    BarrierControlSignal,
    BarrierIdAllocator,
    BarrierIdError,
    ControlSourceProcessor,
)
from tests.control.support import CONTROL, DATA, END, GRACEFUL, QUICK, SYNC, graceful, sync


def sent(head: ControlSourceProcessor, carrier) -> list[str]:
    """Return what is in an outbox."""
    return [f"{output} {message}" for output, message in head.outbox[carrier]]


def test_one_counter_for_both_channels() -> None:
    """Two barriers would have one id, and be taken for one where channels meet (`barrier_id` Allocation)."""
    head = ControlSourceProcessor("head", 1, 1)
    ids = [head.send(SYNC, carrier).barrier_id for carrier in (DATA, CONTROL, CONTROL, DATA)]
    assert ids == [1, 2, 3, 4]
    assert sent(head, DATA) == ["0 SyncTest 1", "0 SyncTest 4"]
    assert sent(head, CONTROL) == ["0 SyncTest 2", "0 SyncTest 3"]


def test_a_signal_goes_to_every_downstream_of_one_channel() -> None:
    """Some upstream would never deliver it; or it would arrive twice ("Channel Carrier Rule")."""
    head = ControlSourceProcessor("head", 2, 3)
    head.send(SYNC, CONTROL, payload="x")
    assert sent(head, CONTROL) == [f"{output} SyncTest 1 (x)" for output in range(3)]
    assert sent(head, DATA) == []


@pytest.mark.parametrize("carrier", [DATA, CONTROL], ids=str)
def test_a_terminal_barrier_is_the_last(carrier) -> None:
    """Something would follow the end, or the other channel not be closed; or what is older be overtaken (rule 26)."""
    head = ControlSourceProcessor("head", 1, 1)
    barrier = head.send(GRACEFUL, carrier)
    assert barrier == BarrierControlSignal(GRACEFUL, 1, fenced=True)
    assert [message for _, message in head.outbox[carrier]] == [barrier, END]
    assert [message for _, message in head.outbox[carrier.other]] == [END]
    for send in (lambda: head.send(SYNC, DATA), lambda: head.send_instant(QUICK, CONTROL)):
        with pytest.raises(AfterEndError, match="from head, which has ended"):
            send()


def test_behind_a_quick_end_both_channels_are_closed() -> None:
    """Whoever is fed on the other channel would wait for more."""
    head = ControlSourceProcessor("head", 1, 1)
    head.send_instant(QUICK, CONTROL)
    assert sent(head, CONTROL) == ["0 StreamQuickEnd", f"0 {END}"]
    assert sent(head, DATA) == [f"0 {END}"]
    assert head.ended


def test_ids_do_not_wrap() -> None:
    """After many years an id would come again."""
    allocator = BarrierIdAllocator(2**64 - 1)
    assert allocator.allocate() == 2**64 - 1
    with pytest.raises(BarrierIdError, match="barrier id 18446744073709551616"):
        allocator.allocate()
    for wrong in (0, -1, 2**64):
        with pytest.raises(BarrierIdError):
            sync(wrong)


def test_what_is_a_copy_of_one_barrier() -> None:
    """Copies would be distinguished by what they carry, or barriers of two kinds be taken for one."""
    assert sync(1, "a").key == sync(1, "b").key == (1, "SyncTest")
    assert sync(1).key != graceful(1).key


def test_what_ends_a_processor() -> None:
    """A processor would end at a signal that means nothing, or not at all (`ControlSignal::is_terminal`)."""
    assert QUICK.is_terminal
    assert graceful(1).is_terminal
    assert not sync(1).is_terminal


def test_a_restored_head_goes_on_with_the_next_id() -> None:
    """A recovery would give an id twice."""
    head = ControlSourceProcessor("head", 1, 1)
    head.send(SYNC, DATA)
    again = ControlSourceProcessor("head", 1, 1)
    again.restore(head.capture())
    assert again.capture() == head.capture()
    assert again.send(SYNC, CONTROL).barrier_id == 2
    assert sent(again, DATA) == ["0 SyncTest 1"]
