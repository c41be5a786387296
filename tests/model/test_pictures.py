"""Pictures and exports of traces: what a reader sees is what happened, in a form that the other tools take."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from barrierlab.impl import CheckpointBarrier, Event
from barrierlab.model import defects
from barrierlab.model.checkpoint.trace import judged, read, topology_of
from barrierlab.model.render.exports import itf, mermaid, perfetto, shiviz
from barrierlab.model.render.spacetime import FAULTY, Fate, SpaceTime, lay_out
from barrierlab.model.render.svg import MOST_STEPS, TooLongError, svg
from barrierlab.model.spec.topology import Topology

KEPT = Path(__file__).parents[1] / "traces"
TRACES = sorted(KEPT.glob("**/*.trace"))
HELD = KEPT / "an_input_waits_behind_its_barrier.trace"
IN_FLIGHT = KEPT / "what_overtaken_events_become.trace"
ORPHAN = KEPT / "broken" / "fwd_buffered_events_leave_before_the_barrier.trace"
LOST = KEPT / "broken" / "cut_the_barrier_overtakes_the_outbox.trace"
EARLY = Path(defects.__file__).parent / "unaligned" / "U05_recorded_behind_barrier.trace"
IDS = [path.stem for path in TRACES]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(path: Path) -> SpaceTime:
    """A trace, laid out."""
    head, entries = read(path.read_text(), path.name)
    return lay_out(entries, topology_of(head))


def fates(path: Path) -> dict[str, Fate | None]:
    """Of each event on each channel: where it stands to the cut."""
    return {f"{arrow.message} {arrow.channel}": arrow.fate for arrow in drawn(path).arrows if arrow.kind == "Event"}


def test_an_orphan_is_seen() -> None:
    """The picture of a counterexample would not show what is wrong."""
    assert fates(ORPHAN) == {"a1 a->join": Fate.BEHIND, "a1 join->sink": Fate.ORPHAN}


def test_a_lost_event_is_seen() -> None:
    """The same, of an event that is on neither side."""
    assert fates(LOST) == {"a1 a->sink": Fate.LOST}


def test_what_is_recorded_is_in_flight_and_not_lost() -> None:
    """An unaligned checkpoint would look broken."""
    assert set(fates(IN_FLIGHT).values()) == {Fate.IN_FLIGHT}


def test_what_is_recorded_from_behind_the_cut_is_an_orphan() -> None:
    """It is in the state of the channel, and is sent again after a restore: the picture would show nothing wrong."""
    assert fates(EARLY) == {"a1 a->join": Fate.EARLY, "a1 join->s": Fate.BEHIND}


def test_what_another_checkpoint_recorded_is_lost() -> None:
    """It would seem to be in flight in this one, which lacks it."""
    event = Event("a", 1)
    found = {}
    for recorder in (1, 2):
        entries: list[tuple[int, str, str, str | None, object]] = [
            (0, ">emit", "a", None, event),
            (0, "send", "a", "a->s", event),
            (1, "snapshot", "a", None, (2, "x")),
            (1, "send", "a", "a->s", CheckpointBarrier(2, 2)),
            (2, "snapshot", "s", None, (2, "x")),
            (3, "capture", "s", "a->s", (recorder, event)),
        ]
        found[recorder] = lay_out(entries, Topology.parse("a->s"), 2).arrows[0].fate
    assert found == {1: Fate.LOST, 2: Fate.IN_FLIGHT}


@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_a_picture_shows_a_fault_only_where_the_equation_breaks(path: Path) -> None:
    """Red arrows would be drawn over sound runs, or none over one whose cut is inconsistent."""
    faulty = [arrow for arrow in drawn(path).arrows if arrow.fate in FAULTY]
    broken = {violation.invariant for violation in judged(path.read_text()).violations}
    assert not faulty or "CUT" in broken


def test_what_waits_behind_its_barrier_is_drawn_as_waiting() -> None:
    """The alignment, which is what the picture is for, would not show."""
    buffered = [
        a for a in drawn(HELD).arrows if a.kind == "Event" and a.applied is not None and a.applied > (a.taken or 0) + 1
    ]
    assert buffered
    assert "is buffered" in svg(drawn(HELD), "buffered")


def test_the_cut_goes_through_the_snapshot_of_every_task() -> None:
    """The line that a reader goes by would pass elsewhere."""
    space = drawn(ORPHAN)
    snapshots = {mark.process: mark.step for mark in space.marks if mark.kind == "snapshot"}
    assert space.cut == snapshots
    assert set(space.cut) == {"a", "b", "join", "sink"}


@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_every_message_that_was_sent_is_an_arrow(path: Path) -> None:
    """Something would be missing from the picture."""
    _, entries = read(path.read_text())
    assert sum(arrow.sent is not None for arrow in drawn(path).arrows) == sum(
        e[1] in ("send", "restored_in_flight") for e in entries
    )
    assert sum(arrow.taken is not None for arrow in drawn(path).arrows) == sum(entry[1] == "take" for entry in entries)


@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_an_svg_is_whole_and_needs_nothing_else(path: Path) -> None:
    """It would not open, or only where there is a network."""
    text = svg(drawn(path), 'a & b < "c"', ["CUT: a1 <is> lost"])
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for line in root.iter(f"{SVG}line"):
        assert -1 <= float(line.attrib["x1"]) <= width + 1
        assert -1 <= float(line.attrib["y2"]) <= height + 1
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert "! CUT: a1 <is> lost" in words
    markers = {marker.attrib["id"] for marker in root.iter(f"{SVG}marker")}
    assert set(re.findall(r"url\(#(\w+)\)", text)) <= markers


@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_no_two_words_stand_in_one_place(path: Path) -> None:
    """A message's name would be written over that of a snapshot, and neither could be read."""
    labels = [
        (float(e.attrib["x"]), float(e.attrib["y"]), (8 if "bad" in e.attrib["class"] else 6) * len(e.text or ""))
        for e in ET.fromstring(svg(drawn(path), "x")).iter(f"{SVG}text")
        if e.attrib.get("class") in ("s", "s g", "s good", "bad")
    ]
    assert labels
    for (x, y, wide), (other, below, its) in combinations(labels, 2):
        assert abs(y - below) >= 11 or x >= other + its or other >= x + wide


