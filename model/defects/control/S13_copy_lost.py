"""A copy of a barrier is lost on the way.

Source
    barrier-control-signals asks nowhere that its channels be reliable; an existing implementation uses ones that drop
    what a slow reader has not taken. Entry S-13.
What goes wrong
    The barrier is pending for ever, and the next one an overlap.
Repair
    A channel is first in, first out, and loses and repeats nothing: that is what a driver owes a processor.
"""

from barrierlab.model.defects.kinds.control import JOIN, SC, ControlBounds, ControlDefect

DEFECT = ControlDefect(
    breaks="LIVE",
    bounds=ControlBounds(JOIN, (SC,) * 2, events=0),
    changed={"may_lose": ("b=>join",)},
)
