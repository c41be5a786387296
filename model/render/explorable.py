"""The explorable run: a trace with a cut that one drags, for a notebook, a report, or a page of its own.

The component is one module of JavaScript and a style sheet beside this file, which a page takes as they are; nothing is
built or loaded. Here is what goes into it, one JSON value: the journal in columns, and for a small scope the states
around the run with the moves between them. A page has all in it, and opens without a network.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from barrierlab.model.checkpoint.state_graph import StateGraph
from barrierlab.model.checkpoint.trace import is_timed, text_of
from barrierlab.model.render import palette
from barrierlab.model.render.spacetime import MARKS, SpaceTime, lay_out
from barrierlab.model.spec.history import COORDINATOR, Entry
from barrierlab.model.spec.messages import kind_of
from barrierlab.model.spec.topology import Topology

MODULE, STYLE = (Path(__file__).with_name(f"explorable.{ending}") for ending in ("js", "css"))
MOST_ENTRIES = 20_000
"""Of a longer journal a page has the part around one checkpoint."""

_KINDS = {
    "Event": "event",
    "CheckpointBarrier": "barrier",
    "Watermark": "watermark",
    "CancelBarrier": "cancel",
    "EndOfInput": "end",
}
_MARGIN = 60  # steps around a cut
_PACKED_FROM = 20_000  # characters
_PAGE_STYLE = (
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}"
    "main{max-width:72rem;margin:0 auto;padding:1rem}"
    "h1{font-size:1.25rem;line-height:1.25;margin:.2rem 0 .6rem;overflow-wrap:anywhere}"
    ".bad{color:var(--bad);font-weight:600}.good{color:var(--good)}.said{margin:.2rem 0;overflow-wrap:anywhere}"
)


class Columns:
    """The entries of a journal as columns of small numbers, with the tables that say what these stand for."""

    def __init__(self, topology: Topology) -> None:
        self.nodes = [*topology.tasks, COORDINATOR]
        self.channels = list(topology.channels)
        self.verbs: list[str] = []
        self.subjects: list[dict[str, Any]] = []
        self._numbers: dict[tuple[object, ...], int] = {}

    def row(self, verb: str, node: str, channel: str | None, subject: object) -> tuple[int, int, int, int]:
        """Verb, node, channel and subject of an entry, as numbers; -1 is none."""
        channel_number = -1 if channel is None else self._number(("channel", channel), self.channels, channel)
        return (
            self._number(("verb", verb), self.verbs, verb),
            self._number(("node", node), self.nodes, node),
            channel_number,
            -1 if subject is None else self._subject(subject),
        )

    def _number(self, key: tuple[object, ...], values: list[Any], value: object) -> int:
        number = self._numbers.get(key)
        if number is None:
            if value not in values:
                values.append(value)
            number = self._numbers[key] = values.index(value)
        return number

    def _subject(self, subject: object) -> int:
        kind = _KINDS.get(kind_of(subject), "")
        text = text_of(subject)
        key = (kind_of(subject), text)
        if key in self._numbers:
            return self._numbers[key]
        described: dict[str, Any] = {"text": text}
        if kind:
            described["kind"] = kind
        checkpoint_id = getattr(subject, "checkpoint_id", subject)
        if isinstance(subject, tuple) and subject:
            described["head"] = text_of(subject[0])
            checkpoint_id = subject[0]
            if len(subject) == 2 and kind_of(subject[1]) in _KINDS:
                described["inner"] = self._subject(subject[1])
        if type(checkpoint_id) is int:
            described["id"] = checkpoint_id
        self.subjects.append(described)
        self._numbers[key] = len(self.subjects) - 1
        return self._numbers[key]


def data_of(
    entries: Sequence[Entry],
    topology: Topology,
    title: str,
    *,
    verdict: str = "",
    violations: Iterable[str] = (),
    checkpoint_id: int | None = None,
    permits_orphans: bool = False,
    part: bool = False,
    graph: StateGraph | None = None,
) -> dict[str, Any]:
    """Return what the component takes: the run, and what was said of it.

    Parameters
    ----------
    entries : sequence of Entry
        The journal, whole.
    topology : Topology
    title : str
    verdict : str
        Of the invariants.
    violations : iterable of str
    checkpoint_id : int, optional
        Whose cut is shown first; by default the one that `lay_out` takes.
    permits_orphans : bool
        Whether the protocol is one of at least once.
    part : bool
        Whether only the part around that checkpoint is wanted; of a long journal it is all that there is room for.
    graph : StateGraph, optional
        The states around the run: `model.checkpoint.state_graph`.
    """
    drawn = lay_out(entries, topology, checkpoint_id)
    chosen, note = range(len(entries)), ""
    if part or len(entries) > MOST_ENTRIES:
        chosen = _whole_moves(entries, _part(drawn, len(entries), 0 if part else MOST_ENTRIES))
        of = f"around checkpoint {drawn.checkpoint_id}" if drawn.checkpoint_id else "at the beginning"
        note = f"The part {of}: entries {chosen.start + 1} to {chosen.stop} of {len(entries)}."
    earlier = _earlier(entries, topology, chosen.start)
    later = _later(entries, topology, chosen.stop)
    kept = [entries[place] for place in (*earlier, *chosen, *later)]
    columns = Columns(topology)
    rows = [columns.row(*entry[1:]) for entry in kept]
    times = [entry[0] for entry in kept]
    data: dict[str, Any] = {
        "title": title,
        "tasks": list(topology.tasks),
        "coordinator": COORDINATOR,
        "timed": is_timed(entries) and times[-1] > times[0],
        "verdict": verdict,
        "violations": list(violations),
        "permits_orphans": permits_orphans,
        "checkpoint": drawn.checkpoint_id,
        "marks": MARKS,
        "note": note,
        "earlier": len(earlier),
        "later": len(later),
        "first_entry": chosen.start,
    }
    if graph is not None:
        data["graph"] = _in_columns(graph, columns)
    names = ("verb", "node", "channel", "subject")
    data["entries"] = {
        "at": [now - before for before, now in zip([0, *times], times, strict=False)],
        **dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True)),
    }
    data |= {"verbs": columns.verbs, "nodes": columns.nodes, "subjects": columns.subjects}
    ends = {channel: topology.ends(channel) for channel in columns.channels}
    data["channels"] = [{"name": name, "from": sender, "to": receiver} for name, (sender, receiver) in ends.items()]
    return data


def _in_columns(graph: StateGraph, columns: Columns) -> dict[str, Any]:
    """Return a graph of states for the component: an edge is a number of each list, a target counts from its state."""
    moves: dict[str, int] = {}
    notes: dict[tuple[tuple[int, ...], ...], int] = {}
    edges = [(number, edge) for number, its in enumerate(graph.edges) for edge in its]
    rows = [tuple(columns.row(*note) for note in edge.notes) for _, edge in edges]
    return {
        "degrees": [len(its) for its in graph.edges],
        "move": [moves.setdefault(edge.text, len(moves)) for _, edge in edges],
        "note": [notes.setdefault(row, len(notes)) for row in rows],
        "targets": [None if edge.target is None else edge.target - number for number, edge in edges],
        "moves": list(moves),
        "notes": list(notes),
        "wrong": list(graph.wrong.items()),
        "all": graph.is_all,
        "path": graph.path,
    }


def _part(drawn: SpaceTime, count: int, room: int) -> range:
    """Return the places of the entries around the cut, with as many on both sides as there is room for."""
    steps = drawn.steps_around_cut(_MARGIN) if drawn.checkpoint_id else range(0)
    places = [place for place, step in enumerate(drawn.step_of_entry) if step in steps] or [0]
    first, last = places[0], min(places[-1], places[0] + MOST_ENTRIES - 1)
    more = max(0, room - (last + 1 - first))
    first = max(0, min(first - more // 2, count - room))
    return range(first, min(count, max(last + 1, first + room)))


def _whole_moves(entries: Sequence[Entry], part: range) -> range:
    """Return the part from the move on that its first entry belongs to, to the end of its last one."""
    first, stop = part.start, part.stop
    while first and not entries[first][1].startswith(">"):
        first -= 1
    while stop < len(entries) and not entries[stop][1].startswith(">"):
        stop += 1
    return range(first, stop)


def _earlier(entries: Sequence[Entry], topology: Topology, first: int) -> list[int]:
    """Return the places of entries ahead of a part without which a cut in it could not be judged.

    These are what is on its way or buffered when the part begins, when an event of it was made, and what each task did
    last, which is the cause of what leaves its outbox.
    """
    if not first:
        return []
    found: set[int] = set()
    way: dict[tuple[str | None, object], list[int]] = {}
    made: dict[object, int] = {}
    last: dict[str, int] = {}
    for place, (_, verb, node, channel, subject) in enumerate(entries[:first]):
        if verb == ">restore":
            way, made, last = {}, {}, {}
        elif verb in ("send", "restored_in_flight"):
            way[channel, subject] = [place]
        elif verb == "take":
            way.get((channel, subject), []).append(place)
        elif verb in ("deliver", "end", "ignore", "block"):
            way.pop((channel, subject), None)
            if verb in ("deliver", "end"):
                last[node] = place
        elif verb == ">emit":
            made[subject] = place
    for (_, subject), places in way.items():
        if kind_of(subject) != "CheckpointBarrier":
            found.update(places)
    sources = set(topology.sources)
    for _, verb, node, _, subject in entries[first:]:
        if verb == ">restore":
            break
        if verb == "send" and node in sources and subject in made:
            found.add(made[subject])
    return sorted(found.union(last.values()))


def _later(entries: Sequence[Entry], topology: Topology, stop: int) -> list[int]:
    """Return the places of entries behind a part that send what was caused in it: it is in an outbox when that ends."""
    found: list[int] = []
    waiting = set(topology.tasks)
    for place in range(stop, len(entries)):
        _, verb, node, _, subject = entries[place]
        if verb == ">restore" or not waiting:
            break
        if verb in ("deliver", "end", ">emit"):
            waiting.discard(node)
        elif verb == "send" and node in waiting and kind_of(subject) == "Event":
            found.append(place)
    return found


def packed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same, deflated if it is long: a browser opens it as fast as it reads the text."""
    text = json.dumps(data, separators=(",", ":"))
    if len(text) < _PACKED_FROM:
        return dict(data)
    return {"packed": base64.b64encode(zlib.compress(text.encode(), 9)).decode()}


