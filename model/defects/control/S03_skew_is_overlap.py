"""An upstream that is faster than the others is an error.

Source
    barrier-control-signals, "No overlap": "while a barrier is pending, receiving a different `(barrier_id, kind)` is an
    error". Entry S-03.
What goes wrong
    The head sends two barriers; one upstream delivers both before another delivers the first. Every channel has kept
    its order, and the processor ends all the same. Nor is that "deterministic": it depends on timing.
Repair
    A barrier of an upstream that has delivered the pending one waits its turn (protocol rule 25).
"""

from barrierlab.impl.control import CountingAligner
from barrierlab.model.defects.kinds.control import JOIN, SC, ControlBounds, ControlDefect, Processors

DEFECT = ControlDefect(
    breaks="LIVE",
    bounds=ControlBounds(JOIN, (SC,) * 2, events=0),
    changed={"make_processor": Processors(options={"make_aligner": CountingAligner})},
)
