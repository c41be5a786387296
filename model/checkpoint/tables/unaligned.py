"""Unaligned checkpoints: the first barrier cuts, and what crosses the cut is recorded as in flight.

Invariant: the snapshot and the record hold, together, all that came before the barriers, and nothing behind one.

Chandy and Lamport 1985, "Distributed Snapshots", section 3: a process records each channel from its own cut until the
marker comes in there. FLIP-76 lets the barrier overtake what is queued, at the sender and at the receiver. F-DCKP-006,
sound by protocol rules 14 to 19, for a task whose checkpoints are all unaligned.
"""

from __future__ import annotations

from barrierlab.model.checkpoint.tables import actions as do
from barrierlab.model.checkpoint.tables import guards as on
from barrierlab.model.checkpoint.tables.common import ABORT, COMMON, GIVE_IT_UP, NOT_SAID
from barrierlab.model.explore.table import Row, Table

LATER = (
    on.barrier,
    on.takes_effect,
    on.while_recording,
    on.of_the_pending_checkpoint,
    on.its_barrier_missing,
    on.no_contradiction,
)
ITS_BARRIER = (do.mark, do.wait_with_what_is_newer, do.block, do.record_what_it_passed, do.tell_what_it_passed)

# fmt: off
# An event whose turn it is is recorded if it is in flight, and takes its effect in any case:
EVENTS = (
    Row("event",                   (on.event, on.takes_effect, on.not_in_flight),                        (do.deliver,)),
    Row("event in flight",         (on.event, on.takes_effect, on.in_flight, on.within_the_limit),
                                                                                               (do.record, do.deliver)),
    Row("event beyond the limit",  (on.event, on.takes_effect, on.in_flight, on.over_the_limit),
                                                                   (do.decline_too_much_in_flight, *ABORT, do.deliver)),
)
# From the snapshot to the last barrier:
RECORDING = (
    Row("barrier gone",            (on.barrier_gone, on.within_the_limit, on.barriers_to_come),
                                                              (do.tell_what_was_passed, do.start_recording, do.resume)),
    Row("barrier gone, all in",    (on.barrier_gone, on.within_the_limit, on.every_barrier_in),
                                       (do.tell_what_was_passed, do.start_recording, do.complete, do.resume, do.close)),
    Row("barrier gone, too much",  (on.barrier_gone, on.over_the_limit),
                                  (do.tell_what_was_passed, do.start_recording, do.decline_too_much_in_flight, *ABORT)),
    Row("later barrier",           (*LATER, on.others_to_come),                              (*ITS_BARRIER, do.resume)),
    Row("last barrier",            (*LATER, on.last_outstanding),     (*ITS_BARRIER, do.complete, do.resume, do.close)),
    Row("later end",               (on.end, on.takes_effect, on.while_recording, on.others_to_come),   (do.end_input,)),
    Row("last end",                (on.end, on.takes_effect, on.while_recording, on.last_outstanding),
                                                                                 (do.end_input, do.complete, do.close)),
    Row("drain",                   (on.drain, on.something_to_drain),       (do.drain_one, do.wait_with_what_is_newer)),
)
# What a barrier passes, and where it must not pass:
OVERTAKING = (
    Row("overtaking rejected",     (on.may_not_overtake,),                                                (do.refuse,)),
    Row("too much overtaken",      (on.too_much_overtaken,),                   (do.decline_it, *GIVE_IT_UP, do.ignore)),
    Row("output passed",           (on.output_passed, on.while_the_barrier_leaves),                 (do.count_output,)),
    Row("output passed later",     (on.output_passed, on.while_recording, on.within_the_limit),     (do.count_output,)),
    Row("output beyond the limit", (on.output_passed, on.while_recording, on.over_the_limit),
                                                                               (do.decline_too_much_in_flight, *ABORT)),
    Row("output of no concern",    (on.output_passed, on.of_an_aligned_part),                                       ()),
)

UNALIGNED = Table(
    *EVENTS,
    Row("first barrier",           (on.barrier, on.takes_effect, on.of_a_newer_checkpoint, on.between_checkpoints),
                                 (do.begin, do.mark, do.go_unaligned, do.record_what_it_passed, do.block, do.snapshot)),
    Row("image",                   (on.image_taken,),                                                    (do.forward,)),
    *RECORDING,
    *OVERTAKING,
    Row("nothing due",             (on.clock, on.nothing_due),                                                      ()),
    *COMMON,
    theory=__doc__,
    not_said=NOT_SAID,
)
# fmt: on
