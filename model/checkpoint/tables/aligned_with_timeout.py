"""Aligned until a deadline: a checkpoint that takes too long to align goes unaligned, and one that asks does at once.

Invariant: as of an unaligned part. Who has delivered stays delivered, and what was buffered is drained, not recorded.

FLIP-76, FLINK-23041 and FLINK-27251; F-DCKP-006, sound by protocol rules 14 to 19. Unlike there, the switch comes by
time, not with the next barrier; a barrier or an end that comes later than the threshold switches too, and so does one
message more than may be buffered (rule 7). A task that may not go unaligned aligns, and passes the flag on.
"""

from __future__ import annotations

from barrierlab.model.checkpoint.tables.actions import (
    begin,
    block,
    close,
    complete,
    decline_too_much_buffered,
    end_input,
    forward,
    go_unaligned,
    mark,
    pass_the_flag_on,
    record_what_it_passed,
    refuse,
    resume,
    snapshot,
    switch,
)
from barrierlab.model.checkpoint.tables.common import ABORT, COMMON, NOT_SAID
from barrierlab.model.checkpoint.tables.guards import (
    asking_for_nothing,
    asking_to_go_unaligned,
    barrier,
    between_checkpoints,
    clock,
    end,
    has_to_wait,
    image_taken,
    in_time,
    its_barrier_missing,
    last_outstanding,
    no_contradiction,
    nothing_due,
    of_a_newer_checkpoint,
    of_an_aligned_part,
    of_an_unaligned_part,
    of_the_pending_checkpoint,
    others_to_come,
    overdue,
    takes_effect,
    time_to_switch,
    too_much_buffered,
    while_aligning,
    who_may_not_overtake,
    who_may_overtake,
)
from barrierlab.model.checkpoint.tables.unaligned import EVENTS, OVERTAKING, RECORDING
from barrierlab.model.explore.table import Row, Table

FIRST = (barrier, takes_effect, of_a_newer_checkpoint, between_checkpoints)
NEXT = (barrier, takes_effect, while_aligning, of_the_pending_checkpoint, its_barrier_missing, no_contradiction)
GO = (go_unaligned, record_what_it_passed, block, snapshot)

# fmt: off
ALIGNED_WITH_TIMEOUT = Table(
    *EVENTS,
    # How a checkpoint begins:
    Row("first barrier",           (*FIRST, asking_for_nothing, others_to_come, in_time),   (begin, mark, block)),
    Row("first barrier, overdue",  (*FIRST, asking_for_nothing, others_to_come, overdue),
                                                                        (begin, mark, block, switch, snapshot)),
    Row("only barrier",            (*FIRST, asking_for_nothing, last_outstanding),
                                                                                (begin, mark, block, snapshot)),
    Row("first barrier, asking",   (*FIRST, asking_to_go_unaligned),                        (begin, mark, *GO)),
    # How an alignment goes on and ends well:
    Row("one more barrier",        (*NEXT, asking_for_nothing, others_to_come, in_time),
                                                                                (mark, pass_the_flag_on, block)),
    Row("one more, overdue",       (*NEXT, asking_for_nothing, others_to_come, overdue),
                                                                                (mark, block, switch, snapshot)),
    Row("one more, asking",        (*NEXT, asking_to_go_unaligned),                         (mark, *GO)),
    Row("last to align",           (*NEXT, asking_for_nothing, last_outstanding),
                                                                        (mark, pass_the_flag_on, block, snapshot)),
    Row("end for a barrier",       (end, takes_effect, while_aligning, others_to_come, in_time),       (end_input,)),
    Row("end for one, overdue",    (end, takes_effect, while_aligning, others_to_come, overdue),
                                                                                   (end_input, switch, snapshot)),
    Row("end for the last",        (end, takes_effect, while_aligning, last_outstanding),      (end_input, snapshot)),
    Row("aligned image",           (image_taken, of_an_aligned_part),         (forward, complete, resume, close)),
    # How it goes unaligned, or would:
    Row("time to switch",          (clock, time_to_switch),                                       (switch, snapshot)),
    Row("too much buffered: switch",   (has_to_wait, too_much_buffered, who_may_overtake),        (refuse, switch,
    snapshot)), Row("too much buffered",           (has_to_wait, too_much_buffered, who_may_not_overtake),
                                                                         (refuse, decline_too_much_buffered, *ABORT)),
    Row("unaligned image",         (image_taken, of_an_unaligned_part),                                (forward,)),
    *RECORDING,
    *OVERTAKING,
    Row("nothing due",             (clock, nothing_due),                                               ()),
    *COMMON,
    theory=__doc__,
    not_said=NOT_SAID,
)
# fmt: on
