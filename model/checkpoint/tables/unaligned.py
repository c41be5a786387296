"""Unaligned checkpoints: the first barrier cuts, and what crosses the cut is recorded as in flight.

Invariant: the snapshot and the record hold, together, all that came before the barriers, and nothing behind one.

Chandy and Lamport 1985, "Distributed Snapshots", section 3: a process records each channel from its own cut until the
marker comes in there. FLIP-76 lets the barrier overtake what is queued, at the sender and at the receiver. F-DCKP-006,
sound by protocol rules 14 to 19, for a task whose checkpoints are all unaligned.
"""

from __future__ import annotations

from barrierlab.model.checkpoint.tables.actions import (
    begin,
    block,
    close,
    complete,
    count_output,
    decline_it,
    decline_too_much_in_flight,
    deliver,
    drain_one,
    end_input,
    forward,
    go_unaligned,
    ignore,
    mark,
    record,
    record_what_it_passed,
    refuse,
    resume,
    snapshot,
    start_recording,
    tell_what_it_passed,
    tell_what_was_passed,
    wait_with_what_is_newer,
)
from barrierlab.model.checkpoint.tables.common import ABORT, COMMON, GIVE_IT_UP, NOT_SAID
from barrierlab.model.checkpoint.tables.guards import (
    barrier,
    barrier_gone,
    barriers_to_come,
    between_checkpoints,
    clock,
    drain,
    end,
    event,
    every_barrier_in,
    image_taken,
    in_flight,
    its_barrier_missing,
    last_outstanding,
    may_not_overtake,
    no_contradiction,
    not_in_flight,
    nothing_due,
    of_a_newer_checkpoint,
    of_an_aligned_part,
    of_the_pending_checkpoint,
    others_to_come,
    output_passed,
    over_the_limit,
    something_to_drain,
    takes_effect,
    too_much_overtaken,
    while_recording,
    while_the_barrier_leaves,
    within_the_limit,
)
from barrierlab.model.explore.table import Row, Table

LATER = (
    barrier,
    takes_effect,
    while_recording,
    of_the_pending_checkpoint,
    its_barrier_missing,
    no_contradiction,
)
ITS_BARRIER = (mark, wait_with_what_is_newer, block, record_what_it_passed, tell_what_it_passed)

# fmt: off
# An event whose turn it is is recorded if it is in flight, and takes its effect in any case:
EVENTS = (
    Row("event",                    (event, takes_effect, not_in_flight),                       (deliver,)),
    Row("event in flight",          (event, takes_effect, in_flight, within_the_limit),         (record, deliver)),
    Row("event beyond the limit",   (event, takes_effect, in_flight, over_the_limit),
                                                            (decline_too_much_in_flight, *ABORT, deliver)),
)
# From the snapshot to the last barrier:
RECORDING = (
    Row("barrier gone",             (barrier_gone, within_the_limit, barriers_to_come),
                                                            (tell_what_was_passed, start_recording, resume)),
    Row("barrier gone, all in",     (barrier_gone, within_the_limit, every_barrier_in),
                                                    (tell_what_was_passed, start_recording, complete, resume, close)),
    Row("barrier gone, too much",   (barrier_gone, over_the_limit),
                                  (tell_what_was_passed, start_recording, decline_too_much_in_flight, *ABORT)),
    Row("later barrier",            (*LATER, others_to_come),                               (*ITS_BARRIER, resume)),
    Row("last barrier",             (*LATER, last_outstanding),             (*ITS_BARRIER, complete, resume, close)),
    Row("later end",                (end, takes_effect, while_recording, others_to_come),       (end_input,)),
    Row("last end",                 (end, takes_effect, while_recording, last_outstanding),
                                                                                    (end_input, complete, close)),
    Row("drain",                  (drain, something_to_drain),    (drain_one, wait_with_what_is_newer)),
)
# What a barrier passes, and where it must not pass:
OVERTAKING = (
    Row("overtaking rejected",              (may_not_overtake,),                                        (refuse,)),
    Row("too much overtaken",       (too_much_overtaken,),                  (decline_it, *GIVE_IT_UP, ignore)),
    Row("output passed",            (output_passed, while_the_barrier_leaves),                  (count_output,)),
    Row("output passed later",      (output_passed, while_recording, within_the_limit),         (count_output,)),
    Row("output beyond the limit",  (output_passed, while_recording, over_the_limit),
                                                                    (decline_too_much_in_flight, *ABORT)),
    Row("output of no concern",     (output_passed, of_an_aligned_part),                        ()),
)

UNALIGNED = Table(
    *EVENTS,
    Row("first barrier",            (barrier, takes_effect, of_a_newer_checkpoint, between_checkpoints),
                                     (begin, mark, go_unaligned, record_what_it_passed, block, snapshot)),
    Row("image",                    (image_taken,),                                             (forward,)),
    *RECORDING,
    *OVERTAKING,
    Row("nothing due",              (clock, nothing_due),                                       ()),
    *COMMON,
    theory=__doc__,
    not_said=NOT_SAID,
)
# fmt: on
