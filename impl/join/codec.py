"""Merge map messages as bytes: Simple Binary Encoding by the schema in `merge_map.xml`, little endian.

A message is a header of eight bytes (block length, template, schema, version), the block of its fixed fields, and for
an announce a group: its header (block length, count) and an entry for each rule. What is absent is written as its null
value. Source: merge-map-join-barrier, sections 10, 14 and 15; FIX Simple Binary Encoding 1.0 for what a reader does
with a newer version: what is behind the fields it knows, in a block, in an entry and at the end, is skipped.

Bytes come from a peer, so what is wrong with them is an answer: `Undecodable` where not even the output is known, else
`InvalidMergeMap`. Nothing is allocated by a count before the bytes for it are seen to be there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from struct import Struct

from barrierlab.impl.errors import ContractError, MergeMapError
from barrierlab.impl.join.merge_map import (
    NULL_I32,
    NULL_I64,
    NULL_U32,
    NULL_U64,
    ClockDomain,
    InvalidMergeMap,
    MergeMap,
    MergeMapRequest,
    MergeRuleType,
    MergeTimeRuleType,
    SequenceMergeMapAnnounce,
    SequenceMergeMapRequest,
    SequenceMergeRule,
    TimestampMergeMapAnnounce,
    TimestampMergeMapRequest,
    TimestampMergeRule,
    TimestampSource,
)

SCHEMA_ID = 903
VERSION = 1
SEQUENCE_ANNOUNCE, SEQUENCE_REQUEST, TIMESTAMP_ANNOUNCE, TIMESTAMP_REQUEST = 1, 2, 3, 4

HEADER = Struct("<HHHH")  # block length, template id, schema id, version
GROUP = Struct("<HH")  # block length, count
BLOCKS = {
    SEQUENCE_ANNOUNCE: Struct("<IQQ"),  # output, epoch, stale timeout
    SEQUENCE_REQUEST: Struct("<IQ"),  # output, epoch
    TIMESTAMP_ANNOUNCE: Struct("<IQQBQ"),  # output, epoch, stale timeout, clock domain, lateness
    TIMESTAMP_REQUEST: Struct("<IQ"),
}
ENTRIES = {
    SEQUENCE_ANNOUNCE: Struct("<IBiI"),  # input, rule type, offset, window
    TIMESTAMP_ANNOUNCE: Struct("<IBBqQ"),  # input, rule type, timestamp source, offset, window
}


class Refusal(StrEnum):
    """The reason why bytes are no message of this schema."""

    SHORT = "short"
    LONG = "long"
    SCHEMA = "another schema"
    TEMPLATE = "unknown template"
    VERSION = "unknown version"
    BLOCK = "wrong block length"
    GROUP = "group beyond the end"
    VALUE = "value out of range"


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Bytes that are no message, and why."""

    refusal: Refusal
    reason: str


CodecRow = tuple[int, ...]
Decoded = MergeMap | MergeMapRequest | InvalidMergeMap | Undecodable


def encode(message: MergeMap | MergeMapRequest) -> bytes:
    """Return the bytes of `message`: 58 for a sequence map with two rules, 63 for a timestamp map with one.

    Raises
    ------
    TypeError
        If `message` is none of the four.
    """
    match message:
        case SequenceMergeMapAnnounce():
            block: CodecRow = (message.out_stream_id, message.epoch, _or_null(message.stale_timeout_ns, NULL_U64))
            rows: list[CodecRow] = [
                (r.input_stream_id, r.rule_type, _or_null(r.offset, NULL_I32), _or_null(r.window_size, NULL_U32))
                for r in message.rules
            ]
            return _announce(SEQUENCE_ANNOUNCE, block, rows)
        case TimestampMergeMapAnnounce():
            block = (
                message.out_stream_id,
                message.epoch,
                _or_null(message.stale_timeout_ns, NULL_U64),
                message.clock_domain,
                _or_null(message.lateness_ns, NULL_U64),
            )
            rows = [
                (
                    r.input_stream_id,
                    r.rule_type,
                    r.timestamp_source,
                    _or_null(r.offset_ns, NULL_I64),
                    _or_null(r.window_ns, NULL_U64),
                )
                for r in message.rules
            ]
            return _announce(TIMESTAMP_ANNOUNCE, block, rows)
        case SequenceMergeMapRequest():
            return _begin(SEQUENCE_REQUEST, (message.out_stream_id, message.epoch))
        case TimestampMergeMapRequest():
            return _begin(TIMESTAMP_REQUEST, (message.out_stream_id, message.epoch))
    raise TypeError(f"a {type(message).__name__} is no message of schema {SCHEMA_ID}")


