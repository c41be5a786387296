"""The cost of a simulated message, as a multiple of two models of the same job in the same run.

    python -m tests.bench.bench_sim [--messages N] [--rounds N] [JOB ...]
    python -m tests.bench.bench_sim --streamed N [--events]     the chain with its journal given away: memory
The models are what one would write without this package: SimPy processes with a `simpy.Store` before each task, and
one function over `heapq`. Both have the job's services, routes and room in queues; neither has checkpoints, a journal
or a verdict. The jobs: a chain of four tasks, a diamond, a shuffle between 16 and 16 tasks with unaligned checkpoints,
and a windowed join of which one input is four times as busy. Processor time, the least of interleaved rounds.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import random
import resource
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import simpy

from barrierlab.sim import Scenario, load
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.checkpoint.result import Result
from tests.bench.ratios import Ratio

CAPACITY = 16
MS = 1_000_000
Route = Callable[[Any], list[tuple[str, Any]]]


class Stage(NamedTuple):
    """A task of a model: how many events it makes (0: it is none of the sources), its service in ns, what it sends."""

    messages: int
    service: Callable[[], int]
    route: Route
    inputs: int = 1


Model = dict[str, Stage]


def stores(model: Model) -> int:
    """Run the job as SimPy processes and stores; how many messages came to an end."""
    env = simpy.Environment()
    inbox = {name: simpy.Store(env, CAPACITY * stage.inputs) for name, stage in model.items()}
    done = 0

    def source(stage: Stage) -> Iterator[simpy.Event]:
        for number in range(stage.messages):
            yield env.timeout(stage.service())
            for target, message in stage.route(number):
                yield inbox[target].put(message)

    def operator(name: str, stage: Stage) -> Iterator[simpy.Event]:
        nonlocal done
        own = inbox[name]
        while True:
            message = yield own.get()
            yield env.timeout(stage.service())
            sent = stage.route(message)
            for target, each in sent:
                yield inbox[target].put(each)
            done += not sent

    for name, stage in model.items():
        env.process(source(stage) if stage.messages else operator(name, stage))
    env.run()
    return done


def bare(model: Model) -> int:
    """Run the job with nothing but a heap; how many messages came to an end."""
    queues: dict[str, deque[Any]] = {
        name: deque(range(stage.messages)) if stage.messages else deque() for name, stage in model.items()
    }
    room = {name: CAPACITY * stage.inputs for name, stage in model.items()}
    in_hand: dict[str, deque[tuple[str, Any]]] = {name: deque() for name in model}
    waiting: dict[str, deque[str]] = {name: deque() for name in model}  # for room
    idle = dict.fromkeys(model, True)
    heap: list[tuple[int, int, str, Any]] = []
    order = done = now = 0
    runnable = deque(name for name, stage in model.items() if stage.messages)
    while True:
        while runnable:
            name = runnable.popleft()
            if not idle[name]:
                continue
            sent = in_hand[name]
            while sent:
                target, message = sent[0]
                if len(queues[target]) >= room[target]:
                    waiting[target].append(name)
                    break
                sent.popleft()
                queues[target].append(message)
                if idle[target]:
                    runnable.append(target)
            if not sent and queues[name]:
                order += 1
                idle[name] = False
                heapq.heappush(heap, (now + model[name].service(), order, name, queues[name].popleft()))
                if waiting[name]:
                    runnable.append(waiting[name].popleft())
        if not heap:
            return done
        now, _, name, message = heapq.heappop(heap)
        idle[name] = True
        found = model[name].route(message)
        in_hand[name].extend(found)
        done += not found
        runnable.append(name)


def simulated(scenario: Scenario) -> Result:
    """Run the job with checkpoints, journal and metrics, and judge it."""
    engine = Engine(scenario, 1)
    engine.run()
    return Result(scenario, 1, engine)


# The jobs.


def to(*targets: str) -> Route:
    """A route of every message to each of these."""
    return lambda message: [(target, message) for target in targets]


def constant(service_ns: int) -> Callable[[], int]:
    """A service that is always as long."""
    return lambda: service_ns


def exponential(mean_ns: float, seed: int) -> Callable[[], int]:
    """A service, or a gap, that is exponential."""
    draw = random.Random(seed).expovariate
    return lambda: round(draw(1 / mean_ns))


def tandem(messages: int) -> tuple[str, Model]:
    """Four tasks in a chain; every service one millisecond."""
    text = f"""
