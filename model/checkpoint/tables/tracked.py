"""Tracked checkpoints: the barriers of a checkpoint are counted, and an input is read on behind its own.

Invariant: a snapshot holds all that came before the barriers; it may buffer what came after one, too.

Flink's ``AT_LEAST_ONCE`` mode. All that waits is the end of an input behind its barrier: a task that has ended could
send no barrier. A newer barrier ends the count of an older checkpoint (protocol rule 6).
"""

from __future__ import annotations

from barrierlab.model.checkpoint.tables.actions import (
    begin,
    block,
    close,
    complete,
    decline_too_much_buffered,
    deliver,
    drain_one,
    end_input,
    forward,
    mark,
    refuse,
    resume,
    snapshot,
)
from barrierlab.model.checkpoint.tables.common import ABORT, COMMON, NOT_SAID
from barrierlab.model.checkpoint.tables.guards import (
    barrier,
    between_checkpoints,
    clock,
    drain,
    during_a_checkpoint,
    end,
    event,
    has_to_wait,
    image_taken,
    its_barrier_missing,
    last_outstanding,
    may_not_overtake,
    no_contradiction,
    nothing_due,
    of_a_newer_checkpoint,
    of_the_pending_checkpoint,
    others_to_come,
    output_passed,
    something_to_drain,
    takes_effect,
    too_much_buffered,
)
from barrierlab.model.explore.table import Row, Table

COUNT = (mark, block, resume)

# fmt: off
TRACKED = Table(
    Row("event",             (event, takes_effect),                                                (deliver,)),
    Row("too much buffered",     (has_to_wait, too_much_buffered),          (refuse, decline_too_much_buffered,
    *ABORT)), # How a checkpoint begins, goes on and ends well:
    Row("first barrier",     (barrier, takes_effect, of_a_newer_checkpoint, between_checkpoints, others_to_come),
                                                                                    (begin, *COUNT)),
    Row("only barrier",      (barrier, takes_effect, of_a_newer_checkpoint, between_checkpoints, last_outstanding),
                                                                                    (begin, *COUNT, snapshot)),
    Row("one more barrier",  (barrier, takes_effect, of_the_pending_checkpoint, its_barrier_missing, no_contradiction,
                              others_to_come),                                      COUNT),
    Row("last barrier",      (barrier, takes_effect, of_the_pending_checkpoint, its_barrier_missing, no_contradiction,
                              last_outstanding),                                    (*COUNT, snapshot)),
    Row("end for a barrier", (end, takes_effect, during_a_checkpoint, others_to_come),             (end_input,)),
    Row("end for the last",  (end, takes_effect, during_a_checkpoint, last_outstanding),  (end_input, snapshot)),
    Row("image",             (image_taken,),                                  (forward, complete, resume, close)),
    # An end that was buffered takes its effect:
    Row("drain",           (drain, something_to_drain),                                      (drain_one,)),
    # What does not concern who counts:
    Row("overtaking rejected",       (may_not_overtake,),                                                  (refuse,)),
    Row("nothing due",       (clock, nothing_due),                                                 ()),
    Row("output passed",     (output_passed,),                                                     ()),
    *COMMON,
    theory=__doc__,
    not_said=NOT_SAID,
)
# fmt: on
