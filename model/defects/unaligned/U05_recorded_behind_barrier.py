"""The record is of all that is in the channel, and not only of what is ahead of the barrier.

Source
    F-DCKP-006, `read_inflight`: "Returns events currently buffered in the channel". The diagram beside it says only
    those before its barrier. Entry U-05.
What goes wrong
    An event behind the barrier is recorded, and its source makes it again: after a recovery there are two of it. Here
    it comes in while another barrier is missing; in the document it lies in the channel already. (If that read takes
    out what it reads, what is ahead of the barrier is lost to the run as well: it must be a copy.)
Repair
    An input is recorded up to its barrier (protocol rule 16).
"""

from __future__ import annotations

from barrierlab.model.checkpoint.tables.actions import deliver, record
from barrierlab.model.checkpoint.tables.gate import GateState
from barrierlab.model.checkpoint.tables.guards import input_of, message_of
from barrierlab.model.checkpoint.tables.stimuli import Effect, Stimulus
from barrierlab.model.checkpoint.tables.unaligned import UNALIGNED
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components, driven_by


def record_in_any_case(gate: GateState, stimulus: Stimulus) -> tuple[GateState, tuple[Effect, ...]]:
    """Return whether the barrier of this input is in or not; what it passed on its way in is recorded already."""
    known = gate.record[input_of(stimulus)]
    return record(gate, stimulus) if gate.recording and message_of(stimulus) not in known else (gate, ())


DEFECT = BarrierDefect(
    breaks="CUT",
    bounds=Bounds("a->join b->join join->s", mode="unaligned", events=1),
    components=Components(gate=driven_by(UNALIGNED.changed("event", then=(record_in_any_case, deliver)))),
    title="a1 comes behind a's barrier and ahead of b's. It is recorded, though it is behind the cut.",
)
