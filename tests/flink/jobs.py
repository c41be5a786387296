"""The jobs that run on real clusters: which, on what cluster, how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.flink.cluster import EVERY_2_S, MODES

PAYLOAD = 4079  # with 17 bytes of header 4096 on the wire, of which 8 fill a buffer
HEADER = 17


@dataclass(frozen=True)
class BenchJob:
    """A job of `Bench.java`, run in each of `modes`, `repeats` times; of a local cluster or a remote one.

    `settings` are arguments of the job, `options` Flink's. `checkpoints` are completed before it is cancelled.
    """

    name: str
    dag: str
    settings: Mapping[str, int]
    checkpoints: int = 12
    modes: tuple[str, ...] = ("aligned",)
    repeats: int = 1
    options: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, mode: str, is_alone: bool) -> list[str]:
        """Return the words of its command line; `is_alone` puts each subtask into a task manager of its own."""
        common = {"dag": self.dag, "p": 2, "payload": PAYLOAD, "iso": int(is_alone)}
        pairs = {**common, **self.settings, **EVERY_2_S, **MODES[mode], **self.options}
        return [word for key, value in pairs.items() for word in (f"--{key}", str(value))]

    def runs(self) -> list[tuple[str, str]]:
        """Return the name and the mode of each of its runs."""
        again = [""] if self.repeats == 1 else [f"_{number}" for number in range(1, self.repeats + 1)]
        return [(f"{self.name}{each}_{mode}", mode) for each in again for mode in self.modes]


def debloating(target_ms: int) -> dict[str, str]:
    """Return the options of buffer debloating, its defaults but for the target."""
    head = "taskmanager.network.memory.buffer-debloat"
    return {
        f"{head}.enabled": "true",
        f"{head}.target": f"{target_ms} ms",
        f"{head}.period": "200 ms",
        f"{head}.samples": "20",
        f"{head}.threshold-percentages": "25",
    }


RHO090 = {"rate": 450, "serviceNanos": 4_000_000}
SATURATED = {"rate": 750, "serviceNanos": 4_000_000}
SATURATED_16 = {"rate": 750, "serviceNanos": 16_000_000}
JOIN = {"rate": 250, "rateB": 750, "serviceNanos": 4_000_000}
UNION = {"rate": 625, "rateB": 60, "mergeNanos": 4_000_000}
THREE = {"rate": 400, "rateB": 200, "rateC": 60, "mergeNanos": 4_000_000}
WINDOW = {"rate": 1000, "keys": 1000, "windowMs": 5000, "serviceNanos": 4_000_000}
BOTH, EACH = ("aligned", "unaligned"), tuple(MODES)
OFTEN = {"execution.checkpointing.interval": "150 ms", "execution.checkpointing.min-pause": "20 ms"}
WARM_UP = BenchJob("warm_up", "chain", RHO090, 200, ("unaligned",), 1, OFTEN)
"""It is thrown away: what runs once a checkpoint and task is compiled after some hundred of them, and slow before."""


def at_load(share: float, modes: tuple[str, ...] = ("aligned",), repeats: int = 1) -> BenchJob:
    """Return the chain at a share of what its slow operator can do."""
    settings = {"rate": round(500 * share), "serviceNanos": 4_000_000}
    return BenchJob(f"chain_rho{round(100 * share):03d}", "chain", settings, 10, modes, repeats)


# What `make flink` runs by default, and whose answers tests keep: one task manager of 16 slots, or eight of one each.
LOCAL = (
    BenchJob("chained_local_saturated", "chained", SATURATED, 9),
    BenchJob("union_local_saturated", "union", UNION, 10, ("timeout",)),
    BenchJob("join_local_saturated", "join", JOIN, 9, ("unaligned",)),
    BenchJob("chain_local_rho", "chain", RHO090, 10),
    BenchJob("chain_local_saturated", "chain", SATURATED, 10, BOTH),
)
REMOTE = (
    BenchJob("chain_remote_rho", "chain", RHO090, 11, EACH),
    BenchJob("chain_remote_saturated", "chain", SATURATED, 12, EACH),
)


@dataclass(frozen=True)
class Group:
    """Jobs that run one after the other on one cluster of `managers` with `slots` each, set up with `options`."""

    managers: int
    slots: int
    jobs: tuple[BenchJob, ...]
    options: Mapping[str, str] = field(default_factory=dict)


LARGE = {"rate": 75, "payload": 50_000 - HEADER, "serviceNanos": 40_000_000}
EVERY_5_S = {"execution.checkpointing.interval": "5 s"}
SLOW_LINE, LINE = "chain_sat_16ms", "chain_sat_4ms"
GROUPS = {
    "local": Group(1, 16, LOCAL),
    "remote": Group(8, 1, REMOTE),
    # Further runs, some of them in sim/data/flink/second, some minutes a group. Task managers decide on debloating.
    "debloat200": Group(8, 1, (BenchJob(f"{SLOW_LINE}_debloat200ms", "chain", SATURATED_16, 14, BOTH, 3),
                               BenchJob(f"{LINE}_debloat200ms", "chain", SATURATED, 14, BOTH)), debloating(200)),
    "debloat1000": Group(8, 1, (BenchJob(f"{SLOW_LINE}_debloat1000ms", "chain", SATURATED_16, 14, BOTH, 3),),
                         debloating(1000)),
    "plain": Group(8, 1, (BenchJob(SLOW_LINE, "chain", SATURATED_16, 14, BOTH, 2),)),
    "shapes": Group(1, 16, (
        BenchJob(LINE, "chain", SATURATED, 10, EACH),
        BenchJob("chain_sat_rec5000", "chain", {**SATURATED, "payload": 5000 - HEADER}, 10, BOTH),
        BenchJob("chain_sat_rec50000", "chain", LARGE, 10, BOTH),
        BenchJob("forward_sat", "forward", SATURATED, 10, BOTH),
        BenchJob("skewed_sat", "skewed", SATURATED, 10, BOTH),
        BenchJob("union3_sat", "union3", THREE, 10, EACH))),
    "loads": Group(1, 16, (
        *(at_load(share) for share in (0.6, 0.7, 0.8, 0.95)),
        BenchJob("chain_sat_every5s", "chain", SATURATED, 8, ("aligned", "timeout"), 1, EVERY_5_S),
        BenchJob("window_burst", "window", WINDOW, 10, BOTH))),
    # All runs of sim/data/flink/third, and of fourth: some 25 minutes.
    "third": Group(8, 1, (
        BenchJob(LINE, "chain", SATURATED, 10, EACH, 3),
        *(at_load(share, BOTH, 3) for share in (0.6, 0.8, 0.95)),
        BenchJob("chain_sat_rec41003", "chain", {**LARGE, "payload": 41_003 - HEADER}, 10, EACH, 3),
        BenchJob("forward_sat", "forward", SATURATED, 10, EACH, 3),
        BenchJob("chain_sat_every5s", "chain", SATURATED, 8, BOTH, 3, EVERY_5_S))),
    # What large records come to when a job has run for a while: some six minutes.
    "long": Group(8, 1, (
        BenchJob("chain_sat_rec41003_long", "chain", {**LARGE, "payload": 41_003 - HEADER}, 45, EACH),)),
}  # fmt: skip
