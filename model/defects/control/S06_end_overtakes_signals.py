"""A graceful end on the data channel arrives before control signals that were sent ahead of it.

Source
    barrier-control-signals, as for `S06_end_overtakes_data`; protocol rule 26, which has a terminal barrier on the
    control channel wait for the data channel, and says nothing of the other way round. Entry S-06.
What goes wrong
    The processor ends with an older barrier still in its control channel, which takes effect nowhere below.
Repair
    The fence works both ways: a terminal barrier waits for the end of the channel that does not carry it.
"""

from barrierlab.model.defects.control.S06_end_overtakes_data import Exits
from barrierlab.model.defects.kinds.control import ED, SC, ControlBounds, ControlDefect, ControlWiring, Processors

DEFECT = ControlDefect(
    breaks="LIVE",
    bounds=ControlBounds(ControlWiring("a->sink"), (SC, ED), events=0),
    changed={"make_processor": Processors(make=Exits)},
)
