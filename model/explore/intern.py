"""Values as small whole numbers: equal values, equal numbers.

A state of the world is a tuple of such numbers, so that it costs little to hash, to compare and to keep; what a number
stands for is looked up only where it matters. Equal means equal in every field: two events of one name are equal to
the protocol (`impl.messages.Event`), but not here if they carry different payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any, Generic, TypeVar

from barrierlab.impl.messages import EVENT_FIELDS, Event
from barrierlab.model.explore.growth import GROWTH

V = TypeVar("V")

ATOMS = frozenset((int, str, bool, float, bytes, type(None)))


def exact(value: object) -> Hashable:
    """Return a hashable that is equal for two values only if nothing tells them apart.

    >>> exact(Event("a", 1, value=1)) == exact(Event("a", 1, value=2))
    False
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    reads = _readers.get(kind)
    if reads is None:
        reads = _readers[kind] = _reader(kind)
    return reads(value)


_readers: dict[type, Callable[[Any], Hashable]] = {}
"""By type, how `exact` reads it: to find that out takes longer than to read."""


def _reader(kind: type) -> Callable[[Any], Hashable]:
    if kind is tuple:
        return _all
    if kind is list:
        return lambda held: _all(tuple(held))
    if kind is dict:
        return lambda held: (dict, frozenset(map(_all, held.items())))
    if kind is set or kind is frozenset:
        return lambda held: frozenset(map(exact, held))
    names = EVENT_FIELDS if kind is Event else getattr(kind, "__dataclass_fields__", None)
    if names is None:
        return lambda held: held
    if len(names) < 2:
        return lambda held: (kind, *[exact(getattr(held, name)) for name in names])
    fields = attrgetter(*names)
    return lambda held: (kind, *_all(fields(held)))


def _all(held: tuple[Any, ...]) -> tuple[Hashable, ...]:
    for each in held:
        if type(each) not in ATOMS:
            break
    else:
        return held  # as most are that are nested
    return tuple(
        [each if (kind := type(each)) in ATOMS else _all(each) if kind is tuple else exact(each) for each in held]
    )


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
