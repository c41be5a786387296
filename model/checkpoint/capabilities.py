"""The declaration of an external class: what it takes part in, and in which permitted ways it differs.

A class says it by one attribute::

    class MyAligner:
        capabilities = Capabilities(aborts=False, leaves_in_channel=True)

A class without the attribute declares all of the protocol, and no difference.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The part of the protocol that an external class takes on.

    A scope that needs what is declared False is not asked, and the verdict says so; a gate beside its table is asked
    the rest.

    Attributes
    ----------
    several_inputs : bool
        Barriers on two inputs or more.
    aborts : bool
        The coordinator aborts a checkpoint (rule 10); without it, `abort` may be missing and is never called.
    ends : bool
        An input ends before the last checkpoint (rule 13); without it, no source ever ends.
    timeout : bool
        Deadlines (rules 11 and 15); without it, `note_trigger`, `next_deadline_ns` and `on_time` may be missing.
    limits : bool
        The limits on what is buffered and recorded (rules 7 and 18); without it, `note_output` may be missing.
    unaligned : bool
        Barriers overtake (rules 14 to 18). A class that lacks a method for that does not, whatever it declares.
    recovery : bool
        The job fails, and is restored from a checkpoint (rule 22).
    leaves_in_channel : bool
        Permitted difference: what is behind a barrier stays in its channel and is not buffered, so that nothing is ever
        drained; `can_drain` and `drain_next` may be missing (Flink since FLINK-16404, Hazelcast Jet).
    keeps_blocked_after_switch : bool
        Permitted difference: an input that has delivered stays blocked after a switch to unaligned until all barriers
        are in (Flink since FLINK-22638).
    reads_on : bool
        The reading loop may take new messages before it drains what may go: the world then tries both (rule 8).
        Without it, the world always drains first, and the verdict is about such a loop alone, which it says. It
        makes no difference to a class that has no `drain_next`, or that reads the channels itself.
    """

    several_inputs: bool = True
    aborts: bool = True
    ends: bool = True
    timeout: bool = True
    limits: bool = True
    unaligned: bool = True
    recovery: bool = True
    leaves_in_channel: bool = False
    keeps_blocked_after_switch: bool = False
    reads_on: bool = True


ALL = Capabilities()
"""The whole protocol, without a difference: what a class declares that declares nothing."""

DRAINS_FIRST = Capabilities(reads_on=False)
"""Those of a gate of `impl`, whose driver drains what may go before it offers anything
(`barrierlab.impl.checkpoint.gate`)."""

READS_ON = (
    "a message is taken while another may be drained; if your reading loop never does that, declare "
    "Capabilities(reads_on=False), and the verdict is about such a loop alone"
)
"""The hint beside a counterexample that rests on the reading loop."""

RULES = {
    "several_inputs": "rules 6 to 8",
    "aborts": "rule 10",
    "ends": "rule 13",
    "timeout": "rules 11 and 15",
    "limits": "rules 7 and 18",
    "unaligned": "rules 14 to 18",
    "recovery": "rule 22",
}
"""By capability, in the order in which a report names them: the rules of the protocol that it is about."""

DIFFERENCES = {"leaves_in_channel": "rules 7 and 8", "keeps_blocked_after_switch": "rule 16"}
"""By permitted difference from the scheme of a table, the same."""

SIZE = "size"
EXTENT = {SIZE: "larger dataflows, which need the reduction argued for the machines of impl"}
"""No capability: why a scope is not asked of a class for which the exploration is not reduced."""

STRICT = frozenset(("several_inputs", "aborts", "ends", "recovery"))
"""A verdict without the scopes of one of these says little: `barrierlab check --strict` takes it for undecided."""
