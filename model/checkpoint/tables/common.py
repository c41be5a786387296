"""The rows common to every protocol: how a checkpoint ends otherwise than well, and what comes too late to matter."""

from __future__ import annotations

from barrierlab.model.checkpoint.tables import actions as do
from barrierlab.model.checkpoint.tables import guards as on
from barrierlab.model.explore.table import Row

NOT_SAID = """\
- When a barrier is injected and when a checkpoint is aborted: coordinator and sources decide that (rules 1 to 5).
- Which input is read next, and when a drained message takes its turn among arrivals: the engine decides that.
- How an image is taken, stored and acknowledged, and what a restore does with it (rules 20 to 23).
- How a barrier passes what is queued in a channel (rule 16): only what it has passed comes here.
- What the limits and times are: settings of the gate (`barrierlab.model.checkpoint.tables.gate.GateRules`).
"""

ABORT = (do.send_cancel, do.resume, do.close)
GIVE_IT_UP = (do.send_cancel_of_it, do.resume_for_it, do.close_up_to_it)

# fmt: off
COMMON = (
    # A message that does not cut, and one that has to wait:
    Row("watermark",                  (on.watermark, on.takes_effect),                                   (do.deliver,)),
    Row("message behind the barrier", (on.has_to_wait, on.with_room),                                     (do.buffer,)),
    Row("message without room",       (on.has_to_wait, on.without_room),                                  (do.refuse,)),
    Row("end between checkpoints",    (on.end, on.takes_effect, on.between_checkpoints),               (do.end_input,)),
    # A barrier that does not go on with a checkpoint:
    Row("repeated barrier",           (on.barrier, on.takes_effect, on.of_the_pending_checkpoint, on.its_barrier_in,
                                       on.no_contradiction),                                              (do.ignore,)),
    Row("contradicting barrier",      (on.a_contradiction, on.takes_effect),
                                                                         (do.decline_contradiction, *ABORT, do.ignore)),
    Row("newer barrier",              (on.barrier, on.takes_effect, on.of_a_newer_checkpoint, on.during_a_checkpoint),
                                                                       (do.decline_subsumed, *ABORT, do.look_up_again)),
    Row("older barrier",              (on.barrier, on.takes_effect, on.of_an_older_checkpoint),           (do.ignore,)),
    # How a checkpoint is aborted:
    Row("no image",                   (on.image_failed,),                                  (do.decline_failed, *ABORT)),
    Row("cancel",                     (on.cancel, on.takes_effect, on.of_no_older_checkpoint),              GIVE_IT_UP),
    Row("older cancel",               (on.cancel, on.takes_effect, on.of_an_older_checkpoint),            (do.ignore,)),
    Row("abort",                      (on.abort, on.of_no_older_checkpoint, on.with_an_open_input),         GIVE_IT_UP),
    Row("older abort",                (on.abort, on.of_an_older_checkpoint),                                        ()),
    Row("abort when all is over",     (on.abort, on.of_no_older_checkpoint, on.with_every_input_ended),             ()),
    Row("too late",                   (on.clock, on.too_late),                            (do.decline_expired, *ABORT)),
    # What is reported, and asked:
    Row("trigger",                    (on.trigger, on.of_none_that_is_done),                    (do.note_the_trigger,)),
    Row("older trigger",              (on.trigger, on.of_one_that_is_done),                                         ()),
    Row("nothing to drain",           (on.drain, on.nothing_to_drain),                                              ()),
)
# fmt: on
