"""Values as small whole numbers: equal values, equal numbers.

A state of the world is a tuple of such numbers, so that it costs little to hash, to compare and to keep; what a number
stands for is looked up only where it matters. Equal means equal in every field: two events of one name are equal to
the protocol (`impl.messages.Event`), but not here if they carry different payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

from barrierlab.impl.messages import EVENT_FIELDS, Event
from barrierlab.model.explore.growth import GROWTH

V = TypeVar("V")

ATOMS = frozenset((int, str, bool, float, bytes, type(None)))
_PLAIN = frozenset((int, str, bytes, type(None)))
"""Types of which no value is equal to one of another; 1 is equal to True."""


def exact(value: object) -> Hashable:
    """Return a hashable that is equal for two values only if nothing tells them apart.

    >>> exact(Event("a", 1, value=1)) == exact(Event("a", 1, value=2))
    False
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    return _reader(kind)(value, exact)


Reader = Callable[[Any, Callable[[object], Hashable]], Hashable]

_readers: dict[type, Reader] = {}
"""By type, how a value is read, given what reads its parts: to find that out takes longer than to read."""


def _reader(kind: type) -> Reader:
    reads = _readers.get(kind)
    if reads is None:
        reads = _readers[kind] = _new_reader(kind)
    return reads


def _new_reader(kind: type) -> Reader:
    if kind is tuple:
        return _all
    if kind is list:
        return lambda held, part: (kind, *[part(each) for each in held])
    if kind is dict:
        return lambda held, part: (kind, frozenset([_all(item, part) for item in held.items()]))
    if kind is set or kind is frozenset:
        return lambda held, part: (kind, frozenset([part(each) for each in held]))
    names = EVENT_FIELDS if kind is Event else getattr(kind, "__dataclass_fields__", None)
    if names is None:
        return lambda held, part: (kind, held)
    if len(names) < 2:
        return lambda held, part: (kind, *[part(getattr(held, name)) for name in names])
    fields = attrgetter(*names)
    return lambda held, part: (kind, *_all(fields(held), part))


def _all(held: tuple[Any, ...], part: Callable[[object], Hashable]) -> tuple[Hashable, ...]:
    for each in held:
        if type(each) not in _PLAIN:
            break
    else:
        return held  # as most are that are nested
    return tuple([each if type(each) in _PLAIN else part(each) for each in held])


class Shared:
    """One object for all values that nothing tells apart.

    Attributes
    ----------
    value : object
        The first of them; a tuple is made of such values.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Pool:
    """Keeps values so that what they have in common is kept once: many large ones that differ little take little room.

    Examples
    --------
    >>> pool = Pool()
    >>> one, other = pool.shared(("a", ("long", "part"))), pool.shared(("b", ("long", "part")))
    >>> one is pool.shared(("a", ("long", "part"))), one is other, one.value[1] is other.value[1]
    (True, False, True)
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Shared] = {}

    def shared(self, value: object) -> Shared:
        """Return the object of a value, which must not change afterwards."""
        kind = type(value)
        key: Hashable = (kind, value) if kind in ATOMS else _reader(kind)(value, self.shared)
        known = self._known.get(key)
        if known is None:
            if kind is tuple:
                items = cast("tuple[Hashable, ...]", key)
                value = tuple([each.value if type(each) is Shared else each for each in items])
            known = self._known[key] = Shared(value)
        return known


class Interner(Generic[V]):
    """Gives each value its number, from 0 on in the order in which they come.

    Attributes
    ----------
    values : list
        By number.

    Examples
    --------
    >>> numbers = Interner(("", ()))
    >>> numbers.number(("a", (1, 2))), numbers.number(("", ())), numbers.values[1]
    (1, 0, ('a', (1, 2)))
    """

    __slots__ = ("_numbers", "values")

    def __init__(self, *first: V) -> None:
        self.values: list[V] = []
        self._numbers: dict[Hashable, int] = {}
        for value in first:
            self.number(value)

    def number(self, value: V, key: Hashable = None) -> int:
        """The number of `value`, a new one if it has none. The value must not change afterwards.

        A `key` may stand for the value where `exact` would look too closely.
        """
        if key is None:
            key = exact(value)
        number = self._numbers.get(key)
        if number is None:
            GROWTH.check()
            number = self._numbers[key] = len(self.values)
            self.values.append(value)
        return number

    def __len__(self) -> int:
        return len(self.values)
