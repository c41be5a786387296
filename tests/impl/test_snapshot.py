"""The files of a checkpoint: their layout, and that no other bytes pass for them."""

from __future__ import annotations

import json
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrierlab.impl import (
    CheckpointIdError,
    DamagedError,
    EpochError,
    InFlight,
    LimitError,
    Manifest,
    StoredSnapshot,
    TaskSnapshot,
)
from barrierlab.impl.storage.manifest import decode_manifest, encode_manifest
from barrierlab.impl.storage.snapshot import (
    decode_in_flight,
    decode_state,
    encode_in_flight,
    encode_state,
    files_of,
    in_flight_path,
    snapshot_from,
    state_path,
)
from tests.impl.stored import JOIN, QUIET, SOURCE

U32 = st.integers(0, 2**32 - 1)
RECORDS = st.builds(InFlight, U32, st.lists(st.binary(max_size=20), max_size=5).map(tuple))


def sealed(body: bytes) -> bytes:
    """A frame with its checksum, as a forger would make it."""
    return body + blake2b(body, digest_size=16).digest()


def frame(magic: bytes, subtask: int, content: bytes, version: int = 1) -> bytes:
    """A frame as the description has it, made without the code under test."""
    return sealed(struct.pack("<8sIIQ", magic, subtask, version, 24 + len(content) + 16) + content)


def in_flight(content: bytes) -> bytes:
    """A forged in-flight file."""
    return frame(b"BLINFLT\n", 3, content)


def neighbours(good: bytes) -> Iterator[bytes]:
    """All that differ in one byte, all that are cut short, and some that run on."""
    for at, byte in enumerate(good):
        for other in range(256):
            if other != byte:
                yield good[:at] + bytes([other]) + good[at + 1 :]
    for size in range(len(good)):
        yield good[:size]
    for more in (b"\0", b"\n", b"\xff", good[-1:], good[-16:], good):
        yield good + more


# Layout.


def test_an_in_flight_file_is_laid_out_as_the_document_has_it() -> None:
    """Another reader of the documented format could not read it (F-DCKP-006; protocol rule 21)."""
    content = struct.pack("<IQ", 5, 2) + struct.pack("<I", 3) + b"one" + struct.pack("<I", 0)
    assert encode_in_flight(3, InFlight(5, (b"one", b""))) == frame(b"BLINFLT\n", 3, content)
    assert encode_in_flight(3, InFlight(5, (b"one", b"")), is_output=True) == frame(b"BLOUTFL\n", 3, content)


def test_a_state_file_is_a_frame_around_the_state() -> None:
    """A checkpoint of an older version could not be read any more."""
    assert encode_state(3, b"state") == frame(b"BLSTATE\n", 3, b"state")


def test_paths_name_operator_subtask_and_channel() -> None:
    """Two parallel instances would overwrite each other (defect U-20)."""
    assert state_path("join", 1) == "operators/join/1/state.bin"
    assert in_flight_path("join", 1, 0) == "operators/join/1/inflight_0.buf"
    assert in_flight_path("join", 1, 0, is_output=True) == "operators/join/1/inflight_out_0.buf"
    paths = [path for snapshot in (JOIN, QUIET, replace(JOIN, subtask=2)) for path in files_of(snapshot)[1]]
    assert len(set(paths)) == len(paths) == 9


def manifest() -> Manifest:
    """Of three tasks."""
    return Manifest(4, 9, True, tuple(files_of(snapshot)[0] for snapshot in (JOIN, SOURCE, QUIET)))


def test_the_manifest_has_the_members_of_the_document() -> None:
    """Recovery could not tell an unaligned checkpoint, or find its channel records (F-DCKP-006)."""
    data = encode_manifest(manifest())
    whole = json.loads(data)
    assert list(whole) == [
        *("checksum", "version", "checkpoint_id", "epoch", "is_unaligned", "tasks", "inflight_data"),
    ]
    assert (whole["checkpoint_id"], whole["epoch"], whole["is_unaligned"]) == (4, 9, True)
    assert [(each["operator_id"], each["subtask"], each["position"], each["path"]) for each in whole["tasks"]] == [
        ("a", 0, 7, "operators/a/0/state.bin"),
        ("join", 0, None, "operators/join/0/state.bin"),
        ("join", 1, None, "operators/join/1/state.bin"),
    ]
    first, second, third = whole["inflight_data"]
    file = encode_in_flight(1, JOIN.inputs[0])
    assert first == {
        "operator_id": "join",
        "subtask": 1,
        "input_id": 0,
        "path": "operators/join/1/inflight_0.buf",
        "event_count": 2,
        "size_bytes": len(file),
        "checksum": file[-16:].hex(),
    }
    assert (second["input_id"], second["event_count"]) == (2, 1)
    assert (third["output_id"], "input_id" in third, third["path"][-18:]) == (0, False, "inflight_out_0.buf")
    first_line, _, rest = data.partition(b",\n")
    assert first_line == b'{\n "checksum": "' + blake2b(rest, digest_size=16).hexdigest().encode() + b'"'


