"""An external machine as a value: captured and restored by its own methods, or by copies.

A copy is a deep one, so that two of its fields that are one object stay one. It differs from another by all that it
holds: its fields and theirs, as `copy` and `pickle` read them, in their order, and which of them are one object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from enum import Enum
from textwrap import shorten
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from barrierlab.model.checkpoint.capabilities import ALL, Capabilities
from barrierlab.model.checkpoint.interfaces import Capturable
from barrierlab.model.errors import RAISED, InputError
from barrierlab.model.origin import place_of

_ATOMS = (int, str, bytes, type(None))
_OF_CAPTURE = ("capture", "restore")


class ExternalError(InputError):
    """A class that cannot stand in: one line, with what it did and what is asked for."""


class Copy:
    """A copy of a machine; equal copies behave the same.

    Parameters
    ----------
    machine : object
    kept : sequence of object
        Those that are not copied: the ports that it is made with.
    """

    __slots__ = ("_held", "_kept", "_key")

    def __init__(self, machine: object, kept: Sequence[object]) -> None:
        self._kept = kept
        self._held = deepcopy(machine, {id(each): each for each in kept})
        self._key = _Reader(kept).read(self._held)

    def machine(self, kept: Sequence[object]) -> Any:
        """Return a machine like the one that was copied, with ports of its own in their places."""
        return deepcopy(self._held, {id(each): its for each, its in zip(self._kept, kept, strict=True)})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Copy) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<a copy of a {type(self._held).__name__}>"


class _Reader:
    """Reads an object as a value that is equal for two objects only if nothing tells them apart."""

    def __init__(self, kept: Sequence[object]) -> None:
        self._kept = {id(each): at for at, each in enumerate(kept)}
        self._seen: dict[int, int] = {}
        self._read: list[object] = []  # kept alive, or what is made on the way would lend its identity to another

    def read(self, buffered: Any) -> Hashable:
        """Return the value. What was read before is named by its place, so that a cycle ends."""
        kind = type(buffered)
        if kind in _ATOMS:
            return buffered  # type: ignore[no-any-return]
        if kind in (bool, float):
            return kind, repr(buffered)  # 1, 1.0 and True are equal
        if id(buffered) in self._kept:
            return "kept", self._kept[id(buffered)]
        if isinstance(buffered, type | Enum | FunctionType | BuiltinFunctionType):
            return buffered
        if kind is tuple:
            return tuple, *map(self.read, buffered)
        if id(buffered) in self._seen:
            return "seen", self._seen[id(buffered)]
        self._seen[id(buffered)] = len(self._seen)
        self._read.append(buffered)
        if kind is list:
            return list, *map(self.read, buffered)
        if kind is dict:
            return dict, *((self.read(key), self.read(value)) for key, value in buffered.items())
        if kind is set or kind is frozenset:
            return kind, frozenset(map(self.read, buffered))
        if kind is MethodType:
            return MethodType, buffered.__func__, self.read(buffered.__self__)
        reduced: Any = buffered.__reduce_ex__(4)
        if isinstance(reduced, str):
            return kind, reduced
        makes, arguments, *rest = reduced
        state, items, pairs = (*rest, None, None, None)[:3]
        if isinstance(state, dict):
            state = dict(sorted(state.items()))
        read = [self.read(each) for each in (arguments, state)]
        return kind, makes, *read, *(self.read(list(each)) for each in (items, pairs) if each is not None)


class Hosted:
    """An external object that can be captured and restored.

    Parameters
    ----------
    make : callable
        Makes one.
    kept : sequence of object
        The ports that it is made with, and what else of ours it refers to.

    Attributes
    ----------
    machine : object
        As it is now; another one after `restore`, where copies are taken.
    """

    __slots__ = ("_kept", "_restored", "_twin", "machine")

    def __init__(self, make: Callable[[], Any], kept: Sequence[object] = ()) -> None:
        self.machine = make()
        self._kept = kept
        self._twin = make() if captures_itself(type(self.machine)) else None
        self._restored: set[Hashable] = set()

    def capture(self) -> Hashable:
        """Return all that makes a difference.

        One that captures itself is restored into a second object at once: what it lacks is found where it happens.

        Raises
        ------
        ExternalError
            If it cannot be copied, or what it captured is no value or is not restored.
        """
        name = type(self.machine).__name__
        if self._twin is None:
            try:
                return Copy(self.machine, self._kept)
            except (TypeError, AttributeError, RecursionError) as error:
                raise ExternalError(
                    f"{name} cannot be copied: {said(error)}; allowed: fields that can be, or capture() and "
                    "restore(value)"
                ) from error
        return captured(name, self.machine, self._twin, self._restored)

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        if self._twin is None:
            self.machine = value.machine(self._kept)
        else:
            self.machine.restore(value)


def captured(name: str, machine: Any, twin: Any, known: set[Hashable]) -> Hashable:
    """Return what an external machine captures, once a second one of its kind has been restored from it.

    Parameters
    ----------
    name : str
        Of the class, for an error.
    machine, twin : object
        The one that captures, and one that nothing else uses.
    known : set
        The values that were restored before; this one is added.

    Raises
    ------
    ExternalError
        If the value is not hashable, or the second machine captures another one behind restoring it.
    """
    value = machine.capture()
    try:
        is_known = value in known
    except TypeError as error:
        raise ExternalError(
            f"{name}.capture answered {brief(value)}: {said(error)}; allowed: a hashable value, such as a tuple of "
            "tuples"
        ) from error
    if not is_known:
        twin.restore(value)
        again = twin.capture()
        if again != value:
            raise ExternalError(
                f"{name} does not restore what it captured: {difference(value, again)}; allowed: what is restored is "
                "captured as the same value"
            )
        known.add(value)
    return value  # type: ignore[no-any-return]


def has(kind: type, name: str) -> bool:
    """Return whether a class has a method that is not one of ours which only says what it is to do."""
    found = getattr(kind, name, None)
    return callable(found) and getattr(found, "__module__", "") != Capturable.__module__


def captures_itself(kind: type) -> bool:
    """Return whether a class has `capture` and `restore`.

    Raises
    ------
    ExternalError
        If it has one of them.
    """
    there = [name for name in _OF_CAPTURE if has(kind, name)]
    if len(there) == 1:
        raise ExternalError(
            f"{kind.__name__} has {there[0]!r} alone; allowed: both of {' and '.join(_OF_CAPTURE)}, or none"
        )
    return bool(there)


def methods_of(shape: type) -> list[str]:
    """The names of the methods that a protocol asks for itself, in its order."""
    # A compiled one has no functions, but what calls them.
    return [name for name, value in vars(shape).items() if inspect.isroutine(value) and not name.startswith("_")]


def check_plain(kind: type, methods: Iterable[str]) -> None:
    """Look whether a call of each method, if it is there, does anything: an ``async def`` is only begun by it.

    Raises
    ------
    ExternalError
        If one does not.
    """
    for name in methods:
        method = getattr(kind, name, None)
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise ExternalError(
                f"{kind.__name__}.{name} is an async def, and nothing awaits it; allowed: a plain method"
            )


def check_methods(kind: type, shape: type, optional: Iterable[str] = ()) -> None:
    """Look at the methods of a class before anything is explored.

    Parameters
    ----------
    kind : type
    shape : type
        A protocol of `model.checkpoint.interfaces`: its methods, and with how many arguments each is called.
    optional : iterable of str
        Those that it may lack, by what it declares.

    Raises
    ------
    ExternalError
        If one is missing, or cannot be called so.
    """
    captures_itself(kind)
    needed, may_lack = methods_of(shape), set(optional)
    check_plain(kind, (*needed, *_OF_CAPTURE))
    for name in needed:
        if not has(kind, name):
            if name in may_lack:
                continue
            raise ExternalError(f"{kind.__name__} has no method {name!r}; a {role_of(kind)} needs {', '.join(needed)}")
        takes = list(inspect.signature(getattr(shape, name)).parameters)[1:]
        try:
            inspect.signature(getattr(kind, name)).bind(None, *takes)
        except TypeError as error:
            raise ExternalError(
                f"{kind.__name__}.{name} cannot be called with ({', '.join(takes)}): {error}"
            ) from error
        except ValueError:  # no signature is known, as of some methods that are not written in Python
            continue


def declared_by(kind: type) -> Capabilities:
    """Return the declaration of a class.

    Raises
    ------
    ExternalError
        If its attribute `capabilities` is no `Capabilities`.
    """
    declared = getattr(kind, "capabilities", ALL)
    if not isinstance(declared, Capabilities):
        raise ExternalError(
            f"{kind.__name__}.capabilities is {brief(declared)}; allowed: a "
            "barrierlab.model.checkpoint.capabilities.Capabilities"
        )
    return declared


def examine_class(
    kind: type, shape: type, optional: Mapping[str, Sequence[str]], takes: str, make: Callable[[], Any]
) -> None:
    """Look at a class before anything is explored.

    Parameters
    ----------
    kind, shape : type
        The class, and the protocol of `model.checkpoint.interfaces` that it has to have.
    optional : mapping of str to sequence of str
        The methods that it may lack, by the capability that it does not declare.
    takes : str
        What it is made with, in words.
    make : callable
        Makes one, with a `capture`.

    Raises
    ------
    ExternalError
        If it lacks a method, takes other arguments, cannot be made, or cannot be captured.
    """
    capabilities = declared_by(kind)
    may_lack = [name for needed, names in optional.items() if not getattr(capabilities, needed) for name in names]
    check_methods(kind, shape, may_lack)
    with being_made(kind, takes):
        made = make()
    made.capture()


@contextmanager
def being_made(kind: type, takes: str) -> Iterator[None]:
    """Say in one line that a class cannot be made with the arguments that it takes, whatever its code raises."""
    try:
        yield
    except ExternalError:
        raise
    except RAISED as error:
        raise ExternalError(
            f"{kind.__name__} cannot be made: {said(error)}; allowed: {kind.__name__}({takes})"
        ) from error


def role_of(kind: type) -> str:
    """Return the attribute ``role`` of a class; empty if it has none."""
    role = getattr(kind, "role", "")
    return role if isinstance(role, str) else ""


def said(error: BaseException) -> str:
    """Return an exception in a line, with its place in external code."""
    text = " ".join(str(error).split())
    text = shorten(f"{type(error).__name__}: {text}" if text else type(error).__name__, 300, placeholder=" ...")
    return f"{text}{place_of(error)}"


def difference(value: object, again: object) -> str:
    """Return where what was captured again is another."""
    if isinstance(value, tuple) and isinstance(again, tuple) and len(value) == len(again):
        at = next(at for at, each in enumerate(value) if again[at] != each)
        return f"its part {at}, {brief(value[at])}, becomes {brief(again[at])}"
    return f"{brief(value)} becomes {brief(again)}"


def brief(value: object) -> str:
    """Return a value in a line that can be read."""
    return shorten(" ".join(repr(value).split()), 300, placeholder=" ...")
