"""A frame of another epoch resets its input, whether the epoch is newer or older.

Source
    merge-map-join-barrier, section 6.4: epochs are of maps; that inputs have their own, and that frames may be late, is
    not said.
What goes wrong
    A delayed frame of before a camera's restart resets the input: output 10 is ready by a frame that is gone.
Repair
    An input has an epoch, which only increases; older frames are ignored (protocol rule 31).
"""

from __future__ import annotations

from barrierlab.impl.join import Observed, SequenceJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class AnyEpochResets(SequenceJoinBarrier):
    """Whatever epoch comes is the one."""

    def observe(self, stream_id: int, epoch: int, seq: int, now_ns: int) -> Observed:
        if epoch != self.epoch_of(stream_id):
            for each in self.inputs.of_stream[stream_id]:
                each.epoch = None
        return super().observe(stream_id, epoch, seq, now_ns)


def witness(components: JoinComponents) -> JoinWorld:
    """Epoch 1, epoch 2, and then a frame of epoch 1 again."""
    it = world(components, "sequence", numbers(components, at(1)))
    show(it, 1, 9, epoch=1)
    show(it, 1, 5, epoch=2)
    show(it, 1, 10, epoch=1)
    it.ask(10, 0)
    return it


DEFECT = JoinDefect("safety", "READY", JoinComponents(sequence=AnyEpochResets), witness)
