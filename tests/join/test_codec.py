"""Merge maps as bytes: by the document's schema, as another implementation has them, and from a bad peer."""

from __future__ import annotations

import dataclasses
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl.join import (
    ClockDomain,
    InvalidMergeMap,
    MergeRuleType,
    MergeTimeRuleType,
    Refusal,
    SequenceMergeMapAnnounce,
    SequenceMergeMapRequest,
    SequenceMergeRule,
    TimestampMergeMapAnnounce,
    TimestampMergeMapRequest,
    TimestampMergeRule,
    TimestampSource,
    Undecodable,
    decode,
    encode,
)
from barrierlab.impl.join import codec as module
from barrierlab.impl.join.merge_map import NULL_I32, NULL_I64, NULL_U32, NULL_U64
from tests.breadth import examples
from tests.join.peer import extended, shipped, size_of, understood
from tests.join.support import SLOT, at, at_ns, numbers, times, window, window_ns

SEQUENCE = SequenceMergeMapAnnounce(9, 2, (at(1), window(2, 4)), 50)
TIMESTAMP = TimestampMergeMapAnnounce(7, 3, ClockDomain.MONOTONIC, (at_ns(3),), 100, 10)
MESSAGES = [
    SEQUENCE,
    TIMESTAMP,
    SequenceMergeMapRequest(9, 2),
    TimestampMergeMapRequest(7, 3),
    numbers(at(1, -(2**31) + 1), at(2, 2**31 - 1), window(3, 2**32 - 2)),
    times(at_ns(1, -(2**63) + 1), window_ns(1, 2**64 - 2, SLOT), late=0, clock=ClockDomain.REALTIME_SYNCED),
]
PEER = understood(shipped())


@pytest.mark.parametrize("message", MESSAGES)
def test_what_is_written_is_read(message: Any) -> None:
    """A joiner would go by other rules than the authority said."""
    assert decode(encode(message)) == message
    assert decode(memoryview(bytearray(encode(message)))) == message


def test_the_lengths_are_those_of_the_schema() -> None:
    """An implementation in another language would not find the fields: 8 + 20 + 4 + 2 x 13, and 8 + 29 + 4 + 22."""
    assert len(encode(SEQUENCE)) == 58
    assert len(encode(TIMESTAMP)) == 63
    assert [len(encode(request)) for request in MESSAGES[2:4]] == [20, 20]


def test_the_bytes_are_these() -> None:
    """A change of layout would pass every test that only reads what it wrote."""
    assert encode(SEQUENCE).hex(" ") == (
        "14 00 01 00 87 03 01 00 "  # block of 20 bytes, template 1, schema 903, version 1
        "09 00 00 00 02 00 00 00 00 00 00 00 32 00 00 00 00 00 00 00 "
        "0d 00 02 00 "  # two rules of 13 bytes
        "01 00 00 00 00 00 00 00 00 ff ff ff ff "  # OFFSET 0, no window
        "02 00 00 00 01 00 00 00 80 04 00 00 00"  # WINDOW 4, no offset
    )
    assert encode(TIMESTAMP).hex(" ") == (
        "1d 00 03 00 87 03 01 00 "
        "07 00 00 00 03 00 00 00 00 00 00 00 64 00 00 00 00 00 00 00 01 0a 00 00 00 00 00 00 00 "
        "16 00 01 00 "
        "03 00 00 00 00 01 00 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff"
    )


def test_something_else_is_not_encoded() -> None:
    """A wrong object would be sent as garbage."""
    with pytest.raises(TypeError, match="a str is no message of schema 903"):
        encode("map")  # type: ignore[arg-type]


# The schema that is shipped, and the code.


def test_the_code_has_the_schema_of_the_package() -> None:
    """Whoever generates a codec from the shipped schema would not understand ours."""
    schema = shipped()
    assert (schema.get("id"), schema.get("version")) == (str(module.SCHEMA_ID), str(module.VERSION))
    assert schema.get("byteOrder") == "littleEndian"
    enums = {"ClockDomain": ClockDomain, "TimestampSource": TimestampSource}
    enums |= {"MergeRuleType": MergeRuleType, "MergeTimeRuleType": MergeTimeRuleType}
    for enum in schema.iter("enum"):
        values = {value.get("name"): int(value.text or "") for value in enum}
        assert values == {each.name: each.value for each in enums.pop(enum.get("name", ""))}
    assert enums == {}
    letters = {1: "B", 2: "H", 4: "I", 8: "Q"}
    found = {}
    for message in schema.iter("message"):
        template = int(message.get("id", ""))
        found[template] = message.get("name")
        for block, layout in [
            (message, module.BLOCKS[template]),
            *((g, module.ENTRIES[template]) for g in message.findall("group")),
        ]:
            signs = ["<"]
            for field in block.findall("field"):
                letter = letters[size_of(schema, field)]
                signs.append(letter.lower() if field.get("type", "").startswith("int") else letter)
            assert layout.format == "".join(signs)
    assert found == {
        module.SEQUENCE_ANNOUNCE: "SequenceMergeMapAnnounce",
        module.SEQUENCE_REQUEST: "SequenceMergeMapRequest",
        module.TIMESTAMP_ANNOUNCE: "TimestampMergeMapAnnounce",
        module.TIMESTAMP_REQUEST: "TimestampMergeMapRequest",
    }
    nulls = {
        field.get("name"): int(field.get("nullValue", "")) for field in schema.iter("field") if field.get("nullValue")
    }
    assert nulls == {
        "staleTimeoutNs": NULL_U64,
        "latenessNs": NULL_U64,
        "offset": NULL_I32,
        "windowSize": NULL_U32,
        "offsetNs": NULL_I64,
        "windowNs": NULL_U64,
    }
    for name, layout in (("messageHeader", module.HEADER), ("groupSizeEncoding", module.GROUP)):
        composite = schema.find(f"types/composite[@name='{name}']")
        assert composite is not None
        assert layout.format == "<" + "H" * len(composite)


