"""Barrier control signals: a barrier waits until every open upstream has delivered its copy of it.

Invariant: a barrier is complete when every upstream has delivered it, or has closed before that; and only once.

barrier-control-signals, "Barrier Alignment Mechanism", sound by protocol rules 24 to 26. Unlike there, who delivered
what is kept, not how many; an upstream may be ahead of the others; and completed ids are remembered. Each carrier of a
processor goes by this table on its own. A signal without alignment, an instant one, never comes to it.
"""

from __future__ import annotations

from barrierlab.model.control import table_actions as do
from barrierlab.model.control import table_guards as on
from barrierlab.model.explore.table import Row, Table

# fmt: off
CONTROL = Table(
    # How a barrier begins, goes on and is complete; skew is normal (rule 25):
    Row("first copy",               (on.of_a_newer_barrier, on.nothing_pending, on.others_to_come),
                                                                                                 (do.begin, do.arrive)),
    Row("only copy",                (on.of_a_newer_barrier, on.nothing_pending, on.last_outstanding),
                                                                                    (do.begin, do.arrive, do.complete)),
    Row("copy ahead of the others", (on.of_a_newer_barrier, on.ahead_of_the_others),             (do.begin, do.arrive)),
    Row("one more copy",            (on.in_its_turn, on.others_to_come),                                  (do.arrive,)),
    Row("last copy",                (on.in_its_turn, on.last_outstanding),                    (do.arrive, do.complete)),
    # What no order of arrivals allows (rules 24 and 25):
    Row("overlap",                  (on.of_a_newer_barrier, on.out_of_turn),                     (do.fail_by_overlap,)),
    Row("duplicate",                (on.of_no_newer_barrier,),                                 (do.fail_by_duplicate,)),
    # A closed upstream has delivered everything (rule 26):
    Row("close between barriers",   (on.close, on.nothing_pending),                                     (do.close_it,)),
    Row("close for a copy",         (on.close, on.something_pending, on.others_to_come),                (do.close_it,)),
    Row("close for the last copy",  (on.close, on.something_pending, on.last_outstanding),
                                                                             (do.close_it, do.complete_all_that_is_in)),
    # What is pending when the processor ends (S-07):
    Row("abort",                    (on.abort,),                                                       (do.abort_all,)),
    theory=__doc__,
    not_said="""\
- What a processor does with a complete barrier, and when it forwards it: `barrierlab.impl.control.processor`.
- Which upstream is read next, and how long a barrier waits.
- What the head may inject while another barrier is pending (rule 24).
""",
)
# fmt: on
