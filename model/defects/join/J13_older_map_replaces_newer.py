"""The last announce that comes is the map, whatever its epoch.

Source
    merge-map-join-barrier, section 6.4: maps are of an epoch; that epochs only increase is not said.
What goes wrong
    A delayed announce of epoch 1 puts the rules of before in force: output 5 is ready by an offset that is gone.
Repair
    Older epochs are ignored (protocol rule 28).
"""

from __future__ import annotations

from barrierlab.impl.join import MapChange, MergeMap, SequenceJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class LastOneWins(SequenceJoinBarrier):
    """Forgets which epoch it is in."""

    def announce(self, merge_map: MergeMap, now_ns: int) -> MapChange:
        self.epoch = merge_map.epoch
        return super().announce(merge_map, now_ns)


def witness(components: JoinComponents) -> JoinWorld:
    """Epoch 2 asks for the frame itself; then epoch 1 comes, which asked for the one before it."""
    it = world(components, "sequence", numbers(components, at(1, 0), epoch=2))
    show(it, 1, 4)
    it.announce(numbers(components, at(1, -1), epoch=1), 1)
    it.ask(5, 1)
    return it


DEFECT = JoinDefect("safety", "READY", JoinComponents(sequence=LastOneWins), witness)