# Another implementation, both ways.

NAMES = {"offset": "offset", "window_size": "windowSize", "offset_ns": "offsetNs", "window_ns": "windowNs"}


def as_peer(message: Any) -> tuple[str, dict[str, Any]]:
    """A message as the other implementation holds it: its name, and a mapping."""
    value: dict[str, Any] = {"outStreamId": message.out_stream_id, "epoch": message.epoch}
    if hasattr(message, "rules"):
        value["staleTimeoutNs"] = message.stale_timeout_ns
        value["rules"] = []
        for rule in message.rules:
            held = {"inputStreamId": rule.input_stream_id, "ruleType": rule.rule_type.name}
            if hasattr(rule, "timestamp_source"):
                held["timestampSource"] = rule.timestamp_source.name
            held |= {NAMES[f.name]: getattr(rule, f.name) for f in dataclasses.fields(rule) if f.name in NAMES}
            value["rules"].append(held)
    if hasattr(message, "clock_domain"):
        value |= {"clockDomain": message.clock_domain.name, "latenessNs": message.lateness_ns}
    return type(message).__name__, value


streams = st.integers(1, 2**32 - 2)
epochs = st.integers(0, 2**64 - 2)
offsets = st.integers(-(2**31) + 1, 2**31 - 1)
sequence_rules = st.builds(SequenceMergeRule.at_offset, streams, offsets) | st.builds(
    SequenceMergeRule.in_window, streams, st.integers(1, 2**32 - 2)
)
sources = st.sampled_from(TimestampSource)
timestamp_rules = st.builds(
    TimestampMergeRule.at_offset, streams, st.integers(-(2**63) + 1, 2**63 - 1), sources
) | st.builds(TimestampMergeRule.in_window, streams, st.integers(10, 2**64 - 2), sources)
stales = st.none() | st.integers(1, 2**64 - 2)


@st.composite
def messages(draw: st.DrawFn) -> Any:
    """Any message that can be made."""
    out, epoch, kind = draw(streams), draw(epochs), draw(st.integers(0, 3))
    if kind > 1:
        return (SequenceMergeMapRequest if kind == 2 else TimestampMergeMapRequest)(out, epoch)
    if kind == 0:
        rules = draw(st.lists(sequence_rules, min_size=1, max_size=5, unique_by=lambda r: r.input_stream_id))
        rules = [rule for rule in rules if rule.input_stream_id != out] or [at(1 + out % 100)]
        return SequenceMergeMapAnnounce(out, epoch, tuple(rules), draw(stales))
    rules = draw(
        st.lists(timestamp_rules, min_size=1, max_size=5, unique_by=lambda r: (r.input_stream_id, r.timestamp_source))
    )
    rules = [rule for rule in rules if rule.input_stream_id != out] or [at_ns(1 + out % 100)]
    domain, late = draw(st.sampled_from(ClockDomain)), draw(st.none() | st.integers(0, 10))
    return TimestampMergeMapAnnounce(out, epoch, domain, tuple(rules), draw(stales), late)


@settings(max_examples=examples(150), deadline=None)
@given(messages())
def test_another_implementation_reads_what_we_write_and_writes_the_same(message: Any) -> None:
    """We would understand ourselves only."""
    name, value = as_peer(message)
    read = PEER.decode(encode(message))
    assert (read.message_name, read.value) == (name, value)
    template = next(each for each in PEER.messages.values() if each.name == name)
    assert PEER.encode(template, value) == encode(message)


@settings(max_examples=50, deadline=None)
@given(messages())
def test_what_a_newer_version_adds_is_skipped(message: Any) -> None:
    """The first authority that is updated would silence every joiner that is not."""
    later = understood(extended(shipped(), 2))
    name, value = as_peer(message)
    value["later"] = 77
    for rule in value.get("rules", ()):
        rule["later"] = 78
    template = next(each for each in later.messages.values() if each.name == name)
    data = later.encode(template, value)
    assert len(data) > len(encode(message))
    assert decode(data) == message
    assert decode(data + b"a group that we do not know") == message


# What a bad peer sends.


def changed(data: bytes, at_byte: int, layout: str, value: int) -> bytes:
    """`data` with one number in it changed."""
    out = bytearray(data)
    struct.pack_into(f"<{layout}", out, at_byte, value)
    return bytes(out)


