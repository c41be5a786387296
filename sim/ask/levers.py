"""Variations of any scenario for a question: settings computed from those it has.

A change is a mapping of names to values. A name is a dotted key of a scenario (``checkpoint.interval_s``), which takes
the value, or a lever of `LEVERS`, of which the value is a factor or a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.sim.core.distributions import DISTRIBUTIONS, Distribution
from barrierlab.sim.join.scenario import JoinScenario
from barrierlab.sim.scenario.file import ScenarioError
from barrierlab.sim.scenario.readers import suggest
from barrierlab.sim.scenario.settings import Scenario

KeyValues = dict[str, Any]
Changes = Mapping[str, Any]


def scaled(dist: Distribution, factor: float) -> Any:
    """Return a distribution so many times as large, as a value of TOML; its shape stays.

    >>> scaled(Distribution("gamma", (0.5, 2.0)), 2)
    {'dist': 'gamma', 'mean': 1.0, 'cv': 2.0}
    """
    numbers: list[Any] = [
        value if name == "cv" else value * factor
        for name, value in zip(DISTRIBUTIONS[dist.name], dist.parameters, strict=False)
    ]
    if dist.name == "constant":
        return numbers[0]
    if dist.name == "empirical":
        return {"dist": "empirical", "values": [value * factor for value in dist.parameters]}
    return {"dist": dist.name, **dict(zip(DISTRIBUTIONS[dist.name], numbers, strict=True))}


def _load(scenario: Scenario, factor: float) -> KeyValues:
    return {f"source.{name}.rate_per_s": source.rate_per_s * factor for name, source in scenario.sources.items()}


def _service(scenario: Scenario, factor: float) -> KeyValues:
    found = {f"operator.{n}.service_s": scaled(o.service_s, factor) for n, o in scenario.operators.items()}
    found |= {
        f"operator.{name}.chain.{place}.service_s": scaled(chained.service_s, factor)
        for name, operator in scenario.operators.items()
        for place, chained in enumerate(operator.chain)
    }
    return found | {f"source.{n}.service_s": scaled(s.service_s, factor) for n, s in scenario.sources.items()}


def _buffers(scenario: Scenario, factor: float) -> KeyValues:
    found: KeyValues = {}
    for edge, channel in scenario.channels.items():
        at = f'channel."{edge}"'
        if channel.form == "spsc":
            found[f"{at}.capacity"] = max(1, round(channel.capacity * factor))
        else:
            found[f"{at}.exclusive_buffers"] = max(1, round(channel.exclusive_buffers * factor))
            found[f"{at}.floating_buffers"] = round(channel.floating_buffers * factor)
            found[f"{at}.most_buffers"] = max(2, round(channel.most_buffers * factor))
    return found


def _segment(scenario: Scenario, factor: float) -> KeyValues:
    largest = max((source.record_bytes.largest for source in scenario.sources.values()), default=1.0)
    return {
        f'channel."{edge}".segment_bytes': max(
            1 if channel.spanning_records else int(largest), round(channel.segment_bytes * factor)
        )
        for edge, channel in scenario.channels.items()
    }


def _records(scenario: Scenario, factor: float) -> KeyValues:
    return {f"source.{n}.record_bytes": scaled(s.record_bytes, factor) for n, s in scenario.sources.items()}


def _flush(scenario: Scenario, factor: float) -> KeyValues:
    return {f'channel."{e}".flush_timeout_s': c.flush_timeout_s * factor for e, c in scenario.channels.items()}


def _skew(scenario: Scenario, factor: float) -> KeyValues:
    """The first source so many times as fast as each other, the sum as it was."""
    first, *others = scenario.sources
    total = sum(source.rate_per_s * source.parallelism for source in scenario.sources.values())
    one = total / (factor + len(others))
    return {
        f"source.{n}.rate_per_s": (factor if n == first else 1.0) * one / scenario.sources[n].parallelism
        for n in scenario.sources
    }


def _parallelism(scenario: Scenario, subtasks: float) -> KeyValues:
    """Set so many subtasks everywhere, and share out the arrivals of a source among them."""
    found: KeyValues = {f"operator.{name}.parallelism": int(subtasks) for name in scenario.operators}
    for name, source in scenario.sources.items():
        found[f"source.{name}.parallelism"] = int(subtasks)
        found[f"source.{name}.rate_per_s"] = source.rate_per_s * source.parallelism / int(subtasks)
    return found


def _subtasks(scenario: Scenario, subtasks: float) -> KeyValues:
    """Set so many subtasks everywhere, each source subtask as fast as it was."""
    names = [*(f"operator.{n}" for n in scenario.operators), *(f"source.{n}" for n in scenario.sources)]
    return {f"{name}.parallelism": int(subtasks) for name in names}


def _interval(scenario: Scenario, factor: float) -> KeyValues:
    return {"checkpoint.interval_s": (scenario.checkpoint.interval_s or 10.0) * factor}


def _timeout(scenario: Scenario, factor: float) -> KeyValues:
    return {"checkpoint.timeout_s": scenario.checkpoint.timeout_s * factor}


def _writing(scenario: Scenario, factor: float) -> KeyValues:
    found: KeyValues = {"checkpoint.async_s": scaled(scenario.checkpoint.async_s, factor)}
    if scenario.store.bytes_per_s:
        found["store.bytes_per_s"] = scenario.store.bytes_per_s / factor
    return found


def _standstill(scenario: Scenario, factor: float) -> KeyValues:
    return {"checkpoint.sync_s": scaled(scenario.checkpoint.sync_s, factor)}


def _recovery(scenario: Scenario, factor: float) -> KeyValues:
    return {
        "recovery.detection_s": scaled(scenario.recovery.detection_s, factor),
        "recovery.restart_s": scaled(scenario.recovery.restart_s, factor),
    }


def _mode(scenario: Scenario, mode: str) -> KeyValues:
    return {
        "protocol": mode,
        "checkpoint.aligned_checkpoint_timeout_s": 0.0,
        "checkpoint.max_concurrent": 1 if protocol_of(mode).goes_unaligned else scenario.checkpoint.max_concurrent,
    }


def _aligned_timeout(scenario: Scenario, seconds: float) -> KeyValues:
    return {**_mode(scenario, "unaligned"), "checkpoint.aligned_checkpoint_timeout_s": seconds}


def _crash_rate(scenario: Scenario, mean_s: float) -> KeyValues:
    return {"fault": [{"kind": "crash", "task": "all", "rate_per_s": 1 / mean_s}]}


def _buffers_each(scenario: Scenario, count: int) -> KeyValues:
    """Set how many messages a queue holds; or how many exclusive buffers a channel has, without floating ones."""
    found: KeyValues = {}
    for edge, channel in scenario.channels.items():
        at = f'channel."{edge}"'
        if channel.form == "spsc":
            found[f"{at}.capacity"] = count
        else:
            found |= {f"{at}.exclusive_buffers": count, f"{at}.floating_buffers": 0}
            found[f"{at}.most_buffers"] = max(2, 2 * count)
    return found


def _debloat_target(scenario: Scenario, seconds: float) -> KeyValues:
    return {"buffer_debloat.enabled": True, "buffer_debloat.target_s": seconds}


def _barrier(scenario: JoinScenario, barrier: str) -> KeyValues:
    """A barrier: the scenario's own parameter of that name, which may set more than the key, or the key."""
    return {"barrier" if "barrier" in scenario.parameters else "join.barrier": barrier}


