"""One machine of `impl` alone, driven by every sequence of stimuli of a small alphabet, beside a model of the rules.

A dataflow is the wrong size for some questions: clocks that pace, failures in a row, what a ledger does the second
time. Here the machine and a reference model, written from the rules alone, get the same and answer in lines; both
are values between two stimuli, so that every state that they reach together is seen once.

The explorer puts a machine back before each stimulus. A field that `restore` works out afresh could drift in a machine
that is never restored, and no state would show it; so after each stimulus the machine is compared, field for field,
with another that is restored to what it captured. If that holds for every step, it holds for every run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from barrierlab.impl.messages import Event
from barrierlab.model.checkpoint.check import Outcome, outcome_of
from barrierlab.model.checkpoint.components import COUNTERS, Components
from barrierlab.model.errors import RAISED
from barrierlab.model.explore.checker import Always, ExplorationLimits, explore
from barrierlab.model.explore.intern import ATOMS, exact

MODEL = "MODEL"
"""The name of what is broken where a machine does not do what its reference model does."""

_MOST_TIMES = 4
"""So many times the states that the sound machine has may be explored before one that is not is aborted."""
_MOST_COMPARED = 3
"""So many steps that lead to one state are compared field for field: that takes longer than the step."""


class CallStimulus(NamedTuple):
    """A call of a machine: the name of a method of both sides, and its arguments."""

    verb: str
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, (self.verb, *self.arguments)))


def stimulus(verb: str, *arguments: object) -> CallStimulus:
    """A stimulus: ``stimulus("acknowledge", "a", 1)``."""
    return CallStimulus(verb, arguments)


class RefusedError(Exception):
    """A call that the model refuses; the text is the name of the machine's error."""


class Side:
    """The machine, or its model. Each verb of a stimulus is a method of it."""

    __slots__ = ()
    refusals: ClassVar[tuple[type[Exception], ...]] = (RefusedError,)

    def capture(self) -> Hashable:
        """Return the state as a value."""
        raise NotImplementedError

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        raise NotImplementedError

    def call(self, move: CallStimulus) -> tuple[str, ...]:
        """Return in lines what a call comes to, and where the side stands then; of one that is refused, the error."""
        try:
            lines = getattr(self, move.verb)(*move.arguments)
        except self.refusals as error:
            return (str(error) if type(error) is RefusedError else type(error).__name__,)
        return (*(lines or ()), *self.stands())

    def stands(self) -> tuple[str, ...]:
        """Return where it stands, in the words of both sides."""
        return ()


class Reference(Side):
    """The model: its fields are its state, but for those in `fixed`. It bounds the scope by what a driver may do."""

    fixed: ClassVar[tuple[str, ...]] = ()

    def capture(self) -> Hashable:
        """Return the state as a value; a dict becomes its items, in their order."""
        own = vars(self)
        return tuple([tuple(each.items()) if type(each := own[name]) is dict else each for name in self._varying()])

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        own = vars(self)
        for name, each in zip(self._varying(), value, strict=True):
            own[name] = dict(each) if type(own[name]) is dict else each

    def _varying(self) -> tuple[str, ...]:
        kind = type(self)
        names = _varying.get(kind)
        if names is None:
            names = _varying[kind] = tuple(name for name in vars(self) if name not in self.fixed)
        return names

    def stimuli(self) -> Sequence[CallStimulus]:
        """Return what may happen now, always in the same order."""
        raise NotImplementedError


_varying: dict[type[Reference], tuple[str, ...]] = {}
"""By kind of model, the names of the fields that are its state."""


class Under(Side):
    """The machine under test, with the verbs of its model.

    Attributes
    ----------
    machines : sequence of object
        What it is made of, to be compared field for field.
    refusals : tuple of type
        The errors by which it refuses a call.
    """

    __slots__ = ()

    @property
    def machines(self) -> Sequence[object]:
        """The machines, in the order in which they are compared."""
        raise NotImplementedError


class ComponentDifference(NamedTuple):
    """The point where the two part."""

    reason: str


ComponentPair = tuple[Hashable, Hashable]
ComponentState = ComponentPair | ComponentDifference