GOOD = encode(SEQUENCE)


@pytest.mark.parametrize(
    ("data", "refusal", "words"),
    [
        (b"", Refusal.SHORT, "0 bytes; a header takes 8"),
        (GOOD[:7], Refusal.SHORT, "7 bytes"),
        (changed(GOOD, 4, "H", 900), Refusal.SCHEMA, "schema 900; read here: 903"),
        (changed(GOOD, 6, "H", 0), Refusal.VERSION, "version 0"),
        (changed(GOOD, 2, "H", 5), Refusal.TEMPLATE, "template 5; read here: 1, 2, 3, 4"),
        (changed(GOOD, 0, "H", 19), Refusal.BLOCK, "a block of 19 bytes; template 1 has 20"),
        (changed(GOOD, 0, "H", 21), Refusal.BLOCK, "a block of 21 bytes"),
        (changed(changed(GOOD, 6, "H", 2), 0, "H", 19), Refusal.BLOCK, "a block of 19 bytes"),
        (GOOD[:27], Refusal.SHORT, "27 bytes; header and block take 28"),
        (GOOD[:30], Refusal.SHORT, "30 bytes; up to the rules there are 32"),
        (GOOD[:-1], Refusal.GROUP, "57 bytes; 2 rules of 13 bytes end at 58"),
        (GOOD + b"\0", Refusal.LONG, "59 bytes; the message takes 58"),
        (changed(GOOD, 28, "H", 12), Refusal.BLOCK, "a rule of 12 bytes; read here: 13"),
        (changed(GOOD, 28, "H", 0), Refusal.BLOCK, "a rule of 0 bytes"),
        (changed(GOOD, 30, "H", 65535), Refusal.GROUP, "65535 rules of 13 bytes"),
        (changed(GOOD, 8, "I", 0), Refusal.VALUE, "output stream 0"),
        (changed(GOOD, 12, "Q", NULL_U64), Refusal.VALUE, "epoch"),
        (encode(SequenceMergeMapRequest(9, 2)) + b"\0", Refusal.LONG, "21 bytes; the message takes 20"),
        (changed(encode(SequenceMergeMapRequest(9, 2)), 8, "I", 0), Refusal.VALUE, "output stream 0"),
    ],
    ids=lambda each: each.name if isinstance(each, Refusal) else None,
)
def test_what_is_no_message_is_refused(data: bytes, refusal: Refusal, words: str) -> None:
    """A stray message would be taken for a map, or stop the joiner with a traceback."""
    answer = decode(data)
    assert isinstance(answer, Undecodable)
    assert answer.refusal is refusal
    assert words in answer.reason


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (changed(GOOD, 36, "B", 7), "7 is not a valid MergeRuleType"),
        (changed(GOOD, 36, "B", 1), "a rule of type WINDOW with window_size = None and offset = 0"),
        (changed(GOOD, 41, "I", 3), "a rule of type OFFSET with offset = 0 and window_size = 3"),
        (changed(GOOD, 37, "i", NULL_I32), "offset = None"),
        (changed(GOOD, 54, "I", 0), "window_size = 0"),
        (changed(GOOD, 32, "I", 9), "a rule of stream 9 for itself"),
        (changed(GOOD, 32, "I", 2), "two rules for stream 2"),
        (changed(GOOD, 32, "I", 0), "input stream 0"),
        (changed(GOOD, 20, "Q", 0), "stale_timeout_ns = 0"),
        (changed(GOOD[:32], 30, "H", 0), "0 rules"),
        (changed(encode(TIMESTAMP), 28, "B", 9), "9 is not a valid ClockDomain"),
        (changed(encode(TIMESTAMP), 46, "B", 3), "3 is not a valid TimestampSource"),
    ],
)
def test_an_announce_that_is_no_map_says_for_which_output(data: bytes, words: str) -> None:
    """The map that it was to replace would stay in force, or another one would be dropped (sections 6.2 and 6.3)."""
    answer = decode(data)
    assert isinstance(answer, InvalidMergeMap)
    assert (answer.out_stream_id, answer.epoch) in ((9, 2), (7, 3))
    assert answer.kind in (SequenceMergeMapAnnounce, TimestampMergeMapAnnounce)
    assert words in answer.reason


@settings(max_examples=examples(400), deadline=None)
@given(st.sampled_from(MESSAGES), st.data())
def test_any_bytes_are_answered(message: Any, data: st.DataObject) -> None:
    """A peer could stop a joiner with a few bytes."""
    raw = bytearray(encode(message))
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))]) + data.draw(st.binary(max_size=5))
    answer = decode(cut)
    if not isinstance(answer, Undecodable | InvalidMergeMap):
        assert decode(encode(answer)) == answer


def test_a_count_alone_allocates_nothing() -> None:
    """Forty bytes could take the memory of sixty thousand rules."""
    bad = changed(changed(GOOD, 6, "H", 9), 30, "H", 65535)
    huge = changed(bad, 28, "H", 65535)
    for data in (bad, huge):
        decode(data)
        tracemalloc.start()
        assert isinstance(decode(data), Undecodable)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4096
