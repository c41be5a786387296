"""A trace for other tools: Mermaid, ShiViz, Perfetto, and the Informal Trace Format of Apalache.

Each is a function from a trace laid out (`model.render.spacetime`) to the text of a file. What the formats are is
theirs to say; the tests hold each export against the rules of its format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from barrierlab.model.render.spacetime import FAULTY, Arrow, SpaceTime
from barrierlab.model.spec.history import COORDINATOR, Entry
from barrierlab.model.spec.messages import kind_of
from barrierlab.model.spec.topology import Topology

MS_PER_STEP = 1000  # Perfetto draws microseconds; a step of an untimed trace is one millisecond


MERMAID_LIMIT = 50_000
"""Characters that Mermaid draws unless it is configured otherwise: its `maxTextSize`."""


def mermaid(drawn: SpaceTime, verdicts: Iterable[str] = (), note: str = "") -> str:
    """A sequence diagram: https://mermaid.js.org/syntax/sequenceDiagram.html; with `note` as its title.

    Mermaid draws a message at one moment: the one at which it is taken.
    """
    names = {process: f"p{index}" for index, process in enumerate(drawn.processes)}
    lines = [(step, order, line) for step, order, line in _mermaid_lines(drawn, names)]
    title = [f"    title {_mermaid_text(note)}"] if note else []
    head = ["sequenceDiagram", *title, *(f"    participant {name} as {process}" for process, name in names.items())]
    tail = [f"    Note over {names[COORDINATOR]}: {_mermaid_text('broken: ' + verdict)}" for verdict in verdicts]
    return "\n".join([*head, *(line for _, _, line in sorted(lines)), *tail]) + "\n"


def _mermaid_lines(drawn: SpaceTime, names: dict[str, str]) -> Iterable[tuple[int, int, str]]:
    for order, arrow in enumerate(drawn.arrows):
        step = arrow.taken if arrow.taken is not None else arrow.sent
        assert step is not None, "an arrow begins somewhere"
        line = "--x" if arrow.taken is None else "->>"
        fate = f" ({arrow.fate.value.split(':')[0]})" if arrow.fate in FAULTY and arrow.fate is not None else ""
        text = _mermaid_text(f"{arrow.message}{fate}")
        yield step, order, f"    {names[arrow.sender]}{line}{names[arrow.receiver]}: {text}"
    for mark in drawn.marks:
        if mark.process in names and mark.kind != ">emit":
            yield mark.step, -1, f"    Note over {names[mark.process]}: {_mermaid_text(mark.text)}"


def _mermaid_text(text: str) -> str:
    """Text that ends no statement: Mermaid takes ; and # for its own."""
    return text.replace("#", "#35;").replace(";", "#59;")


def shiviz(drawn: SpaceTime) -> str:
    """A log with vector clocks for https://bestchai.bitbucket.io/shiviz.

    Two lines an event: what happened, then host and clock. The parser expression that reads it is
    ``(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})``, the one that ShiViz offers first.
    """
    stimuli: list[tuple[int, int, str, str, Arrow | None]] = []
    for order, arrow in enumerate(drawn.arrows):
        if arrow.sent is not None and not arrow.restored_in_flight:
            stimuli.append((arrow.sent, order, arrow.sender, f"send {arrow.message} on {arrow.channel}", arrow))
        if arrow.taken is not None:
            stimuli.append((arrow.taken, order, arrow.receiver, f"take {arrow.message} from {arrow.channel}", arrow))
    for order, mark in enumerate(drawn.marks):
        stimuli.append((mark.step, order, mark.process, mark.text, None))
    clocks: dict[str, dict[str, int]] = {process: {} for process in drawn.processes}
    carried: dict[int, dict[str, int]] = {}
    lines = []
    for _, _, process, text, carrier in sorted(stimuli, key=lambda each: each[:2]):
        clock = clocks[process]
        clock[process] = clock.get(process, 0) + 1
        if carrier is not None and text.startswith("take"):
            for other, count in carried.get(id(carrier), {}).items():
                clock[other] = max(clock.get(other, 0), count)
        elif carrier is not None:
            carried[id(carrier)] = dict(clock)
        lines += [text, f"{process} {json.dumps(clock, separators=(',', ':'))}"]
    return "\n".join(lines) + "\n"


