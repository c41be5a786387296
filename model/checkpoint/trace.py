"""A journal as text that a person can read and a machine can read back.

On top comments, then a header of ``name: value`` lines, a blank line, and moves. A line after ``>`` is a move, with its
time in seconds after ``@``; the lines below it, indented by four blanks, are its effects, at the same time unless they
say otherwise::

    # a1 crosses from a to the sink.
    topology: a->sink

    > emit a a1 @ 0.500000000
        a send a->sink a1
    > deliver a->sink @ 0.750000000
        sink take a->sink a1
        sink deliver a->sink a1

What a verb is followed by is in `model.spec.history.MOVES` and `EFFECTS`; a move that only the coordinator makes does
not name it. A message is written by its name: an event carries
more than that, and reads back equal all the same. An epoch is written where it is not the checkpoint's id.

Where there is no clock the moves have no time: ``> deliver a->sink``. They count as a nanosecond each, and a journal
in which that is all there is to say about time is written so. A move that the one above it brings about at once is
indented by two blanks then; and so are, in a scripted case (`model.checkpoint.scripted`), those that ``> stabilize``
stands for.

Between moves, blank lines and those after ``#`` and ``!`` (a verdict) are for the reader and are skipped. For all that
`write` makes, ``write(*read(text)[::-1]) == text``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from barrierlab.impl.errors import ContractError
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.spec.history import COORDINATOR, EFFECTS, MOVES, Entry
from barrierlab.model.spec.invariants import Limits, Verdict, judge_run
from barrierlab.model.spec.topology import Topology, suggestion

NS_PER_S = 1_000_000_000
NS_PER_MOVE = 1
"""The time that a move takes where there is no clock."""

STABILIZE = "stabilize"
COMMENT = "#"
"""The name under which a header keeps the comments on top, line by line."""

_EVENT = re.compile(r"([^\s.:]*[^\s.:\d]|[^\s.:]*\d(?=:)):?(0|[1-9]\d*)(?:\.([1-9]\d*))?", re.ASCII)
_BARRIER = re.compile(r"barrier (\d+)(?: epoch (\d+))?(?: (unaligned|flags (\d+)))?", re.ASCII)
_TIME = re.compile(r"(0|[1-9]\d*)\.(\d{9})", re.ASCII)
_FIELD = re.compile(r"([\w-]+): (\S(?:.*\S)?)")
_END = EndOfInput()

LINES = "a line begins with '> ', four blanks, '#' or '!'"


class TraceError(ValueError):
    """The text is no trace: the message names file and line, what came, and what is allowed."""


def write(entries: Sequence[Entry], header: Mapping[str, str], verdicts: Iterable[object] = ()) -> str:
    """The journal `entries` as text, below `header`; `verdicts` end it, a line each.

    Raises
    ------
    TraceError
        If an entry of `entries` has a verb that there is not, or a field of `header` does not fit a line.
    """
    lines = [*_head_lines(header), *lines_of(entries, is_timed(entries))]
    lines.extend(f"! {verdict}" for verdict in verdicts)
    return "\n".join(lines) + "\n"


def lines_of(entries: Iterable[Entry], timed: bool = False) -> list[str]:
    """A line an entry, with their times if asked for."""
    lines: list[str] = []
    names: dict[int, str] = {}  # by identity: a message is in many entries
    clock_ns, clock, effect_ns = -1, "", -1
    for at_ns, verb, node, channel, subject in entries:
        if timed and at_ns != clock_ns:
            clock_ns, clock = at_ns, f" @ {at_ns // NS_PER_S}.{at_ns % NS_PER_S:09d}"
        name = names.get(id(subject))
        if name is None:
            name = " " + text_of(subject) if subject is not None else ""
            if subject.__class__ is Event:
                names[id(subject)] = name
        if verb[0] != ">":
            other = "" if at_ns == effect_ns else clock
            where = f" {channel}" if channel is not None else ""
            lines.append(f"    {node} {verb}{where}{name}{other}")
            continue
        start = ">" if timed or at_ns != effect_ns else "  >"
        effect_ns = at_ns
        if channel is not None:
            lines.append(f"{start} {verb[1:]} {channel}{name}{clock}")
        elif verb in _OF_THE_COORDINATOR:
            lines.append(f"{start} {verb[1:]}{name}{clock}")
        else:
            lines.append(f"{start} {verb[1:]} {node}{name}{clock}")
    return lines


def is_timed(entries: Iterable[Entry]) -> bool:
    """Return whether the times of a journal say more than that one move follows the other."""
    move_ns = 0
    for at_ns, verb, *_ in entries:
        if verb[0] == ">" and at_ns == move_ns + NS_PER_MOVE:
            move_ns = at_ns
        elif at_ns != move_ns or not at_ns:
            return True
    return False


def read(text: str, name: str = "trace") -> tuple[dict[str, str], list[Entry]]:
    """Head and entries of the trace `text`.

    Parameters
    ----------
    text : str
    name : str, optional
        What errors call it: the file's name.

    Raises
    ------
    TraceError
        If a line is none of a trace.
    """
    lines = text.splitlines()
    reader = _TraceReader(name)
    header: dict[str, str] = {}
    for line in lines:
        reader.number += 1
        if not line:
            break
        reader.header(line, header)
    for line in lines[reader.number :]:
        reader.number += 1
        if line.startswith("    ! "):
            continue
        if line.startswith("    "):
            reader.effect(line[4:])
        elif line.startswith(("> ", "  > ")):
            reader.move(line.lstrip()[2:], is_nested=line[0] == " ")
        elif line and line[0] not in "#!":
            raise reader.error(f"{line!r} is no line of a trace", LINES)
    return header, reader.entries


def header_of_topology(topology: Topology) -> dict[str, str]:
    """The fields of a header that tell `topology`."""
    wide = [name for name in topology.operators if topology.parallelism(name) > 1]
    header = {"topology": str(topology)}
    if wide:
        header["parallelism"] = " ".join(f"{name}={topology.parallelism(name)}" for name in wide)
        header["exchanges"] = " ".join(f"{edge}={topology.exchange(edge)}" for edge in topology.edges)
    return header


def topology_of(header: Mapping[str, str], name: str = "trace") -> Topology:
    """The topology that a header tells.

    Raises
    ------
    TraceError, TopologyError
        If the header tells none.
    """
    if "topology" not in header:
        raise TraceError(
            f"{name}: the header has no line 'topology: a->join b->join'; it has {', '.join(header) or 'none'}"
        )
    parallelism = {operator: _whole(count, name) for operator, count in _pairs(header, "parallelism", name).items()}
    return Topology.parse(header["topology"], parallelism, _pairs(header, "exchanges", name))


_LIMITS = ("max_buffer_per_input", "max_buffer_memory_bytes", "max_inflight_buffer_bytes")


def judged(text: str, name: str = "trace") -> Verdict:
    """Return what the invariants say about a trace.

    The header tells the topology, and where they apply ``channel_capacity: a->join=2``, ``max_buffer_per_input: 3``,
    ``max_buffer_memory_bytes: 100``, ``max_inflight_buffer_bytes: 100``, ``guarantees: s=exactly_once``, and
    ``cut_off: yes`` if the run did not end by itself. Of all channels, and of all sinks: ``capacity: 2`` and
    ``guarantee: exactly_once``.
    """
    header, entries = read(text, name)
    topology = topology_of(header, name)
    capacity, guarantee = header.get("capacity"), header.get("guarantee")
    per_channel = {} if capacity is None else dict.fromkeys(topology.channels, _whole(capacity, name))
    per_channel |= {channel: _whole(count, name) for channel, count in _pairs(header, "channel_capacity", name).items()}
    buffered, buffered_bytes, in_flight = (
        None if header.get(key) is None else _whole(header[key], name) for key in _LIMITS
    )
    guarantees = ({} if guarantee is None else dict.fromkeys(topology.sinks, guarantee)) | _pairs(
        header, "guarantees", name
    )
    try:
        consistency = protocol_of(header.get("mode", header.get("protocol", "aligned"))).consistency
        limits = Limits(per_channel, buffered, buffered_bytes, in_flight, consistency)
        return judge_run(entries, topology, limits, None, header.get("cut_off") == "yes", guarantees)
    except ValueError as error:
        raise TraceError(f"{name}: {error}") from error


class _TraceReader:
    """The place of the reading, and what was read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.entries: list[Entry] = []
        self._at_ns: int | None = None
        self._moves = 0
        self._timed: bool | None = None
        self._stabilizes = False
        self._subjects: dict[tuple[str, str], object] = {}  # so that equal names are one object

    def error(self, actual: str, expected: str) -> TraceError:
        return TraceError(f"{self.name}:{self.number}: {actual}; {expected}")

    def header(self, line: str, header: dict[str, str]) -> None:
        if line.startswith(COMMENT) and (not header or list(header) == [COMMENT]):
            comment = line[1:].removeprefix(" ")
            header[COMMENT] = f"{header[COMMENT]}\n{comment}" if COMMENT in header else comment
            return
        field = _FIELD.fullmatch(line)
        if not field:
            raise self.error(f"{line!r} is no field of a header", "write 'name: value'; a blank line ends the header")
        if field[1] in header:
            raise self.error(f"the header has {field[1]!r} twice", "write it once")
        header[field[1]] = field[2]

    def move(self, line: str, is_nested: bool) -> None:
        if not is_nested:
            self._stabilizes = line == STABILIZE
            if self._stabilizes:
                return
        words, at, time = line.rpartition(" @ ")
        self._moves += not is_nested or self._stabilizes
        if self._timed is None:
            self._timed = bool(at)
        if self._timed and not at:
            raise self.error(f"the move {line!r} has no time", "end it with ' @ ' and seconds with nine decimals")
        if at and not self._timed:
            raise self.error(f"the move {line!r} has a time", "take it out: those before it have none")
        self._at_ns = self._time(time) if at else self._moves * NS_PER_MOVE
        verb, _, rest = (words if at else line).partition(" ")
        shape = self._shape(">" + verb, _MOVE_SHAPES)
        node, channel = COORDINATOR, None
        if shape[0] == "channel":
            channel, _, rest = rest.partition(" ")
            node = channel.partition("->")[2]
            if not node:
                raise self.error(f"{channel!r} is no channel", "write 'sender->receiver'")
        elif ">" + verb not in _OF_THE_COORDINATOR:
            node, _, rest = rest.partition(" ")
        self.entries.append((self._at_ns, ">" + verb, node, channel, self._subject(shape[1], rest)))

    def effect(self, line: str) -> None:
        words, at, time = line.rpartition(" @ ")
        at_ns = self._time(time) if at else self._at_ns
        if at_ns is None:
            raise self.error(
                f"the effect {line!r} has no time", "put it below a move, or end it with ' @ ' and seconds"
            )
        node, _, rest = (words if at else line).partition(" ")
        verb, _, rest = rest.partition(" ")
        shape, channel = self._shape(verb, _EFFECT_SHAPES), None
        if shape[0] == "channel":
            channel, _, rest = rest.partition(" ")
        self.entries.append((at_ns, verb, node, channel, self._subject(shape[1], rest)))

    def _time(self, text: str) -> int:
        time = _TIME.fullmatch(text)
        if not time:
            raise self.error(f"{text!r} is no time", "write seconds with nine decimals, such as 12.500000000")
        return int(time[1]) * NS_PER_S + int(time[2])

    def _shape(self, verb: str, shapes: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
        if verb not in shapes:
            kind = "move" if verb.startswith(">") else "effect"
            names = [name.removeprefix(">") for name in shapes]
            raise self.error(
                f"there is no {kind} {verb.removeprefix('>')!r}", suggestion(verb.removeprefix(">"), names)
            )
        return shapes[verb]

    def _subject(self, kind: str, text: str) -> object:
        known = self._subjects.get((kind, text))
        if known is None:
            try:
                known = _SUBJECTS[kind](text)
            except (ValueError, ContractError) as error:
                kind = "nothing" if kind == "-" else kind
                raise self.error(f"{text!r} stands where there is to be {kind}", str(error)) from error
            self._subjects[kind, text] = known
        return known


def _shapes(verbs: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return what follows each verb, out of its description: ``"channel"`` or ``"-"``, and a name in `_SUBJECTS`."""
    parts = {verb: text.split(": ")[0].split(", ", 2) for verb, text in verbs.items()}
    return {verb: (where, what) for verb, (_, where, what) in parts.items()}


_MOVE_SHAPES = _shapes(MOVES)
_EFFECT_SHAPES = _shapes(EFFECTS)
_OF_THE_COORDINATOR = {verb for verb, text in MOVES.items() if text.startswith("coordinator, ")}


def text_of(subject: object) -> str:
    """The subject of an entry in words."""
    if isinstance(subject, tuple):
        return " ".join(filter(None, map(text_of, subject)))
    if type(subject) is CheckpointBarrier:
        epoch = "" if subject.epoch == subject.checkpoint_id else f" epoch {subject.epoch}"
        flags = "" if not subject.flags else " unaligned" if subject.flags == 1 else f" flags {subject.flags}"
        return f"barrier {subject.checkpoint_id}{epoch}{flags}"
    return str(subject)


def _nothing(text: str) -> None:
    if text:
        raise ValueError("take it out")


def _number(text: str) -> int:
    if not re.fullmatch(r"-?(0|[1-9]\d*)", text, re.ASCII):
        raise ValueError("write a whole number")
    return int(text)


def _lateness(text: str) -> str | None:
    if text not in ("", "late"):
        raise ValueError("write late, or take it out")
    return text or None


def _words(text: str) -> tuple[str, ...] | None:
    return tuple(text.split()) or None


def _maybe_number(text: str) -> int | None:
    return _number(text) if text else None


def _message(text: str) -> StreamMessage:
    kind, _, rest = text.partition(" ")
    if text == "end":
        return _END
    if kind == "watermark":
        return Watermark(_number(rest))
    if kind == "cancel":
        return CancelBarrier(_number(rest))
    if kind == "barrier":
        return _barrier(text)
    return _event(text)


def _event(text: str) -> Event:
    name = _EVENT.fullmatch(text)
    if not name:
        raise ValueError("write an event such as a1, a1.2 or src2:1, 'watermark 5', 'barrier 1', 'cancel 1' or 'end'")
    event = Event(name[1], int(name[2]), int(name[3] or 0))
    if str(event) != text:
        raise ValueError(f"write it as {event}: ':' stands behind a name that ends in a digit")
    return event


def _barrier(text: str) -> CheckpointBarrier:
    parts = _BARRIER.fullmatch(text)
    if not parts:
        raise ValueError("write 'barrier 1', then if need be 'epoch 7', then 'unaligned'")
    checkpoint_id = int(parts[1])
    flags = 0 if not parts[3] else int(parts[4] or 1)
    return CheckpointBarrier(checkpoint_id, int(parts[2] or checkpoint_id), flags)


def _transaction(text: str) -> str:
    if not text or " " in text:
        raise ValueError("write the name of a transaction, such as s-1")
    return text


def _transaction_and_count(text: str) -> tuple[str, int]:
    transaction, _, count = text.partition(" ")
    return _transaction(transaction), _number(count)


def _transaction_and_events(text: str) -> tuple[str, tuple[Event, ...]]:
    transaction, *events = text.split(" ")
    return _transaction(transaction), tuple(map(_event, events))


def _id_and_text(text: str) -> tuple[int, str]:
    checkpoint_id, _, rest = text.partition(" ")
    return _number(checkpoint_id), rest


def _id_and_message(text: str) -> tuple[int, StreamMessage]:
    checkpoint_id, _, rest = text.partition(" ")
    return _number(checkpoint_id), _message(rest)


_SUBJECTS: dict[str, Callable[[str], object]] = {
    "-": _nothing,
    "event": _event,
    "message": _message,
    "barrier": _barrier,
    "id": _number,
    "id or -": _maybe_number,
    "late or -": _lateness,
    "channels or -": _words,
    "timestamp in ms": _number,
    "(id, reason)": _id_and_text,
    "(id, digest of the state)": _id_and_text,
    "(id, digest)": _id_and_text,
    "transaction": _transaction,
    "(transaction, count)": _transaction_and_count,
    "(transaction, events)": _transaction_and_events,
    "(id, message)": _id_and_message,
}


def _head_lines(header: Mapping[str, str]) -> list[str]:
    lines = []
    for comment in header[COMMENT].split("\n") if COMMENT in header else ():
        lines.append(f"{COMMENT} {comment}" if comment else COMMENT)
    for name, value in header.items():
        if name != COMMENT:
            line = f"{name}: {value}"
            if not _FIELD.fullmatch(line):
                raise TraceError(f"{line!r} is no field of a header; write 'name: value' in one line")
            lines.append(line)
    return [*lines, ""]


def _pairs(header: Mapping[str, str], field: str, name: str) -> dict[str, str]:
    """The field ``one=1 other=2`` of a header."""
    pairs = {}
    for word in header.get(field, "").split():
        key, equals, value = word.rpartition("=")
        if not equals:
            raise TraceError(f"{name}: {word!r} in {field!r} is no pair; write 'name=value'")
        pairs[key] = value
    return pairs


def _whole(text: str, name: str) -> int:
    if not text.isdecimal():
        raise TraceError(f"{name}: {text!r} in the header is no whole number; write one such as 2")
    return int(text)