def decode(data: bytes | bytearray | memoryview) -> Decoded:
    """Return the message in `data`, or the reason why there is none."""
    if len(data) < HEADER.size:
        return Undecodable(Refusal.SHORT, f"{len(data)} bytes; a header takes {HEADER.size}")
    block_length, template, schema, version = HEADER.unpack_from(data)
    if schema != SCHEMA_ID:
        return Undecodable(Refusal.SCHEMA, f"schema {schema}; read here: {SCHEMA_ID}")
    if version < VERSION:
        return Undecodable(Refusal.VERSION, f"version {version}; read here: {VERSION} and newer")
    block = BLOCKS.get(template)
    if block is None:
        return Undecodable(Refusal.TEMPLATE, f"template {template}; read here: {', '.join(map(str, BLOCKS))}")
    if not _fits(block_length, block.size, version):
        return Undecodable(Refusal.BLOCK, f"a block of {block_length} bytes; template {template} has {block.size}")
    end = HEADER.size + block_length
    if len(data) < end:
        return Undecodable(Refusal.SHORT, f"{len(data)} bytes; header and block take {end}")
    fields = block.unpack_from(data, HEADER.size)
    entry = ENTRIES.get(template)
    if entry is None:
        if len(data) > end and version == VERSION:
            return Undecodable(Refusal.LONG, f"{len(data)} bytes; the message takes {end}")
        return _request(template, fields)
    rows = _rows(data, end, entry, version)
    return rows if type(rows) is Undecodable else _map(template, fields, rows)  # type: ignore[arg-type]


def _or_null(value: int | None, null: int) -> int:
    return null if value is None else value


def _or_none(value: int, null: int) -> int | None:
    return None if value == null else value


def _begin(template: int, fields: CodecRow) -> bytes:
    block = BLOCKS[template]
    return HEADER.pack(block.size, template, SCHEMA_ID, VERSION) + block.pack(*fields)


def _announce(template: int, fields: CodecRow, rows: list[CodecRow]) -> bytes:
    entry = ENTRIES[template]
    pieces = [_begin(template, fields), GROUP.pack(entry.size, len(rows))]
    pieces += [entry.pack(*row) for row in rows]
    return b"".join(pieces)


def _fits(length: int, known: int, version: int) -> bool:
    """Return whether a block may be so long: as known here, or longer in a newer version."""
    return length == known or (version > VERSION and length > known)


def _rows(data: bytes | bytearray | memoryview, at: int, entry: Struct, version: int) -> list[CodecRow] | Undecodable:
    """Return the entries of the group that begins at `at`."""
    if len(data) < at + GROUP.size:
        return Undecodable(Refusal.SHORT, f"{len(data)} bytes; up to the rules there are {at + GROUP.size}")
    length, count = GROUP.unpack_from(data, at)
    at += GROUP.size
    if count and not _fits(length, entry.size, version):
        return Undecodable(Refusal.BLOCK, f"a rule of {length} bytes; read here: {entry.size}")
    end = at + count * length
    if len(data) < end:
        return Undecodable(Refusal.GROUP, f"{len(data)} bytes; {count} rules of {length} bytes end at {end}")
    if len(data) > end and version == VERSION:
        return Undecodable(Refusal.LONG, f"{len(data)} bytes; the message takes {end}")
    return [entry.unpack_from(data, place) for place in range(at, end, length)] if count else []


def _request(template: int, fields: CodecRow) -> Decoded:
    kind = SequenceMergeMapRequest if template == SEQUENCE_REQUEST else TimestampMergeMapRequest
    try:
        return kind(*fields)
    except ContractError as error:
        return Undecodable(Refusal.VALUE, str(error))


def _map(template: int, fields: CodecRow, rows: list[CodecRow]) -> Decoded:
    kind: type[MergeMap] = SequenceMergeMapAnnounce if template == SEQUENCE_ANNOUNCE else TimestampMergeMapAnnounce
    out_stream_id, epoch = fields[:2]
    try:
        SequenceMergeMapRequest(out_stream_id, epoch)  # whether it says which output it is for
    except ContractError as error:
        return Undecodable(Refusal.VALUE, str(error))
    try:
        return _sequence_map(fields, rows) if template == SEQUENCE_ANNOUNCE else _timestamp_map(fields, rows)
    except ContractError as error:
        return InvalidMergeMap(kind, out_stream_id, epoch, str(error))
    except ValueError as error:  # a number that an enumeration does not have
        return InvalidMergeMap(
            kind, out_stream_id, epoch, str(MergeMapError(str(error), "those of the schema", "name one"))
        )


def _sequence_map(fields: CodecRow, rows: list[CodecRow]) -> SequenceMergeMapAnnounce:
    out_stream_id, epoch, stale = fields
    rules = tuple(
        SequenceMergeRule(stream, MergeRuleType(kind), _or_none(offset, NULL_I32), _or_none(window, NULL_U32))
        for stream, kind, offset, window in rows
    )
    return SequenceMergeMapAnnounce(out_stream_id, epoch, rules, _or_none(stale, NULL_U64))


def _timestamp_map(fields: CodecRow, rows: list[CodecRow]) -> TimestampMergeMapAnnounce:
    out_stream_id, epoch, stale, domain, lateness = fields
    rules = tuple(
        TimestampMergeRule(
            stream,
            MergeTimeRuleType(kind),
            TimestampSource(source),
            _or_none(offset, NULL_I64),
            _or_none(window, NULL_U64),
        )
        for stream, kind, source, offset, window in rows
    )
    return TimestampMergeMapAnnounce(
        out_stream_id, epoch, ClockDomain(domain), rules, _or_none(stale, NULL_U64), _or_none(lateness, NULL_U64)
    )
