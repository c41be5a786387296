"""Aligned checkpoints: an input waits behind its barrier until every other open input has delivered its own.

Invariant: a snapshot holds all that came before the barriers, and nothing that came after one.

Carbone et al. 2015, "Lightweight Asynchronous Snapshots for Distributed Dataflows", algorithm 1; F-DCKP-002, sound by
protocol rules 6 to 13. Unlike there, everything behind a barrier is buffered, further barriers too; each keeps its
place and takes its effect when it is drained. An end of input is a barrier.
"""

from __future__ import annotations

from barrierlab.model.checkpoint.tables import actions as do
from barrierlab.model.checkpoint.tables import guards as on
from barrierlab.model.checkpoint.tables.common import ABORT, COMMON, NOT_SAID
from barrierlab.model.explore.table import Row, Table

# fmt: off
ALIGNED = Table(
    # What to do with an event whose turn it is, and if nothing more can be buffered:
    Row("event",               (on.event, on.takes_effect),                                              (do.deliver,)),
    Row("too much buffered",   (on.has_to_wait, on.too_much_buffered),
                                                                     (do.refuse, do.decline_too_much_buffered, *ABORT)),
    # How a checkpoint begins, goes on and ends well:
    Row("first barrier",       (on.barrier, on.takes_effect, on.of_a_newer_checkpoint, on.between_checkpoints,
                                on.others_to_come),                                      (do.begin, do.mark, do.block)),
    Row("only barrier",        (on.barrier, on.takes_effect, on.of_a_newer_checkpoint, on.between_checkpoints,
                                on.last_outstanding),                       (do.begin, do.mark, do.block, do.snapshot)),
    Row("one more barrier",    (on.barrier, on.takes_effect, on.of_the_pending_checkpoint, on.its_barrier_missing,
                                on.no_contradiction, on.others_to_come),                           (do.mark, do.block)),
    Row("last barrier",        (on.barrier, on.takes_effect, on.of_the_pending_checkpoint, on.its_barrier_missing,
                                on.no_contradiction, on.last_outstanding),            (do.mark, do.block, do.snapshot)),
    Row("end for a barrier",   (on.end, on.takes_effect, on.during_a_checkpoint, on.others_to_come),   (do.end_input,)),
    Row("end for the last",    (on.end, on.takes_effect, on.during_a_checkpoint, on.last_outstanding),
                                                                                           (do.end_input, do.snapshot)),
    Row("image",               (on.image_taken,),                       (do.forward, do.complete, do.resume, do.close)),
    # What was buffered goes, one message at a time, and is looked up again:
    Row("drain",               (on.drain, on.something_to_drain),                                      (do.drain_one,)),
    # What does not concern who aligns:
    Row("overtaking rejected", (on.may_not_overtake,),                                                    (do.refuse,)),
    Row("nothing due",         (on.clock, on.nothing_due),                                                          ()),
    Row("output passed",       (on.output_passed,),                                                                 ()),
    *COMMON,
    theory=__doc__,
    not_said=NOT_SAID,
)
# fmt: on
