"""Barrier control signals: a barrier waits until every open upstream has delivered its copy of it.

Invariant: a barrier is complete when every upstream has delivered it, or has closed before that; and only once.

barrier-control-signals, "Barrier Alignment Mechanism", sound by protocol rules 24 to 26. Unlike there, who delivered
what is kept, not how many; an upstream may be ahead of the others; and completed ids are remembered. Each carrier of a
processor goes by this table on its own. A signal without alignment, an instant one, never comes to it.
"""

from __future__ import annotations

from barrierlab.model.control.table_actions import (
    abort_all,
    arrive,
    begin,
    close_it,
    complete,
    complete_all_that_is_in,
    fail_by_duplicate,
    fail_by_overlap,
)
from barrierlab.model.control.table_guards import (
    abort,
    ahead_of_the_others,
    close,
    in_its_turn,
    last_outstanding,
    nothing_pending,
    of_a_newer_barrier,
    of_no_newer_barrier,
    others_to_come,
    out_of_turn,
    something_pending,
)
from barrierlab.model.explore.table import Row, Table

# fmt: off
CONTROL = Table(
    # How a barrier begins, goes on and is complete; skew is normal (rule 25):
    Row("first copy",               (of_a_newer_barrier, nothing_pending, others_to_come),  (begin, arrive)),
    Row("only copy",                (of_a_newer_barrier, nothing_pending, last_outstanding), (begin, arrive, complete)),
    Row("copy ahead of the others", (of_a_newer_barrier, ahead_of_the_others),              (begin, arrive)),
    Row("one more copy",            (in_its_turn, others_to_come),                          (arrive,)),
    Row("last copy",                (in_its_turn, last_outstanding),                        (arrive, complete)),
    # What no order of arrivals allows (rules 24 and 25):
    Row("overlap",                  (of_a_newer_barrier, out_of_turn),                      (fail_by_overlap,)),
    Row("duplicate",                (of_no_newer_barrier,),                                 (fail_by_duplicate,)),
    # A closed upstream has delivered everything (rule 26):
    Row("close between barriers",   (close, nothing_pending),                               (close_it,)),
    Row("close for a copy",         (close, something_pending, others_to_come),             (close_it,)),
    Row("close for the last copy",  (close, something_pending, last_outstanding),
                                                                             (close_it, complete_all_that_is_in)),
    # What is pending when the processor ends (S-07):
    Row("abort",                    (abort,),                                               (abort_all,)),
    theory=__doc__,
    not_said="""\
- What a processor does with a complete barrier, and when it forwards it: `barrierlab.impl.control.processor`.
- Which upstream is read next, and how long a barrier waits.
- What the head may inject while another barrier is pending (rule 24).
""",
)
# fmt: on