# There and back.


@given(U32, RECORDS, st.booleans())
def test_a_record_comes_back_as_it_was(subtask: int, record: InFlight, is_output: bool) -> None:
    """Recovery would feed other events, or in another order."""
    assert decode_in_flight(encode_in_flight(subtask, record, is_output), subtask, is_output) == record


@given(U32, st.binary())
def test_a_state_comes_back_as_it_was(subtask: int, state: bytes) -> None:
    """Recovery would go on from another state."""
    assert decode_state(encode_state(subtask, state), subtask) == state


def by_channel(records: list[InFlight]) -> tuple[InFlight, ...]:
    """In the order in which they are kept."""
    return tuple(sorted(records, key=lambda record: record.channel))


CHANNELS = st.lists(RECORDS, max_size=3, unique_by=lambda record: record.channel).map(by_channel)
SNAPSHOTS = st.builds(
    TaskSnapshot,
    st.sampled_from(["a", "join", "_é-1"]),
    U32,
    st.binary(max_size=20),
    st.none() | st.integers(0, 2**64 - 1),
    CHANNELS,
    CHANNELS,
)


@given(
    st.lists(SNAPSHOTS, max_size=3, unique_by=lambda each: (each.operator_id, each.subtask)), st.integers(1, 2**64 - 1)
)
def test_a_whole_checkpoint_comes_back_as_it_was(snapshots: list[TaskSnapshot], checkpoint_id: int) -> None:
    """Something that a task captured would be missing after a recovery."""
    taken = [files_of(snapshot) for snapshot in snapshots]
    written = Manifest(checkpoint_id, 1, True, tuple(part for part, _files in taken))
    files = {path: data for _part, each in taken for path, data in each.items()}
    read = decode_manifest(encode_manifest(written))
    assert read == written
    assert read.size_bytes == sum(map(len, files.values()))
    assert read.event_count == sum(len(r.events) for each in snapshots for r in (*each.inputs, *each.outputs))
    back = [snapshot_from(part, files) for part in read.parts]
    assert back == sorted(snapshots, key=lambda each: (each.operator_id, each.subtask))


# Other bytes.

RECORD_FILE = encode_in_flight(3, InFlight(5, (b"one", b"")))
STATE_FILE = encode_state(3, b"state")


@pytest.mark.parametrize(
    ("good", "decoder"),
    [
        (RECORD_FILE, lambda data: decode_in_flight(data, 3, path="the file")),
        (STATE_FILE, lambda data: decode_state(data, 3, path="the file")),
    ],
    ids=["in flight", "state"],
)
def test_no_neighbour_of_a_file_passes_for_it(good: bytes, decoder: Callable[[bytes], object]) -> None:
    """One bad byte would change what a task restores (protocol rule 22)."""
    decoder(good)
    for bad in neighbours(good):
        with pytest.raises(DamagedError, match=r"^the file: ") as caught:
            decoder(bad)
        assert caught.value.path == "the file"


def test_no_neighbour_of_a_manifest_passes_for_it() -> None:
    """One bad byte would send recovery to another file, or make it forget one."""
    good = encode_manifest(Manifest(1, 1, True, (files_of(replace(QUIET, inputs=(InFlight(0, (b"x",)),)))[0],)))
    for at, byte in enumerate(good):
        for other in {byte ^ 1, byte ^ 0x20, byte ^ 0x80, ord("0"), ord(" ")} - {byte}:
            with pytest.raises(DamagedError, match=r"^manifest: "):
                decode_manifest(good[:at] + bytes([other]) + good[at + 1 :])
    for size in range(len(good)):
        with pytest.raises(DamagedError, match="bytes with another checksum"):
            decode_manifest(good[:size])
    for more in (b" ", b"\n", b"\0", b"{}", good):
        with pytest.raises(DamagedError, match="bytes with another checksum"):
            decode_manifest(good + more)


