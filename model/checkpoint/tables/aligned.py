"""Aligned checkpoints: an input waits behind its barrier until every other open input has delivered its own.

Invariant: a snapshot holds all that came before the barriers, and nothing that came after one.

Carbone et al. 2015, "Lightweight Asynchronous Snapshots for Distributed Dataflows", algorithm 1; F-DCKP-002, sound by
protocol rules 6 to 13. Unlike there, everything behind a barrier is buffered, further barriers too; each keeps its
place and takes its effect when it is drained. An end of input is a barrier.
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

# fmt: off
ALIGNED = Table(
    # What to do with an event whose turn it is, and if nothing more can be buffered:
    Row("event",             (event, takes_effect),                                                (deliver,)),
    Row("too much buffered",     (has_to_wait, too_much_buffered),          (refuse, decline_too_much_buffered,
    *ABORT)),
    # How a checkpoint begins, goes on and ends well:
    Row("first barrier",     (barrier, takes_effect, of_a_newer_checkpoint, between_checkpoints, others_to_come),
                                                                                    (begin, mark, block)),
    Row("only barrier",      (barrier, takes_effect, of_a_newer_checkpoint, between_checkpoints, last_outstanding),
                                                                                    (begin, mark, block, snapshot)),
    Row("one more barrier",  (barrier, takes_effect, of_the_pending_checkpoint, its_barrier_missing, no_contradiction,
                              others_to_come),                                      (mark, block)),
    Row("last barrier",      (barrier, takes_effect, of_the_pending_checkpoint, its_barrier_missing, no_contradiction,
                              last_outstanding),                                    (mark, block, snapshot)),
    Row("end for a barrier", (end, takes_effect, during_a_checkpoint, others_to_come),             (end_input,)),
    Row("end for the last",  (end, takes_effect, during_a_checkpoint, last_outstanding),  (end_input, snapshot)),
    Row("image",             (image_taken,),                                  (forward, complete, resume, close)),
    # What was buffered goes, one message at a time, and is looked up again:
    Row("drain",           (drain, something_to_drain),                                      (drain_one,)),
    # What does not concern who aligns:
    Row("overtaking rejected",       (may_not_overtake,),                                                  (refuse,)),
    Row("nothing due",       (clock, nothing_due),                                                 ()),
    Row("output passed",     (output_passed,),                                                     ()),
    *COMMON,
    theory=__doc__,
    not_said=NOT_SAID,
)
# fmt: on
