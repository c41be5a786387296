"""A journal survives being written and read; a text that is none is refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.trace import (
    COMMENT,
    NS_PER_MOVE,
    TraceError,
    header_of_topology,
    judged,
    read,
    topology_of,
    write,
)
from barrierlab.model.spec.history import COORDINATOR, EFFECTS, MOVES, Entry
from barrierlab.model.spec.topology import Topology

ids = st.integers(1, 2**64 - 1)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,6}(\[[0-9]{1,2}\])?", fullmatch=True)
events = st.builds(Event, names, st.integers(0, 10**6), st.integers(0, 100))
barriers = st.builds(
    CheckpointBarrier, ids, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1) | st.sampled_from([0, 1])
)
messages = (
    events | st.builds(Watermark, st.integers()) | barriers | st.builds(CancelBarrier, ids) | st.just(EndOfInput())
)
reasons = st.sampled_from(list(Reason))
transactions = st.sampled_from(["s-1", "sink-12", "s[0]-7", "sink[11]-final-3"])
SUBJECTS = {
    "-": st.none(),
    "event": events,
    "message": messages,
    "barrier": barriers,
    "id": ids,
    "id or -": ids | st.none(),
    "late or -": st.sampled_from([None, "late"]),
    "channels or -": st.sampled_from([None, ("a->s",), ("b->s", "a->s", "late")]),
    "timestamp in ms": st.integers(),
    "(id, reason)": st.tuples(ids, reasons),
    "(id, digest of the state)": st.tuples(ids, st.from_regex(r"[0-9a-f]{16}", fullmatch=True)),
    "(id, message)": st.tuples(ids, messages),
    "(id, digest)": st.tuples(ids, st.from_regex(r"[0-9a-f]{16}", fullmatch=True)),
    "transaction": transactions,
    "(transaction, count)": st.tuples(transactions, st.integers(0, 10**6)),
    "(transaction, events)": st.tuples(transactions, st.lists(events, max_size=3).map(tuple)),
}


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Any entry, with any verb."""
    verb = draw(st.sampled_from([*MOVES, *EFFECTS]))
    who, where, what = (MOVES | EFFECTS)[verb].split(": ")[0].split(", ", 2)
    sender, receiver = draw(names), draw(names)
    channel = f"{sender}->{receiver}" if where == "channel" else None
    node = COORDINATOR if who == "coordinator" else receiver if verb in (">deliver", ">overtake") else sender
    return draw(st.integers(0, 10**15)), verb, node, channel, draw(SUBJECTS[what])


@st.composite
def journals(draw: st.DrawFn) -> list[Entry]:
    """A journal in which time goes on, from a move on."""
    drawn = draw(st.lists(entries(), max_size=12))
    return [(at_ns, *entry[1:]) for at_ns, entry in zip(sorted(e[0] for e in drawn), drawn, strict=True)]


heads = st.dictionaries(
    st.from_regex(r"[\w-]+", fullmatch=True),
    st.from_regex(r"[!-~]([ -~]*[!-~])?", fullmatch=True),
    max_size=3,
)


@settings(derandomize=True, deadline=None)
@given(journals(), heads)
def test_entries_survive(journal: list[Entry], header: dict[str, str]) -> None:
    """A journal read back would be judged as another run."""
    text = write(journal, header)
    read_head, read_entries = read(text)
    assert (read_head, read_entries) == (header, journal)
    assert [type(entry[4]) for entry in read_entries if isinstance(entry[4], Event)] == [
        Event for entry in journal if isinstance(entry[4], Event)
    ]
    assert write(read_entries, read_head) == text


def test_what_it_looks_like() -> None:
    """The format would have changed without anyone deciding so."""
    barrier = CheckpointBarrier.aligned(1, 1)
    journal: list[Entry] = [
        (500_000_000, ">emit", "a[0]", None, Event("a[0]", 1)),
        (500_000_000, "send", "a[0]", "a[0]->s", Event("a[0]", 1, part=2)),
        (12_500_000_000, ">trigger", COORDINATOR, None, 1),
        (12_500_000_000, ">deliver", "s", "a[0]->s", None),
        (12_500_000_000, "take", "s", "a[0]->s", barrier),
        (12_500_000_001, "snapshot", "s", None, (1, "9f3a")),
        (12_500_000_001, ">expire", COORDINATOR, None, 1),
        (12_500_000_001, "aborted", COORDINATOR, None, (1, Reason.EXPIRED)),
        (12_500_000_001, "forward", "s", None, CheckpointBarrier.new_unaligned(2, 3)),
    ]
    assert write(journal, {COMMENT: "What it shows.\n\nMore.", "seed": "1"}, ["LIVE: so"]) == (
        "# What it shows.\n#\n# More.\nseed: 1\n\n"
        "> emit a[0] a[0]1 @ 0.500000000\n    a[0] send a[0]->s a[0]1.2\n"
        "> trigger 1 @ 12.500000000\n"
        "> deliver a[0]->s @ 12.500000000\n    s take a[0]->s barrier 1\n    s snapshot 1 9f3a @ 12.500000001\n"
        "> expire coordinator 1 @ 12.500000001\n    coordinator aborted 1 expired\n"
        "    s forward barrier 2 epoch 3 unaligned\n"
        "! LIVE: so\n"
    )


