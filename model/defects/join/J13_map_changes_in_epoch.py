"""An authority changes a map within its epoch.

Source
    merge-map-join-barrier, sections 6.4 and 10.1: maps change, and a map is known by output and epoch alone.
What goes wrong
    A delayed copy of the map before looks like a second change: the joiner goes back to it, until the next
    re-announce. (A joiner that remembers what was replaced is worse off: if it heard of the newer map first, it takes
    the older one for the change, and then refuses the newer one for good.)
Repair
    Each change takes a new epoch; the authority refuses another map in the same one.
"""

from __future__ import annotations

from barrierlab.impl.errors import MergeMapError
from barrierlab.impl.join import MergeMap, MergeMapAuthority
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at, numbers, world


class AnyMap(MergeMapAuthority):
    """The newest map, without a question."""

    def publish(self, merge_map: MergeMap, now_ns: int) -> tuple[MergeMap, ...]:
        self.restore(())
        return super().publish(merge_map, now_ns)


def witness(components: JoinComponents) -> str:
    """An offset of 0, then one of -1; the announce of the first is carried once more, late."""
    authority, it = components.authority(), world(components, "sequence")
    first, second = numbers(components, at(1, 0)), numbers(components, at(1, -1))
    delayed = authority.publish(first, 0)
    try:
        for said in (*delayed, *authority.publish(second, 1), *delayed):
            it.announce(said, 2)
    except MergeMapError:
        return "refused"
    return "rolled back" if it.stage.barrier.active == first else "as said last"


DEFECT = JoinDefect("safety", "value", JoinComponents(authority=AnyMap), witness, "refused", "rolled back")
