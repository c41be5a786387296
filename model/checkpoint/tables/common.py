"""The rows common to every protocol: how a checkpoint ends otherwise than well, and what comes too late to matter."""

from __future__ import annotations

from barrierlab.model.checkpoint.tables.actions import (
    buffer,
    close,
    close_up_to_it,
    decline_contradiction,
    decline_expired,
    decline_failed,
    decline_subsumed,
    deliver,
    end_input,
    ignore,
    look_up_again,
    note_the_trigger,
    refuse,
    resume,
    resume_for_it,
    send_cancel,
    send_cancel_of_it,
)
from barrierlab.model.checkpoint.tables.guards import (
    a_contradiction,
    abort,
    barrier,
    between_checkpoints,
    cancel,
    clock,
    drain,
    during_a_checkpoint,
    end,
    has_to_wait,
    image_failed,
    its_barrier_in,
    no_contradiction,
    nothing_to_drain,
    of_a_newer_checkpoint,
    of_an_older_checkpoint,
    of_no_older_checkpoint,
    of_none_that_is_done,
    of_one_that_is_done,
    of_the_pending_checkpoint,
    takes_effect,
    too_late,
    trigger,
    watermark,
    with_an_open_input,
    with_every_input_ended,
    with_room,
    without_room,
)
from barrierlab.model.explore.table import Row

NOT_SAID = """\
- When a barrier is injected and when a checkpoint is aborted: coordinator and sources decide that (rules 1 to 5).
- Which input is read next, and when a drained message takes its turn among arrivals: the engine decides that.
- How an image is taken, stored and acknowledged, and what a restore does with it (rules 20 to 23).
- How a barrier passes what is queued in a channel (rule 16): only what it has passed comes here.
- What the limits and times are: settings of the gate (`barrierlab.model.checkpoint.tables.gate.GateRules`).
"""

ABORT = (send_cancel, resume, close)
GIVE_IT_UP = (send_cancel_of_it, resume_for_it, close_up_to_it)

# fmt: off
COMMON = (
    # A message that does not cut, and one that has to wait:
    Row("watermark",                  (watermark, takes_effect),                            (deliver,)),
    Row("message behind the barrier", (has_to_wait, with_room),                             (buffer,)),
    Row("message without room",       (has_to_wait, without_room),                          (refuse,)),
    Row("end between checkpoints",    (end, takes_effect, between_checkpoints),             (end_input,)),
    # A barrier that does not go on with a checkpoint:
    Row("repeated barrier",           (barrier, takes_effect, of_the_pending_checkpoint, its_barrier_in,
                                       no_contradiction),                                   (ignore,)),
    Row("contradicting barrier",      (a_contradiction, takes_effect),
                                                              (decline_contradiction, *ABORT, ignore)),
    Row("newer barrier",              (barrier, takes_effect, of_a_newer_checkpoint, during_a_checkpoint),
                                                              (decline_subsumed, *ABORT, look_up_again)),
    Row("older barrier",              (barrier, takes_effect, of_an_older_checkpoint),      (ignore,)),
    # How a checkpoint is aborted:
    Row("no image",                   (image_failed,),                                      (decline_failed, *ABORT)),
    Row("cancel",                     (cancel, takes_effect, of_no_older_checkpoint),       GIVE_IT_UP),
    Row("older cancel",               (cancel, takes_effect, of_an_older_checkpoint),       (ignore,)),
    Row("abort",                      (abort, of_no_older_checkpoint, with_an_open_input),  GIVE_IT_UP),
    Row("older abort",                (abort, of_an_older_checkpoint),                      ()),
    Row("abort when all is over",     (abort, of_no_older_checkpoint, with_every_input_ended), ()),
    Row("too late",                   (clock, too_late),                            (decline_expired, *ABORT)),
    # What is reported, and asked:
    Row("trigger",                    (trigger, of_none_that_is_done),                      (note_the_trigger,)),
    Row("older trigger",              (trigger, of_one_that_is_done),                       ()),
    Row("nothing to drain",         (drain, nothing_to_drain),                        ()),
)
# fmt: on
