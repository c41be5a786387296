"""A topology is what its edges say, in a fixed order, or an error of one line."""

from __future__ import annotations

import networkx as nx
import pytest

from barrierlab.model.spec.topology import Topology, TopologyError


def test_one_task_an_operator() -> None:
    """The simplest dataflow would not be read as written."""
    topology = Topology.parse("a->join b->join join->sink")
    assert topology.operators == topology.tasks == ("a", "join", "b", "sink")
    assert topology.channels == ("a->join", "b->join", "join->sink")
    assert (topology.sources, topology.sinks) == (("a", "b"), ("sink",))
    assert topology.ends("b->join") == ("b", "join")
    assert str(topology) == "a->join b->join join->sink"


def test_channels_come_by_edge_then_sender_then_receiver() -> None:
    """Input and output indices would shift, and a barrier would be counted for another channel."""
    topology = Topology.parse("a->join b->join join->sink", parallelism={"a": 2, "join": 2})
    assert topology.tasks == ("a[0]", "a[1]", "join[0]", "join[1]", "b", "sink")
    assert topology.inputs("join[1]") == ("a[1]->join[1]", "b->join[1]")
    assert topology.outputs("b") == ("b->join[0]", "b->join[1]")
    assert topology.inputs("sink") == ("join[0]->sink", "join[1]->sink")
    assert topology.operator_of("join[1]") == "join"
    assert topology.edge_of("a[1]->join[1]") == "a->join"


@pytest.mark.parametrize("exchange", ["rebalance", "hash", "broadcast"])
def test_other_exchanges_than_forward_join_all_to_all(exchange: str) -> None:
    """A hash exchange without all its channels would lose keys."""
    topology = Topology.parse("a->b", {"a": 2, "b": 2}, {"a->b": exchange})
    assert topology.channels == ("a[0]->b[0]", "a[0]->b[1]", "a[1]->b[0]", "a[1]->b[1]")
    assert topology.exchange("a->b") == exchange


def test_usual_exchange() -> None:
    """Equal parallelism would be reshuffled, or unequal not at all."""
    topology = Topology.parse("a->b b->c", {"a": 2, "b": 2})
    assert (topology.exchange("a->b"), topology.exchange("b->c")) == ("forward", "rebalance")


def test_sides_and_groups_follow_the_edges() -> None:
    """A join would take an event for one of the other side; an exchange would send to another edge's channel."""
    topology = Topology.parse("a->join b->join a->sink join->sink", {"a": 2}, {"a->join": "hash"})
    assert topology.input_sides("join") == (0, 0, 1)
    assert topology.output_groups("a[1]") == (("a->join", "hash", (0,)), ("a->sink", "rebalance", (1,)))
    assert topology.edges_in("sink") == ("a->sink", "join->sink")
    assert topology.edges_out("a") == ("a->join", "a->sink")


def test_every_channel_is_in_the_graph() -> None:
    """Pictures and reductions, which read the graph, would see another dataflow than the one that runs."""
    graph = Topology.parse("a->b b->c", {"b": 2}).graph()
    assert {data["channel"] for _, _, data in graph.edges(data=True)} == {"a->b[0]", "a->b[1]", "b[0]->c", "b[1]->c"}
    assert nx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the topology is empty; write edges such as 'a->join b->join join->sink'"),
        ("a->b b", {}, "'b' is no edge; write 'sender->receiver', one arrow each"),
        ("a->b->c", {}, "'a->b->c' is no edge; write 'sender->receiver', one arrow each"),
        (
            "1a->b",
            {},
            "'1a' in '1a->b' is no operator name; use letters, digits, '_' and '-', and begin with a letter or '_'",
        ),
        ("a->b a->b", {}, "edge 'a->b' is written 2 times; write it once"),
        ("a->a", {}, "'a' sends to itself; a dataflow has no loops: take 'a->a' out"),
        ("a->b b->c c->b", {}, "the topology has a cycle, b->c->b; take one of its edges out"),
        (
            "a->b c->b",
            {"sources": ["a"]},
            (
                "operator 'c' has no inputs and is no source; the sources are a: declare it as one, or lead an edge to "
                "it"
            ),
        ),
        ("a->b", {"sources": ["a", "b"]}, "source 'b' has inputs (from a); a source has none: take the edges out"),
        ("a->b", {"sources": ["a", "c"]}, "source 'c' has no edge in the topology; there are: a, b"),
        ("a->b", {"parallelism": {"c": 2}}, "parallelism is given for 'c', which no edge names; there are: a, b"),
        ("a->b", {"parallelism": {"b": 0}}, "parallelism of 'b' is 0; it must be a whole number from 1 on"),
        (
            "a->b",
            {"exchanges": {"a->c": "hash"}},
            "an exchange is given for 'a->c', which is no edge; did you mean 'a->b'?",
        ),
        ("a->b", {"exchanges": {"a->b": "hsah"}}, "exchange of 'a->b' is 'hsah'; did you mean 'hash'?"),
        (
            "a->b",
            {"parallelism": {"a": 2}, "exchanges": {"a->b": "forward"}},
            (
                "exchange of 'a->b' is 'forward', but parallelism is 2 and 1; "
                "make them equal, or use 'rebalance', 'hash' or 'broadcast'"
            ),
        ),
        (
            "a->b",
            {"parallelism": {"a": 129}},
            "'b' would have 129 inputs; at most 128 are allowed: lower the parallelism of what sends to it",
        ),
    ],
)
def test_what_is_no_topology(text: str, options: dict, message: str) -> None:
    """A wrong scenario would run as another dataflow, or fail far from its cause."""
    with pytest.raises(TopologyError) as error:
        Topology.parse(text, **options)
    assert str(error.value) == message
