"""Readers of a scenario's keys: a reader takes the TOML value and gives the setting, or says what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, field, fields
from typing import Any, NamedTuple, TypeVar

from barrierlab.model.checkpoint.operators import KINDS, parameters_of
from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.renamed import renamed
from barrierlab.sim.core.distributions import DISTRIBUTIONS, Distribution, constant

UNITS = ("_s", "_ms", "_us", "_ns", "_min", "_bytes", "_kb", "_mb", "_per_s", "_per_ms", "_per_min", "_count")


def suggest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the known name nearest to `word`, or nothing; of an older name, that of today.

    >>> suggest("sed", ["seeds", "grid"])
    "; did you mean 'seeds'?"
    """
    if new := renamed(word, known := list(known)):
        return f"; it is called {new!r} now"
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def stem(key: str) -> str:
    """`key` without its unit."""
    for unit in sorted(UNITS, key=len, reverse=True):
        if key.endswith(unit):
            return key.removesuffix(unit)
    return key


ValueReader = Callable[[Any], Any]
T = TypeVar("T")
NEEDED: Any = MISSING


class WrongValueError(ValueError):
    """A value that a reader does not take; the text says what is allowed."""


MOST = 1e12  # of anything that is a number: thirty thousand years, if it is seconds
TICK_S = 1e-9  # the clock's step: what comes again and again comes no oftener


def number(low: float = 0.0, *, above: bool = False, most: float = MOST) -> ValueReader:
    """A number of at least `low`, or above it, and at most `most`."""

    def read(value: Any) -> float:
        ok = isinstance(value, int | float) and not isinstance(value, bool)
        if not ok or not (low < value if above else low <= value) or not value <= most:
            raise WrongValueError(f"a number {'above' if above else 'of at least'} {low:g} and at most {most:g}")
        return float(value)

    return read


def whole(low: int = 1, most: int | None = None) -> ValueReader:
    """A whole number of at least `low` and at most `most`."""

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < low or (most is not None and value > most):
            raise WrongValueError(
                f"a whole number of at least {low}" + ("" if most is None else f" and at most {most}")
            )
        return value

    return read


def one_of(*names: str) -> ValueReader:
    """One of `names`."""

    def read(value: Any) -> str:
        if value not in names:
            raise WrongValueError(" or ".join(map(repr, names)) + suggest(str(value), names))
        return str(value)

    return read


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise WrongValueError("a text in quotes")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise WrongValueError("a list of texts in quotes")
    return tuple(value)


def tables(value: Any) -> list[dict[str, Any]]:
    """A list of tables."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise WrongValueError("a list of tables, one for each operator that is chained")
    return value


def flag(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise WrongValueError("true or false")
    return value


def distribution(value: Any) -> Distribution:
    """A number, or a table such as `{ dist = "gamma", mean = 0.004, cv = 0.5 }` in the unit of the key."""
    if not isinstance(value, dict):
        return constant(number()(value))
    if "law" in value:
        raise WrongValueError("dist in place of law, which is its older name")
    name = value.get("dist")
    if not isinstance(name, str) or name not in DISTRIBUTIONS:
        raise WrongValueError(f"a dist among {', '.join(DISTRIBUTIONS)}" + suggest(str(name), DISTRIBUTIONS))
    wanted = DISTRIBUTIONS[name]
    if set(value) != {"dist", *wanted}:
        raise WrongValueError(f"a dist {name!r} with exactly {', '.join(wanted)}")
    if name == "empirical":
        values = value["values"]
        if not isinstance(values, list) or not values:
            raise WrongValueError("a list of at least one number in values")
        return Distribution(name, tuple(number()(v) for v in values))
    readers = {"mean": number(above=True), "cv": number(0.001, most=1000.0)}
    numbers = tuple(readers.get(key, number())(value[key]) for key in wanted)
    if name == "uniform" and numbers[0] > numbers[1]:
        raise WrongValueError("low of at most high")
    return Distribution(name, numbers)


def key(read: ValueReader, default: T = NEEDED) -> T:
    """A key of a table, as a field of its settings: how it is read, and what it is where it is not given."""
    made: Any = field(default=default, metadata={"read": read})
    return made  # type: ignore[no-any-return]


def keys_of(settings: type) -> Mapping[str, ValueReader]:
    """Return the keys of a table by the class of its settings, each with its reader."""
    return {each.name: each.metadata["read"] for each in fields(settings) if "read" in each.metadata}


PARAMETERS: dict[str, ValueReader] = {
    "fanout": whole(0, 1000),
    "selectivity": number(0.0, most=1.0),
    "window_ms": whole(),
}
PARAMETERS_OF = {kind: [name for name in parameters_of(kind) if name in PARAMETERS] for kind in KINDS}


class FaultKind(NamedTuple):
    """The keys that a kind of fault needs besides when it happens, those that it may have, and why one that struck may
    have met nothing.
    """

    needs: tuple[str, ...]
    may_have: tuple[str, ...]
    met_nothing: str


_NO_TASK = "the task was down, or had ended"
_NO_ACK = "no acknowledgement was on its way"
_SLOW = ("factor", "added_s")
FAULTS = {
    "crash": FaultKind(("task",), (), _NO_TASK),
    "coordinator_crash": FaultKind((), (), "the coordinator was down"),
    "stall": FaultKind(("task", "for_s"), (), _NO_TASK),
    "slow_link": FaultKind(("channel", "for_s"), _SLOW, "nothing passed the link, or nothing takes time there"),
    "slow_store": FaultKind(("for_s",), _SLOW, "nothing was written, or writing takes no time"),
    "failing_store": FaultKind(("for_s",), ("in_doubt",), "nothing was written"),
    "full_store": FaultKind(("for_s",), ("capacity_bytes",), "what was written had room"),
    "late_ack": FaultKind(("task", "for_s", "added_s"), (), _NO_ACK),
    "lost_ack": FaultKind(("task", "for_s"), (), _NO_ACK),
    "cancel_checkpoint": FaultKind((), (), "no checkpoint was pending"),
    "slow_recovery": FaultKind(("for_s",), _SLOW, "the job was not restarted meanwhile, or that takes no time"),
}
TOP: dict[str, ValueReader] = {
    "title": text,
    "topology": text,
    "protocol": one_of(*(name for name, each in PROTOCOLS.items() if not each.settings.is_late)),
    "until_s": number(TICK_S),
    "warmup_s": number(),
    "seed": whole(0),
    "fill_in": texts,
}
TABLES = (
    *("parameters", "source", "operator", "channel", "checkpoint", "recovery", "store"),
    *("buffer_debloat", "watermark_alignment", "fault"),
)
