"""The content of a checkpoint, as values, and the bytes of its files.

A checkpoint is a manifest and, for each task, a state file and a file for each channel that had something in flight
(F-DCKP-006, "In-Flight Buffer Persistence Format"; protocol rule 21):

    operators/{operator-id}/{subtask}/state.bin
    operators/{operator-id}/{subtask}/inflight_{input_id}.buf
    operators/{operator-id}/{subtask}/inflight_out_{output_id}.buf    what the barrier overtook going out (rule 16)
    manifest.json

The document's path has no subtask, so parallel instances would overwrite each other (defect U-20). Every file but the
manifest is a frame: magic (8 bytes), subtask (u32), version (u32), length of the whole file (u64), content, and the
checksum of all before it (16 bytes, BLAKE2b). The content of an in-flight file is the document's: input id (u32), event
count (u64), and each event as length (u32) and bytes. The manifest repeats length and checksum of every file, so that
a whole file from elsewhere is found out too. (A CRC would not do for that: over a file that ends with its own, it is
the same for all.) Numbers are little-endian.

Reading is strict and trusts nothing: any changed byte, a missing end or an added one is a `DamagedError`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING, cast

from barrierlab.impl.checks import check_flag, check_number, check_type
from barrierlab.impl.errors import CheckpointIdError, DamagedError, EpochError, LimitError
from barrierlab.impl.messages import MAX_U64
from barrierlab.impl.storage.encoding import MAX_U32

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 1
STATE_MAGIC = b"BLSTATE\n"
INPUT_MAGIC = b"BLINFLT\n"
OUTPUT_MAGIC = b"BLOUTFL\n"
CHECKSUM_BYTES = 16
_FRAME = Struct("<8sIIQ")
_CHANNEL = Struct("<IQ")
_U32 = Struct("<I")
_FOLDER_NAME = re.compile(r"[\w-]{1,120}")
_MOST_NAME_BYTES = 255  # what the usual file systems take; a letter has up to 4
_CHECKSUM = re.compile(r"[0-9a-f]{32}")


def _check_task(operator_id: object, subtask: object, position: object) -> None:
    """Check what is the same in a snapshot and in what the manifest says of it."""
    fits = type(operator_id) is str and _FOLDER_NAME.fullmatch(operator_id)
    if not fits or len(str(operator_id).encode()) > _MOST_NAME_BYTES:
        allowed = f"1 to 120 letters, digits, _ and -, {_MOST_NAME_BYTES} bytes at most: it names a folder"
        raise LimitError("operator_id", operator_id, allowed)
    check_number("subtask", subtask, 0, MAX_U32)
    check_number("position", position, 0, MAX_U64, or_none="for a task with inputs")


def _check_all(name: str, values: object, kind: type) -> None:
    """Raise LimitError unless `values` is a tuple of `kind`."""
    check_type(name, values, tuple)
    if not set(map(type, cast("tuple[object, ...]", values))) <= {kind}:
        odd = next(value for value in cast("tuple[object, ...]", values) if type(value) is not kind)
        raise LimitError(name, odd, f"each of type {kind.__name__}")


def _once(name: str, values: list[object]) -> None:
    if len(set(values)) != len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise LimitError(name, twice, "each once")


@dataclass(frozen=True, slots=True)
class InFlight:
    """The events in flight on one channel: `InFlightChannelData` of the document, as bytes.

    Attributes
    ----------
    channel : int
        Index of the input, or of the output.
    events : tuple of bytes
        Each message encoded, in channel order.
    """

    channel: int
    events: tuple[bytes, ...]

    def __post_init__(self) -> None:
        check_number("channel", self.channel, 0, MAX_U32)
        _check_all("events", self.events, bytes)

    @property
    def size_bytes(self) -> int:
        """Return how many bytes the events have together."""
        return sum(map(len, self.events))


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """One task's part of a checkpoint.

    Attributes
    ----------
    operator_id : str
    subtask : int
        Which of the operator's parallel instances, from 0.
    state : bytes
        The encoded image.
    position : int or None
        A source's: the sequence of the first event behind the barrier (protocol rule 4).
    inputs, outputs : tuple of InFlight
        By channel; a channel with nothing in flight may be left out.

    Raises
    ------
    LimitError
        If the operator cannot name a folder, a number is out of range, the state is no bytes, or a channel comes
        twice.
    """

    operator_id: str
    subtask: int
    state: bytes
    position: int | None = None
    inputs: tuple[InFlight, ...] = ()
    outputs: tuple[InFlight, ...] = ()

    def __post_init__(self) -> None:
        _check_task(self.operator_id, self.subtask, self.position)
        check_type("state", self.state, bytes)
        _check_all("inputs", self.inputs, InFlight)
        _check_all("outputs", self.outputs, InFlight)
        _once("an input in flight", [each.channel for each in self.inputs])
        _once("an output in flight", [each.channel for each in self.outputs])


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as the manifest has it: where it is, and what to compare it with."""

    path: str
    size_bytes: int
    checksum: str

    def __post_init__(self) -> None:
        check_type("path", self.path, str)
        check_number("size_bytes", self.size_bytes, 0, MAX_U64)
        if type(self.checksum) is not str or not _CHECKSUM.fullmatch(self.checksum):
            raise LimitError("checksum", self.checksum, "32 hexadecimal digits")

    @classmethod
    def of(cls, path: str, data: bytes) -> StoredFile:
        """Return the entry for a frame."""
        return cls(path, len(data), data[-CHECKSUM_BYTES:].hex())