def _stream_rates(scenario: JoinScenario, factor: float) -> KeyValues:
    return {f"input.{name}.rate_per_s": each.rate_per_s * factor for name, each in scenario.inputs.items()}


def _slowest_stream(scenario: JoinScenario, factor: float) -> KeyValues:
    name = min(scenario.inputs, key=lambda each: scenario.inputs[each].rate_per_s)
    return {f"input.{name}.rate_per_s": scenario.inputs[name].rate_per_s * factor}


def _frame_delays(scenario: JoinScenario, factor: float) -> KeyValues:
    return {f"input.{name}.delay_s": scaled(each.delay_s, factor) for name, each in scenario.inputs.items()}


def _no_faults(scenario: Scenario, _: Any) -> KeyValues:
    return {"fault": []}


LEVERS: dict[str, tuple[str, Callable[[Any, Any], KeyValues]]] = {
    "load": ("arrivals", _load),
    "service": ("service times", _service),
    "buffers": ("buffers", _buffers),
    "segment": ("buffer size", _segment),
    "records": ("record size", _records),
    "flush": ("buffer timeout", _flush),
    "skew": ("the first source's share", _skew),
    "parallelism": ("parallelism", _parallelism),
    "subtasks": ("subtasks", _subtasks),
    "interval": ("interval", _interval),
    "timeout": ("timeout", _timeout),
    "writing": ("time to write the state", _writing),
    "standstill": ("synchronous part", _standstill),
    "recovery": ("detection and restart", _recovery),
    "mode": ("mode", _mode),
    "aligned_checkpoint_timeout_s": ("aligned checkpoint timeout", _aligned_timeout),
    "crash_every_s": ("time between failures", _crash_rate),
    "buffers_each": ("buffers of each channel", _buffers_each),
    "debloat_target_s": ("buffer debloating's target", _debloat_target),
    "no_faults": ("no faults", _no_faults),
    "barrier": ("barrier", _barrier),
    "join.lateness_s": ("lateness", lambda scenario, seconds: {"join.lateness_s": seconds}),
    "stream_rates": ("the rates of all streams", _stream_rates),
    "slowest_stream": ("the rate of the slowest stream", _slowest_stream),
    "frame_delays": ("the time until a frame is whole", _frame_delays),
}
"""By name: its words, and the settings it makes of a scenario and a value."""


def settings_of(scenario: Scenario | JoinScenario, changes: Changes) -> KeyValues:
    """Return the settings that make the changes, in their order.

    Raises
    ------
    ScenarioError
        If a name is neither a lever nor a dotted key.
    """
    found: KeyValues = {}
    for name, value in changes.items():
        if name in LEVERS:
            found |= LEVERS[name][1](scenario, value)
        elif "." in name or name in ("until_s", "warmup_s"):
            found[name] = value
        else:
            raise ScenarioError(f"{name!r}: no lever; allowed: {', '.join(LEVERS)}, or a key{suggest(name, LEVERS)}")
    return found
