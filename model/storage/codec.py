"""The bytes of a checkpoint, case by case: what is written, that it comes back, and that nothing else is read.

The bytes stand here, as the formats describe them (`impl.storage.encoding`; `impl.storage.snapshot`: F-DCKP-006 and
protocol rule 21): a change of both writer and reader is seen, too.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from struct import pack
from typing import Any, NamedTuple

from barrierlab.impl.checkpoint.report import digest
from barrierlab.impl.checks import check_number
from barrierlab.impl.errors import (
    BarrierError,
    ContractError,
    DamagedError,
    LimitError,
    NoUsableCheckpointError,
    PlainValueError,
    StoreError,
)
from barrierlab.impl.messages import (
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
    as_barrier,
    is_barrier,
    is_event,
    is_watermark,
    map_event,
    size_of,
)
from barrierlab.impl.storage.encoding import MAX_DEPTH, decode, encode
from barrierlab.impl.storage.manifest import decode_manifest, encode_manifest
from barrierlab.impl.storage.snapshot import (
    INPUT_MAGIC,
    OUTPUT_MAGIC,
    STATE_MAGIC,
    VERSION,
    InFlight,
    InFlightFile,
    Manifest,
    StoredFile,
    StoredSnapshot,
    TaskSnapshot,
    decode_in_flight,
    decode_state,
    files_of,
    snapshot_from,
)
from barrierlab.impl.storage.store import DirectoryStore, MemoryStore
from barrierlab.model.checkpoint.check import TriedCase
from barrierlab.model.spec.messages import size_of as counted_size_of
from barrierlab.model.storage.disk import cases as disk_cases
from barrierlab.model.storage.files import EMPTY, Direct, FileCall
from barrierlab.model.storage.links import cases as link_cases
from barrierlab.model.storage.world import PATH, contents

VALUES: tuple[tuple[object, str], ...] = (
    (None, "4e"),
    (True, "54"),
    (False, "46"),
    (0, "690000000000000000"),
    (-1, "69ffffffffffffffff"),
    (2**63 - 1, "69ffffffffffffff7f"),
    (-(2**63), "690000000000000080"),
    (2**63, "4909000000000000000000008000"),
    (-(2**63) - 1, "4909000000ffffffffffffff7fff"),
    (2**71 - 1, "4909000000ffffffffffffffff7f"),
    (2**71, "490a00000000000000000000008000"),
    (1.5, "66000000000000f83f"),
    ("", "7300000000"),
    ("a\u00e9", "730300000061c3a9"),
    ("\ud800", "7303000000eda080"),
    (b"", "6200000000"),
    (b"\x00\xff", "620200000000ff"),
    ((), "2800000000"),
    ((1, ("a",), None), "2803000000690100000000000000280100000073010000006" + "14e"),
    (EndOfInput(), "5a"),
    (Watermark(-5), "5769fbffffffffffffff"),
    (Watermark(2**63), "574909000000000000000000008000"),
    (CancelBarrier(3), "43690300000000000000"),
    (CheckpointBarrier(1, 2, 1), "42010000000000000002000000000000000100000000000000"),
)
"""Values and their encodings."""


DIGESTS = (
    ({"b": 1, "a": 2}, "{'a':2,'b':1}"),
    ({8, 1}, "<1,8>"),  # a set that is walked through from its larger element
    (frozenset({"a"}), "<'a'>"),
    (deque([2, 1]), "(2,1)"),
    ([2, (1, None)], "(2,(1,None))"),
    ({"a": {8, 1}, (2, 1): {}}, "{'a':<1,8>,(2,1):{}}"),
    ("a", "'a'"),
)
"""States of tasks, and the text whose BLAKE2b is their digest: equal states, equal text, in every process."""


def _event(source: str, sequence: int, part: int, key: object, value: object, timestamp_ms: int, size: int) -> bytes:
    """The encoding of an event, written out."""
    text = source.encode()
    numbers = [b"i" + pack("<q", number) for number in (sequence, part)]
    rest = [b"i" + pack("<q", number) for number in (timestamp_ms, size)]
    return b"".join((b"E(\x07\0\0\0s", pack("<I", len(text)), text, *numbers, encode(key), encode(value), *rest))


EVENTS = (
    ("a", 1, 0, 0, None, 0, 1),
    ("source", -(2**63), 2, 2**63 - 1, ("x", 1.5, (b"y",)), -7, 2**40),
    ("", 1, 0, "key", 3, 4, 5),
    ("a", 1, 0, None, None, 0, 1),
    ("a", 1, 0, True, False, 0, 1),
    ("a", 1, 0, 1.5, None, 0, 1),  # as many bytes as a whole number
    ("a", 1, 0, (1, b"x"), (), 0, 1),
    ("a", 1, 0, 2**70, "v", 0, 1),
)

MESSAGES = (Watermark(0), CheckpointBarrier(1, 0), CancelBarrier(1), EndOfInput(), Event("a", 1, size_bytes=7))
EVENT_FIELDS: dict[str, Any] = {
    "source": "b",
    "sequence": 2,
    "part": 1,
    "key": 1,
    "value": 1,
    "timestamp_ms": 1,
    "size_bytes": 2,
}
"""A value for each field of an event, which `Event("a", 1)` has otherwise."""

ZERO = b"i" + bytes(8)
NAMELESS = b"E(\x07\0\0\0s\0\0\0\0"
NO_ENCODINGS: tuple[tuple[str, bytes], ...] = (
    ("nothing", b""),
    ("an unknown tag", b"?"),
    ("a tag alone", b"i"),
    ("a length alone", b"s\x01\0\0"),
    ("text that is not UTF-8", b"s\x01\0\0\0\xff"),
    ("a small number written long", b"I\x01\0\0\0\x05"),
    ("the greatest small number written long", b"I\x08\0\0\0" + b"\xff" * 7 + b"\x7f"),
    ("the least small number written long", b"I\x08\0\0\0" + bytes(7) + b"\x80"),
    ("a large number with a byte too many", b"I\x0a\0\0\0" + bytes(7) + b"\x80\0\0"),
    ("more items than bytes", b"(\x03\0\0\0NN"),
    ("more bytes than there are", b"b\x05\0\0\0abcd"),
    ("an event in an event's place", b"EE(\0\0\0\0"),
    ("very many events in each other's place", b"E" * 100_000),
    ("very many watermarks in each other's place", b"W" * 100_000),
    ("an event of six fields", b"E(\x06\0\0\0s\0\0\0\0" + ZERO * 3 + b"NN"),
    (
        "an event whose sequence is true",
        NAMELESS + b"T" + ZERO * 2 + b"N" + ZERO * 2,
    ),
    (
        "an event whose part is nothing",
        NAMELESS + ZERO + b"N" + ZERO + b"N" + ZERO * 2,
    ),
    (
        "an event whose time is a float",
        NAMELESS + ZERO * 3 + b"Nf" + bytes(8) + ZERO,
    ),
    ("an event whose size is a text", NAMELESS + ZERO * 4 + b"s\0\0\0\0"),
    ("an event without a source", b"E(\x07\0\0\0N" + ZERO * 3 + b"N" + ZERO * 2),
    ("a watermark in a watermark's place", b"WWi" + bytes(8)),
    ("a watermark that is true", b"WT"),
    ("a cancel of nothing", b"Ci" + bytes(8)),
    ("a barrier of nothing", b"B" + bytes(24)),
    ("a barrier cut off", b"B" + bytes(23)),
)
NO_VALUES: tuple[tuple[object, type[BarrierError]], ...] = (
    ([], PlainValueError),
    ({}, PlainValueError),
    ((1, {2}), PlainValueError),
    (bytearray(b"x"), PlainValueError),
    (object(), PlainValueError),
    (Event, PlainValueError),
    (Event("a", True), LimitError),
    (Event("a", 1, key=[]), PlainValueError),  # type: ignore[arg-type]
    (Watermark(True), LimitError),
)


def _described(value: object) -> str:
    """Return what tells apart 1, 1.0 and True, and events that carry different things."""
    return f"{type(value).__name__} {value!r}"


def _fails(call: Callable[[], object], kind: type[BarrierError]) -> str | None:
    """Return why a call that has to fail did not, or otherwise than it has to."""
    try:
        came = call()
    except kind:
        return None
    except Exception as error:  # whatever the code under test does
        return f"fails with {type(error).__name__}: {error}"
    return f"gives {_described(came)[:80]}"


def changed(data: bytes, step: int = 1) -> Iterator[bytes]:
    """Other bytes: every `step`-th one in two ways, every such shorter one, and longer ones."""
    for at in range(0, len(data), step):
        for flipped in (1, 0x80):
            yield data[:at] + bytes([data[at] ^ flipped]) + data[at + 1 :]
        yield data[:at]
    yield data + b"\0"
    yield data + data


class CodecCase(NamedTuple):
    """A question, and why it is not so, or None."""

    name: str
    ask: Callable[[], str | None]


# Values.


def _values() -> Iterator[CodecCase]:
    for value, text in VALUES:
        yield CodecCase(f"encode {_described(value)[:60]}", partial(_there_and_back, value, bytes.fromhex(text)))
    for fields in EVENTS:
        yield CodecCase(f"encode event {fields}", partial(_there_and_back, Event(*fields), _event(*fields)))
    for message in MESSAGES:
        yield CodecCase(f"the size of {message}", partial(_counts, message))
        yield CodecCase(f"the kind of {message}", partial(_kind, message))
    for field in EVENT_FIELDS:
        identifies = field in ("source", "sequence", "part")
        yield CodecCase(f"an event with another {field}", partial(_is_same, field, not identifies))
    for name, data in NO_ENCODINGS:
        yield CodecCase(f"decode {name}", partial(_fails, partial(decode, data), DamagedError))
    for number, (value, kind) in enumerate(NO_VALUES, 1):
        yield CodecCase(f"encode no value, {number}", partial(_fails, partial(encode, value), kind))
    yield CodecCase("encode tuples in tuples", _deep)
    for state, text in DIGESTS:
        yield CodecCase(f"digest {text}", partial(_is_digest, state, text))


def _there_and_back(value: object, data: bytes) -> str | None:
    if encode(value) != data:
        return f"gives {encode(value).hex()}, and is {data.hex()}"
    if _described(decode(data)) != _described(value):
        return f"comes back as {_described(decode(data))}"
    for other in changed(data):
        try:
            came = decode(other)
        except DamagedError:
            continue
        if encode(came) != other:
            return f"from {other.hex()} comes {_described(came)}, whose encoding is another"
    return None


def _is_digest(state: object, text: str) -> str | None:
    expected = blake2b(text.encode(), digest_size=8).hexdigest()
    return None if digest(state) == expected else f"is {digest(state)}, and that of {text} is {expected}"


def _deep() -> str | None:
    if MAX_DEPTH != 64:
        return f"{MAX_DEPTH} are allowed, and not 64"
    value: object = None
    for _ in range(MAX_DEPTH):
        value = (value,)
    data = encode(value)
    if decode(data) != value:
        return "the deepest does not come back"
    deeper = b"(\x01\0\0\0" + data
    event = Event("a", 1, value=value)
    at_most = Event("a", 1, value=value[0])  # type: ignore[index]
    if _described(decode(encode(at_most))) != _described(at_most):
        return "the deepest in an event does not come back"
    inner = _event("a", 1, 0, 0, None, 0, 1)
    return (
        _fails(lambda: encode((value,)), LimitError)
        or _fails(lambda: encode(event), LimitError)
        or _fails(lambda: decode(deeper), DamagedError)
        or _fails(lambda: decode(b"(\x01\0\0\0" * MAX_DEPTH + inner), DamagedError)
    )


# Files.


def frame(magic: bytes, subtask: int, content: bytes, version: int = 1, more: int = 0) -> bytes:
    """A file as the format describes it: magic, subtask, version, length, content, checksum."""
    body = magic + pack("<IIQ", subtask, version, 24 + len(content) + 16 + more) + content
    return body + blake2b(body, digest_size=16).digest()


RECORD = InFlight(2, (b"one", b"", b"three"))
CONTENT = pack("<IQ", 2, 3) + b"".join(pack("<I", len(event)) + event for event in RECORD.events)
SNAPSHOT = TaskSnapshot("join", 3, b"state", None, (InFlight(7, (b"x",)), RECORD), (InFlight(0, (b"out",)),))


def _files() -> Iterator[CodecCase]:
    yield CodecCase("a task's files", _task_files)
    wrong: tuple[tuple[str, bytes], ...] = (
        ("of another kind", frame(OUTPUT_MAGIC, 3, CONTENT)),
        ("of another task", frame(INPUT_MAGIC, 4, CONTENT)),
        ("of another version", frame(INPUT_MAGIC, 3, CONTENT, VERSION + 1)),
        ("of another length", frame(INPUT_MAGIC, 3, CONTENT, more=1)),
        ("without a count", frame(INPUT_MAGIC, 3, CONTENT[:11])),
        ("with more events", frame(INPUT_MAGIC, 3, pack("<IQ", 2, 4) + CONTENT[12:])),
        ("with fewer events", frame(INPUT_MAGIC, 3, pack("<IQ", 2, 2) + CONTENT[12:])),
        ("with very many events", frame(INPUT_MAGIC, 3, pack("<IQ", 2, 2**60) + CONTENT[12:])),
        ("with a longer event", frame(INPUT_MAGIC, 3, CONTENT[:12] + pack("<I", 4) + CONTENT[16:])),
        ("with a last event that is too long", frame(INPUT_MAGIC, 3, pack("<IQI", 2, 1, 9) + b"12345678")),
        ("with something behind", frame(INPUT_MAGIC, 3, CONTENT + b"x")),
        ("empty", b""),
        ("of a checksum alone", bytes(16)),
    )
    for name, data in wrong:
        yield CodecCase(f"a file {name}", partial(_fails, partial(decode_in_flight, data, 3), DamagedError))
    states = (("of another kind", frame(INPUT_MAGIC, 3, b"s")), ("of another task", frame(STATE_MAGIC, 2, b"s")))
    for name, data in states:
        yield CodecCase(f"a state file {name}", partial(_fails, partial(decode_state, data, 3), DamagedError))
    yield CodecCase("any change of a file", _changed_files)


def _task_files() -> str | None:
    part, files = files_of(SNAPSHOT)
    folder = "operators/join/3/"
    due = {
        f"{folder}state.bin": frame(STATE_MAGIC, 3, b"state"),
        f"{folder}inflight_2.buf": frame(INPUT_MAGIC, 3, CONTENT),
        f"{folder}inflight_7.buf": frame(INPUT_MAGIC, 3, pack("<IQI", 7, 1, 1) + b"x"),
        f"{folder}inflight_out_0.buf": frame(OUTPUT_MAGIC, 3, pack("<IQI", 0, 1, 3) + b"out"),
    }
    if (STATE_MAGIC, INPUT_MAGIC, OUTPUT_MAGIC, VERSION) != (b"BLSTATE\n", b"BLINFLT\n", b"BLOUTFL\n", 1):
        return "magic or version is another"
    if files != due:
        return f"the files are {sorted(files)}, or hold something else than the format says"
    entries = [(each.channel, each.is_output, each.event_count, each.file.path) for each in part.in_flight]
    wanted = [(2, False, 3, f"{folder}inflight_2.buf"), (7, False, 1, f"{folder}inflight_7.buf")]
    if entries != [*wanted, (0, True, 1, f"{folder}inflight_out_0.buf")]:
        return f"the manifest says {entries}"
    stored = (part.state, *(each.file for each in part.in_flight))
    if any((each.size_bytes, each.checksum) != (len(due[each.path]), due[each.path][-16:].hex()) for each in stored):
        return "a size or a checksum is another"
    if part.size_bytes != sum(map(len, due.values())) or RECORD.size_bytes != 8:
        return "the sizes together are others"
    whole = TaskSnapshot("join", 3, b"state", None, (RECORD, InFlight(7, (b"x",))), SNAPSHOT.outputs)
    return None if snapshot_from(part, files) == whole else f"{snapshot_from(part, files)} comes back"


def _changed_files() -> str | None:
    part, files = files_of(SNAPSHOT)
    others = [(path, other, "with a change") for path, data in files.items() for other in changed(data)]
    elsewhere = TaskSnapshot("join", 3, b"other", None, (InFlight(2, (b"one",)), InFlight(7, ())), SNAPSHOT.outputs)
    others += [(path, data, "of another checkpoint") for path, data in files_of(elsewhere)[1].items()]
    for path, data, of in others:
        if data != files[path]:
            why = _fails(partial(snapshot_from, part, {**files, path: data}), DamagedError)
            if why:
                return f"{path} {of} {why}"
    return None


# Manifests.


def _manifests() -> Iterator[CodecCase]:
    yield CodecCase("a manifest", _manifest)
    yield CodecCase("any change of a manifest", _changed_manifest)
    yield CodecCase("a manifest in another form", _other_manifests)


def _parts() -> tuple[StoredSnapshot, ...]:
    return (files_of(SNAPSHOT)[0], files_of(TaskSnapshot("a", 0, b"", 5))[0])


def sealed(rest: bytes) -> bytes:
    """A manifest with its checksum before it."""
    return b'{\n "checksum": "' + blake2b(rest, digest_size=16).hexdigest().encode() + b'",\n' + rest


def written_out() -> dict[str, object]:
    """The manifest of the two tasks, as its members."""
    join, source = _parts()
    tasks = [
        {
            "operator_id": part.operator_id,
            "subtask": part.subtask,
            "position": part.position,
            "path": part.state.path,
            "size_bytes": part.state.size_bytes,
            "checksum": part.state.checksum,
        }
        for part in (source, join)
    ]
    in_flight = [
        {
            "operator_id": "join",
            "subtask": 3,
            "output_id" if each.is_output else "input_id": each.channel,
            "path": each.file.path,
            "event_count": each.event_count,
            "size_bytes": each.file.size_bytes,
            "checksum": each.file.checksum,
        }
        for each in join.in_flight
    ]
    return {
        "version": 1,
        "checkpoint_id": 9,
        "epoch": 4,
        "is_unaligned": True,
        "tasks": tasks,
        "inflight_data": in_flight,
    }


def _rest(members: object, indent: int | None = 1) -> bytes:
    return json.dumps(members, indent=indent).removeprefix("{\n").encode() + b"\n"


def _manifest() -> str | None:
    manifest = Manifest(9, 4, True, _parts())
    due = sealed(_rest(written_out()))
    if encode_manifest(manifest) != due:
        return f"is {encode_manifest(manifest)[:200]!r}..., and not as the format says"
    if decode_manifest(due) != manifest:
        return f"comes back as {decode_manifest(due)}"
    if [part.operator_id for part in manifest.parts] != ["a", "join"]:
        return "its parts are in another order"
    if manifest.event_count != 5 or manifest.size_bytes != sum(part.size_bytes for part in manifest.parts):
        return "its events or its bytes are counted otherwise"
    return None


def _changed_manifest() -> str | None:
    data = encode_manifest(Manifest(9, 4, True, _parts()))
    for other in changed(data, 7):
        why = _fails(partial(decode_manifest, other), DamagedError)
        if why:
            return f"one with a change {why}"
    return None


def _other_manifests() -> str | None:
    good = written_out()
    tasks, in_flight = good["tasks"], good["inflight_data"]
    assert isinstance(tasks, list)
    assert isinstance(in_flight, list)
    strange = {**in_flight[0], "operator_id": "other", "path": "operators/other/3/inflight_2.buf"}
    others: list[bytes] = [
        _rest(good, 2),
        _rest(good, None),
        _rest(good) + b"\n",
        _rest({**good, "version": 2}),
        _rest({**good, "more": 1}),
        _rest({key: value for key, value in good.items() if key != "epoch"}),
        _rest({**good, "tasks": {}}),
        _rest({**good, "tasks": tasks[::-1]}),
        _rest({**good, "tasks": [*tasks, tasks[0]]}),
        _rest({**good, "tasks": [1]}),
        _rest({**good, "inflight_data": [*in_flight, strange]}),
        _rest({**good, "inflight_data": [*in_flight, in_flight[0]]}),
        _rest({**good, "is_unaligned": False}),
        _rest({**good, "checkpoint_id": 0}),
        _rest({**good, "checkpoint_id": True}),
        _rest({**good, "tasks": [{**tasks[0], "path": "elsewhere"}, tasks[1]]}),
        _rest({**good, "tasks": [{**tasks[0], "size_bytes": -1}, tasks[1]]}),
        b"[]\n",
        b"\n",
        b"[" * 100_000 + b"\n",
    ]
    for rest in others:
        why = _fails(partial(decode_manifest, sealed(rest)), DamagedError)
        if why:
            return f"{rest[:80]!r}... {why}"
    return None


# What is taken, and what is refused.


def _taken() -> Iterator[CodecCase]:
    file, other = StoredFile("operators/a/0/state.bin", 1, "0" * 32), StoredFile("elsewhere", 1, "0" * 32)
    record = InFlightFile(0, False, 1, StoredFile("operators/a/0/inflight_0.buf", 1, "0" * 32))
    part = StoredSnapshot("a", 0, None, file, (record,))
    taken: dict[str, Callable[[], object]] = {
        "a name of 120 letters": lambda: TaskSnapshot("x" * 120, 0, b""),
        "a name of 255 bytes": lambda: TaskSnapshot("\u3042" * 85, 0, b""),
        "the greatest subtask, position and channel": lambda: TaskSnapshot(
            "a", 2**32 - 1, b"", 2**64 - 1, (InFlight(2**32 - 1, ()),)
        ),
        "the least subtask, position and channel": lambda: TaskSnapshot("a", 0, b"", 0, (InFlight(0, ()),)),
        "the greatest numbers of a file": lambda: InFlightFile(
            2**32 - 1, True, 2**64 - 1, StoredFile("p", 2**64 - 1, "f" * 32)
        ),
        "the greatest id and epoch": lambda: Manifest(2**64 - 1, 2**64 - 1, False, ()),
        "the least id and epoch": lambda: Manifest(1, 0, False, ()),
        "a part with something in flight": lambda: Manifest(1, 0, True, (part,)),
        "the greatest id of a store": lambda: MemoryStore().begin(2**64 - 1),
        "the least number to retain": lambda: MemoryStore().retain(1),
    }
    for name, make in taken.items():
        yield CodecCase(f"{name} is taken", partial(_goes, make))
    store = MemoryStore()
    store.begin(1)
    no: Any = None
    refused: dict[str, Callable[[], object]] = {
        "no name": lambda: TaskSnapshot("", 0, b""),
        "a number for a name": lambda: TaskSnapshot(no, 0, b""),
        "a name that leads elsewhere": lambda: TaskSnapshot("a/b", 0, b""),
        "a name of 121 letters": lambda: TaskSnapshot("x" * 121, 0, b""),
        "a name of 256 bytes": lambda: TaskSnapshot("\u3042" * 85 + "x", 0, b""),
        "a subtask below 0": lambda: TaskSnapshot("a", -1, b""),
        "a subtask of 33 bits": lambda: TaskSnapshot("a", 2**32, b""),
        "a position below 0": lambda: TaskSnapshot("a", 0, b"", -1),
        "a position of 65 bits": lambda: TaskSnapshot("a", 0, b"", 2**64),
        "a state that is a text": lambda: TaskSnapshot("a", 0, "text"),  # type: ignore[arg-type]
        "inputs in a list": lambda: TaskSnapshot("a", 0, b"", None, [InFlight(0, ())]),  # type: ignore[arg-type]
        "inputs that are none": lambda: TaskSnapshot("a", 0, b"", None, (b"x",)),  # type: ignore[arg-type]
        "outputs that are none": lambda: TaskSnapshot("a", 0, b"", None, (), (b"x",)),  # type: ignore[arg-type]
        "an input twice": lambda: TaskSnapshot("a", 0, b"", None, (InFlight(0, ()),) * 2),
        "an output twice": lambda: TaskSnapshot("a", 0, b"", None, (), (InFlight(0, ()),) * 2),
        "a channel of 33 bits": lambda: InFlight(2**32, ()),
        "a channel below 0": lambda: InFlight(-1, ()),
        "an event that is a text": lambda: InFlight(0, (b"x", "text")),  # type: ignore[arg-type]
        "a size below 0": lambda: StoredFile("p", -1, "0" * 32),
        "a size of 65 bits": lambda: StoredFile("p", 2**64, "0" * 32),
        "a path that is none": lambda: StoredFile(no, 1, "0" * 32),
        "a checksum of 31 digits": lambda: StoredFile("p", 1, "0" * 31),
        "a checksum in capitals": lambda: StoredFile("p", 1, "A" * 32),
        "a checksum that is none": lambda: StoredFile("p", 1, no),
        "a stored channel below 0": lambda: InFlightFile(-1, False, 1, file),
        "a stored channel of 33 bits": lambda: InFlightFile(2**32, False, 1, file),
        "a direction that is a number": lambda: InFlightFile(0, 1, 1, file),  # type: ignore[arg-type]
        "a count below 0": lambda: InFlightFile(0, False, -1, file),
        "a count of 65 bits": lambda: InFlightFile(0, False, 2**64, file),
        "a record without a file": lambda: InFlightFile(0, False, 1, no),
        "a state elsewhere": lambda: StoredSnapshot("a", 0, None, other),
        "a part without a state": lambda: StoredSnapshot("a", 0, None, no),
        "a record elsewhere": lambda: StoredSnapshot("a", 0, None, file, (InFlightFile(0, False, 1, other),)),
        "a record of another direction": lambda: StoredSnapshot(
            "a", 0, None, file, (InFlightFile(0, True, 1, record.file),)
        ),
        "a record twice": lambda: StoredSnapshot("a", 0, None, file, (record, record)),
        "a record that is none": lambda: StoredSnapshot("a", 0, None, file, (no,)),
        "a part of a subtask below 0": lambda: StoredSnapshot("a", -1, None, file),
        "an id of 0": lambda: Manifest(0, 0, False, ()),
        "an id of 65 bits": lambda: Manifest(2**64, 0, False, ()),
        "an id that is true": lambda: Manifest(True, 0, False, ()),
        "an epoch below 0": lambda: Manifest(1, -1, False, ()),
        "an epoch of 65 bits": lambda: Manifest(1, 2**64, False, ()),
        "an epoch that is none": lambda: Manifest(1, no, False, ()),
        "a flag that is a number": lambda: Manifest(1, 1, 0, ()),  # type: ignore[arg-type]
        "parts that are none": lambda: Manifest(1, 1, False, (no,)),
        "a task twice": lambda: Manifest(1, 1, True, (part, part)),
        "something in flight, aligned": lambda: Manifest(1, 1, False, (part,)),
        "a snapshot that is none": lambda: store.write(1, no),
        "a manifest that is none": lambda: store.complete(no),
        "a store's id of 0": lambda: store.begin(0),
        "a store's id of 65 bits": lambda: store.begin(2**64),
        "a store's id that is true": lambda: MemoryStore().begin(True),
        "nothing to retain": lambda: store.retain(0),
        "to retain what is true": lambda: store.retain(True),
    }
    for name, make in refused.items():
        yield CodecCase(f"{name} is refused", partial(_fails, make, ContractError))
    yield CodecCase("sizes and counts", _sizes)
    for most in (None, 5):
        for or_none in ("", "for none"):
            yield CodecCase(f"a number from 2 to {most}, or None {or_none}", partial(_numbers, most, or_none))


def _counts(message: StreamMessage) -> str | None:
    """Return why a message does not count for what protocol rule 7 says."""
    found, meant = size_of(message), counted_size_of(message)
    return None if found == meant else f"{found} bytes, and not {meant}"


def _kind(message: StreamMessage) -> str | None:
    """Return why a message is taken for one of another kind."""
    other = Event("b", 2)
    found = is_event(message), is_watermark(message), is_barrier(message), as_barrier(message)
    kinds = type(message) is Event, type(message) is Watermark, type(message) is CheckpointBarrier
    if found != (*kinds, message if kinds[2] else None):
        return f"is {found}"
    mapped = map_event(message, lambda _: other)
    return None if mapped is (other if kinds[0] else message) else f"is mapped to {mapped}"


def _is_same(field: str, same: bool) -> str | None:
    """Return why an event that differs in one field is, or is not, the same."""
    one, other = Event("a", 1), Event(**{"source": "a", "sequence": 1, field: EVENT_FIELDS[field]})
    found = one == other, len({one, other}) == 1
    return None if found == (same, same) else f"equal and in one place of a set: {found}, and not {same}"


def _goes(make: Callable[[], object]) -> str | None:
    """Return why it is refused; None if it is taken."""
    try:
        make()
    except BarrierError as error:
        return str(error)
    return None


def _numbers(most: int | None, or_none: str) -> str | None:
    """Return what is wrongly taken for a number within bounds, or refused without all that is allowed."""
    for value in (None, True, 2.0, 1, 2, 5, 6):
        is_within = type(value) is int and 2 <= value <= (most or value)
        allowed = is_within or (value is None and bool(or_none))
        try:
            check_number("it", value, 2, most, or_none)
        except LimitError as error:
            said = str(error.expected)
            if allowed or not all(word in said for word in ("2", str(most or "more"), or_none and f"None {or_none}")):
                return f"of {value} it says: {error}"
        else:
            if not allowed:
                return f"{value} is taken"
    return None


def _sizes() -> str | None:
    """Return why a part without data is taken for one that has some; None if it is not."""
    with_any = Manifest(1, 0, True, ())
    if (with_any.size_bytes, with_any.event_count, InFlight(0, ()).size_bytes) != (0, 0, 0):
        return "nothing has a size"
    return None


# Stored checkpoints that are damaged.


def _damages() -> Iterator[CodecCase]:
    for path in _stored().files:
        yield CodecCase(f"any damage to {path}", partial(_damaged, path))
    yield CodecCase("damage to every checkpoint", _all_damaged)
    yield CodecCase("retention among damaged ones", _retained)
    yield CodecCase("names of somebody else's", _foreign)


class StoredDisk(NamedTuple):
    """A disk with checkpoints 1 and 2, and the files of the second."""

    disk: Direct
    files: tuple[str, ...]


def _stored(newest: int = 2) -> StoredDisk:
    disk = Direct(EMPTY)
    store = DirectoryStore(PATH, disk.port)
    for checkpoint_id in range(1, newest + 1):
        store.begin(checkpoint_id)
        parts = tuple(store.write(checkpoint_id, each) for each in contents(checkpoint_id, 2))
        store.complete(Manifest(checkpoint_id, checkpoint_id, True, parts))
    files = (
        "manifest.json",
        *(file.path for part in parts for file in (part.state, *(e.file for e in part.in_flight))),
    )
    return StoredDisk(disk, files)


def _put(disk: Direct, path: str, data: bytes) -> None:
    disk.ask(FileCall("create", path))
    disk.ask(FileCall("write", path, data))


def _damaged(path: str) -> str | None:
    at = f"{PATH}/checkpoint-2/{path}"
    good = _stored().disk.tree
    data = Direct(good).ask(FileCall("read", at, 10**6))
    assert isinstance(data, bytes)
    for other in (*changed(data, max(1, len(data) // 6)), None):
        disk = Direct(good)
        if other is None:
            disk.ask(FileCall("remove", at))
        else:
            _put(disk, at, other)
        store = DirectoryStore(PATH, disk.port)
        if other is None and path == "manifest.json":
            if store.completed() != (1,) or store.leftovers() != (2,):
                return "a checkpoint without a manifest is complete"
            continue
        why = _fails(partial(store.load, 2), DamagedError)
        if why:
            return f"load {why}"
        usable = DirectoryStore(PATH, disk.port).latest_usable()
        if usable.checkpoint.snapshots != contents(1, 2) or [each.checkpoint_id for each in usable.passed_over] != [2]:
            return f"the latest is {usable.checkpoint.manifest.checkpoint_id}, and {usable.passed_over} was passed over"
        if not usable.passed_over[0].why.startswith(f"checkpoint-2/{path}: "):
            return f"the damage is called {usable.passed_over[0].why}"
    return None


def _all_damaged() -> str | None:
    disk = _stored().disk
    for checkpoint_id in (1, 2):
        _put(disk, f"{PATH}/checkpoint-{checkpoint_id}/manifest.json", b"")
    store = DirectoryStore(PATH, disk.port)
    try:
        store.latest_usable()
    except NoUsableCheckpointError as error:
        return None if [each for each, _ in error.passed_over] == [2, 1] else f"passed over are {error.passed_over}"
    except StoreError as error:
        return f"fails with {type(error).__name__}"
    return "is called usable"


def _retained() -> str | None:
    """Damage the newest and the second of four: two whole ones are kept, and whatever is newer."""
    for looks in (False, True):
        disk = _stored(4).disk
        for checkpoint_id in (2, 4):
            _put(disk, f"{PATH}/checkpoint-{checkpoint_id}/operators/a/0/state.bin", b"x")
        store = DirectoryStore(PATH, disk.port)
        if looks:
            store.latest_usable()
        first = store.retain(2), store.completed()
        second = store.retain(1), store.completed()
        if (first, second) != (((), (4, 3, 2, 1)), ((2, 1), (4, 3))):
            return f"retain 2 and retain 1 give {first} and {second}"
        _put(
            disk,
            f"{PATH}/checkpoint-4/operators/a/0/state.bin",
            Direct(_stored(4).disk.tree).ask(  # type: ignore[arg-type]
                FileCall("read", f"{PATH}/checkpoint-4/operators/a/0/state.bin", 10**6)
            ),
        )
        if store.retain(1) != () or store.load(4).snapshots != contents(4, 2) or store.retain(1) != (3,):
            return "one that could be read again does not count"
    return None


def _foreign() -> str | None:
    """Folders that no id names, a folder of the greatest id, and a file where a checkpoint would be."""
    disk = _stored().disk
    for name in ("checkpoint-18446744073709551616", "checkpoint-01", "checkpoint-x", "notes"):
        disk.ask(FileCall("make_folder", f"{PATH}/{name}"))
        _put(disk, f"{PATH}/{name}/manifest.json", b"")
    _put(disk, f"{PATH}/checkpoint-7", b"")
    before = disk.ask(FileCall("names", PATH))
    store = DirectoryStore(PATH, disk.port)
    found = store.completed(), store.leftovers(), store.highest_id(), store.clean()
    if found != ((2, 1), (), 7, ()) or disk.ask(FileCall("names", PATH)) != before:
        return f"they are taken for {found}"
    disk.ask(FileCall("make_folder", f"{PATH}/checkpoint-18446744073709551615"))
    return None if store.highest_id() == 2**64 - 1 else f"the highest id is {store.highest_id()}"


GROUPS: dict[str, Callable[[], Iterable[tuple[str, Callable[[], str | None]]]]] = {
    "values": _values,
    "files": _files,
    "manifests": _manifests,
    "limits": _taken,
    "damage": _damages,
    "links": link_cases,
    "the disk of this machine": disk_cases,
}


def tried(group: str) -> Iterator[TriedCase]:
    """Ask every case of a group."""
    for name, ask in GROUPS[group]():
        try:
            yield name, ask()
        except Exception as error:  # whatever the code under test does
            yield name, f"fails with {type(error).__name__}: {error}"
