"""The scopes that an external aligner is asked, and by which judge.

The judge *dataflows* asks the invariants of whole dataflows only: whatever scheme an aligner follows, no event is lost,
every cut is consistent, nothing waits for ever. The judge *table* asks besides whether each gate does, effect for
effect, what the table of its protocol says, and whether it replays the scripted cases: the scheme of `impl` itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from barrierlab.model.checkpoint.capabilities import DIFFERENCES, EXTENT, RULES, SIZE, Capabilities
from barrierlab.model.checkpoint.check import Scope, WorldScope
from barrierlab.model.checkpoint.gate_runs import RunScope
from barrierlab.model.checkpoint.gate_scopes import GateScope
from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.scripted import bounds_of_case
from barrierlab.model.checkpoint.scripted_scopes import ScriptedScope
from barrierlab.model.storage.scopes import StoreScope

JUDGES = ("dataflows", "table")
"""The first is the default for external aligners."""

BEYOND_DATAFLOWS = {
    "6": "copies of a barrier that contradict each other",
    "8": "the turns in which buffered messages go",
    "9": "a snapshot that fails",
    "11": "the moment of a deadline",
    "12": "an input that there is not",
    "15": "the moment of the switch",
    "19": "whether a part says that it has switched",
}
"""The rules of the protocol that no invariant of dataflows asks, and what of them; *table* does, but for 12."""


@dataclass(frozen=True, slots=True)
class NotAsked:
    """A scope that is not asked.

    Attributes
    ----------
    name, protocol : str
        Of the scope.
    capability : str
        One that it needs and that is not declared; or a permitted difference, without which it makes no sense; or
        ``size``.
    """

    name: str
    protocol: str
    capability: str

    @property
    def why(self) -> str:
        """In a line."""
        if self.capability == SIZE:
            return f"it is one of the {EXTENT[SIZE]}"
        if self.capability in RULES:
            return f"it needs {self.capability} ({RULES[self.capability]}), which the class does not declare"
        return f"it shows what the class declares to do otherwise: {self.capability} ({DIFFERENCES[self.capability]})"


def divided(
    scopes: Iterable[Scope], capabilities: Capabilities, judge: str = JUDGES[0], reducible: bool = True
) -> tuple[list[Scope], list[NotAsked]]:
    """The scopes that a judge asks of external classes with these capabilities, and those that it does not.

    Raises
    ------
    ValueError
        If there is no such judge.
    """
    if judge not in JUDGES:
        raise ValueError(f"there is no judge {judge!r}; allowed: {', '.join(JUDGES)}")
    asked: list[Scope] = []
    others: list[NotAsked] = []
    for scope in scopes:
        if judge == "dataflows" and not isinstance(scope, WorldScope | StoreScope):
            continue
        lacking = [name for name in needs(scope) if not getattr(capabilities, name)]
        lacking += [name for name in shows(scope) if getattr(capabilities, name)]
        if not reducible and isinstance(scope, WorldScope) and not is_small(scope.bounds):
            lacking.append(SIZE)
        if lacking:
            others.append(NotAsked(scope.name, scope.protocol, lacking[-1]))
        else:
            asked.append(scope)
    return asked, others


def left_out(scopes: Iterable[Scope], capabilities: Capabilities) -> tuple[str, ...]:
    """The capabilities for want of which scopes that are asked are asked less: those of gates beside a table."""
    if not any(isinstance(scope, GateScope) for scope in scopes):
        return ()
    return tuple(name for name in ("aborts", "ends", "timeout", "limits") if not getattr(capabilities, name))


def is_small(bounds: Bounds) -> bool:
    """Return whether all orders of all moves can be explored: at most some 650,000 states, in seconds."""
    tasks, is_one = len(bounds.graph().tasks), bounds.events <= 1 and bounds.checkpoints <= 1
    if tasks == 3:
        return is_one or (protocol_of(bounds.mode).always_aligns and len(bounds.graph().sources) == 1)
    return tasks < 3 or (tasks == 4 and is_one and protocol_of(bounds.mode).always_aligns and not bounds.watermarks)


def needs(scope: Scope) -> list[str]:
    """The capabilities that a scope needs, in the order of `RULES`."""
    if isinstance(scope, WorldScope):
        found = _needs_of_bounds(scope.bounds)
    elif isinstance(scope, ScriptedScope):
        found = _needs_of_bounds(bounds_of_case(scope.text)) | {
            name for name, words in _WORDS.items() if any(word in scope.text for word in words)
        }
    elif isinstance(scope, GateScope):
        found = {"several_inputs"} if scope.rules.num_inputs > 1 else set()
        found |= set(protocol_of(scope.protocol).properties)  # of the rest it asks what is declared
    elif isinstance(scope, RunScope):  # whatever can happen at a gate happens in such a run
        found = set(RULES) - {"recovery"} - ({"unaligned"} - set(protocol_of(scope.protocol).properties))
    else:
        found = set()
    return [name for name in RULES if name in found]


def shows(scope: Scope) -> list[str]:
    """Return the permitted differences that a scope does not permit. (A table is compared up to where one begins.)"""
    found = {
        "leaves_in_channel": isinstance(scope, RunScope)
        or (isinstance(scope, ScriptedScope) and " buffer " in scope.text),
        "keeps_blocked_after_switch": isinstance(scope, RunScope | ScriptedScope)
        and protocol_of(scope.protocol).settings.is_late,
    }
    return [name for name in DIFFERENCES if found[name]]


_WORDS = {"aborts": ("> abort ", " cancel "), "ends": (" end\n",), "timeout": ("> expire ",)}


def _needs_of_bounds(bounds: Bounds) -> set[str]:
    topology = bounds.graph()
    found = {
        "several_inputs": any(len(topology.inputs(name)) > 1 for name in topology.tasks),
        "aborts": bool(bounds.cancels or bounds.expiries or bounds.aborts_one),
        "ends": bounds.closes,
        "timeout": bool(bounds.expiries),
        "recovery": bounds.crashes > 0,
        "limits": any(
            getattr(bounds, field.name) != field.default for field in fields(Bounds) if field.name.startswith("max_")
        ),
    }
    return {name for name, is_needed in found.items() if is_needed} | set(bounds.protocol.properties)
