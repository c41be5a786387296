"""Readers of a scenario's keys: a reader takes the TOML value and gives the setting, or says what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

from barrierlab.model.checkpoint.operators import KINDS
from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.renamed import renamed
from barrierlab.model.spec.topology import EXCHANGES
from barrierlab.sim.core.distributions import DISTRIBUTIONS, Distribution, constant

UNITS = ("_s", "_ms", "_us", "_ns", "_min", "_bytes", "_kb", "_mb", "_per_s", "_per_ms", "_per_min", "_count")


def suggest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name nearest to `word`, or nothing; of an older name, that of today.

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
    """True or false."""
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


SOURCE: dict[str, ValueReader] = {
    "parallelism": whole(1, 1000),
    "rate_per_s": number(TICK_S, most=1e9),
    "arrivals": one_of("deterministic", "poisson", "bursty"),
    "on_s": number(TICK_S),
    "off_s": number(TICK_S),
    "events": whole(0),
    "catch_up_s": number(),
    "service_s": distribution,
    "subtask_spread": number(most=10.0),
    "service_noise": number(most=10.0),
    "sync_s": distribution,
    "record_bytes": distribution,
    "keys": whole(1, 1_000_000),
    "key_skew": number(most=10.0),
    "watermark_interval_s": number(TICK_S),
    "out_of_order_s": distribution,
    "trigger": one_of("coordinator", "periodic"),
}
OPERATOR: dict[str, ValueReader] = {
    "kind": one_of(*KINDS),
    "parallelism": whole(1, 1000),
    "service_s": distribution,
    "subtask_spread": number(most=10.0),
    "service_noise": number(most=10.0),
    "sync_s": distribution,
    "inputs": one_of("auto", "by_buffer", "by_message", "in_line"),
    "chain": tables,
}
CHAINED: dict[str, ValueReader] = {
    "kind": one_of("map", "flat_map", "filter", "aggregate", "window"),
    "service_s": distribution,
}
SINK: dict[str, ValueReader] = {
    "guarantee": one_of("exactly_once", "at_least_once", "idempotent"),
    "aligns": flag,
}
PARAMETERS: dict[str, ValueReader] = {
    "fanout": whole(0, 1000),
    "selectivity": number(0.0, most=1.0),
    "window_ms": whole(),
}
PARAMETERS_OF = {"flat_map": ("fanout",), "filter": ("selectivity",), "join": ("window_ms",), "window": ("window_ms",)}
CHANNEL: dict[str, ValueReader] = {
    "exchange": one_of("auto", *EXCHANGES),
    "form": one_of("spsc", "network"),
    "capacity": whole(),
    "latency_s": distribution,
    "barrier_latency_s": distribution,
    "unaligned_barrier_latency_s": distribution,
    "local": flag,
    "segment_bytes": whole(),
    "exclusive_buffers": whole(),
    "floating_buffers": whole(0),
    "most_buffers": whole(2),  # one that is being filled, and one on its way: a full pool waits for the second
    "overdraft_buffers": whole(0),
    "flush_timeout_s": number(TICK_S),
    "flush_late_s": distribution,
    "bytes_per_s": number(1.0),
    "spanning_records": flag,
}
BUFFER_DEBLOAT: dict[str, ValueReader] = {
    "enabled": flag,
    "period_s": number(TICK_S),
    "samples": whole(),
    "target_s": number(TICK_S),
    "threshold_percentages": whole(0, 100),
    "min_segment_bytes": whole(),
    "starting_segment_bytes": whole(),
}
WATERMARK_ALIGNMENT: dict[str, ValueReader] = {
    "max_drift_s": number(),
    "update_interval_s": number(TICK_S),
    "idle_after_s": number(TICK_S),
}
CHECKPOINT: dict[str, ValueReader] = {
    "interval_s": number(TICK_S),
    "first_s": number(),
    "min_pause_s": number(),
    "timeout_s": number(TICK_S),
    "max_concurrent": whole(),
    "tolerable_failures": whole(0),
    "alignment_timeout_s": number(TICK_S),
    "aligned_checkpoint_timeout_s": number(),
    "max_inflight_bytes": whole(),
    "max_buffer_per_input": whole(),
    "max_buffer_memory_bytes": whole(),
    "hold": one_of("aligner", "channel"),
    "interruptible_timers": flag,
    "command_s": distribution,
    "trigger_latency_s": distribution,
    "ack_latency_s": distribution,
    "begin_s": distribution,
    "unaligned_begin_s": distribution,
    "sync_s": distribution,
    "async_s": distribution,
    "channel_state_s": distribution,
    "channel_state_bytes_per_s": number(1.0),
}
RECOVERY: dict[str, ValueReader] = {
    "detection_s": distribution,
    "restart_s": distribution,
    "read_bytes_per_s": number(1.0),
}
STORE: dict[str, ValueReader] = {"bytes_per_s": number(1.0), "manifest_s": distribution, "retained": whole()}
WHEN: dict[str, ValueReader] = {
    "at_s": number(),
    "every_s": number(TICK_S),
    "first_s": number(),
    "rate_per_s": number(most=1e9),
}
FAULT: dict[str, ValueReader] = {
    "task": text,
    "channel": text,
    "for_s": distribution,
    "factor": number(1.0),
    "added_s": distribution,
    "in_doubt": flag,
    "capacity_bytes": whole(0),
}
# kind: the keys that it needs besides when it happens, and those that it may have
FAULTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "crash": (("task",), ()),
    "coordinator_crash": ((), ()),
    "stall": (("task", "for_s"), ()),
    "slow_link": (("channel", "for_s"), ("factor", "added_s")),
    "slow_store": (("for_s",), ("factor", "added_s")),
    "failing_store": (("for_s",), ("in_doubt",)),
    "full_store": (("for_s",), ("capacity_bytes",)),
    "late_ack": (("task", "for_s", "added_s"), ()),
    "lost_ack": (("task", "for_s"), ()),
    "cancel_checkpoint": ((), ()),
    "slow_recovery": (("for_s",), ("factor", "added_s")),
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
