"""Two copies of one upstream are taken for those of two.

Source
    barrier-control-signals, "Design Goals": "Avoid requiring upstream identity: alignment only depends on expected
    upstream count and arrival counts". Entry S-01.
What goes wrong
    A copy that comes twice - repeated by the transport, or let through twice by a processor that does not align -
    completes a barrier that another upstream has not delivered. For a terminal one, its data is lost.
Repair
    Know who delivered (protocol rule 24): `IdentityAligner`. The second copy is then a duplicate, and an error.
"""

from barrierlab.impl.control import CountingAligner
from barrierlab.model.defects.kinds.control import JOIN, SC, ControlBounds, ControlDefect, Processors

DEFECT = ControlDefect(
    breaks="ALL",
    bounds=ControlBounds(JOIN, (SC,), events=0, may_repeat=("a=>join",)),
    changed={"make_processor": Processors(options={"make_aligner": CountingAligner})},
    excuses=("LIVE",),
)
