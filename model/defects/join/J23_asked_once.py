"""A joiner asks for its map once.

Source
    merge-map-join-barrier, section 10.3: "MUST send a request"; no repetition, no negative answer, no bound.
What goes wrong
    The request is lost, and the joiner is blocked until the next unasked announce, which is only a SHOULD.
Repair
    Ask at intervals, so often at most (`MergeMapJoiner`).
"""

from __future__ import annotations

from barrierlab.impl.join import MergeMapJoiner, MergeMapRequest, SequenceMergeMapRequest
from barrierlab.model.defects.kinds.join import OUT, JoinComponents, JoinDefect, at, numbers, world


class Once(MergeMapJoiner):
    """No second time."""

    def on_time(self, now_ns: int) -> MergeMapRequest | None:
        return None


def witness(components: JoinComponents) -> int | None:
    """The first request is lost; in which epoch the joiner is after three intervals."""
    authority, joiner, it = (
        components.authority(),
        components.joiner(SequenceMergeMapRequest, OUT, 10),
        world(components, "sequence"),
    )
    authority.publish(numbers(components, at(1), epoch=7), 0)
    joiner.start(0, 0)
    for now in (10, 20, 30):
        request = joiner.on_time(now)
        for said in authority.on_request(request) if request is not None else ():
            joiner.heard(said)
            it.announce(said, now)
    return it.stage.barrier.epoch


DEFECT = JoinDefect("liveness", "value", JoinComponents(joiner=Once), witness, 7, None)