@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_the_legend_names_the_signs_that_are_there(path: Path) -> None:
    """A reader would look for what is not there, or take the circle of a command for the ring of a recorded event."""
    text = svg(drawn(path), "x")
    words = [*ET.fromstring(text).iter(f"{SVG}text")]
    (signs,) = (e.text for e in words if e.attrib.get("class") == "s g" and e.attrib["x"] == "16")
    named = {sign.partition(": ")[0] for sign in (signs or "").split("; ")}
    unsaid = {*re.findall(r'r="3.5"[^>]*><title>([^<]*)<', text)} - {e.text for e in words}
    assert ("circle" in named) == bool(unsaid)
    assert ("black bar" in named) == ('rx="2"' in text)
    assert ("ring" in named) == ('r="7"' in text)
    assert ("dot" in named) == ('r="4"' in text)
    assert ("broad" in named) == ("is buffered" in text)
    assert ("dashed" in named) == ("<polyline" in text)


def test_the_orphan_is_called_out_on_its_arrow() -> None:
    """A reader would have to look for it."""
    root = ET.fromstring(svg(drawn(ORPHAN), "x"))
    assert [e.text for e in root.iter(f"{SVG}text") if e.attrib.get("class") == "bad"] == ["a1 orphan"]


def test_what_a_crash_left_on_its_way_ends_where_the_job_is_restored() -> None:
    """An event of the attempt that failed would seem to arrive in the next one."""
    space = drawn(KEPT / "what_was_in_flight_is_restored.trace")
    (restored,) = space.restores
    gone = [arrow for arrow in space.arrows if arrow.gone is not None]
    assert gone
    assert {(arrow.gone, arrow.applied) for arrow in gone} == {(restored, None)}
    assert all(arrow.sent is not None and arrow.sent < restored for arrow in gone)
    assert any(arrow.restored_in_flight and arrow.applied is not None for arrow in space.arrows)


def test_a_title_ends_before_the_picture_does() -> None:
    """The words on top would run out of it."""
    root = ET.fromstring(svg(drawn(ORPHAN), "long words " * 60))
    (title,) = [element for element in root.iter(f"{SVG}text") if element.attrib.get("class") == "t"]
    assert title.text is not None
    assert title.text.endswith(" ...")
    assert len(title.text) * 10 <= float(root.attrib["width"])


def long_trace(events: int) -> SpaceTime:
    """Two checkpoints far apart in a long run."""
    entries: list[tuple[int, str, str, str | None, object]] = []

    def pass_on(message: object, effect: tuple[str, str | None, object]) -> None:
        entries.append((len(entries), "send", "a", "a->sink", message))
        entries.append((len(entries), "take", "sink", "a->sink", message))
        entries.append((len(entries), effect[0], "sink", effect[1], effect[2]))

    for checkpoint_id in (1, 2):
        for sequence in range(1, events + 1):
            event = Event("a", sequence + (checkpoint_id - 1) * events)
            entries.append((len(entries), ">emit", "a", None, event))
            pass_on(event, ("deliver", "a->sink", event))
        entries.append((len(entries), ">trigger", "coordinator", None, checkpoint_id))
        entries.append((len(entries), "snapshot", "a", None, (checkpoint_id, "x")))
        pass_on(CheckpointBarrier(checkpoint_id, checkpoint_id), ("block", "a->sink", checkpoint_id))
        entries.append((len(entries), "snapshot", "sink", None, (checkpoint_id, "x")))
        entries.append((len(entries), "completed", "coordinator", None, checkpoint_id))
    return lay_out(entries, Topology.parse("a->sink"), 2)


