"""The connections of a pipeline's processors: a data graph and a control graph over the same names, and a head.

The data graph is written as its edges; the head feeds every source of it. The control graph goes along the data graph,
or straight from the head to every processor, or is written too. A data channel is called ``a->join``, a control channel
``a=>join``. Every processor has upstreams on both channels (protocol rule 26), and both graphs together have no
cycle: what waits on one channel for the other would otherwise wait for itself.
"""

from __future__ import annotations

import networkx as nx

from barrierlab.model.spec.topology import Topology, TopologyError

HEAD = "head"
DATA, CONTROL = "data", "control"
CARRIERS = (DATA, CONTROL)
ARROWS = {DATA: "->", CONTROL: "=>"}

ChannelEnds = tuple[str, int, str, int]
"""Sender, its output, receiver, its input."""


class ControlWiring:
    """The processors and their channels. Never changes.

    Parameters
    ----------
    data : str
        Edges such as ``a->join b->join``, without the head.
    control : str
        ``"along"`` the data graph, ``"direct"`` from the head to each processor, or edges, the head's included.

    Attributes
    ----------
    text : str
        The data graph as written.
    processors : tuple of str
        Without the head, senders before receivers.
    sources, sinks : tuple of str
        Processors that only the head feeds data; those without data outputs.
    channels : dict of str to tuple
        Of each carrier the names of its channels, in order.

    Raises
    ------
    TopologyError
        If an edge is none, a name is the head's, a processor has no upstream on one of the channels, or there is a
        cycle.

    Examples
    --------
    >>> wiring = ControlWiring("a->join b->join")
    >>> wiring.inputs("data", "join"), wiring.inputs("control", "a")
    (('a->join', 'b->join'), ('head=>a',))
    """

    __slots__ = ("_carrier_of", "_ends", "_inputs", "_outputs", "channels", "processors", "sinks", "sources", "text")

    def __init__(self, data: str, control: str = "along") -> None:
        inner = Topology.parse(data)
        if HEAD in inner.operators:
            raise TopologyError(f"{HEAD!r} names the head of the pipeline; call the processor otherwise")
        self.text = str(inner)
        self.sources, self.sinks = inner.sources, inner.sinks
        feeds = [f"{HEAD}->{source}" for source in inner.sources]
        edges = {DATA: [*feeds, *inner.edges]}
        if control == "along":
            edges[CONTROL] = edges[DATA]
        elif control == "direct":
            edges[CONTROL] = [f"{HEAD}->{name}" for name in inner.operators]
        else:
            edges[CONTROL] = list(Topology.parse(control).edges)
        self.processors = self._sorted(edges)
        self.channels: dict[str, tuple[str, ...]] = {}
        self._ends: dict[str, ChannelEnds] = {}
        self._carrier_of: dict[str, str] = {}
        self._inputs: dict[tuple[str, str], list[str]] = {}
        self._outputs: dict[tuple[str, str], list[str]] = {}
        for carrier in CARRIERS:
            self.channels[carrier] = tuple(edge.replace("->", ARROWS[carrier]) for edge in edges[carrier])
            for edge, channel in zip(edges[carrier], self.channels[carrier], strict=True):
                self._connect(carrier, channel, *edge.split("->"))
        for name in self.processors:
            for carrier in CARRIERS:
                if not self.inputs(carrier, name):
                    raise TopologyError(
                        f"{name!r} has no upstream on the {carrier} channel; give it an edge from another processor "
                        f"or from {HEAD!r}"
                    )

    def _sorted(self, edges: dict[str, list[str]]) -> tuple[str, ...]:
        """Return the processors, senders first; this is where a cycle through both graphs shows."""
        both = Topology.parse(" ".join(dict.fromkeys([*edges[DATA], *edges[CONTROL]])), sources=[HEAD])
        return tuple(name for name in nx.topological_sort(both.graph()) if name != HEAD)

    def _connect(self, carrier: str, channel: str, sender: str, receiver: str) -> None:
        outputs = self._outputs.setdefault((carrier, sender), [])
        inputs = self._inputs.setdefault((carrier, receiver), [])
        self._ends[channel] = (sender, len(outputs), receiver, len(inputs))
        self._carrier_of[channel] = carrier
        outputs.append(channel)
        inputs.append(channel)

    def inputs(self, carrier: str, name: str) -> tuple[str, ...]:
        """The channels of a carrier into a processor, by index."""
        return tuple(self._inputs.get((carrier, name), ()))

    def outputs(self, carrier: str, name: str) -> tuple[str, ...]:
        """The channels of a carrier out of a processor or the head, by index."""
        return tuple(self._outputs.get((carrier, name), ()))

    def ends(self, channel: str) -> ChannelEnds:
        """Sender, its output, receiver, its input."""
        return self._ends[channel]

    def carrier_of(self, channel: str) -> str:
        """``data`` or ``control``."""
        return self._carrier_of[channel]

    def __repr__(self) -> str:
        return f"<ControlWiring: {self.text}>"

    def _repr_html_(self) -> str:
        from barrierlab.model.render.graph import graph_svg  # only for a notebook: what is right knows no pictures
        from barrierlab.model.render.palette import CONTROL as COLOUR

        nodes = [(name, name) for name in (HEAD, *self.processors)]
        edges = [
            (self._ends[channel][0], self._ends[channel][2], "", COLOUR if carrier == CONTROL else "")
            for carrier in CARRIERS
            for channel in self.channels[carrier]
        ]
        return graph_svg(self.text, nodes, edges)

    def below(self, source: str) -> frozenset[str]:
        """The processors that get the data of `source`, itself included."""
        found = {source}
        for name in self.processors:
            if any(self._ends[channel][0] in found for channel in self.inputs(DATA, name)):
                found.add(name)
        return frozenset(found)
