"""An announce that is no map invalidates the active one, whichever epoch it was for.

Source
    merge-map-join-barrier, sections 6.2 and 6.3: "the MergeMap MUST be treated as invalid until replaced".
What goes wrong
    A slip in the map of another epoch stops a join whose own map is good.
Repair
    Only the map that it was to replace, of the same output and epoch, is invalid (protocol rule 28).
"""

from __future__ import annotations

from dataclasses import replace

from barrierlab.impl.join import InvalidMergeMap, MapChange, SequenceJoinBarrier, SequenceMergeMapAnnounce
from barrierlab.model.defects.kinds.join import OUT, JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class AnyEpoch(SequenceJoinBarrier):
    """Whatever it was for, it is for ours."""

    def announce_invalid(self, invalid: InvalidMergeMap) -> MapChange:
        return super().announce_invalid(replace(invalid, epoch=self.epoch or 0))


def witness(components: JoinComponents) -> JoinWorld:
    """A bad announce for epoch 2, while epoch 1 is in force."""
    it = world(components, "sequence", numbers(components, at(1)))
    show(it, 1, 5)
    it.announce(InvalidMergeMap(SequenceMergeMapAnnounce, OUT, 2, "two rules for stream 1"), 1)
    it.ask(5, 1)
    return it


DEFECT = JoinDefect("liveness", "LIVE", JoinComponents(sequence=AnyEpoch), witness)
