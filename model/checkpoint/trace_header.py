"""The parts of a world as the header of a trace, and read back from one.

Beside topology and mode, only what is not as usual stands there: ``capacity: 1``, ``closes: yes``, ``aborts_one: 1 0``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.checkpoint.scope import Bounds, BoundsError
from barrierlab.model.checkpoint.trace import COMMENT, TraceError, header_of_topology
from barrierlab.model.spec.topology import EXCHANGES, TopologyError, suggestion

CUT_OFF = "cut_off"
"""The field that is no `Bounds`'s: ``yes`` if a run does not end by itself."""

_GUARANTEES = ("exactly_once", "at_least_once", "idempotent")


def header_of(bounds: Bounds) -> dict[str, str]:
    """The fields of a header that tell `bounds`."""
    header = header_of_topology(bounds.graph()) | {"mode": bounds.mode}
    for field in fields(Bounds):
        value = getattr(bounds, field.name)
        if field.name not in header and field.name not in _OF_THE_GRAPH and value != field.default:
            header[field.name] = _written(value)
    return header


def bounds_of(header: Mapping[str, str], error: Callable[[str, str, str], TraceError]) -> Bounds:
    """The bounds that a header tells.

    Parameters
    ----------
    header : mapping of str to str
        As `model.checkpoint.trace.read` gives it.
    error : callable
        Given the name of a field, what came and what is allowed, makes the error: it knows the line.

    Raises
    ------
    TraceError
        If a field is none of bounds, or its value is not allowed.
    """
    values: dict[str, Any] = {}
    for name, text in header.items():
        if name in (COMMENT, CUT_OFF):
            continue
        if name not in _READERS:
            raise error(name, f"the header of a world has no field {name!r}", suggestion(name, [*_READERS, CUT_OFF]))
        try:
            values[name] = _READERS[name](text)
        except ValueError as wrong:
            raise error(name, f"{text!r} stands for {name!r}", str(wrong)) from wrong
    if "topology" not in values:
        raise error("topology", "the header has no topology", "write a line such as 'topology: a->join b->join'")
    if header.get(CUT_OFF, "yes") != "yes":
        raise error(CUT_OFF, f"{header[CUT_OFF]!r} stands for {CUT_OFF!r}", "write yes, or take the line out")
    try:
        bounds = Bounds(**values)
        tasks = bounds.graph().tasks
    except (BoundsError, TopologyError) as wrong:
        actual, _, expected = str(wrong).partition("; ")
        raise error(_field_of(actual), actual, expected) from wrong
    named = {"may_expire": bounds.may_expire, "first_timestamp_ms": tuple(dict(bounds.first_timestamp_ms))}
    for field, names in named.items():
        for name in names:
            if name not in tasks:
                raise error(field, f"{name!r} is no task", suggestion(name, tasks))
    return bounds


_OF_THE_GRAPH = ("topology", "parallelism", "exchanges")


def _field_of(actual: str) -> str:
    """Return which field an error of the graph or the mode is about."""
    starts = {
        "there is no mode": "mode",
        "parallelism": "parallelism",
        "exchange": "exchanges",
        "an exchange": "exchanges",
    }
    return next((field for start, field in starts.items() if actual.startswith(start)), "topology")


def _written(value: object) -> str:
    if value is True:
        return "yes"
    if isinstance(value, tuple):
        return " ".join("=".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in value)
    return str(value)


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or int(text) < least:
            raise ValueError(f"write a whole number from {least} on")
        return int(text)

    return read


def _yes(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError("write yes or no")
    return text == "yes"


def _two_numbers(text: str) -> tuple[int, ...]:
    words = text.split()
    if len(words) != 2 or not all(word.isascii() and word.isdecimal() for word in words):
        raise ValueError("write the checkpoint and the one that it is aborted behind, such as 2 1, or 1 0")
    return tuple(map(int, words))


def _one_of(*expected: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in expected:
            raise ValueError(suggestion(text, expected))
        return text

    return read


def _pairs(example: str, value: Callable[[str], Any]) -> Callable[[str], tuple[tuple[str, Any], ...]]:
    def read(text: str) -> tuple[tuple[str, Any], ...]:
        pairs = []
        for word in text.split():
            key, equals, rest = word.rpartition("=")
            if not equals:
                raise ValueError(f"write pairs such as {example}")
            pairs.append((key, value(rest)))
        return tuple(pairs)

    return read


_READERS: dict[str, Callable[[str], object]] = {
    "topology": str,
    "parallelism": _pairs("join=2", _whole(1)),
    "exchanges": _pairs("a->join=hash", _one_of(*EXCHANGES)),
    "mode": _one_of(*PROTOCOLS),
    "events": _whole(0),
    "watermarks": _whole(0),
    "first_timestamp_ms": _pairs("a=2", _whole(0)),
    "checkpoints": _whole(0),
    "capacity": _whole(1),
    "cancels": _whole(0),
    "expiries": _whole(0),
    "aborts_one": _two_numbers,
    "may_expire": lambda text: tuple(text.split()),
    "closes": _yes,
    "crashes": _whole(0),
    "checkpoints_again": _whole(0),
    "guarantee": _one_of(*_GUARANTEES),
    "emits": _yes,
    "sender_records": _yes,
    "max_buffer_per_input": _whole(1),
    "max_buffer_memory_bytes": _whole(1),
    "max_inflight_buffer_bytes": _whole(1),
}
"""Every field of `Bounds`, by name."""
