"""The dataflow graph: operators and edges as they are written, tasks and channels as they run.

A topology is written as its edges, ``a->join b->join join->sink``. An operator of parallelism 1 is one task
of the same name; of parallelism n it is the tasks ``join[0]`` ... ``join[n-1]``. An edge becomes channels by its
exchange: ``forward`` joins equal indices, the others join every sender to every receiver.

Order is part of the meaning, because tasks count inputs and outputs by index: channels come in the order of the
edges as written, then of the sender's index, then of the receiver's. At most `MAX_INPUTS` channels enter a task
(F-DCKP-002, "Configuration"; protocol rule 12).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

import networkx as nx

from barrierlab.model.renamed import renamed

EXCHANGES = ("forward", "rebalance", "hash", "broadcast")
MAX_INPUTS = 128

_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)


class TopologyError(ValueError):
    """The text describes no dataflow graph; the message says in one line what came, what is allowed, what to do."""


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """Return the end of an error message about `word`: its name of today, the nearest of `allowed`, or all of them."""
    names = list(allowed)
    if new := renamed(word, names):
        return f"it is called {new!r} now"
    near = difflib.get_close_matches(word, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"


class Topology:
    """A directed acyclic graph of operators, expanded to tasks and channels. Made by `parse`; never changes.

    Attributes
    ----------
    operators, edges : tuple of str
        As written, in order of appearance.
    tasks : tuple of str
        By operator, then index.
    channels : tuple of str
        ``"sender->receiver"``, by edge, then sender, then receiver.
    sources, sinks : tuple of str
        The tasks without inputs, and those without outputs.
    """

    __slots__ = (
        "_ends",
        "_exchanges",
        "_inputs",
        "_operator_of",
        "_outputs",
        "_parallelism",
        "channels",
        "edges",
        "operators",
        "sinks",
        "sources",
        "tasks",
    )

    def __init__(self, edges: tuple[str, ...], parallelism: Mapping[str, int], exchanges: Mapping[str, str]) -> None:
        """Expand checked `edges`; use `parse`, which checks them."""
        self.edges = edges
        self.operators = tuple(dict.fromkeys(end for edge in edges for end in edge.split("->")))
        self._parallelism = {name: parallelism.get(name, 1) for name in self.operators}
        self._exchanges = {edge: exchanges.get(edge) or self._usual_exchange(edge) for edge in edges}
        self._operator_of = {task: name for name in self.operators for task in self.tasks_of(name)}
        self.tasks = tuple(self._operator_of)
        self._ends = {f"{u}->{v}": (u, v) for edge in edges for u, v in self._pairs(edge)}
        self.channels = tuple(self._ends)
        inputs: dict[str, list[str]] = {task: [] for task in self.tasks}
        outputs: dict[str, list[str]] = {task: [] for task in self.tasks}
        for channel, (sender, receiver) in self._ends.items():
            outputs[sender].append(channel)
            inputs[receiver].append(channel)
        self._inputs = {task: tuple(names) for task, names in inputs.items()}
        self._outputs = {task: tuple(names) for task, names in outputs.items()}
        self.sources = tuple(task for task in self.tasks if not inputs[task])
        self.sinks = tuple(task for task in self.tasks if not outputs[task])

    @classmethod
    def parse(
        cls,
        text: str,
        parallelism: Mapping[str, int] | None = None,
        exchanges: Mapping[str, str] | None = None,
        sources: Iterable[str] | None = None,
    ) -> Topology:
        """Return the topology that `text` describes.

        Parameters
        ----------
        text : str
            Edges ``sender->receiver``, separated by white space.
        parallelism : mapping of str to int, optional
            Tasks per operator, 1 where not given.
        exchanges : mapping of str to str, optional
            One of `EXCHANGES` per edge; where not given, ``forward`` between operators of equal parallelism and
            ``rebalance`` otherwise.
        sources : iterable of str, optional
            The operators that are meant to be sources: they may have no inputs, and no others may be without.

        Raises
        ------
        TopologyError
            If `text` has no edge, a bad name, a duplicate edge, a self loop or a cycle; if `parallelism`, `exchanges`
            or `sources` name what is not there or are impossible; if a task would have more than `MAX_INPUTS` inputs.

        Examples
        --------
        >>> topology = Topology.parse("a->join b->join join->sink", parallelism={"a": 2})
        >>> topology.inputs("join")
        ('a[0]->join', 'a[1]->join', 'b->join')
        """
        edges = _edges(text)
        operators = list(dict.fromkeys(end for edge in edges for end in edge.split("->")))
        _check_graph(edges, operators, sources)
        for name, count in (parallelism or {}).items():
            if name not in operators:
                raise TopologyError(
                    f"parallelism is given for {name!r}, which no edge names; {suggestion(name, operators)}"
                )
            if type(count) is not int or count < 1:
                raise TopologyError(f"parallelism of {name!r} is {count!r}; it must be a whole number from 1 on")
        for edge, exchange in (exchanges or {}).items():
            if edge not in edges:
                raise TopologyError(f"an exchange is given for {edge!r}, which is no edge; {suggestion(edge, edges)}")
            if exchange not in EXCHANGES:
                raise TopologyError(f"exchange of {edge!r} is {exchange!r}; {suggestion(exchange, EXCHANGES)}")
        topology = cls(edges, parallelism or {}, exchanges or {})
        topology._check_sizes()
        return topology

    def inputs(self, task: str) -> tuple[str, ...]:
        """Return the channels into `task`, in the order of its input indices."""
        return self._inputs[task]

    def outputs(self, task: str) -> tuple[str, ...]:
        """Return the channels out of `task`, in the order of its output indices."""
        return self._outputs[task]

    def ends(self, channel: str) -> tuple[str, str]:
        """Return the sending and the receiving task of `channel`."""
        return self._ends[channel]

    def operator_of(self, task: str) -> str:
        """Return the operator of `task`."""
        return self._operator_of[task]

    def parallelism(self, operator: str) -> int:
        """Return how many tasks `operator` has."""
        return self._parallelism[operator]

    def exchange(self, edge: str) -> str:
        """Return how `edge` spreads events over its channels: one of `EXCHANGES`."""
        return self._exchanges[edge]

    def tasks_of(self, operator: str) -> tuple[str, ...]:
        """Return the tasks of `operator`, by index."""
        count = self._parallelism[operator]
        return (operator,) if count == 1 else tuple(f"{operator}[{index}]" for index in range(count))

    def edges_in(self, operator: str) -> tuple[str, ...]:
        """Return the edges into `operator`, as written."""
        return tuple(edge for edge in self.edges if edge.split("->")[1] == operator)

    def edges_out(self, operator: str) -> tuple[str, ...]:
        """Return the edges out of `operator`, as written."""
        return tuple(edge for edge in self.edges if edge.split("->")[0] == operator)

    def edge_of(self, channel: str) -> str:
        """Return the edge of `channel`."""
        sender, receiver = self._ends[channel]
        return f"{self._operator_of[sender]}->{self._operator_of[receiver]}"

    def input_sides(self, task: str) -> tuple[int, ...]:
        """Return for each input of `task` the index of its operator's edge in."""
        edges = self.edges_in(self._operator_of[task])
        return tuple(edges.index(self.edge_of(channel)) for channel in self._inputs[task])

    def output_groups(self, task: str) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """Return for each edge out of the operator of `task`: the edge, its exchange, the output indices of `task` on
        it.
        """
        outputs = self._outputs[task]
        return tuple(
            (
                edge,
                self._exchanges[edge],
                tuple(i for i, channel in enumerate(outputs) if self.edge_of(channel) == edge),
            )
            for edge in self.edges_out(self._operator_of[task])
        )

    def graph(self) -> nx.DiGraph[str]:
        """Return tasks and channels as a networkx graph, each link with its channel's name."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.tasks)
        graph.add_edges_from((u, v, {"channel": name}) for name, (u, v) in self._ends.items())
        return graph

    def __str__(self) -> str:
        """Return the edges, as `parse` reads them."""
        return " ".join(self.edges)

    def __repr__(self) -> str:
        wide = [f"{name}={count}" for name, count in self._parallelism.items() if count > 1]
        return f"<Topology: {'; '.join(filter(None, (str(self), ' '.join(wide))))}>"

    def _repr_html_(self) -> str:
        from barrierlab.model.render.graph import graph_svg  # only for a notebook: what is right knows no pictures

        nodes = [(name, f"{name} ×{count}" if count > 1 else name) for name, count in self._parallelism.items()]
        edges = [(*edge.split("->"), self.exchange(edge)) for edge in self.edges]
        links = [
            (sender, receiver, "" if exchange == self._usual_exchange(f"{sender}->{receiver}") else exchange, "")
            for sender, receiver, exchange in edges
        ]
        return graph_svg(str(self), nodes, links)

    def _usual_exchange(self, edge: str) -> str:
        sender, receiver = edge.split("->")
        return "forward" if self._parallelism[sender] == self._parallelism[receiver] else "rebalance"

    def _pairs(self, edge: str) -> list[tuple[str, str]]:
        senders, receivers = (self.tasks_of(name) for name in edge.split("->"))
        if self._exchanges[edge] == "forward":
            return list(zip(senders, receivers, strict=False))
        return [(u, v) for u in senders for v in receivers]

    def _check_sizes(self) -> None:
        for edge in self.edges:
            sender, receiver = edge.split("->")
            counts = self._parallelism[sender], self._parallelism[receiver]
            if self._exchanges[edge] == "forward" and counts[0] != counts[1]:
                raise TopologyError(
                    f"exchange of {edge!r} is 'forward', but parallelism is {counts[0]} and {counts[1]}; "
                    "make them equal, or use 'rebalance', 'hash' or 'broadcast'"
                )
        for task in self.tasks:
            if len(self._inputs[task]) > MAX_INPUTS:
                raise TopologyError(
                    f"{task!r} would have {len(self._inputs[task])} inputs; at most {MAX_INPUTS} are allowed: "
                    "lower the parallelism of what sends to it"
                )


def _edges(text: str) -> tuple[str, ...]:
    edges = text.split()
    if not edges:
        raise TopologyError("the topology is empty; write edges such as 'a->join b->join join->sink'")
    for edge in edges:
        ends = edge.split("->")
        if len(ends) != 2:
            raise TopologyError(f"{edge!r} is no edge; write 'sender->receiver', one arrow each")
        for name in ends:
            if not _NAME.fullmatch(name):
                raise TopologyError(
                    f"{name!r} in {edge!r} is no operator name; use letters, digits, '_' and '-', "
                    "and begin with a letter or '_'"
                )
    for edge in edges:
        if edges.count(edge) > 1:
            raise TopologyError(f"edge {edge!r} is written {edges.count(edge)} times; write it once")
    return tuple(edges)


def _check_graph(edges: tuple[str, ...], operators: list[str], sources: Iterable[str] | None) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph([edge.split("->") for edge in edges])
    loops = [name for name in operators if graph.has_edge(name, name)]
    if loops:
        raise TopologyError(f"{loops[0]!r} sends to itself; a dataflow has no loops: take '{loops[0]}->{loops[0]}' out")
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [u for u, _ in nx.find_cycle(graph)]
        raise TopologyError(f"the topology has a cycle, {'->'.join([*cycle, cycle[0]])}; take one of its edges out")
    if sources is None:
        return
    declared = list(sources)
    for name in declared:
        if name not in operators:
            raise TopologyError(f"source {name!r} has no edge in the topology; {suggestion(name, operators)}")
        if graph.in_degree(name):
            fed_by = ", ".join(graph.predecessors(name))
            raise TopologyError(f"source {name!r} has inputs (from {fed_by}); a source has none: take the edges out")
    reached = set(declared).union(*(nx.descendants(graph, name) for name in declared))
    for name in operators:
        if name not in reached and not graph.in_degree(name):
            raise TopologyError(
                f"operator {name!r} has no inputs and is no source; the sources are {', '.join(declared) or 'none'}: "
                "declare it as one, or lead an edge to it"
            )
        if name not in reached:
            raise TopologyError(
                f"operator {name!r} is unreachable; the sources, {', '.join(declared) or 'none'}, do not lead to it"
            )
