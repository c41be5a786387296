"""Data takes effect ahead of the barrier that it came behind.

Source
    barrier-control-signals, "Background": upstreams reach "the same synchronization point"; of data behind the barrier
    the document says nothing, and its aligner sees none. Entry S-05.
What goes wrong
    A processor that acts when the barrier is complete has seen what one upstream sent after its copy.
Repair
    An upstream that has delivered is not read until the barrier is complete (protocol rule 25, `hold_data`).
"""

from barrierlab.model.defects.kinds.control import JOIN, SD, ControlBounds, ControlDefect, Processors

DEFECT = ControlDefect(
    breaks="FIFO",
    bounds=ControlBounds(JOIN, (SD,)),
    changed={"make_processor": Processors(options={"hold_data": False})},
)
