"""The standard scopes: small dataflows with all that can happen in them, explored to the end.

Most faults of a protocol show in a small scope already. ``tiny`` takes seconds, ``small`` half a minute on two cores,
``full`` about an hour; ``full`` holds every connected dataflow of up to four operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

import networkx as nx

from barrierlab.model.checkpoint.check import Scope, WorldScope
from barrierlab.model.checkpoint.coordinator_scopes import SCOPES as COORDINATORS
from barrierlab.model.checkpoint.gate_runs import SCOPES as GATE_RUNS
from barrierlab.model.checkpoint.gate_scopes import SCOPES as GATES
from barrierlab.model.checkpoint.injector_scopes import SCOPES as INJECTORS
from barrierlab.model.checkpoint.protocols import EXACT as MODES
from barrierlab.model.checkpoint.recovery_scopes import SCOPES as RECOVERIES
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.scripted_scopes import scripted_cases
from barrierlab.model.checkpoint.sink_scopes import SCOPES as SINKS
from barrierlab.model.checkpoint.task_scopes import SCOPES as TASKS
from barrierlab.model.control.refinement import SCOPES as CONTROL_TABLES
from barrierlab.model.control.runs import SCOPES as CONTROL_RUNS
from barrierlab.model.control.scopes import SMALL as CONTROL
from barrierlab.model.control.scopes import WIDE as WIDE_CONTROL
from barrierlab.model.join.scopes import CONFLUENT as TINY_JOINS
from barrierlab.model.join.scopes import SMALL as JOINS
from barrierlab.model.join.scopes import WIDE as WIDE_JOINS
from barrierlab.model.storage.scopes import SCOPES as STORES

CHAIN = "a->s"
LONG = "a->m m->s"
JOIN = "a->join b->join join->s"
TWO_SINKS = "a->s a->t b->s b->t"
DIAMOND = "a->l a->r l->join r->join join->s"
PAIR = "a->s b->s"
THREE = "a->s b->s c->s"

COMPONENTS: tuple[Scope, ...] = (*COORDINATORS, *SINKS, *INJECTORS, *RECOVERIES, *TASKS)
"""Machines alone, each beside a model of its rules."""

FAULTS: dict[str, dict[str, object]] = {
    "no fault": {},
    "abort": {"cancels": 1},
    "timeout": {"expiries": 1},
    "closed input": {"closes": True},
    "crash": {"crashes": 1, "guarantee": "exactly_once"},
}
"""The faults that strike once in a scope, in the words of `Bounds`."""

NO_CRASH = tuple(name for name in FAULTS if name != "crash")

COMBINED: dict[str, dict[str, object]] = {
    "closed input and crash": {"closes": True, "crashes": 1, "guarantee": "exactly_once"},
    "crash, at least once": {"crashes": 1, "guarantee": "at_least_once"},
    "crash, idempotent": {"crashes": 1, "guarantee": "idempotent"},
    "closed input and crash, idempotent": {"closes": True, "crashes": 1, "guarantee": "idempotent"},
}
"""The faults that strike together, or where a sink promises less."""

ABORTED: dict[str, dict[str, object]] = {
    "abort and crash": {"cancels": 1, "crashes": 1, "guarantee": "exactly_once"},
    "timeout and crash": {"expiries": 1, "crashes": 1, "guarantee": "exactly_once"},
}
"""A checkpoint that is aborted before the job fails, or after it was restored; not planned, and so in small extents."""


def _worlds(
    topology: str, modes: Sequence[str] = MODES, faults: Sequence[str] = tuple(FAULTS), **extent: object
) -> Iterator[WorldScope]:
    """Return one scope a mode and fault."""
    words = ", ".join(f"{name} {value}".replace("_", " ") for name, value in extent.items())
    for mode, fault in product(modes, faults):
        bounds = Bounds(topology, mode=mode, **{**extent, **(FAULTS | COMBINED | ABORTED)[fault]})  # type: ignore[arg-type]
        yield WorldScope(f"{mode}: {topology}; {words}; {fault}", bounds)


def tiny() -> Iterator[Scope]:
    """Return the scopes of one checkpoint and one event a source."""
    for topology in (CHAIN, PAIR, JOIN):
        yield from _worlds(topology, events=1, checkpoints=1)
    yield from _worlds(JOIN, events=1, checkpoints=1, capacity=1, faults=("no fault",))
    yield from _tracked()
    yield from (scope for scope in GATES if scope.states < 300)
    yield from GATE_RUNS
    yield from CONTROL_RUNS
    yield from (scope for scope in CONTROL if scope.states < 1000)
    yield from (scope for scope in CONTROL_TABLES if scope.states < 300)
    yield from TINY_JOINS
    yield from STORES
    yield from scripted_cases()


def _tracked() -> Iterator[WorldScope]:
    """Barriers that are counted: the sinks promise less, and what is restored comes again."""
    one_of_each: dict[str, Any] = {"events": 1, "checkpoints": 1}
    yield from _worlds(JOIN, ("tracked",), (*NO_CRASH, "crash, at least once", "crash, idempotent"), **one_of_each)
    yield from _worlds(PAIR, ("tracked",), ("crash, at least once",), events=2, checkpoints=1)


def _tracked_further() -> Iterator[WorldScope]:
    """The same with two checkpoints, watermarks, ends and operators that emit."""
    one_of_each: dict[str, Any] = {"events": 1, "checkpoints": 1}
    yield from _worlds(PAIR, ("tracked",), ("no fault",), events=1, checkpoints=2)
    yield from _worlds(PAIR, ("tracked",), NO_CRASH, events=2, checkpoints=1)
    yield from _worlds(PAIR, ("tracked",), ("closed input and crash, idempotent",), **one_of_each)
    yield from _worlds(CHAIN, ("tracked",), (*NO_CRASH, "crash, at least once"), events=2, checkpoints=2)
    yield from _worlds(JOIN, ("tracked",), ("closed input",), watermarks=1, emits=True, **one_of_each)
    yield from _worlds(DIAMOND, ("tracked",), ("no fault", "abort"), **one_of_each)


def small() -> Iterator[Scope]:
    """Two checkpoints or two events, little room, watermarks, limits, operators of several tasks."""
    one_of_each: dict[str, Any] = {"events": 1, "checkpoints": 1}
    both = ("aligned", "unaligned")
    yield from _worlds(CHAIN, events=2, checkpoints=2)
    yield from _worlds(JOIN, faults=("no fault", "abort", "timeout", "closed input"), events=2, checkpoints=1)
    yield from _worlds(JOIN, ("aligned",), ("crash",), events=2, checkpoints=1)
    yield from _worlds(JOIN, both, ("no fault", "abort", "timeout"), events=1, checkpoints=2)
    yield from _worlds(JOIN, ("aligned",), ("no fault", "abort", "timeout", "closed input"), events=2, checkpoints=2)
    yield from _worlds(JOIN, MODES, ("no fault",), watermarks=1, **one_of_each)
    yield from _worlds(JOIN, both, ("no fault", "crash"), parallelism=(("join", 2),), **one_of_each)
    yield from _worlds(JOIN, ("unaligned", "aligned_with_timeout"), ("no fault",), sender_records=True, **one_of_each)
    yield from _worlds(JOIN, MODES, ("no fault",), max_buffer_per_input=1, events=2, checkpoints=1)
    yield from _worlds(JOIN, MODES, ("no fault",), max_buffer_memory_bytes=1, events=2, checkpoints=1)
    yield from _worlds(
        JOIN, ("unaligned", "aligned_with_timeout"), ("no fault",), max_inflight_buffer_bytes=1, **one_of_each
    )
    yield from _worlds(THREE, faults=("no fault", "closed input"), **one_of_each)
    yield from _worlds(DIAMOND, faults=("no fault", "abort"), **one_of_each)
    yield from _worlds(TWO_SINKS, faults=("no fault", "closed input"), **one_of_each)
    yield from _worlds(PAIR, both, ("no fault",), events=2, checkpoints=1, capacity=1)
    yield from _worlds(PAIR, both, ("crash",), events=2, checkpoints=1)
    yield from (*_combined(), *_aborted(), *_tracked(), *_tracked_further())
    yield from (scope for scope in GATES if not scope.slow)
    yield from (*GATE_RUNS, *COMPONENTS)
    yield from (*CONTROL, *CONTROL_TABLES, *CONTROL_RUNS)
    yield from JOINS
    yield from STORES
    yield from scripted_cases()


def _combined() -> Iterator[WorldScope]:
    """Ends, watermarks, little room and limits together with a crash; operators that emit; sinks that promise less."""
    one_of_each: dict[str, Any] = {"events": 1, "checkpoints": 1}
    little_room: dict[str, Any] = {"events": 2, "checkpoints": 1, "capacity": 1, "sender_records": True}
    ahead, crash, ends = ("unaligned", "aligned_with_timeout"), ("crash",), ("closed input and crash",)
    for topology in (CHAIN, LONG):
        yield from _worlds(topology, MODES, ends, events=1, checkpoints=2)
    yield from _worlds(PAIR, ("aligned",), ends, **one_of_each)
    yield from _worlds(JOIN, MODES, ("closed input",), watermarks=1, emits=True, **one_of_each)
    yield from _worlds(LONG, MODES, ends, watermarks=1, emits=True, **one_of_each)
    yield from _worlds(JOIN, ("aligned", "unaligned"), crash, watermarks=1, **one_of_each)
    yield from _worlds(LONG, ahead, crash, **little_room)
    yield from _worlds(LONG, ahead, crash, **little_room, max_inflight_buffer_bytes=1)
    yield from _worlds(JOIN, ("unaligned",), crash, **(little_room | {"events": 1}))
    yield from _worlds(JOIN, MODES, crash, max_buffer_per_input=1, **one_of_each)
    yield from _worlds(CHAIN, MODES, ("crash, at least once", "crash, idempotent"), events=2, checkpoints=2)
    yield from _worlds(PAIR, ("aligned",), ("closed input and crash, idempotent",), **one_of_each)


def _aborted() -> Iterator[WorldScope]:
    """Abort or timeout together with a crash; a timeout needs a task with two inputs, and passes for aligned ones."""
    one_of_each: dict[str, Any] = {"events": 1, "checkpoints": 1}
    yield from _worlds(LONG, MODES, ("abort and crash",), **one_of_each)
    yield from _worlds(PAIR, ("aligned",), tuple(ABORTED), **one_of_each)
    yield from _worlds(PAIR, ("aligned_with_timeout",), ("timeout and crash",), **one_of_each)


def full() -> Iterator[Scope]:
    """Return every connected dataflow of up to four operators, two checkpoints, two events a source, and one fault."""
    for operators in (2, 3, 4):
        for topology in connected_dataflows(operators):
            yield from _worlds(topology, events=2, checkpoints=2)
    for operators in (2, 3):
        for topology in connected_dataflows(operators):
            yield from _worlds(topology, MODES, tuple(COMBINED), events=1, checkpoints=2)
    yield from (*_aborted(), *_tracked(), *_tracked_further())
    yield from _worlds(JOIN, ("unaligned",), ("closed input and crash",), events=1, checkpoints=1)
    yield from GATES
    yield from (*GATE_RUNS, *COMPONENTS)
    yield from (*CONTROL, *WIDE_CONTROL, *CONTROL_TABLES, *CONTROL_RUNS)
    yield from (*JOINS, *WIDE_JOINS)
    yield from STORES
    yield from scripted_cases()


SCOPES: dict[str, Callable[[], Iterator[Scope]]] = {"tiny": tiny, "small": small, "full": full}
"""By name; their docstrings say what is in them."""


def connected_dataflows(operators: int) -> Iterator[str]:
    """Return every connected dataflow of this many operators, one of each form.

    >>> list(connected_dataflows(3))
    ['a->s b->s', 'a->m m->s', 'a->s a->t', 'a->m a->s m->s']
    >>> [sum(1 for _ in connected_dataflows(n)) for n in (2, 3, 4)]
    [1, 4, 24]
    """
    forms: list[nx.DiGraph] = []
    pairs = list(combinations(range(operators), 2))
    for chosen in sorted(product((False, True), repeat=len(pairs)), key=sum):
        graph = nx.DiGraph()
        graph.add_nodes_from(range(operators))
        graph.add_edges_from(pair for pair, taken in zip(pairs, chosen, strict=True) if taken)
        if nx.is_weakly_connected(graph) and not any(nx.is_isomorphic(graph, other) for other in forms):
            forms.append(graph)
            yield _named(graph)


def _named(graph: nx.DiGraph) -> str:
    """Sources a, b, c; sinks s, t, u; between them m and n."""
    names, free = {}, {"source": list("abc"), "sink": list("stu"), "between": list("mn")}
    for node in graph:
        kind = "source" if not graph.in_degree(node) else "sink" if not graph.out_degree(node) else "between"
        names[node] = free[kind].pop(0)
    return " ".join(f"{names[u]}->{names[v]}" for u, v in graph.edges)
