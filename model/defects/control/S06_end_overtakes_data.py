"""A graceful end on the control channel arrives before data that was sent ahead of it.

Source
    barrier-control-signals, "Channel Carrier Rule" and "Terminal Semantics": a terminal barrier may come on either
    channel, the channels are isolated, and a processor exits when it is complete. Entry S-06.
What goes wrong
    The processor ends with data still in its data channel: a graceful end that is not graceful.
Repair
    The end of the data channel is the barrier's fence: it waits for that from every upstream (protocol rule 26).
"""

from dataclasses import replace

from barrierlab.impl.control import BarrierControlSignal, Carrier, ControlProcessor, Message
from barrierlab.model.defects.kinds.control import EC, ControlBounds, ControlDefect, ControlWiring, Processors


class Exits(ControlProcessor):
    """Exits when the barrier is complete: none has a fence."""

    def offer(self, carrier: Carrier, upstream: int, message: Message) -> bool:
        if isinstance(message, BarrierControlSignal):
            message = replace(message, fenced=False)
        return super().offer(carrier, upstream, message)


DEFECT = ControlDefect(
    breaks="NOLOSS",
    bounds=ControlBounds(ControlWiring("a->sink"), (EC,)),
    changed={"make_processor": Processors(make=Exits)},
)
