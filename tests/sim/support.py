"""The common parts of the tests of `sim`: a small scenario that a test can change, and questions to ask of a run."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from barrierlab.sim import Scenario, load
from barrierlab.sim.cli.main import cli, main

COMMANDS = {name: cli.get_command(None, name) for name in cli.list_commands(None)}  # type: ignore[arg-type]

# Two skewed inputs with watermarks, several checkpoints: every rule of alignment has work to do.
SKEWED: dict[str, Any] = {
    "topology": "a->join b->join join->sink",
    "until_s": 6.0,
    "source": {
        "a": {"rate_per_s": 150.0, "arrivals": "poisson", "watermark_interval_s": 0.03, "catch_up_s": 1.0},
        "b": {"rate_per_s": 30.0, "arrivals": "poisson", "watermark_interval_s": 0.03},
    },
    "operator": {
        "join": {"kind": "union", "service_s": {"dist": "exponential", "mean": 0.003}},
        "sink": {"kind": "sink"},
    },
    "channel": {"default": {"capacity": 16}, "b->join": {"latency_s": 0.05}},
    "checkpoint": {"interval_s": 1.0, "timeout_s": 5.0},
}


def with_changes(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy of `base` with `changes` laid over it, table by table; None takes a key out."""
    merged = copy.deepcopy(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict) and "law" not in value:
            merged[key] = with_changes(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def toml(data: dict[str, Any]) -> str:
    """`data` as TOML."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in data.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value).replace("\x7f", "\\u007f")
    return repr(value)


def scenario(folder: Path, base: dict[str, Any] = SKEWED, **changes: Any) -> Scenario:
    """`base` with changes, written to `folder` and loaded."""
    path = folder / "small.toml"
    path.write_text(toml(with_changes(base, changes)), encoding="utf-8")
    return load(path)


def emitted(result: Any, source: str | None = None) -> list[Any]:
    """The events that the sources (or one of them) made, with their times: (time_ns, event)."""
    return [(e[0], e[4]) for e in result.entries if e[1] == ">emit" and (source is None or e[2] == source)]


def delivered(result: Any, task: str) -> list[Any]:
    """The events that took effect at `task`."""
    return [e[4] for e in result.entries if e[1] == "deliver" and e[2] == task and type(e[4]).__name__ == "Event"]


def sent(result: Any, task: str) -> list[Any]:
    """The events that `task` sent, in order."""
    return [e[4] for e in result.entries if e[1] == "send" and e[2] == task and type(e[4]).__name__ == "Event"]


def reasons(result: Any, invariant: str) -> list[str]:
    """Return what the verdict says of one invariant."""
    return [v.reason for v in result.violations if v.invariant == invariant]


def statuses(result: Any) -> list[str]:
    """Return the end of each checkpoint: COMPLETED, or FAILED: and the reason."""
    rows = result.checkpoint_rows()
    return [row["status"] + (f": {row['failure_reason']}" if row["failure_reason"] else "") for row in rows]


# A job with something of everything that a restart must bring back: keyed state, windows, several subtasks, queues.
FAILING: dict[str, Any] = {
    "topology": "a->work b->work work->map map->sink",
    "until_s": 6.0,
    "source": {
        "a": {"rate_per_s": 150.0, "arrivals": "poisson", "watermark_interval_s": 0.1},
        "b": {"rate_per_s": 50.0, "arrivals": "poisson", "watermark_interval_s": 0.1},
    },
    "operator": {
        "work": {"kind": "union", "parallelism": 2, "service_s": {"dist": "exponential", "mean": 0.004}},
        "map": {"kind": "map", "service_s": {"dist": "exponential", "mean": 0.003}},
        "sink": {"kind": "sink"},
    },
    "channel": {"default": {"capacity": 16}, "a->work": {"exchange": "hash"}, "b->work": {"exchange": "hash"}},
    "checkpoint": {
        "interval_s": 0.6,
        "timeout_s": 3.0,
        "trigger_latency_s": 0.005,
        "ack_latency_s": 0.005,
        "async_s": 0.03,
    },
    "recovery": {"detection_s": 0.1, "restart_s": 0.3},
    "store": {"manifest_s": 0.01},
}
SPSC = {"capacity": 16}
LATE = {"capacity": 16, "latency_s": {"dist": "exponential", "mean": 0.004}}
NETWORK = {"form": "network", "segment_bytes": 400, "latency_s": {"dist": "exponential", "mean": 0.002}}
LOCAL = {"form": "network", "segment_bytes": 400, "local": True}
CHANNELS = {"queue": SPSC, "late queue": LATE, "network": NETWORK, "local": LOCAL}
MODES: dict[str, dict[str, Any]] = {
    "aligned": {"protocol": "aligned"},
    "unaligned": {"protocol": "unaligned"},
    "timeout": {"protocol": "unaligned", "checkpoint": {"aligned_checkpoint_timeout_s": 0.02}},
}


def committed(result: Any) -> list[Any]:
    """Return what exactly-once sinks made visible, in order."""
    return [event for entry in result.entries if entry[1] == "commit" for event in entry[4][1]]


def moves(result: Any, verb: str) -> list[Any]:
    """The entries of one verb."""
    return [entry for entry in result.entries if entry[1] == verb]


def barrierlab(capture: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command."""
    status = 0
    try:
        main(list(arguments))
    except SystemExit as ended:
        status = int(ended.code or 0)
    printed = capture.readouterr()
    return status, printed.out, printed.err


def in_this_process(
    processes: int, chunks: Sequence[Any], work: Callable[[Any], None], watch: Callable[[], None]
) -> None:
    """`on_processes` without a process more, where that tells nothing: it takes longer to start than most work."""
    for chunk in chunks:
        work(chunk)
        watch()


def in_one_process(capture: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command that would share its work among processes, with this one alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)
        return barrierlab(capture, *arguments)