topology = "source->first first->second second->sink"
until_s = {messages / 1000 + 10}
source.source = {{ rate_per_s = 1e6, events = {messages}, service_s = 0.001 }}
operator.first.service_s = 0.001
operator.second.service_s = 0.001
operator.sink = {{ kind = "sink", service_s = 0.001 }}
channel.default.capacity = {CAPACITY}
checkpoint.interval_s = 1.0
"""
    one = constant(MS)
    return text, {
        "source": Stage(messages, one, to("first")),
        "first": Stage(0, one, to("second")),
        "second": Stage(0, one, to("sink")),
        "sink": Stage(0, one, to()),
    }


def diamond(messages: int) -> tuple[str, Model]:
    """Both ways get every event; where they meet, two come for one."""
    text = f"""
topology = "source->left source->right left->meet right->meet meet->sink"
until_s = {messages / 1000 + 10}
source.source = {{ rate_per_s = 1e6, events = {messages}, service_s = 0.001 }}
operator.left.service_s = 0.001
operator.right.service_s = {{ dist = "exponential", mean = 0.0005 }}
operator.meet = {{ kind = "union", service_s = 0.0004 }}
operator.sink = {{ kind = "sink", service_s = 0.0004 }}
channel.default = {{ capacity = {CAPACITY}, exchange = "broadcast" }}
checkpoint.interval_s = 1.0
"""
    return text, {
        "source": Stage(messages, constant(MS), to("left", "right")),
        "left": Stage(0, constant(MS), to("meet")),
        "right": Stage(0, exponential(0.5 * MS, 1), to("meet")),
        "meet": Stage(0, constant(400_000), to("sink"), inputs=2),
        "sink": Stage(0, constant(400_000), to()),
    }


WAYS = 16


def shuffle(messages: int) -> tuple[str, Model]:
    """Sixteen sources and sixteen counters, each connected to each, with unaligned checkpoints."""
    each = messages // WAYS
    text = f"""
topology = "source->count count->sink"
protocol = "unaligned"
until_s = {each / 200 + 10}
source.source = {{ rate_per_s = 1e6, events = {each}, service_s = 0.004, parallelism = {WAYS}, keys = 1000 }}
operator.count = {{ kind = "aggregate", service_s = {{ dist = "exponential", mean = 0.003 }}, parallelism = {WAYS} }}
operator.sink = {{ kind = "sink", service_s = 0.001, parallelism = {WAYS} }}
channel.default = {{ capacity = {CAPACITY}, exchange = "hash" }}
channel."count->sink" = {{ capacity = {CAPACITY}, exchange = "forward" }}
checkpoint.interval_s = 1.0
"""
    chance = random.Random(1)
    model: Model = {}
    for way in range(WAYS):
        model[f"source[{way}]"] = Stage(
            each, constant(4 * MS), lambda number: [(f"count[{chance.randrange(WAYS)}]", number)]
        )
        model[f"count[{way}]"] = Stage(0, exponential(3 * MS, way), to(f"sink[{way}]"), inputs=WAYS)
        model[f"sink[{way}]"] = Stage(0, constant(MS), to())
    return text, model


KEYS, WINDOW_MS, RATE = 200, 100, 500


def join(messages: int) -> tuple[str, Model]:
    """A windowed join by key of 400 events a second with 100; two of its tasks, chosen by key."""
    many, few = messages * 4 // 5, messages // 5
    common = f'arrivals = "poisson", keys = {KEYS}, watermark_interval_s = 0.1'
    text = f"""