class Component:
    """The machine and its model, as a system to explore (`model.explore.checker`).

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

    def start(self) -> ComponentState:
        """Return the initial state."""
        return self._start

    def moves(self, state: ComponentState) -> Sequence[CallStimulus]:
        """Return what may happen."""
        if isinstance(state, ComponentDifference):
            return ()
        self.model.restore(state[1])
        return self.model.stimuli()

    def after(self, state: ComponentState, move: CallStimulus) -> ComponentState:
        """Return what both come to, if they answer the same."""
        assert not isinstance(state, ComponentDifference)
        self.model.restore(state[1])
        expected = self.model.call(move)
        try:
            self.machine.restore(state[0])
            found = self.machine.call(move)
            captured = self.machine.capture()
            drifted = self._drift(captured)
        except RAISED as error:  # whatever a machine raises on what may happen, it is broken
            found, drifted = (f"raised {type(error).__name__}: {error}",), ""
        if found != expected:
            return ComponentDifference(
                f"{move}: the model answers '{_listed(expected)}', the machine '{_listed(found)}'"
            )
        if drifted:
            return ComponentDifference(f"{move}: {drifted}")
        return captured, self.model.capture()

    def _drift(self, captured: Hashable) -> str:
        """Return the first field that a machine which is restored to `captured` has otherwise."""
        times = self._compared[captured] = self._compared.get(captured, 0) + 1
        if times > _MOST_COMPARED:
            return ""
        self.twin.restore(captured)
        return drift(self.machine.machines, self.twin.machines)


def drift(live: Sequence[object], restored: Sequence[object]) -> str:
    """The first field in which machines that ran on differ from those that were restored; empty if none."""
    for one, other in zip(live, restored, strict=True):
        if _alike(one, other):
            continue
        for name in dict.fromkeys((*_names(one), *_names(other))):
            ran_on, restored_in_flight = getattr(one, name, None), getattr(other, name, None)
            if not _same(ran_on, restored_in_flight):
                what = f"{type(one).__name__}.{name} is {_value(ran_on)!r} in a machine that ran on"
                return f"{what}, {_value(restored_in_flight)!r} in one restored to the same"
    return ""


def _alike(one: object, other: object) -> bool:
    """Return whether two objects have the same in each slot; False as well if one is not set, or there is more."""
    kind, names = type(one), _names(one)
    if kind is not type(other) or not names or hasattr(one, "__dict__"):
        return False
    slots = _getters.get(kind)
    if slots is None:
        slots = _getters[kind] = attrgetter(*names, "__class__")  # of one name alone it would give no tuple
    try:
        return all(map(_same, slots(one), slots(other)))
    except AttributeError:
        return False


def _same(one: object, other: object) -> bool:
    """Return whether two fields compare in every detail. Most of what is in them is one object, or nothing."""
    if one is other or (not one and not other and type(one) is type(other)):
        return True
    if isinstance(one, _SEQUENCES) and isinstance(other, _SEQUENCES):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict) and _same((*one.items(),), (*other.items(),)):
        return True
    kind = type(one)
    parts = _parts.get(kind)
    if kind is type(other) and parts is not None:
        return _same(parts(one), parts(other))
    return _value(one) == _value(other)


def _names(machine: object) -> tuple[str, ...]:
    """The names of the fields of a machine, but for those that only count."""
    kind = type(machine)
    names = _slots.get(kind)
    if names is None:
        slots = (name for base in kind.__mro__ for listed in _LISTED for name in vars(base).get(listed, ()))
        names = _slots[kind] = tuple(name for name in dict.fromkeys(slots) if name not in COUNTERS)
    own = getattr(machine, "__dict__", None)
    return (*names, *(name for name in own if name not in COUNTERS)) if own else names


_LISTED = ("__slots__", "__mypyc_attrs__")  # the second where the class is compiled
_SEQUENCES = (tuple, list, deque)
_slots: dict[type, tuple[str, ...]] = {}
_getters: dict[type, Callable[[object], tuple[Any, ...]]] = {}


def _value(buffered: Any) -> object:
    """Return what a field holds: lists in their order, sets and dicts without one; of another machine what it
    captures; of what can be called nothing."""
    kind = type(buffered)
    if kind in ATOMS:
        return buffered
    reads = _readers.get(kind)
    if reads is None:
        reads = _readers[kind] = _reader(kind)
    return reads(buffered)


def _values(buffered: Iterable[Any]) -> tuple[object, ...]:
    return tuple([each if type(each) in ATOMS else _value(each) for each in buffered])


_readers: dict[type, Callable[[Any], object]] = {}
"""By type, how `_value` reads it: to find that out takes longer than to read."""


def _reader(kind: type) -> Callable[[Any], object]:
    if issubclass(kind, Callable):  # type: ignore[arg-type]
        return lambda buffered: None
    if issubclass(kind, _SEQUENCES):
        return _values
    if issubclass(kind, dict):
        return lambda buffered: frozenset(map(_values, buffered.items()))
    if issubclass(kind, set | frozenset):
        return lambda buffered: frozenset(map(_value, buffered))
    if kind is Event or issubclass(kind, Enum):
        return exact
    parts = _parts_of(kind)
    if parts is not None:
        _parts[kind] = parts
        return lambda buffered: _values(parts(buffered))
    return lambda buffered: buffered


_parts: dict[type, Callable[[Any], Sequence[object]]] = {}
"""By type of what has parts, what gives them."""


def _parts_of(kind: type) -> Callable[[Any], Sequence[object]] | None:
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)]
        return lambda buffered: [kind, *[getattr(buffered, name) for name in names]]
    for gives in ("capture", "checkpoint"):  # a machine, an operator
        if hasattr(kind, gives):
            return lambda buffered, gives=gives: (getattr(buffered, gives)(),)  # type: ignore[misc]
    if any(hasattr(kind, listed) for listed in _LISTED) and kind.__module__.startswith("barrierlab.impl."):
        return lambda buffered: [getattr(buffered, name, None) for name in _names(buffered)]
    return None


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
    invariant : str
        The name of what is broken where they differ.
    """

    name: str
    states: int
    make: Callable[[Components], Under]
    model: Callable[[], Reference]
    protocol: str = "component"
    invariant: str = MODEL

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Explore both, side by side."""
        component = Component(lambda: self.make(components), self.model())
        limits = ExplorationLimits(states=_MOST_TIMES * self.states, seconds=seconds)
        return outcome_of(
            self.name, self.protocol, explore(component, [AGREE], limits=limits), invariant=self.invariant
        )


AGREE: Always[ComponentState] = Always(
    "the model", lambda state: state.reason if isinstance(state, ComponentDifference) else None
)