def perfetto(drawn: SpaceTime, timed: bool) -> str:
    """Trace events in JSON for https://ui.perfetto.dev: a thread for each process, a flow for each message.

    Parameters
    ----------
    drawn : SpaceTime
    timed : bool
        Whether to use the times of the trace; if not, a step takes a millisecond.
    """

    def at(step: int) -> float:
        return drawn.times_ns[step] / 1000 if timed else float(step * MS_PER_STEP)

    threads = {process: index + 1 for index, process in enumerate(drawn.processes)}
    events: list[dict[str, object]] = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "barrierlab"}}]
    for process, thread in threads.items():
        events.append({"ph": "M", "pid": 1, "tid": thread, "name": "thread_name", "args": {"name": process}})
    for mark in drawn.marks:
        at_us = at(mark.step)
        events.append(
            {"ph": "i", "s": "t", "pid": 1, "tid": threads[mark.process], "ts": at_us, "name": mark.text, "cat": "mark"}
        )
    for flow, arrow in enumerate(drawn.arrows):
        name, category = str(arrow.message), arrow.kind
        args = {"channel": arrow.channel, "side": "" if arrow.fate is None else arrow.fate.value}
        for phase, process, step in (("s", arrow.sender, arrow.sent), ("f", arrow.receiver, arrow.taken)):
            if step is None:
                continue
            until = arrow.applied if phase == "f" and arrow.applied is not None else step
            common = {"pid": 1, "tid": threads[process], "ts": at(step), "name": name, "cat": category}
            events.append({"ph": "X", "dur": at(until) - at(step), "args": args, **common})
            if arrow.sent is not None and arrow.taken is not None:
                events.append({"ph": phase, "id": flow, **({"bp": "e"} if phase == "f" else {}), **common})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1) + "\n"


def itf(entries: Sequence[Entry], topology: Topology, source: str, within: range | None = None) -> str:
    """The run as states, one after each move, in the Informal Trace Format (Apalache ADR-015).

    The variables: ``move``, ``channels`` (channel to the messages on it), ``snapshots`` (task to the last checkpoint it
    took part in), ``recorded`` (channel to what was recorded as in flight), ``ended`` (checkpoint to how it ended).
    With `within`, only the states that an entry at one of these places led to; their index is that of the whole run.
    """
    channels: dict[str, list[object]] = {channel: [] for channel in topology.channels}
    snapshots: dict[str, int] = dict.fromkeys(topology.tasks, 0)
    recorded: dict[str, list[str]] = {channel: [] for channel in topology.channels}
    ended: dict[int, str] = {}
    states: list[dict[str, object]] = []

    number = 0

    def note(move: str, last: int) -> None:
        nonlocal number
        number += 1
        if within is not None and last not in within:
            return
        states.append(
            {
                "#meta": {"index": number - 1},
                "move": move,
                "channels": _map((name, [str(message) for message in queue]) for name, queue in channels.items()),
                "snapshots": _map((task, _whole(number)) for task, number in snapshots.items()),
                "recorded": _map((name, list(texts)) for name, texts in recorded.items()),
                "ended": _map((_whole(number), how) for number, how in ended.items()),
            }
        )

    move = "init"
    for place, (_, verb, node, channel, subject) in enumerate(entries):
        if verb.startswith(">"):
            note(move, place - 1)
            where = channel if channel is not None else node
            move = f"{verb[1:]} {where}" + ("" if subject is None else f" {subject}")
            if verb == ">restore":
                for queue in channels.values():
                    queue.clear()
        elif verb in ("send", "restored_in_flight") and channel is not None:
            channels[channel].append(subject)
        elif verb == "take" and channel is not None:
            _remove(channels[channel], subject)
        elif verb == "snapshot" and isinstance(subject, tuple):
            snapshots[node] = subject[0]
        elif verb == "capture" and channel is not None and isinstance(subject, tuple):
            recorded[channel].append(f"{subject[0]}: {subject[1]}")
        elif verb == "completed" and isinstance(subject, int):
            ended[subject] = "completed"
        elif verb == "aborted" and isinstance(subject, tuple):
            ended[subject[0]] = f"aborted: {subject[1]}"
    note(move, len(entries) - 1)
    meta = {"format": "ITF", "description": "https://apalache-mc.org/docs/adr/015adr-trace.html", "source": source}
    variables = ["move", "channels", "snapshots", "recorded", "ended"]
    return json.dumps({"#meta": meta, "vars": variables, "states": states}, indent=1) + "\n"


def _map(pairs: Iterable[tuple[object, object]]) -> dict[str, object]:
    return {"#map": [[key, value] for key, value in pairs]}


def _whole(number: int) -> dict[str, str]:
    return {"#bigint": str(number)}


def _remove(queue: list[object], message: object) -> None:
    """Take `message` out; a barrier may have turned unaligned on its way."""
    for place, each in enumerate(queue):
        same = kind_of(each) == kind_of(message) == "CheckpointBarrier" and (
            getattr(each, "checkpoint_id", None) == getattr(message, "checkpoint_id", None)
        )
        if each == message or same:
            del queue[place]
            return