@dataclass(frozen=True, slots=True)
class InFlightFile:
    """An entry of ``inflight_data``, less the operator and subtask of the part that has it."""

    channel: int
    is_output: bool
    event_count: int
    file: StoredFile

    def __post_init__(self) -> None:
        check_number("channel", self.channel, 0, MAX_U32)
        check_flag("is_output", self.is_output)
        check_number("event_count", self.event_count, 0, MAX_U64)
        check_type("file", self.file, StoredFile)


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """The manifest's record of one task: its answer to the coordinator once its files are durable.

    Raises
    ------
    LimitError
        If a path is not the one that `state_path` or `in_flight_path` gives: nothing else is ever opened.
    """

    operator_id: str
    subtask: int
    position: int | None
    state: StoredFile
    in_flight: tuple[InFlightFile, ...] = ()

    def __post_init__(self) -> None:
        _check_task(self.operator_id, self.subtask, self.position)
        check_type("state", self.state, StoredFile)
        _check_all("in_flight", self.in_flight, InFlightFile)
        here = self.operator_id, self.subtask
        expected = [(self.state.path, state_path(*here))]
        expected += [(f.file.path, in_flight_path(*here, f.channel, f.is_output)) for f in self.in_flight]
        for path, allowed in expected:
            if path != allowed:
                raise LimitError("path", path, allowed)
        _once("path", [path for path, _allowed in expected])

    @property
    def size_bytes(self) -> int:
        """Return how many bytes the files have together."""
        return self.state.size_bytes + sum(entry.file.size_bytes for entry in self.in_flight)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The file that makes a checkpoint complete: every part of it, by name, length and checksum.

    Attributes
    ----------
    checkpoint_id, epoch : int
    is_unaligned : bool
        Whether anything may be in flight.
    parts : tuple of StoredSnapshot
        Kept in order of operator and subtask, so that one checkpoint has one manifest.

    Raises
    ------
    CheckpointIdError, EpochError, LimitError
        If a number is out of range, a task comes twice, or an aligned checkpoint has something in flight.
    """

    checkpoint_id: int
    epoch: int
    is_unaligned: bool
    parts: tuple[StoredSnapshot, ...]

    def __post_init__(self) -> None:
        if type(self.checkpoint_id) is not int or not 1 <= self.checkpoint_id <= MAX_U64:
            raise CheckpointIdError(self.checkpoint_id)
        if type(self.epoch) is not int or not 0 <= self.epoch <= MAX_U64:
            raise EpochError(self.epoch, f"0 to {MAX_U64}")
        check_flag("is_unaligned", self.is_unaligned)
        _check_all("parts", self.parts, StoredSnapshot)
        object.__setattr__(self, "parts", tuple(sorted(self.parts, key=lambda p: (p.operator_id, p.subtask))))
        _once("a task", [(part.operator_id, part.subtask) for part in self.parts])
        if not self.is_unaligned and any(part.in_flight for part in self.parts):
            raise LimitError("is_unaligned", False, "True, for something is in flight")

    @property
    def size_bytes(self) -> int:
        """Return how many bytes the files have together, without the manifest."""
        return sum(part.size_bytes for part in self.parts)

    @property
    def event_count(self) -> int:
        """Return how many events are in flight."""
        return sum(entry.event_count for part in self.parts for entry in part.in_flight)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint, every byte of it verified."""

    manifest: Manifest
    snapshots: tuple[TaskSnapshot, ...]


