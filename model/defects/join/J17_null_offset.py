"""Every signed 32-bit number is an offset.

Source
    merge-map-join-barrier, section 6.2.1: "a signed 32-bit integer"; section 15: -2**31 is the null value of the field.
What goes wrong
    The smallest offset is sent, and read as none: the map is invalid at every joiner.
Repair
    What stands for null cannot be set (protocol rule 27).
"""

from __future__ import annotations

from barrierlab.impl import LimitError
from barrierlab.impl.join import MergeRuleType, SequenceMergeRule, decode, encode
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, numbers


def unchecked(stream: int, offset: int) -> SequenceMergeRule:
    """A rule with whatever offset."""
    rule = SequenceMergeRule(stream, MergeRuleType.OFFSET, offset=0)
    object.__setattr__(rule, "offset", offset)
    return rule


def witness(components: JoinComponents) -> str:
    """Say the smallest offset over the wire."""
    try:
        rule = components.sequence_rule(1, -(2**31))
    except LimitError:
        return "refused"
    said = numbers(components, rule)
    return "as said" if decode(encode(said)) == said else "read as none"


DEFECT = JoinDefect("value", "value", JoinComponents(sequence_rule=unchecked), witness, "refused", "read as none")