def test_a_manifest_has_a_limit_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that can be written could not be read, or a damaged one would fill the memory."""
    good = encode_manifest(manifest())
    monkeypatch.setattr("barrierlab.impl.storage.manifest.MAX_MANIFEST_BYTES", len(good))
    assert decode_manifest(encode_manifest(manifest())) == manifest()
    monkeypatch.setattr("barrierlab.impl.storage.manifest.MAX_MANIFEST_BYTES", len(good) - 1)
    with pytest.raises(LimitError, match="the size of a manifest"):
        encode_manifest(manifest())
    with pytest.raises(DamagedError, match="what a manifest can have"):
        decode_manifest(good)


@pytest.mark.parametrize(
    ("found", "data", "subtask", "is_output"),
    [
        ("30 bytes; allowed: at least 40", RECORD_FILE[:30], 3, False),
        ("62 bytes; allowed: 63 bytes, as the file says itself", RECORD_FILE[:-1], 3, False),
        ("64 bytes; allowed: 63 bytes, as the file says itself", sealed(RECORD_FILE[:-16] + b"x"), 3, False),
        ("bytes with the checksum ", RECORD_FILE[:-1] + b"x", 3, False),
        ("it begins with b'BLSTATE", STATE_FILE, 3, False),
        ("it begins with b'BLINFLT", RECORD_FILE, 3, True),
        ("subtask 3", RECORD_FILE, 4, False),
        ("format version 2", frame(b"BLINFLT\n", 3, bytes(12), version=2), 3, False),
        ("11 bytes of content", in_flight(bytes(11)), 3, False),
        ("2 events announced", in_flight(struct.pack("<IQI", 0, 2, 0)), 3, False),
        ("an event of 9 bytes announced", in_flight(struct.pack("<IQI", 0, 1, 9)), 3, False),
        ("1 bytes behind the last event", in_flight(struct.pack("<IQ", 0, 0) + b"x"), 3, False),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_the_error_says_what_was_found(found: str, data: bytes, subtask: int, is_output: bool) -> None:
    """Whoever must repair a damaged store would not know where to look."""
    with pytest.raises(DamagedError) as caught:
        decode_in_flight(data, subtask, is_output)
    assert str(caught.value).startswith(f"in-flight file: {found}")


def test_a_whole_file_from_elsewhere_is_found_out() -> None:
    """A file that is sound in itself, but of another checkpoint, would be restored."""
    part, files = files_of(JOIN)
    path = state_path("join", 1)
    for other, found in (
        (encode_state(1, JOIN.state[::-1]), "the checksum "),
        (encode_state(1, b""), "40 bytes"),
        (encode_state(1, JOIN.state + b"x"), f"{len(files[path]) + 1} or more bytes"),
    ):
        with pytest.raises(DamagedError) as caught:
            snapshot_from(part, {**files, path: other})
        assert caught.value.actual.startswith(f"{path}: {found}")


def test_a_record_of_another_channel_is_found_out() -> None:
    """Events would be restored into another channel."""
    entry = files_of(JOIN)[0].in_flight[0]
    other = encode_in_flight(1, InFlight(7, JOIN.inputs[0].events))
    part, files = files_of(replace(JOIN, inputs=(), outputs=()))
    file = replace(entry.file, size_bytes=len(other), checksum=other[-16:].hex())
    with pytest.raises(DamagedError, match="channel 7 with 2 events; allowed: channel 0 with 2 events"):
        snapshot_from(replace(part, in_flight=(replace(entry, file=file),)), {**files, file.path: other})


# Fuzz: bytes that nobody wrote, some with a sound checksum.


@given(st.binary(max_size=200) | st.binary(max_size=200).map(in_flight) | st.binary(max_size=200).map(sealed))
def test_any_bytes_are_a_record_or_damaged(data: bytes) -> None:
    """A damaged file would raise something that no caller expects."""
    for decoder in (decode_in_flight, decode_state):
        try:
            decoder(data, 3)
        except DamagedError:
            continue
        assert decoder is decode_in_flight
        assert encode_in_flight(3, decode_in_flight(data, 3)) == data


def forged(rest: bytes) -> bytes:
    """A manifest with a sound checksum."""
    return f'{{\n "checksum": "{blake2b(rest, digest_size=16).hexdigest()}",\n'.encode() + rest


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_any_json_is_a_manifest_or_damaged(data: st.DataObject) -> None:
    """A forged or half-understood manifest would raise something that no caller expects, or open another file."""
    whole = json.loads(encode_manifest(manifest()))
    del whole["checksum"]
    holder = data.draw(st.sampled_from([whole, *whole["tasks"], *whole["inflight_data"]]))
    name = data.draw(st.sampled_from(sorted(holder)))
    if data.draw(st.booleans()):
        holder[name] = data.draw(JSON)
    else:
        del holder[name]
    bad = forged(json.dumps(whole, indent=1).removeprefix("{\n").encode() + b"\n")
    try:
        again = encode_manifest(decode_manifest(bad))
    except DamagedError:
        return
    assert again == bad


@given(st.binary(max_size=100) | st.binary(max_size=100).map(forged) | JSON.map(json.dumps).map(str.encode).map(forged))
def test_any_bytes_are_a_manifest_or_damaged(data: bytes) -> None:
    """A damaged manifest would raise something that no caller expects."""
    with pytest.raises(DamagedError):
        decode_manifest(data)


@pytest.mark.parametrize(
    "rest",
    [
        b"[" * 100_000,
        b'"version": ' + b"[" * 100_000,
        b'"version": ' + b"9" * 5000 + b"}",
        encode_manifest(manifest()).partition(b",\n")[2].replace(b'"version": 1', b'"version": true'),
        encode_manifest(manifest()).partition(b",\n")[2].replace(b'"epoch": 9', b'"epoch": 9.0'),
        encode_manifest(manifest()).partition(b",\n")[2].replace(b'"epoch"', b' "epoch"'),
        encode_manifest(manifest()).partition(b",\n")[2].replace(b'"version": 1', b'"version": 2'),
        encode_manifest(manifest()).partition(b",\n")[2].replace(b"operators/join/1/state", b"../../../join/1/state"),
    ],
    ids=["nested", "nested value", "huge number", "boolean", "float", "space", "newer version", "other folder"],
)
def test_a_forged_manifest_is_damaged(rest: bytes) -> None:
    """A manifest could exhaust the stack, or lead out of its folder."""
    with pytest.raises(DamagedError):
        decode_manifest(forged(rest))


@pytest.mark.parametrize(
    "content",
    [struct.pack("<IQ", 0, 2**64 - 1) + bytes(1000), struct.pack("<IQI", 0, 1, 2**32 - 1) + bytes(1000)],
    ids=["count", "length"],
)
def test_a_length_in_a_damaged_file_makes_no_room(content: bytes) -> None:
    """One changed number would ask for more memory than there is."""
    data = in_flight(content)
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError, match="announced"):
            decode_in_flight(data, 3)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


# What cannot be made.


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0", "a b", "x" * 121, 7])
def test_an_operator_that_cannot_name_a_folder_is_refused(name: str) -> None:
    """A file would be written outside the checkpoint's folder."""
    with pytest.raises(LimitError, match="it names a folder"):
        TaskSnapshot(name, 0, b"")