def state_path(operator_id: str, subtask: int) -> str:
    """Return where a task's state is, from the folder of the checkpoint."""
    return f"operators/{operator_id}/{subtask}/state.bin"


def in_flight_path(operator_id: str, subtask: int, channel: int, is_output: bool = False) -> str:
    """Return where the record of a task's channel is, from the folder of the checkpoint."""
    return f"operators/{operator_id}/{subtask}/inflight_{'out_' if is_output else ''}{channel}.buf"


def files_of(snapshot: TaskSnapshot) -> tuple[StoredSnapshot, dict[str, bytes]]:
    """Return a snapshot's entry for the manifest, and its files by path."""
    here = snapshot.operator_id, snapshot.subtask
    path = state_path(*here)
    files = {path: encode_state(snapshot.subtask, snapshot.state)}
    state = StoredFile.of(path, files[path])
    entries = []
    for is_output, records in ((False, snapshot.inputs), (True, snapshot.outputs)):
        for record in sorted(records, key=lambda record: record.channel):
            path = in_flight_path(*here, record.channel, is_output)
            files[path] = encode_in_flight(snapshot.subtask, record, is_output)
            entries.append(
                InFlightFile(record.channel, is_output, len(record.events), StoredFile.of(path, files[path]))
            )
    return StoredSnapshot(*here, snapshot.position, state, tuple(entries)), files


def snapshot_from(part: StoredSnapshot, files: dict[str, bytes], folder: str = "") -> TaskSnapshot:
    """Return the snapshot of which `files_of` made these files.

    Parameters
    ----------
    part : StoredSnapshot
    files : dict of str to bytes
        By path.
    folder : str
        What an error puts before a path.

    Raises
    ------
    DamagedError
        If a file is not, byte for byte, the one that `part` speaks of.
    """
    for file in (part.state, *(entry.file for entry in part.in_flight)):
        _same_file(file, files[file.path], folder)
    state = decode_state(files[part.state.path], part.subtask, folder + part.state.path)
    records: tuple[list[InFlight], list[InFlight]] = ([], [])
    for entry in part.in_flight:
        path = folder + entry.file.path
        record = decode_in_flight(files[entry.file.path], part.subtask, entry.is_output, path)
        if (record.channel, len(record.events)) != (entry.channel, entry.event_count):
            found = f"channel {record.channel} with {len(record.events)} events"
            raise DamagedError(path, found, f"channel {entry.channel} with {entry.event_count} events")
        records[entry.is_output].append(record)
    return TaskSnapshot(part.operator_id, part.subtask, state, part.position, tuple(records[0]), tuple(records[1]))


def _same_file(file: StoredFile, data: bytes, folder: str) -> None:
    if len(data) != file.size_bytes:
        more = "or more " if len(data) > file.size_bytes else ""
        raise DamagedError(
            folder + file.path, f"{len(data)} {more}bytes", f"{file.size_bytes} bytes, as in the manifest"
        )
    checksum = data[-CHECKSUM_BYTES:].hex()
    if checksum != file.checksum:
        raise DamagedError(folder + file.path, f"the checksum {checksum}", f"{file.checksum}, as in the manifest")


# One file.


def encode_state(subtask: int, state: bytes) -> bytes:
    """Return the file of a task's state."""
    return _framed(STATE_MAGIC, subtask, len(state), (state,))


