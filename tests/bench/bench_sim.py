"""The cost of a simulated hop, as a multiple of a bare event loop that moves the same messages in the same run.

    python -m tests.bench.bench_sim [--messages N]

The job is a chain of four tasks over queues of 16, every service one millisecond. The floor is one function over
`heapq` that knows nothing but service times and queues: no protocol, no journal, no verdict. CPU time, least of three
rounds.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import tempfile
from collections import deque
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

from barrierlab.sim import load
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.checkpoint.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable

CAPACITY = 16
HOPS = 4
SERVICE_NS = 1_000_000
SCENARIO = """
topology = "source->first first->second second->sink"
until_s = {seconds}
[source.source]
rate_per_s = 1e6
events = {messages}
service_s = 0.001
[operator.first]
service_s = 0.001
[operator.second]
service_s = 0.001
[operator.sink]
kind = "sink"
service_s = 0.001
[channel.default]
capacity = 16
[checkpoint]
interval_s = 1.0
"""


def bare_loop(messages: int) -> int:
    """Move `messages` through the chain with nothing but a heap; the time at which the last one is out, in ns."""
    queues: list[deque[int]] = [deque(range(messages)), deque(), deque(), deque()]
    served: list[int | None] = [None] * HOPS  # what has been served and finds no room
    idle = [True] * HOPS
    heap: list[tuple[int, int, int, int]] = [(0, 0, -1, 0)]
    order = now = 0
    while heap:
        now, _, finished, message = heapq.heappop(heap)
        if finished >= 0:
            served[finished] = message
        for task in (3, 2, 1, 0):  # from the end, so that room made here is seen by the one before
            held = served[task]
            if held is not None and (task == HOPS - 1 or len(queues[task + 1]) < CAPACITY):
                served[task] = None
                idle[task] = True
                if task < HOPS - 1:
                    queues[task + 1].append(held)
                    if idle[task + 1]:
                        order += 1
                        idle[task + 1] = False
                        heapq.heappush(heap, (now + SERVICE_NS, order, task + 1, queues[task + 1].popleft()))
            if idle[task] and queues[task]:
                order += 1
                idle[task] = False
                heapq.heappush(heap, (now + SERVICE_NS, order, task, queues[task].popleft()))
    return now


def least(work: Callable[[], object], rounds: int = 3) -> float:
    """CPU seconds of the quickest round."""
    times = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        began = process_time()
        work()
        times.append(process_time() - began)
        gc.enable()
    return min(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a simulated hop costs.")
    parser.add_argument("--messages", type=int, default=20_000)
    messages = parser.parse_args().messages
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.toml"
        path.write_text(SCENARIO.format(seconds=messages / 1000 + 10, messages=messages), encoding="utf-8")
        scenario = load(path)

        def simulate() -> Engine:
            engine = Engine(scenario, 1)
            engine.run()
            return engine

        engine = simulate()
        result = Result(scenario, 1, engine)
        assert bare_loop(messages) == (messages + HOPS - 1) * SERVICE_NS  # the floor does the whole job
        floor = least(lambda: bare_loop(messages))
        rows = [
            ("bare loop over heapq (floor)", floor),
            ("simulation with its journal", least(simulate)),
            ("judging the journal", least(lambda: Result(scenario, 1, engine))),
            ("digest of the journal", least(lambda: Result.digest.func(result))),
        ]
    print(f"{messages} messages, {HOPS} hops, {len(engine.entries)} entries in the journal, verdict {result.verdict}")
    print("| step | us a hop | x floor |\n| --- | ---: | ---: |")
    for name, seconds in rows:
        print(f"| {name} | {seconds / messages / HOPS * 1e6:.2f} | {seconds / floor:.1f} |")


if __name__ == "__main__":
    main()