@pytest.mark.parametrize(
    "make",
    [
        lambda: TaskSnapshot("a", -1, b""),
        lambda: TaskSnapshot("a", True, b""),
        lambda: TaskSnapshot("a", 0, b"", position=2**64),
        lambda: TaskSnapshot("a", 0, b"", inputs=(InFlight(0, ()), InFlight(0, ()))),
        lambda: InFlight(2**32, ()),
        lambda: replace(manifest(), is_unaligned=False),
        lambda: replace(manifest(), parts=manifest().parts * 2),
        lambda: replace(manifest().parts[0], state=replace(manifest().parts[0].state, path="elsewhere")),
        lambda: replace(manifest().parts[0].state, checksum="AB"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object]) -> None:
    """It would be found when the checkpoint is needed, and not when it is taken."""
    with pytest.raises(LimitError):
        make()


def test_ids_that_no_barrier_can_have_are_refused() -> None:
    """A checkpoint would be stored that nothing can refer to (protocol rule 2)."""
    for bad in (0, 2**64, "1"):
        with pytest.raises(CheckpointIdError):
            replace(manifest(), checkpoint_id=bad)
    with pytest.raises(EpochError):
        replace(manifest(), epoch=-1)


def test_a_manifest_is_the_same_in_whatever_order_the_parts_came() -> None:
    """Two stores with the same checkpoint would differ by the order of acknowledgements."""
    parts: tuple[StoredSnapshot, ...] = manifest().parts
    assert encode_manifest(replace(manifest(), parts=parts[::-1])) == encode_manifest(manifest())
