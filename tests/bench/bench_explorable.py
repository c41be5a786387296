"""The speed of dragging a cut in the explorable run, and the size of its page: in headless Chromium.

    python -m tests.bench.bench_explorable [--drags N]

The run has 20 tasks, and 300 events that each cross four channels. A drag is one move of the pointer, until the frame
that shows it has been drawn: the wait for the next frame, at most 17 ms, is part of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from barrierlab.model.render.explorable import data_of, page
from barrierlab.sim import load, run
from tests.browser import CHROMIUM, Browser, chromium

TASKS, EVENTS, DRAGS = 20, 300, 200
SCENARIO = """
protocol = "{protocol}"
topology = "source->first first->second second->third third->sink"
until_s = 4.0
[source.source]
rate_per_s = 100.0
events = 75
parallelism = 4
[operator.first]
parallelism = 5
service_s = {{ dist = "exponential", mean = 0.02 }}
[operator.second]
parallelism = 5
service_s = {{ dist = "exponential", mean = 0.02 }}
[operator.third]
parallelism = 5
[operator.sink]
kind = "sink"
[channel.default]
exchange = "hash"
form = "spsc"
latency_s = 0.02
[checkpoint]
interval_s = 0.3
"""
SCRIPT = """
(async (drags) => {
const view = document.querySelector('.brl-run').explorable, svg = view.svg, box = svg.getBoundingClientRect();
const handles = [...svg.querySelectorAll('.brl-handle')], times = [], idle = [], verdicts = new Set();
const send = (target, type, x, y) => target.dispatchEvent(new PointerEvent(type, { bubbles: true, cancelable: true,
  clientX: x, clientY: y, pointerId: 7, button: 0, pointerType: 'mouse' }));
const drawn = () => new Promise((then) => requestAnimationFrame(() => {
  const channel = new MessageChannel(); channel.port1.onmessage = then; channel.port2.postMessage(0); }));
let seed = 7;
const chance = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
view.choose('free');
for (let i = 0; i < drags; i++) {
  const handle = handles[i % handles.length], at = handle.getBoundingClientRect(), y = at.top + at.height / 2;
  send(handle, 'pointerdown', at.left + at.width / 2, y);
  const x = box.left + view.left + chance() * (box.width - view.left - 20);
  await drawn();
  const waits = performance.now();
  await drawn();
  idle.push(performance.now() - waits);
  const began = performance.now();
  send(svg, 'pointermove', x, y);
  await drawn();
  times.push(performance.now() - began);
  send(svg, 'pointerup', x, y);
  verdicts.add(view.words.head);
}
return { times, idle, verdicts: [...verdicts], messages: view.run.messages.length, drawn: view.drawn.length };
})
"""


def the_run(folder: Path, protocol: str = "unaligned") -> Any:
    """A run of 20 tasks and 300 events."""
    path = folder / "twenty.toml"
    path.write_text(SCENARIO.format(protocol=protocol), encoding="utf-8")
    return run(load(path), seed=1)


def page_of(result: Any, path: Path) -> Path:
    """Write the page of a run."""
    data = data_of(result.entries, result.scenario.topology, "twenty tasks", verdict=result.verdict)
    path.write_text(page(data), encoding="utf-8")
    return path


def measured(browser: Browser, drags: int = DRAGS) -> dict[str, Any]:
    """Drag the cut of the page that is open; the times, and those of frames in which nothing happens, are sorted."""
    found: dict[str, Any] = browser.script(f"{SCRIPT}({drags})")
    return found | {key: sorted(found[key]) for key in ("times", "idle")}


def p95(times: list[float]) -> float:
    """Of sorted ones."""
    return times[int(len(times) * 0.95)]


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drags", type=int, default=DRAGS)
    drags = parser.parse_args().drags
    if not CHROMIUM:
        print("Chromium is not here: nothing is measured")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = the_run(folder)
        path = page_of(result, folder / "twenty.html")
        with chromium(folder) as browser:
            browser.open(path)
            found = measured(browser, drags)
        times = found["times"]
        size = path.stat().st_size
        events = sum(entry[1] == ">emit" for entry in result.entries)
        print(f"page: {size / 1000:.0f} KB, {events} events, {len(result.scenario.topology.tasks)} tasks")
        print(f"{len(times)} drags: median {times[len(times) // 2]:.1f} ms, p95 {p95(times):.1f} ms")
        print(f"a frame in which nothing happens, on this machine now: p95 {p95(found['idle']):.1f} ms")
        print(json.dumps({key: found[key] for key in ("verdicts", "messages", "drawn")}))


if __name__ == "__main__":
    main()