def test_of_a_long_run_the_part_around_the_checkpoint_is_drawn() -> None:
    """A picture as wide as a street shows nothing, and cutting it must not move what is left."""
    space = long_trace(400)
    with pytest.raises(TooLongError, match="picture holds 600"):
        svg(space, "long")
    near = space.around_cut()
    assert len(near.times_ns) < 60
    assert near.times_ns[near.cut["a"]] == space.times_ns[space.cut["a"]]
    assert {m.text for m in near.marks if m.kind != ">emit"} == {"trigger 2", "snapshot 2", "2 complete"}
    bare = space.without_events()
    assert [str(arrow.message) for arrow in bare.arrows] == ["barrier 2"]
    assert "<svg" in svg(near, "near")
    assert len(bare.times_ns) <= 8 < MOST_STEPS


# Other formats, each against its own rules.


@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_mermaid_takes_every_line(path: Path) -> None:
    """The diagram would end in a syntax error."""
    first, *lines = mermaid(drawn(path), ["CUT: x; y"]).splitlines()
    assert first == "sequenceDiagram"
    name = r"p\d+"
    text = r"(?:[^;#]|#\d+;)+"
    shapes = (rf"participant {name} as \S+", rf"{name}(?:->>|--x){name}: {text}", rf"Note over {name}: {text}")
    for line in lines:
        assert any(re.fullmatch(r"    " + shape, line) for shape in shapes), line


SHIVIZ = re.compile(r"(?P<event>.*)\n(?P<host>\S*) (?P<clock>{.*})")


@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_shiviz_reads_the_log_and_its_clocks_are_sound(path: Path) -> None:
    """ShiViz would refuse the log: a host's own count must go up by one, and no count come from the future."""
    text = shiviz(drawn(path))
    events = list(SHIVIZ.finditer(text))
    assert "\n".join(match[0] for match in events) + "\n" == text
    assert events
    own: dict[str, int] = {}
    before: dict[str, dict[str, int]] = {}
    for match in events:
        clock = json.loads(match["clock"])
        host = match["host"]
        assert clock[host] == own.get(host, 0) + 1
        own[host] = clock[host]
        assert all(clock[other] >= count for other, count in before.get(host, {}).items())
        assert all(count <= own.get(other, 0) for other, count in clock.items())
        before[host] = clock


def test_a_message_carries_its_senders_clock() -> None:
    """ShiViz would draw no arrow."""
    events = [(m["event"], m["host"], json.loads(m["clock"])) for m in SHIVIZ.finditer(shiviz(drawn(ORPHAN)))]
    sent = next(clock for event, _, clock in events if event == "send a1 on join->sink")
    taken = next(clock for event, _, clock in events if event == "take a1 from join->sink")
    assert all(taken[host] >= count for host, count in sent.items())


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_perfetto_gets_slices_that_its_flows_begin_and_end_in(path: Path, timed: bool) -> None:
    """A flow without a slice at its end is not drawn, and an event without a number is refused."""
    events = json.loads(perfetto(drawn(path), timed))["traceEvents"]
    slices = {(e["tid"], e["ts"], e["name"]) for e in events if e["ph"] == "X"}
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert set(starts) == set(ends)
    taken = {arrow for arrow in range(len(drawn(path).arrows)) if drawn(path).arrows[arrow].taken is not None}
    assert set(starts) == {flow for flow in taken if drawn(path).arrows[flow].sent is not None}
    for event in (*starts.values(), *ends.values()):
        assert (event["tid"], event["ts"], event["name"]) in slices
    for flow, start in starts.items():
        assert start["ts"] <= ends[flow]["ts"]
        assert ends[flow]["bp"] == "e"
    for event in events:
        assert event["ph"] in "MiXsf"
        assert event["ph"] == "M" or event["ts"] >= 0
        assert event.get("dur", 0) >= 0


def plain(value: object) -> object:
    """An ITF value as Python's; fails on what the format does not have."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return [plain(each) for each in value]
    assert isinstance(value, dict)
    (tag, content), *rest = value.items()
    assert not rest
    if tag == "#bigint":
        return int(content)
    assert tag == "#map"
    return {plain(key): plain(item) for key, item in content}


@pytest.mark.parametrize("path", TRACES, ids=IDS)
def test_itf_has_a_state_for_each_move(path: Path) -> None:
    """A viewer would show other states than the run went through."""
    head, entries = read(path.read_text())
    topology = topology_of(head)
    whole = json.loads(itf(entries, topology, path.name))
    assert set(whole) == {"#meta", "vars", "states"}
    assert len(whole["states"]) == 1 + sum(entry[1].startswith(">") for entry in entries)
    for index, state in enumerate(whole["states"]):
        assert set(state) == {"#meta", *whole["vars"]}
        assert state["#meta"] == {"index": index}
        assert all(plain(state[name]) is not None for name in whole["vars"])
    last = whole["states"][-1]
    sent, taken = ([e for e in entries if e[1] in verbs] for verbs in (("send", "restored_in_flight"), ("take",)))
    left = plain(last["channels"])
    assert isinstance(left, dict)
    assert set(left) == set(topology.channels)
    if not any(entry[1] == ">restore" for entry in entries):
        assert sum(map(len, left.values())) == len(sent) - len(taken)