topology = "a->join b->join join->sink"
until_s = {messages / RATE + 10}
source.a = {{ rate_per_s = {RATE * 4 // 5}, events = {many}, {common} }}
source.b = {{ rate_per_s = {RATE // 5}, events = {few}, {common} }}
operator.sink.kind = "sink"
channel.default.capacity = {CAPACITY}
channel."a->join".exchange = "hash"
channel."b->join".exchange = "hash"
checkpoint.interval_s = 1.0
[operator.join]
kind = "join"
window_ms = {WINDOW_MS}
parallelism = 2
service_s = {{ dist = "exponential", mean = 0.002 }}
"""
    chance = random.Random(1)
    windows: dict[tuple[int, int], tuple[list[int], list[int]]] = {}

    def made(side: int, gap_ns: float, number: int) -> list[tuple[str, Any]]:
        key = chance.randrange(KEYS)
        return [(f"join[{key % 2}]", (side, key, int(number * gap_ns) // (WINDOW_MS * MS), number))]

    def joined(message: tuple[int, int, int, int]) -> list[tuple[str, Any]]:
        side, key, window, number = message
        both = windows.setdefault((window, key), ([], []))
        both[side].append(number)
        return [("sink", (number, partner)) for partner in both[1 - side]]

    gaps = 1e9 / (RATE * 0.8), 1e9 / (RATE * 0.2)
    return text, {
        "a": Stage(many, exponential(gaps[0], 2), partial(made, 0, gaps[0])),
        "b": Stage(few, exponential(gaps[1], 3), partial(made, 1, gaps[1])),
        "join[0]": Stage(0, exponential(2 * MS, 4), joined, inputs=2),
        "join[1]": Stage(0, exponential(2 * MS, 5), joined, inputs=2),
        "sink": Stage(0, constant(0), to(), inputs=2),
    }


JOBS = {"tandem": tandem, "diamond": diamond, "shuffle": shuffle, "join": join}


# Measuring.


class Spent(NamedTuple):
    """Seconds of processor time of a job: simulated, judged, both, and of the two models."""

    simulation: float
    with_verdict: float
    stores: float
    bare: float


def measure(name: str, messages: int, rounds: int) -> Spent:
    """Measure a job beside its models; the verdict holds."""
    text, _ = JOBS[name](messages)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        scenario = load(path)
    assert simulated(scenario).verdict == "holds"
    works: tuple[Callable[[], object], ...] = (
        lambda: Engine(scenario, 1).run(),
        lambda: simulated(scenario),
        lambda: stores(JOBS[name](messages)[1]),
        lambda: bare(JOBS[name](messages)[1]),
    )
    spent: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, times in zip(works, spent, strict=True):
            gc.collect()
            gc.disable()
            began = process_time()
            work()
            times.append(process_time() - began)
            gc.enable()
    return Spent(*map(min, spent))


def ratios(messages: int = 4000, rounds: int = 8) -> list[Ratio]:
    """For the kept table: with the verdict, beside either model."""
    found = []
    for name in JOBS:
        spent = measure(name, messages, rounds)
        found.append(Ratio(f"{name}, simulated", spent.simulation / spent.stores, "SimPy processes and stores"))
        found.append(
            Ratio(f"{name}, with its verdict", spent.with_verdict / spent.stores, "SimPy processes and stores")
        )
        found.append(
            Ratio(f"{name}, with its verdict, floor", spent.with_verdict / spent.bare, "a bare loop over heapq")
        )
    return found


def streamed(messages: int, events: bool) -> str:
    """Simulate and judge the chain with its journal given away, to a Parquet file or to nobody; the line to print."""
    from barrierlab.sim.checkpoint.streamed import run_streamed
    from barrierlab.sim.sweep.journal import EventsFile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tandem.toml"
        path.write_text(tandem(messages)[0], encoding="utf-8")
        scenario, began = load(path), process_time()
        if events:
            with EventsFile(Path(folder) / "events.parquet") as file:
                result = run_streamed(scenario, 1, file.write)
            size = f", {(Path(folder) / 'events.parquet').stat().st_size / 1e6:.0f} MB of Parquet"
        else:
            result, size = run_streamed(scenario, 1), ""
    spent_s, most = process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{messages:,} messages, {result.entry_count:,} entries, {result.verdict}: {most:.0f} MiB resident at most, "
        f"{spent_s:.0f} CPU s ({spent_s / messages * 1e6:.1f} us a message){size}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(JOBS)} (default: all)")
    parser.add_argument("--messages", type=int, default=20_000, metavar="N", help="of the sources (default: 20000)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="interleaved rounds (default: 3)")
    parser.add_argument("--streamed", type=int, metavar="N", help="the chain, with its journal given away")
    parser.add_argument("--events", action="store_true", help="with --streamed: to a Parquet file")
    asked = parser.parse_args()
    if asked.streamed is not None:
        print(streamed(asked.streamed, asked.events))
        return
    print("| job | simulated, us a message | with its verdict | SimPy stores | bare loop | times the stores' speed |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in asked.jobs or JOBS:
        spent = measure(name, asked.messages, asked.rounds)
        cells = " | ".join(f"{seconds / asked.messages * 1e6:.2f}" for seconds in spent)
        faster = f"{spent.stores / spent.simulation:.2f}, judged {spent.stores / spent.with_verdict:.2f}"
        print(f"| {name} | {cells} | {faster} |", flush=True)


if __name__ == "__main__":
    main()
