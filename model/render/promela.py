"""A scope as a model for Spin: the rules of the protocol a second time, as guarded moves in Promela.

The model shares no code with what it certifies. `checkpoint.pml` beside this module states the rules of
docs/protocol.md for any dataflow; what is written here is the bounds of one scope, its topology, and the moves that
each task has in it. One move of the world is one ``d_step``, and the variables of the model carry what a state of the
world carries, so that Spin must find the same number of states, the same verdict, and runs of the same length.

Promela: Holzmann, "The SPIN Model Checker" (2003), chapters 3 and 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import networkx as nx

from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.spec.topology import Topology

_BODY = Path(__file__).with_name("checkpoint.pml")

MODES = ("aligned", "unaligned")
"""The protocols that the model states."""

GUARANTEES = ("", "at_least_once")
"""The promises that sinks may make: other ones keep transactions, or rows, that the model does not state."""

MOST_EVENTS = 99
"""Events of all sources together: a message is one byte, and the numbers from 100 on are barriers and cancel markers
(`checkpoint.pml`)."""
MOST_CHECKPOINTS = 49
"""For the same reason: barriers end at 149."""
MOST_QUEUES = 255
"""Channels in a model of Spin, of which a dataflow needs four a channel and four a task."""

_STANDARD = Bounds("a->s")
_NOT_STATED: dict[str, str] = {
    "expiries": "a deadline passes",
    "closes": "a source ends early",
    "aborts_one": "it aborts at a planned time",
    "watermarks": "it has watermarks",
    "emits": "its operators emit by themselves",
    "parallelism": "an operator has several tasks",
    "exchanges": "events are spread otherwise than as usual",
    "sender_records": "senders record what a barrier passes",
    "max_buffer_memory_bytes": "it limits the bytes that are buffered",
    "max_inflight_buffer_bytes": "it limits the bytes in flight",
}
"""By field of `Bounds`: the part of the protocol that the model does not state, as the end of a sentence."""


def refusal(bounds: Bounds) -> str | None:
    """Return why there is no model of a scope, as the end of a sentence; None if there is one."""
    if bounds.mode not in MODES:
        return f"its protocol is {bounds.mode}; allowed: {', '.join(MODES)}"
    for name, reason in _NOT_STATED.items():
        if getattr(bounds, name) != getattr(_STANDARD, name):
            return reason
    if bounds.guarantee not in GUARANTEES:
        return f"its sinks are {bounds.guarantee}; allowed: at_least_once"
    topology = bounds.graph()
    queues = 4 * (len(topology.channels) + len(topology.tasks))
    if bounds.crashes:
        queues += 2 * len(topology.channels) * (_most_ids(bounds) + 1)
    for count, most, what in (
        (len(topology.sources) * bounds.events, MOST_EVENTS, "events"),
        (_most_ids(bounds), MOST_CHECKPOINTS, "checkpoints"),
        (queues, MOST_QUEUES, "queues"),
    ):
        if count > most:
            return f"it has {count} {what}; at most {most} can be told apart"
    return None


def commands(file: str) -> tuple[str, ...]:
    """Return the command lines that explore the model in `file`, and the one that prints the run to a violation.

    ``-o2`` keeps history that no guard reads; ``-DNOREDUCE`` visits every state; ``-DBFS`` finds a shortest run;
    VECTORSZ is the most bytes of a state, and ``-w24`` a hash table of 2^24 slots, enough for some ten million states.
    """
    return (
        f"spin -o2 -a {file}",
        "cc -w -DSAFETY -DNOREDUCE -DBFS -DVECTORSZ=8192 -o pan pan.c",
        "./pan -w24",
        f"spin -t -T -B {file}",
    )


def promela(bounds: Bounds, title: str) -> str:
    """Return the model of a scope that `refusal` has nothing against.

    Parameters
    ----------
    bounds : Bounds
    title : str
        What the first line says.
    """
    topology = bounds.graph()
    explore, build, check, replay = commands("FILE")
    head = (
        f"/* {title}",
        " *",
        f" *   {explore} && {build} && {check}",
        f" *   {replay}      (the run to a violation, a move a line)",
        " */",
    )
    lines = (*head, *_bounds(bounds, topology), "", _BODY.read_text(encoding="utf-8").rstrip(), "")
    return "\n".join((*lines, *_processes(bounds, topology)))


def _task(name: str) -> str:
    return f"T_{name}"


def _channel(name: str) -> str:
    return f"C_{name.replace('->', '_to_')}"


def _bounds(bounds: Bounds, topology: Topology) -> Iterator[str]:
    tasks, channels, sources = topology.tasks, topology.channels, topology.sources
    for names in (map(_task, tasks), map(_channel, channels)):
        yield from (f"#define {name} {number}" for number, name in enumerate(names))
    ids, events = range(1, _most_ids(bounds) + 1), max(bounds.events, 1)
    room = _most_messages(bounds, topology)
    most_outputs = max(len(topology.outputs(name)) for name in tasks)
    barriers = [f"eval(BARRIER + {n})" for n in ids]
    overtaken = (
        [f"(wire[c]??[{barrier}] -> 1 : 0)" for barrier in barriers] if bounds.protocol.goes_unaligned else ["0"]
    )
    values = {
        "TASKS": len(tasks),
        "CHANNELS": len(channels),
        "CHECKPOINTS": bounds.checkpoints,
        "CRASHES": bounds.crashes,
        "AGAIN": bounds.checkpoints_again,
        "IDS": _most_ids(bounds),
        "EVENTS": bounds.events,
        "CANCELS": bounds.cancels,
        "CAPACITY": min(bounds.capacity, room),
        "MOST_BUFFERED": min(bounds.max_buffer_per_input, room),
        "UNALIGNED": int(bounds.protocol.goes_unaligned),
        "ROOM": room,
        "BOX": most_outputs * (2 * _most_ids(bounds) + 2),
        "FROM(c)": _chosen("c", {_channel(c): _task(topology.ends(c)[0]) for c in channels}),
        "TO(c)": _chosen("c", {_channel(c): _task(topology.ends(c)[1]) for c in channels}),
        "FIRST(t)": _chosen("t", {_task(name): str(1 + at * events) for at, name in enumerate(sources)}),
        "IS_SOURCE(t)": _one_of("t", map(_task, sources)),
        "IS_SINK(t)": _one_of("t", map(_task, topology.sinks)),
        "FLAGGED_IN(c)": f"({' + '.join(overtaken)})",
        "HOLDS_BARRIER(c)": f"({' || '.join(f'buffered[c]??[{barrier}]' for barrier in barriers)})",
    }
    yield from (f"#define {name} {value}" for name, value in values.items())


def _most_messages(bounds: Bounds, topology: Topology) -> int:
    """The most messages that a channel ever carries."""
    passed: dict[str, int] = {}
    for name in nx.topological_sort(topology.graph()):
        inputs = topology.inputs(name)
        passed[name] = sum(passed[topology.ends(channel)[0]] for channel in inputs) if inputs else bounds.events
    return max(passed.values()) + 2 * _most_ids(bounds)


def _most_ids(bounds: Bounds) -> int:
    """Return the most ids: checkpoints are numbered on behind a restore."""
    return bounds.checkpoints + bounds.crashes * bounds.checkpoints_again


def _chosen(argument: str, values: dict[str, str]) -> str:
    """An expression for the value that belongs to the argument of a macro."""
    *others, (_, text) = values.items()
    for key, value in reversed(others):
        text = f"(({argument}) == {key} -> {value} : {text})"
    return text


def _one_of(argument: str, names: Iterable[str]) -> str:
    return f"({' || '.join(f'({argument}) == {name}' for name in names)})"


def _processes(bounds: Bounds, topology: Topology) -> Iterator[str]:
    """The coordinator, the tasks, and what is asked at rest."""
    yield from _process("coordinator", _of_coordinator(bounds, topology))
    for name in topology.tasks:
        yield from _process(f"task_{name}", _of_task(bounds, topology, name))
    quiet = [f"{what}[{_channel(c)}]" for c in topology.channels for what in ("wire", "buffered")]
    quiet += [f"outbox[{_task(name)}]" for name in topology.tasks]
    conditions = [f"NONE({queue})" for queue in quiet]
    conditions += [f"!blocked[{_channel(c)}]" for c in topology.channels]
    conditions += [f"!pending[{n}]" for n in range(_most_ids(bounds))]
    yield "/* LIVE: where nothing moves any more, nothing is left and nobody waits. */"
    yield f"#define QUIET ({' && '.join(conditions)})"
    yield 'active proctype at_rest() {\nend:\tdo\n\t:: atomic { timeout && !QUIET -> VIOLATED("! LIVE\\n") }\n\tod\n}\n'


def _process(name: str, moves: Iterable[str]) -> Iterator[str]:
    yield f"active proctype {name}() {{\nend:\tdo"
    yield from (f"\t:: d_step {{ {move} }}" for move in moves)
    yield "\tod\n}\n"


def _move(guard: str, text: str, effect: str) -> str:
    """A move, and the line that a run has for it: that of the world."""
    return f'{guard} -> printf("{text}\\n"); {effect}'


def _said(queue: str, task: str, what: str, effect: str) -> str:
    """Return a move that takes an order or a report about a checkpoint."""
    guard = "CAN_OBEY" if queue == "orders" else "CAN_HEAR"
    text = f"{what.lower()} {task}" + ("" if what == "INJECT" else " %d")
    line = f'printf("{text}\\n")' if what == "INJECT" else f'printf("{text}\\n", n)'
    return f"{guard}({_task(task)}, {what}) -> {queue}[{_task(task)}]?h, n; {line}; {effect}({_task(task)})"


def _of_coordinator(bounds: Bounds, topology: Topology) -> Iterator[str]:
    yield 'CAN_TRIGGER -> printf("trigger %d\\n", triggered + 1); trigger()'
    for n in range(1, _most_ids(bounds) + 1) if bounds.cancels else ():
        yield _move(f"CAN_CANCEL({n})", f"cancel {n}", f"cancel({n})")
    for name in topology.tasks:
        yield _said("reports", name, "ACK", "hear_ack")
        yield _said("reports", name, "DECLINE", "hear_decline")
    if bounds.crashes:
        yield 'CAN_PUBLISH -> printf("publish %d\\n", publishing); publish()'
        yield _move("CAN_CRASH", f"crash {topology.tasks[0]}", "crash()")
        yield _move("CAN_CRASH", "crash coordinator", "crash_coordinator(false)")
        yield _move("CAN_CRASH && publishing", "crash coordinator late", "crash_coordinator(true)")
        yield 'CAN_RESTORE -> printf("restore %d\\n", stored); restore()'


def _of_task(bounds: Bounds, topology: Topology, name: str) -> Iterator[str]:
    task, inputs, outputs = _task(name), topology.inputs(name), topology.outputs(name)
    for channel in outputs:
        yield _move(f"CAN_PUSH({task}, {_channel(channel)})", f"push {name}", f"push({task})")
    if not inputs:
        yield _move(f"CAN_EMIT({task})", f"emit {name}", f"emit({task})")
        yield _said("orders", name, "INJECT", "inject")
        yield _said("orders", name, "ABORT", "abort_at_source")
        return
    yield _move(f"CAN_DRAIN({task})", f"drain {name}", f"drain({task})")
    for channel in inputs:
        its = f"{task}, {_channel(channel)}"
        yield _move(f"CAN_DELIVER({its})", f"deliver {channel}", f"deliver({its})")
        if bounds.protocol.goes_unaligned and outputs:
            for n in range(1, _most_ids(bounds) + 1):  # the first that may
                older = "".join(f" && !MAY_PASS({its}, {each})" for each in range(1, n))
                yield _move(f"CAN_OVERTAKE({its}, {n}){older}", f"overtake {channel}", f"overtake({its}, {n})")
    yield _said("orders", name, "ABORT", "abort_at_task")
