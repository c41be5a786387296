"""Two heads each count for themselves.

Source
    barrier-control-signals, "`barrier_id` Allocation": ids are unique because one counter gives them, "at the pipeline
    head"; that there is one head only, it takes for granted. Entry S-12.
What goes wrong
    Barriers that were never meant to be one meet where the branches do: with different ids they overlap, and with equal
    ones they are taken for one.
Repair
    One allocator at one head (protocol rule 24), above all sources.
"""

from collections.abc import Hashable

from barrierlab.impl.control import BarrierControlSignal, BarrierControlSignalKind, Carrier, ControlSourceProcessor
from barrierlab.impl.control.outlets import TellSignal
from barrierlab.model.control.topology import CONTROL, DATA, HEAD
from barrierlab.model.defects.kinds.control import JOIN, SD, ControlBounds, ControlDefect, ControlWiring


class Heads(ControlSourceProcessor):
    """A head for each output; they have been sending for different times, so their counters differ."""

    def send(self, kind: BarrierControlSignalKind, carrier: Carrier, payload: Hashable = None) -> BarrierControlSignal:
        barrier = kind.with_id(self.allocator.allocate(), payload)
        self.outlets.tell("forward", carrier, -1, barrier)
        for output in range(self.outlets.counts[carrier]):
            self.outbox[carrier].append((output, kind.with_id(barrier.barrier_id + 10 * output, payload)))
        return barrier


def head(wiring: ControlWiring, tell: TellSignal) -> ControlSourceProcessor:
    """The heads of a pipeline."""
    return Heads(HEAD, len(wiring.outputs(DATA, HEAD)), len(wiring.outputs(CONTROL, HEAD)), tell=tell)


DEFECT = ControlDefect(
    breaks="LIVE",
    bounds=ControlBounds(JOIN, (SD,), events=0),
    changed={"make_head": head},
)
