"""Aligned until a deadline: a checkpoint that takes too long to align goes unaligned, and one that asks does at once.

Invariant: as of an unaligned part. Who has delivered stays delivered, and what was buffered is drained, not recorded.

FLIP-76, FLINK-23041 and FLINK-27251; F-DCKP-006, sound by protocol rules 14 to 19. Unlike there, the switch comes by
time, not with the next barrier; a barrier or an end that comes later than the threshold switches too, and so does one
message more than may be buffered (rule 7). A task that may not go unaligned aligns, and passes the flag on.
"""

from __future__ import annotations

from barrierlab.model.checkpoint.tables import actions as do
from barrierlab.model.checkpoint.tables import guards as on
from barrierlab.model.checkpoint.tables.common import ABORT, COMMON, NOT_SAID
from barrierlab.model.checkpoint.tables.unaligned import EVENTS, OVERTAKING, RECORDING
from barrierlab.model.explore.table import Row, Table

FIRST = (on.barrier, on.takes_effect, on.of_a_newer_checkpoint, on.between_checkpoints)
NEXT = (
    on.barrier,
    on.takes_effect,
    on.while_aligning,
    on.of_the_pending_checkpoint,
    on.its_barrier_missing,
    on.no_contradiction,
)
GO = (do.go_unaligned, do.record_what_it_passed, do.block, do.snapshot)

# fmt: off
ALIGNED_WITH_TIMEOUT = Table(
    *EVENTS,
    # How a checkpoint begins:
    Row("first barrier",             (*FIRST, on.asking_for_nothing, on.others_to_come, on.in_time),
                                                                                         (do.begin, do.mark, do.block)),
    Row("first barrier, overdue",    (*FIRST, on.asking_for_nothing, on.others_to_come, on.overdue),
                                                                 (do.begin, do.mark, do.block, do.switch, do.snapshot)),
    Row("only barrier",              (*FIRST, on.asking_for_nothing, on.last_outstanding),
                                                                            (do.begin, do.mark, do.block, do.snapshot)),
    Row("first barrier, asking",     (*FIRST, on.asking_to_go_unaligned),                     (do.begin, do.mark, *GO)),
    # How an alignment goes on and ends well:
    Row("one more barrier",          (*NEXT, on.asking_for_nothing, on.others_to_come, on.in_time),
                                                                              (do.mark, do.pass_the_flag_on, do.block)),
    Row("one more, overdue",         (*NEXT, on.asking_for_nothing, on.others_to_come, on.overdue),
                                                                           (do.mark, do.block, do.switch, do.snapshot)),
    Row("one more, asking",          (*NEXT, on.asking_to_go_unaligned),                                (do.mark, *GO)),
    Row("last to align",             (*NEXT, on.asking_for_nothing, on.last_outstanding),
                                                                 (do.mark, do.pass_the_flag_on, do.block, do.snapshot)),
    Row("end for a barrier",         (on.end, on.takes_effect, on.while_aligning, on.others_to_come, on.in_time),
                                                                                                       (do.end_input,)),
    Row("end for one, overdue",      (on.end, on.takes_effect, on.while_aligning, on.others_to_come, on.overdue),
                                                                                (do.end_input, do.switch, do.snapshot)),
    Row("end for the last",          (on.end, on.takes_effect, on.while_aligning, on.last_outstanding),
                                                                                           (do.end_input, do.snapshot)),
    Row("aligned image",             (on.image_taken, on.of_an_aligned_part),
                                                                        (do.forward, do.complete, do.resume, do.close)),
    # How it goes unaligned, or would:
    Row("time to switch",            (on.clock, on.time_to_switch),                           (do.switch, do.snapshot)),
    Row("too much buffered: switch", (on.has_to_wait, on.too_much_buffered, on.who_may_overtake),
                                                                                   (do.refuse, do.switch, do.snapshot)),
    Row("too much buffered",         (on.has_to_wait, on.too_much_buffered, on.who_may_not_overtake),
                                                                     (do.refuse, do.decline_too_much_buffered, *ABORT)),
    Row("unaligned image",           (on.image_taken, on.of_an_unaligned_part),                          (do.forward,)),
    *RECORDING,
    *OVERTAKING,
    Row("nothing due",               (on.clock, on.nothing_due),                                                    ()),
    *COMMON,
    theory=__doc__,
    not_said=NOT_SAID,
)
# fmt: on
