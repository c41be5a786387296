"""A graceful end on the control channel arrives before data that was sent ahead of it.

Source
    barrier-control-signals, "Channel Carrier Rule" and "Terminal Semantics": a terminal barrier may come on either
    channel, the channels are isolated, and a processor exits when it is complete. Entry S-06.
What goes wrong
    The processor ends with data still in its data channel: a graceful end that is not graceful.
Repair
    A fence on the data channel; the barrier waits until that is in from every upstream (protocol rule 26).
"""

from collections.abc import Hashable

from impl.control import BarrierControlSignal, BarrierControlSignalKind, Carrier, ControlSourceProcessor
from impl.control.sender import Tell
from model.control_wiring import CONTROL, DATA, HEAD, ControlWiring
from model.control_world import Setup
from model.defects.control_kind import ControlDefect


class Unfenced(ControlSourceProcessor):
    """Sends a terminal barrier, and nothing on the other channel."""

    def send(self, kind: BarrierControlSignalKind, carrier: Carrier, payload: Hashable = None) -> BarrierControlSignal:
        barrier = kind.with_id(self._allocator.allocate(), payload)
        self._forward(carrier, barrier)
        if barrier.is_terminal:
            self._end(barrier)
        return barrier


def head(wiring: ControlWiring, tell: Tell) -> ControlSourceProcessor:
    """The head of a pipeline, without fences."""
    return Unfenced(HEAD, len(wiring.outputs(DATA, HEAD)), len(wiring.outputs(CONTROL, HEAD)), tell=tell)


_WIRING = ControlWiring("a->sink")
_SCRIPT = ((BarrierControlSignalKind.STREAM_GRACEFUL_END, Carrier.CONTROL),)

DEFECT = ControlDefect(
    entry="S-06",
    kind="safety",
    breaks="NOLOSS",
    broken=Setup(_WIRING, _SCRIPT, make_head=head),
    sound=Setup(_WIRING, _SCRIPT),
)
