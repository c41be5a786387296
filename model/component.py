"""One machine of `impl` alone, driven by every sequence of stimuli of a small alphabet, beside a model of the rules.

A dataflow is the wrong size for some questions: clocks that pace, failures in a row, what a ledger does the second
time. Here the machine and a reference model, written from the rules alone, are told the same and answer in lines; both
are values between two stimuli, so that every state that they reach together is seen once.

The explorer puts a machine back before each stimulus. A field that `restore` works out afresh could drift in a machine
that is never put back, and no state would show it; so after each stimulus the machine is compared, field for field,
with another that is put back to what it captured. If that holds for every step, it holds for every run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from impl.messages import Event
from model.check import Outcome, outcome_of
from model.explore import Always, Limits, explore
from model.interning import exact
from model.parts import COUNTERS, Parts

MODEL = "MODEL"
"""The name of what is broken where a machine does not do what its reference model does."""

_MOST_TIMES = 4
"""So many times the states that the sound machine has may be explored before one that is not is given up."""
_MOST_COMPARED = 3
"""So many steps that lead to one state are compared field for field: that takes longer than the step."""


class Stimulus(NamedTuple):
    """What happens to a machine: the name of a method of both sides, and its arguments."""

    verb: str
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, (self.verb, *self.arguments)))


def stimulus(verb: str, *arguments: object) -> Stimulus:
    """A stimulus: ``stimulus("acknowledge", "a", 1)``."""
    return Stimulus(verb, arguments)


class Side(Protocol):
    """The machine, or its model. Each verb of a stimulus is a method of it that answers with lines."""

    def capture(self) -> Hashable:
        """All of it, as a value."""

    def restore(self, value: Hashable) -> None:
        """Be as the side was that gave `value`."""


class Reference(Side, Protocol):
    """The model; it also says what a driver may do next, which bounds the scope."""

    def stimuli(self) -> Sequence[Stimulus]:
        """What may happen now, always in the same order."""


class Under(Side, Protocol):
    """The machine under test, with the verbs of its model.

    Attributes
    ----------
    machines : sequence of object
        What it is made of, to be compared field for field.
    """

    @property
    def machines(self) -> Sequence[object]: ...


class Difference(NamedTuple):
    """Where the two part."""

    reason: str


Pair = tuple[Hashable, Hashable]
State = Pair | Difference


class Component:
    """The machine and its model, as a system to explore (`model.explore`).

    Parameters
    ----------
    make : callable
        Makes a machine under test; it is called twice.
    model : Reference
    """

    def __init__(self, make: Callable[[], Under], model: Reference) -> None:
        self.machine, self.twin, self.model = make(), make(), model
        self._start = self.machine.capture(), self.model.capture()
        self._compared: dict[Hashable, int] = {}  # how often a state was compared field for field

    def start(self) -> State:
        """Nothing has happened."""
        return self._start

    def moves(self, state: State) -> Sequence[Stimulus]:
        """What may happen."""
        if isinstance(state, Difference):
            return ()
        self.model.restore(state[1])
        return self.model.stimuli()

    def after(self, state: State, move: Stimulus) -> State:
        """What both come to, if they answer the same."""
        assert not isinstance(state, Difference)
        self.model.restore(state[1])
        expected = getattr(self.model, move.verb)(*move.arguments)
        try:
            self.machine.restore(state[0])
            found = getattr(self.machine, move.verb)(*move.arguments)
            captured = self.machine.capture()
            drifted = self._drift(captured)
        except Exception as error:  # whatever a machine raises that was told what may happen, it is broken
            found, drifted = (f"raised {type(error).__name__}: {error}",), ""
        if found != expected:
            return Difference(f"{move}: the model answers '{_listed(expected)}', the machine '{_listed(found)}'")
        if drifted:
            return Difference(f"{move}: {drifted}")
        return captured, self.model.capture()

    def _drift(self, captured: Hashable) -> str:
        """The first field that a machine which is put back to `captured` has otherwise."""
        times = self._compared[captured] = self._compared.get(captured, 0) + 1
        if times > _MOST_COMPARED:
            return ""
        self.twin.restore(captured)
        return drift(self.machine.machines, self.twin.machines)


def drift(live: Sequence[object], restored: Sequence[object]) -> str:
    """The first field in which machines that ran on differ from those that were put back; empty if none."""
    for one, other in zip(live, restored, strict=True):
        here, there = fields_of(one), fields_of(other)
        if here != there:
            name = next(each for each in here if here[each] != there.get(each))
            what = f"{type(one).__name__}.{name}"
            return f"{what} is {here[name]!r} in a machine that ran on, {there.get(name)!r} in one put back to the same"
    return ""


def fields_of(machine: object) -> dict[str, object]:
    """The fields of a machine by name, as values that compare in every detail; what only counts is left out."""
    names = [name for kind in type(machine).__mro__ for name in getattr(kind, "__slots__", ())]
    names += [name for name in getattr(machine, "__dict__", {}) if name not in names]
    held = {name: getattr(machine, name) for name in names if name not in COUNTERS and hasattr(machine, name)}
    return {name: _value(each) for name, each in held.items() if not callable(each)}


def _value(held: object) -> object:
    """What a field holds: lists in their order, sets and dicts without one; of another machine what it captures."""
    if isinstance(held, list | tuple | deque):
        return tuple(map(_value, held))
    if isinstance(held, dict):
        return frozenset((_value(key), _value(each)) for key, each in held.items())
    if isinstance(held, set | frozenset):
        return frozenset(map(_value, held))
    if type(held) is Event or isinstance(held, Enum):
        return exact(held)
    if is_dataclass(held):
        return type(held), *(_value(getattr(held, field.name)) for field in fields(held))
    for gives in ("capture", "checkpoint"):  # a machine, an operator
        if hasattr(held, gives):
            return _value(getattr(held, gives)())
    if hasattr(type(held), "__slots__") and type(held).__module__.startswith("impl."):
        return tuple(fields_of(held).items())
    return held


def _listed(lines: Sequence[str]) -> str:
    return "; ".join(lines) or "nothing"


@dataclass(frozen=True)
class ComponentScope:
    """A machine alone, and how many states it and its model have together: the number moves when meaning does.

    Attributes
    ----------
    name : str
    states : int
    make : callable
        Of some parts, makes the machine under test.
    model : callable
        Makes the reference model.
    """

    name: str
    states: int
    make: Callable[[Parts], Under]
    model: Callable[[], Reference]
    protocol: str = "component"

    def check(self, parts: Parts, seconds: float | None) -> Outcome:
        """Explore both, side by side."""
        component = Component(lambda: self.make(parts), self.model())
        limits = Limits(states=_MOST_TIMES * self.states, seconds=seconds)
        return outcome_of(self.name, self.protocol, explore(component, [AGREE], limits=limits), invariant=MODEL)


AGREE: Always[State] = Always("the model", lambda state: state.reason if isinstance(state, Difference) else None)
