"""A copy of a barrier is lost on the way.

Source
    barrier-control-signals asks nowhere that its channels be reliable; an existing implementation uses ones that drop
    what a slow reader has not taken. Entry S-13.
What goes wrong
    The barrier is pending for ever, and the next one an overlap.
Repair
    A channel is first in, first out, and loses and repeats nothing: that is what a driver owes a processor.
"""

from barrierlab.impl.control import BarrierControlSignalKind, Carrier
from barrierlab.model.control.topology import ControlWiring
from barrierlab.model.control.world import ControlBounds
from barrierlab.model.defects.kinds.control import ControlDefect

_WIRING = ControlWiring("a->join b->join")
_SCRIPT = ((BarrierControlSignalKind.SYNC_TEST, Carrier.CONTROL),) * 2

DEFECT = ControlDefect(
    entry="S-13",
    kind="liveness",
    breaks="LIVE",
    broken=ControlBounds(_WIRING, _SCRIPT, events=0, may_lose=("b=>join",)),
    sound_bounds=ControlBounds(_WIRING, _SCRIPT, events=0),
)
