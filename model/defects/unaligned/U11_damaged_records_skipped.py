"""The events in flight cannot be read, and the job goes on without them.

Source
    F-DCKP-006, "Error Handling", `InFlightDeserializationFailed`: "Skip in-flight data; events will be replayed from
    source (may cause duplicates without exactly-once sink)". Entry U-11.
What goes wrong
    They are not replayed: the position of the source is that of its barrier, and they are ahead of it. What was in
    flight is in no state either, so it is lost, and not there twice.
Repair
    A checkpoint with an unreadable part is unusable; the next older one is tried (protocol rule 22).
"""

from dataclasses import replace

from barrierlab.impl import Checkpoint, Restore, Wiring, plan
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


def skipping(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """As if no file of what was in flight could be read."""
    skipped = tuple(replace(each, inputs=(), outputs=()) for each in checkpoint.snapshots)
    return plan(replace(checkpoint, snapshots=skipped), wiring)


DEFECT = BarrierDefect(
    breaks="REC",
    bounds=Bounds("a->x x->s", mode="unaligned", events=1, crashes=1, checkpoints_again=0, guarantee="exactly_once"),
    components=Components(plan=skipping),
    title="a's barrier overtakes a1, which is recorded. The job fails; a goes on behind a1, and nobody has a1.",
)