def element(data: Mapping[str, Any]) -> str:
    """Return a run for a page that has `resources` once: a place for it, and its data."""
    text = json.dumps(packed(data), separators=(",", ":")).replace("<", "\\u003c")
    return f'<div class="brl-run"></div><script type="application/json">{text}</script>'


def resources() -> str:
    """The style and the module, behind all elements of a page: it shows every run that is in it."""
    style = f"{palette.css('.brl')}\n{STYLE.read_text(encoding='utf-8')}"
    return (
        f'<style>{style}</style>\n<script type="module">\n{MODULE.read_text(encoding="utf-8")}\nmountAll();\n</script>'
    )


def page(data: Mapping[str, Any]) -> str:
    """A page of its own that shows a run: one file, which loads nothing."""
    title = escape(str(data["title"]))
    said = [f'<p class="said bad">! {escape(each)}</p>' for each in data["violations"][:5]]
    if len(data["violations"]) > len(said):
        said.append(f'<p class="said">and {len(data["violations"]) - len(said)} more</p>')
    if not said and data["verdict"]:
        holds = data["verdict"] == "holds"
        words = "the invariants hold" if holds else data["verdict"]
        said = [f'<p class="said{" good" if holds else ""}">{escape(words)}</p>']
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    head = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>\n<style>{palette.css()}\n{_PAGE_STYLE}</style>\n</head>",
    ]
    none = "<noscript><p>This page needs JavaScript; barrierlab show --format svg draws the run without.</p></noscript>"
    body = [f"<body>\n<main>\n<h1>{title}</h1>", *said, element(data), none, resources(), "</main>\n</body>\n</html>\n"]
    return "\n".join([*head, *body])
