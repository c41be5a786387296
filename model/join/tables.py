"""The cases that need no order of events: which maps and settings there are, and what bytes say.

Each table has cases, and of each case what the document says; the code of `impl.join` is laid beside it. The schema is
that of merge-map-join-barrier, section 15, with the framing of FIX Simple Binary Encoding 1.0; what a map may be is in
sections 6.2 and 6.3 and protocol rule 28.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from barrierlab.impl.errors import ContractError
from barrierlab.impl.join import (
    ClockDomain,
    InvalidMergeMap,
    JoinConfig,
    LatestValueJoinBarrier,
    MergeMapAuthority,
    MergeMapJoiner,
    MergeRuleType,
    MergeTimeRuleType,
    SequenceMergeMapAnnounce,
    SequenceMergeMapRequest,
    SequenceMergeRule,
    SlotRing,
    StageConfig,
    TimestampMergeMapAnnounce,
    TimestampMergeMapRequest,
    TimestampMergeRule,
    TimestampSource,
    Undecodable,
    decode,
    encode,
)
from barrierlab.model.checkpoint.check import CaseScope, compared
from barrierlab.model.join.reference import MOST, REFUSED

TableCase = tuple[str, object, object]
"""The case that is tried, what the code answers, what the document says."""

# What a map may be, in numbers; None is null.

MOST_32 = 2**32 - 1
MOST_RULES = 2**16 - 2


class RuleFields(NamedTuple):
    """The fields of a rule as section 15 has them; `source` is None in a sequence rule."""

    stream: Any
    type: Any
    source: Any
    offset: Any
    window: Any


class MapFields(NamedTuple):
    """The fields of an announce; `clock` is None in a sequence map, and so is `late`."""

    out: Any
    epoch: Any
    stale: Any
    clock: Any
    late: Any
    rules: tuple[RuleFields, ...]


def _is_in(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def is_stream(value: object) -> bool:
    """Return whether a stream may have this id: neither 0 nor what stands for null."""
    return _is_in(value, 1, MOST_32 - 1)


def is_rule(rule: RuleFields, timed: bool) -> bool:
    """Return whether sections 6.2, 6.3 and 8.2 allow a rule."""
    bits = 64 if timed else 32
    if not is_stream(rule.stream) or (rule.source not in (1, 2) if timed else rule.source is not None):
        return False
    if rule.type == 0:
        return rule.window is None and _is_in(rule.offset, 1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1)
    return rule.type == 1 and rule.offset is None and _is_in(rule.window, 1, 2**bits - 2)


def is_map(each: MapFields, timed: bool) -> bool:
    """Return whether sections 6.2, 6.3 and rule 28 allow a map."""
    if not (is_stream(each.out) and _is_in(each.epoch, 0, MOST - 1)):
        return False
    if not 1 <= len(each.rules) <= MOST_RULES or not all(is_rule(rule, timed) for rule in each.rules):
        return False
    if each.stale is not None and not _is_in(each.stale, 1, MOST - 1):
        return False
    if any(rule.stream == each.out for rule in each.rules):
        return False
    if len({(rule.stream, rule.source) for rule in each.rules}) < len(each.rules):
        return False
    if not timed:
        return True
    late = each.late
    if each.clock not in (1, 2) or not (late is None or _is_in(late, 0, MOST - 1)):
        return False
    return all(rule.window is None or late is None or rule.window >= late for rule in each.rules)


def _made(rule: RuleFields, timed: bool) -> Any:
    """Return the rule as the code has it."""
    if timed:
        kind, source = MergeTimeRuleType(rule.type), TimestampSource(rule.source)
        return TimestampMergeRule(rule.stream, kind, source, rule.offset, rule.window)
    return SequenceMergeRule(rule.stream, MergeRuleType(rule.type), rule.offset, rule.window)


def _announce(each: MapFields, timed: bool) -> Any:
    """Return the map as the code has it."""
    rules = tuple(_made(rule, timed) for rule in each.rules)
    if timed:
        clock = ClockDomain(each.clock)
        return TimestampMergeMapAnnounce(each.out, each.epoch, clock, rules, each.stale, each.late)
    return SequenceMergeMapAnnounce(each.out, each.epoch, rules, each.stale)


def _fate(make: Callable[..., object], *args: Any, **named: Any) -> str:
    """Return the word for whether something can be made."""
    try:
        make(*args, **named)
    except ContractError:
        return REFUSED
    return "made"


def _is_made(allowed: bool) -> str:
    return "made" if allowed else REFUSED


STREAMS = (-1, 0, 1, MOST_32 - 1, MOST_32, True)


def rules() -> Iterator[TableCase]:
    """Return every rule at the ends of its ranges, with each pair of parameters."""
    for timed, bits in ((False, 32), (True, 64)):
        least = -(2 ** (bits - 1))
        offsets = (None, least, least + 1, -1, 0, -least - 1, -least, False)
        windows = (None, -1, 0, 1, 2**bits - 2, 2**bits - 1, True)
        for values in product(STREAMS, (0, 1), (1, 2) if timed else (None,), offsets, windows):
            rule = RuleFields(*values)
            yield str(rule), _fate(_made, rule, timed), _is_made(is_rule(rule, timed))
    yield "a rule type of times", _fate(SequenceMergeRule, 1, MergeTimeRuleType.OFFSET_NS, 0), REFUSED
    yield (
        "a rule type of numbers",
        _fate(TimestampMergeRule, 1, MergeRuleType.OFFSET, TimestampSource.SLOT_HEADER, 0),
        REFUSED,
    )
    yield "a source that is a number", _fate(TimestampMergeRule, 1, MergeTimeRuleType.OFFSET_NS, 1, 0), REFUSED


def _maps(timed: bool) -> Iterator[MapFields]:
    """Sound maps, and each with one field changed."""
    source, other = (1, 2) if timed else (None, None)
    at, behind = RuleFields(1, 0, source, 0, None), RuleFields(2, 0, source, -3, None)
    wide, narrow = RuleFields(3, 1, source, None, 5), RuleFields(1, 1, other, None, 2)
    clock, late = (1, 2) if timed else (None, None)
    sound = MapFields(9, 1, None, clock, late, (at, behind, wide))
    yield sound
    for stream in STREAMS:
        yield sound._replace(out=stream)
    for epoch in (-1, 0, MOST - 1, MOST, None, True):
        yield sound._replace(epoch=epoch)
    for stale in (-1, 0, 1, MOST - 1, MOST, True):
        yield sound._replace(stale=stale)
    for some in (
        (),
        (at,),
        (at, narrow),
        (wide, behind, wide),
        (at, behind, at),
        (at, at._replace(stream=9)),
        (narrow,),
    ):
        yield sound._replace(rules=some)
    if timed:
        for late in (None, -1, 0, 4, 5, 6, MOST - 1, MOST, True):
            yield sound._replace(late=late)
        yield sound._replace(clock=2)
        yield sound._replace(late=MOST - 1, rules=(at, behind))


def maps() -> Iterator[TableCase]:
    """Maps that are allowed and maps that are not, the bytes of those that are, and what is read in them."""
    for timed in (False, True):
        for each in _maps(timed):
            yield str(each), _fate(_announce, each, timed), _is_made(is_map(each, timed))
            if is_map(each, timed):
                said, data = _announce(each, timed), written(each, timed)
                yield f"the bytes of {each}", encode(said), data
                yield f"what is read of {each}", decode(data), said
    at = SequenceMergeRule.at_offset
    yield "a list of rules", _fate(SequenceMergeMapAnnounce, 9, 1, [at(1)]), REFUSED
    most = tuple(at(stream) for stream in range(10, 10 + MOST_RULES))
    yield "as many rules as can be counted", _fate(SequenceMergeMapAnnounce, 9, 1, most), "made"
    yield "more rules", _fate(SequenceMergeMapAnnounce, 9, 1, (*most, at(1))), REFUSED
    timed_rules = (TimestampMergeRule.at_offset(1),)
    yield "a clock that is a number", _fate(TimestampMergeMapAnnounce, 9, 1, 1, timed_rules), REFUSED


def settings() -> Iterator[TableCase]:
    """Yield what the other classes refuse when they are made."""
    for stream, epoch in product(STREAMS, (None, -1, 0, MOST - 1, MOST)):
        allowed = is_stream(stream) and (epoch is None or _is_in(epoch, 0, MOST - 1))
        yield f"JoinConfig({stream}, {epoch})", _fate(JoinConfig, stream, epoch), _is_made(allowed)
        if epoch is not None:
            for kind in (SequenceMergeMapRequest, TimestampMergeMapRequest):
                yield f"{kind.__name__}({stream}, {epoch})", _fate(kind, stream, epoch), _is_made(allowed)
    for number in (-1, 0, 1, 2):
        allowed = number >= 1
        yield f"most_pending {number}", _fate(StageConfig, most_pending=number), _is_made(allowed)
        yield f"slots {number}", _fate(StageConfig, slots=((1, number),)), _is_made(allowed)
        yield f"a ring of {number}", _fate(SlotRing, number), _is_made(allowed)
    for number in (0, 1, 2**63 - 1, 2**63):
        allowed = 1 <= number < 2**63
        yield f"an authority's interval {number}", _fate(MergeMapAuthority, number), _is_made(allowed)
        found = _fate(MergeMapJoiner, SequenceMergeMapRequest, 9, number)
        yield f"a joiner's interval {number}", found, _is_made(allowed)
    for number in (0, 1, 2**31, 2**31 + 1):
        found = _fate(MergeMapJoiner, SequenceMergeMapRequest, 9, 1, number)
        yield f"a joiner's most requests {number}", found, _is_made(1 <= number <= 2**31)
    for stream in STREAMS:
        found = _fate(MergeMapJoiner, SequenceMergeMapRequest, stream)
        yield f"a joiner of {stream}", found, _is_made(is_stream(stream))
    for timed, by_timestamp, processed in product((False, True), repeat=3):
        of = TimestampMergeMapAnnounce if timed else SequenceMergeMapAnnounce
        found = _fate(LatestValueJoinBarrier, JoinConfig(9, use_processed=processed), of, by_timestamp)
        allowed = not processed and (timed or not by_timestamp)
        yield f"the latest value of {of.__name__}, {by_timestamp}, {processed}", found, _is_made(allowed)


# What bytes say (sections 10, 14, 15): header, block, group header, entries, little endian.

HEADER = (2, 2, 2, 2)  # block length, template, schema, version
GROUP = (2, 2)  # block length, count
BLOCKS: dict[int, tuple[int, ...]] = {1: (4, 8, 8), 2: (4, 8), 3: (4, 8, 8, 1, 8), 4: (4, 8)}
ENTRIES: dict[int, tuple[int, ...]] = {1: (4, 1, 4, 4), 3: (4, 1, 1, 8, 8)}
SIGNED = {1: 2, 3: 3}
"""The field of an entry that has a sign: the offset."""


def _bytes(values: Sequence[int], sizes: Sequence[int], signed: int | None = None) -> bytes:
    return b"".join(
        value.to_bytes(size, "little", signed=place == signed)
        for place, (value, size) in enumerate(zip(values, sizes, strict=True))
    )


def _values(data: bytes, sizes: Sequence[int], signed: int | None = None) -> list[int]:
    values, start = [], 0
    for place, size in enumerate(sizes):
        values.append(int.from_bytes(data[start : start + size], "little", signed=place == signed))
        start += size
    return values


def _null(value: int | None, null: int) -> int:
    return null if value is None else value


def written(each: MapFields, timed: bool) -> bytes:
    """The bytes of a map."""
    template = 3 if timed else 1
    block = [each.out, each.epoch, _null(each.stale, MOST)]
    if timed:
        block += [each.clock, _null(each.late, MOST)]
    rows = []
    for rule in each.rules:
        offset, window = (
            _null(rule.offset, -(2**63) if timed else -(2**31)),
            _null(rule.window, MOST if timed else MOST_32),
        )
        rows.append([rule.stream, rule.type, *([rule.source] if timed else []), offset, window])
    return message(template, block, rows)


def message(
    template: int, block: Sequence[int], rows: Sequence[Sequence[int]] = (), version: int = 1, more: int = 0
) -> bytes:
    """The bytes of a message; `more` is how many bytes a newer version has behind what is known, in each part."""
    sizes, extra = BLOCKS[template], b"\x07" * more
    data = _bytes((sum(sizes) + more, template, 903, version), HEADER) + _bytes(block, sizes) + extra
    if template in ENTRIES:
        entry = ENTRIES[template]
        data += _bytes((sum(entry) + more, len(rows)), GROUP)
        data += b"".join(_bytes(row, entry, SIGNED[template]) + extra for row in rows)
    return data + extra


def read(data: bytes) -> tuple[object, ...]:
    """Return what bytes say, as a tuple that begins with a word."""
    if len(data) < sum(HEADER):
        return "undecodable", "short"
    length, template, schema, version = _values(data, HEADER)
    if schema != 903:
        return "undecodable", "another schema"
    if version < 1:
        return "undecodable", "unknown version"
    if template not in BLOCKS:
        return "undecodable", "unknown template"
    known = sum(BLOCKS[template])
    if length != known and (version == 1 or length < known):
        return "undecodable", "wrong block length"
    body = data[sum(HEADER) :]
    if len(body) < length:
        return "undecodable", "short"
    block, body = _values(body, BLOCKS[template]), body[length:]
    allowed = is_stream(block[0]) and block[1] != MOST
    if template not in ENTRIES:
        if body and version == 1:
            return "undecodable", "long"
        return ("request", template, *block) if allowed else ("undecodable", "value out of range")
    if len(body) < sum(GROUP):
        return "undecodable", "short"
    (length, count), body = _values(body, GROUP), body[sum(GROUP) :]
    known = sum(ENTRIES[template])
    if count and length != known and (version == 1 or length < known):
        return "undecodable", "wrong block length"
    if len(body) < count * length:
        return "undecodable", "group beyond the end"
    if len(body) > count * length and version == 1:
        return "undecodable", "long"
    if not allowed:
        return "undecodable", "value out of range"
    rows = [
        _values(body[start:], ENTRIES[template], SIGNED[template]) for start in range(0, count * length, length or 1)
    ]
    each = _map_of(template == 3, block, rows)
    return ("map", each) if is_map(each, template == 3) else ("no map", template, *block[:2])


def _map_of(timed: bool, block: Sequence[int], rows: Sequence[Sequence[int]]) -> MapFields:
    """The fields, with None for what stands for null."""

    def value(number: int, null: int) -> int | None:
        return None if number == null else number

    rules = tuple(
        RuleFields(
            row[0],
            row[1],
            row[2] if timed else None,
            value(row[-2], -(2**63) if timed else -(2**31)),
            value(row[-1], MOST if timed else MOST_32),
        )
        for row in rows
    )
    clock, late = (block[3], value(block[4], MOST)) if timed else (None, None)
    return MapFields(block[0], block[1], value(block[2], MOST), clock, late, rules)


def _said(data: bytes) -> tuple[object, ...]:
    """Return what the code reads in bytes, in the same words."""
    match decode(data):
        case Undecodable(refusal, _):
            return "undecodable", refusal.value
        case InvalidMergeMap(kind, out, epoch, _):
            return "no map", 1 if kind is SequenceMergeMapAnnounce else 3, out, epoch
        case SequenceMergeMapRequest(out, epoch):
            return "request", 2, out, epoch
        case TimestampMergeMapRequest(out, epoch):
            return "request", 4, out, epoch
        case SequenceMergeMapAnnounce() as said:
            some = tuple(
                RuleFields(r.input_stream_id, int(r.rule_type), None, r.offset, r.window_size) for r in said.rules
            )
            return "map", MapFields(said.out_stream_id, said.epoch, said.stale_timeout_ns, None, None, some)
        case TimestampMergeMapAnnounce() as said:
            some = tuple(
                RuleFields(r.input_stream_id, int(r.rule_type), int(r.timestamp_source), r.offset_ns, r.window_ns)
                for r in said.rules
            )
            clock = int(said.clock_domain)
            return "map", MapFields(
                said.out_stream_id, said.epoch, said.stale_timeout_ns, clock, said.lateness_ns, some
            )


def _messages() -> Iterator[bytes]:
    """Sound messages, and each damaged in one way."""
    samples: list[tuple[int, list[int], list[list[int]]]] = [
        (1, [9, 1, MOST], [[1, 0, -2, MOST_32], [2, 1, -(2**31), 5]]),
        (2, [9, 1], []),
        (3, [9, 1, 7, 2, 4], [[1, 0, 1, -2, MOST], [2, 1, 2, -(2**63), 5]]),
        (4, [9, 1], []),
    ]
    for template, block, rows in samples:
        sound = message(template, block, rows)
        yield from (sound[:length] for length in range(len(sound) + 1))
        yield sound + b"\x00"
        for place, wrong in product(range(0, 8, 2), (-1, 1, 6)):
            header = _values(sound, HEADER)
            header[place // 2] += wrong
            if header[place // 2] >= 0:
                yield _bytes(header, HEADER) + sound[8:]
                yield _bytes(header, HEADER)  # whole, and nothing behind it: it is read
        yield from (message(template, block, rows, version, more) for version, more in ((2, 0), (2, 3), (1, 3), (0, 0)))
        yield message(template, block, rows, 2, 3)[:-3]
        for less in (1, sum(BLOCKS[template])):  # a newer version has more, and never less
            yield _bytes((sum(BLOCKS[template]) - less, template, 903, 2), HEADER) + sound[8:]
        yield message(template, block, [], 2, 3)
        for place, value in product(range(len(block)), (0, 1, 3, 8, MOST_32, MOST)):
            if value < 2 ** (8 * BLOCKS[template][place]):
                yield message(template, [*block[:place], value, *block[place + 1 :]], rows)
        for number, place, value in product(
            range(len(rows)), range(len(rows[0]) if rows else 0), (-(2**63), -(2**31), 0, 1, 2, 3, 9, MOST_32, MOST)
        ):
            row = list(rows[number])
            row[place] = value
            try:
                yield message(template, block, [*rows[:number], row, *rows[number + 1 :]])
            except OverflowError:
                continue  # no such number fits there
        if rows:
            group = 8 + sum(BLOCKS[template])
            length, count = _values(sound[group:], GROUP)
            for new in (
                (length - 1, count),
                (length + 1, count),
                (length, count + 1),
                (length, count - 1),
                (0, 0),
                (5, 0),
            ):
                yield sound[:group] + _bytes(new, GROUP) + sound[group + 4 :]
                yield sound[:6] + b"\x02\x00" + sound[8:group] + _bytes(new, GROUP) + sound[group + 4 :]
            yield sound[:group] + _bytes((5, 0), GROUP)


def wire() -> Iterator[TableCase]:
    """Messages, whole and damaged, and what is read in them; requests and their bytes."""
    for data in _messages():
        yield f"decode({data.hex()})", _said(data), read(data)
    for kind, template in ((SequenceMergeMapRequest, 2), (TimestampMergeMapRequest, 4)):
        for out, epoch in ((1, 0), (MOST_32 - 1, MOST - 1)):
            yield f"encode({kind.__name__}({out}, {epoch}))", encode(kind(out, epoch)), message(template, [out, epoch])


def _table(of: str, cases: Callable[[], Iterator[TableCase]], states: int) -> CaseScope:
    return CaseScope(of, lambda: compared(cases()), states, "join")


TABLES = (
    _table("rules", rules, 2_019),
    _table("maps", maps, 113),
    _table("settings", settings, 116),
    _table("messages", wire, 523),
)
