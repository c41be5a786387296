"""Settings that are given and change nothing, since another one makes them so.

Costs are none of these, nor how a job recovers, nor whether its sinks align: they say how cluster and job are, whatever
the mode, and nobody who gives them expects that each comes to be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from barrierlab.sim.scenario.settings import ChannelSettings, Scenario, SourceSettings

IdleKey = tuple[str, str]
"""A key, and why it changes nothing."""
OF_BURSTS = 'only arrivals = "bursty" are on and off'
_OF_BUFFERS = (
    *("segment_bytes", "exclusive_buffers", "floating_buffers", "most_buffers", "overdraft_buffers"),
    *("flush_timeout_s", "flush_late_s"),
)
_OF_LINKS = ("bytes_per_s", "barrier_latency_s", "unaligned_barrier_latency_s")


def given(settings: Any, *names: str) -> list[str]:
    """Return those of the names whose values are not the defaults."""
    defaults = {each.name: each.default for each in fields(settings)}
    return [name for name in names if getattr(settings, name) != defaults[name]]


def lines_of(found: Iterable[IdleKey]) -> tuple[str, ...]:
    """Return a line for each reason, with all keys that it is of.

    >>> lines_of([("a", "of no use"), ("b", "too late"), ("c", "of no use")])
    ('a, c: without effect: of no use', 'b: without effect: too late')
    """
    keys: dict[str, list[str]] = {}
    for key, why in found:
        keys.setdefault(why, []).append(key)
    return tuple(f"{', '.join(each)}: without effect: {why}" for why, each in keys.items())


def of_bursts(name: str, source: SourceSettings) -> Iterator[IdleKey]:
    """Yield the keys of bursts of a source that has none."""
    for key in given(source, "on_s", "off_s") if source.arrivals != "bursty" else ():
        yield f"source.{name}.{key}", OF_BURSTS


def idle_keys(scenario: Scenario) -> Iterator[IdleKey]:
    """Yield the keys of a job's scenario that change nothing."""
    checkpoint = scenario.checkpoint
    for name, source in scenario.sources.items():
        yield from of_bursts(name, source)
        if not source.service_s.mean:
            for key in given(source, "service_noise", "subtask_spread"):
                yield f"source.{name}.{key}", "an event takes no time there"
    for name, operator in scenario.operators.items():
        if not operator.mean_service_s:
            for key in given(operator, "service_noise", "subtask_spread"):
                yield f"operator.{name}.{key}", "an event takes no time there"
    yield from _of_channels(scenario)
    if not scenario.mode.goes_unaligned:
        why = f"no barrier overtakes: the protocol is {scenario.protocol!r}"
        for key in given(checkpoint, "aligned_checkpoint_timeout_s", "max_inflight_bytes", "interruptible_timers"):
            yield f"checkpoint.{key}", why
    if checkpoint.hold == "channel":
        for key in given(checkpoint, "max_buffer_per_input", "max_buffer_memory_bytes"):
            yield f"checkpoint.{key}", 'behind a barrier the channel waits (hold = "channel"), and no aligner buffers'
    if not scenario.buffer_debloat.enabled:
        for key in given(scenario.buffer_debloat, *(each.name for each in fields(scenario.buffer_debloat))):
            yield f"buffer_debloat.{key}", "buffer_debloat.enabled is false"
    if scenario.watermark_alignment.max_drift_s is None:
        for key in given(scenario.watermark_alignment, "update_interval_s", "idle_after_s"):
            yield f"watermark_alignment.{key}", "without watermark_alignment.max_drift_s no source waits"


def _of_channels(scenario: Scenario) -> Iterator[IdleKey]:
    """Yield the keys of channels that those of another form, or place, have; one of all channels once."""
    found: dict[IdleKey, list[str]] = {}
    for edge, channel in scenario.channels.items():
        for idle in _of_channel(channel, scenario.buffer_debloat.enabled):
            found.setdefault(idle, []).append(edge)
    for (key, why), edges in found.items():
        names = ["default"] if edges == list(scenario.channels) else [f'"{edge}"' for edge in edges]
        for name in names:
            yield f"channel.{name}.{key}", why


def _of_channel(channel: ChannelSettings, is_debloated: bool) -> Iterator[IdleKey]:
    if channel.form == "spsc":
        spans = () if is_debloated else ("spanning_records",)
        for key in given(channel, *_OF_BUFFERS, *_OF_LINKS, *spans, "local"):
            yield key, 'a queue has no buffers and no link: they are of form = "network"'
        return
    for key in given(channel, "capacity"):
        yield key, 'it is of a queue (form = "spsc"), and buffers are counted otherwise'
    for key in given(channel, "latency_s", *_OF_LINKS) if channel.local else ():
        yield key, "a local channel has no link"