def test_equal_names_are_one_object() -> None:
    """Judging a trace would compare events one by one, a hundred times slower."""
    _, journal = read("\n> emit a a1 @ 0.000000000\n    a send a->s a1\n    s take a->s a1\n")
    assert journal[1][4] is journal[2][4]


@settings(derandomize=True, deadline=None)
@given(journals())
def test_times_are_left_out_where_there_is_no_clock(journal: list[Entry]) -> None:
    """A trace of a world would be full of times that mean nothing; or a time that means something would be lost."""
    moves, untimed = 0, []
    for entry in journal:
        moves += entry[1][0] == ">"
        untimed.append((moves * NS_PER_MOVE, *entry[1:]))
    text = write(untimed, {})
    assert read(text)[1] == untimed
    assert (" @ " in text) == bool(untimed and untimed[0][1][0] != ">")


def test_a_move_that_another_brings_about_is_of_its_time() -> None:
    """Two moves at once would be read back as one after the other; those that stand below stabilize, as all at once."""
    text = "\n> finished s\n  > trigger 1\n> ack a 1\n"
    _, entries = read(text)
    assert [entry[0] for entry in entries] == [1, 1, 2]
    assert write(entries, {}) == text
    _, entries = read(text.replace("> finished", "> stabilize\n  > finished"))
    assert [entry[0] for entry in entries] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a->b\n", "t:1: 'a->b' is no field of a header; write 'name: value'; a blank line ends the header"),
        ("seed: 1\nseed: 2\n", "t:2: the header has 'seed' twice; write it once"),
        (
            "\n> push a @ 1.500000000\n> push b\n",
            "t:3: the move 'push b' has no time; end it with ' @ ' and seconds with nine decimals",
        ),
        (
            "\n> push a\n> push b @ 1.500000000\n",
            "t:3: the move 'push b @ 1.500000000' has a time; take it out: those before it have none",
        ),
        ("\n> drain a soon\n", "t:2: 'soon' stands where there is to be late or -; write late, or take it out"),
        ("\n> emit a a1 @ 1.5\n", "t:2: '1.5' is no time; write seconds with nine decimals, such as 12.500000000"),
        ("\n> emitt a a1 @ 1.500000000\n", "t:2: there is no move 'emitt'; did you mean 'emit'?"),
        ("\n> push a @ 1.500000000\n    a sent a->b a1\n", "t:3: there is no effect 'sent'; did you mean 'send'?"),
        (
            "\n> emit a first @ 1.500000000\n",
            (
                "t:2: 'first' stands where there is to be event; write an event such as a1, a1.2 or src2:1, "
                "'watermark 5', 'barrier 1', 'cancel 1' or 'end'"
            ),
        ),
        (
            "\n> emit a a:1 @ 1.500000000\n",
            (
                "t:2: 'a:1' stands where there is to be event; write it as a1: ':' stands behind a name that ends in a "
                "digit"
            ),
        ),
        (
            "\n    a send a->b a1\n",
            "t:2: the effect 'a send a->b a1' has no time; put it below a move, or end it with ' @ ' and seconds",
        ),
        ("\n> deliver a @ 1.500000000\n", "t:2: 'a' is no channel; write 'sender->receiver'"),
        ("\n> trigger one @ 1.500000000\n", "t:2: 'one' stands where there is to be id; write a whole number"),
        ("\n> push a 7 @ 1.500000000\n", "t:2: '7' stands where there is to be nothing; take it out"),
        (
            "\npush a\n",
            "t:2: 'push a' is no line of a trace; a line begins with '> ', four blanks, '#' or '!'",
        ),
    ],
)
def test_what_is_no_trace(text: str, message: str) -> None:
    """A mistake in a trace that was written by hand would be found nowhere, or in the wrong place."""
    with pytest.raises(TraceError) as error:
        read(text, "t")
    assert str(error.value) == message


def test_a_head_tells_its_topology() -> None:
    """A trace from a wide dataflow could not be judged again."""
    topology = Topology.parse("a->b b->c", {"a": 2, "b": 2}, {"a->b": "hash"})
    again = topology_of(header_of_topology(topology))
    assert (again.channels, again.exchange("a->b")) == (topology.channels, "hash")
    with pytest.raises(TraceError, match="the header has no line 'topology"):
        topology_of({"seed": "1"})


def test_a_field_that_does_not_fit_is_refused() -> None:
    """A header with a line break would make a trace that nobody can read."""
    with pytest.raises(TraceError, match="no field of a header"):
        write([], {"title": "two\nlines"})
    with pytest.raises(TraceError, match="is no pair; write 'name=value'"):
        judged("topology: a->b\nchannel_capacity: 3\n\n")