def decode_state(data: bytes, subtask: int, path: str = "state file") -> bytes:
    """Return the state in a file.

    Raises
    ------
    DamagedError
        If `data` is not what `encode_state` wrote for that subtask.
    """
    return data[_content(data, STATE_MAGIC, subtask, path) : -CHECKSUM_BYTES]


def encode_in_flight(subtask: int, record: InFlight, is_output: bool = False) -> bytes:
    """Return the file of a channel's in-flight events.

    Raises
    ------
    LimitError
        If an event has 2**32 bytes or more.
    """
    events = record.events
    sizes = list(map(len, events))
    distinct = set(sizes)  # few, mostly: packing each event's length costs as much again as the rest of the joining
    if max(distinct, default=0) > MAX_U32:
        raise LimitError("the size of an event", max(distinct), f"at most {MAX_U32} bytes")
    prefixes = {size: _U32.pack(size) for size in distinct}
    prefixed = chain.from_iterable(zip(map(prefixes.__getitem__, sizes), events, strict=True))
    content = chain((_CHANNEL.pack(record.channel, len(events)),), prefixed)
    size = _CHANNEL.size + _U32.size * len(events) + sum(sizes)
    return _framed(OUTPUT_MAGIC if is_output else INPUT_MAGIC, subtask, size, content)


def decode_in_flight(data: bytes, subtask: int, is_output: bool = False, path: str = "in-flight file") -> InFlight:
    """Return the in-flight events in a file.

    Raises
    ------
    DamagedError
        If `data` is not what `encode_in_flight` wrote for that subtask and direction.
    """
    at = _content(data, OUTPUT_MAGIC if is_output else INPUT_MAGIC, subtask, path)
    end = len(data) - CHECKSUM_BYTES
    if end - at < _CHANNEL.size:
        raise DamagedError(path, f"{end - at} bytes of content", f"at least {_CHANNEL.size}")
    channel, count = _CHANNEL.unpack_from(data, at)
    at += _CHANNEL.size
    if count > (end - at) // _U32.size:
        raise DamagedError(path, f"{count} events announced", f"what {end - at} bytes can hold")
    events = []
    for _ in range(count):
        start = at + _U32.size
        at = start + _U32.unpack_from(data, at)[0]  # reads into the checksum at worst: it is always there
        if at > end:
            raise DamagedError(path, f"an event of {at - start} bytes announced", f"the {end - start} that are left")
        events.append(data[start:at])
    if at != end:
        raise DamagedError(path, f"{end - at} bytes behind the last event", "none")
    return InFlight(channel, tuple(events))


def _framed(magic: bytes, subtask: int, size: int, content: Iterable[bytes]) -> bytes:
    length = _FRAME.size + size + CHECKSUM_BYTES
    body = b"".join(chain((_FRAME.pack(magic, subtask, VERSION, length),), content))
    return body + blake2b(body, digest_size=CHECKSUM_BYTES).digest()


def _content(data: bytes, magic: bytes, subtask: int, path: str) -> int:
    """Return where the content of a frame begins; it ends before the checksum. Whole files are compared, nothing is
    copied."""
    if len(data) < _FRAME.size + CHECKSUM_BYTES:
        raise DamagedError(path, f"{len(data)} bytes", f"at least {_FRAME.size + CHECKSUM_BYTES}")
    actual, whose, version, length = _FRAME.unpack_from(data)
    if actual != magic:
        raise DamagedError(path, f"it begins with {actual!r}", repr(magic))
    if length != len(data):
        raise DamagedError(path, f"{len(data)} bytes", f"{length} bytes, as the file says itself")
    checksum = blake2b(memoryview(data)[:-CHECKSUM_BYTES], digest_size=CHECKSUM_BYTES).digest()
    if checksum != data[-CHECKSUM_BYTES:]:
        raise DamagedError(path, f"bytes with the checksum {checksum.hex()}", data[-CHECKSUM_BYTES:].hex())
    if version != VERSION:
        raise DamagedError(path, f"format version {version}", str(VERSION))
    if whose != subtask:
        raise DamagedError(path, f"subtask {whose}", str(subtask))
    return _FRAME.size
