"""The bytes of a manifest: JSON in one fixed form, behind its own checksum.

The first member is the checksum (BLAKE2b, 16 bytes) of all that follows its line, so that it is compared before
anything is parsed. ``is_unaligned`` and the entries of ``inflight_data`` are those of F-DCKP-006, "In-Flight Buffer
Persistence Format"; an entry also has its subtask, length and checksum (protocol rule 21), and that of an output
says ``output_id``. One manifest has one encoding: what is read must be, byte for byte, what would be written.
"""

from __future__ import annotations

import json
from hashlib import blake2b

from barrierlab.impl.errors import ContractError, DamagedError, LimitError
from barrierlab.impl.storage.snapshot import CHECKSUM_BYTES, VERSION, InFlightFile, Manifest, StoredFile, StoredSnapshot

MAX_MANIFEST_BYTES = 64 * 2**20  # some 300,000 files
_TASK = ("operator_id", "subtask", "position", "path", "size_bytes", "checksum")
_IN_FLIGHT = ("operator_id", "subtask", "{}_id", "path", "event_count", "size_bytes", "checksum")
_WHOLE = ("version", "checkpoint_id", "epoch", "is_unaligned", "tasks", "inflight_data")


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the file of a manifest, as bytes.

    Raises
    ------
    LimitError
        If it has more than `MAX_MANIFEST_BYTES`.
    """
    tasks, in_flight = [], []
    for part in manifest.parts:
        here = part.operator_id, part.subtask
        values: tuple[object, ...] = (*here, part.position, part.state.path, part.state.size_bytes, part.state.checksum)
        tasks.append(_record(_TASK, values))
        for entry in part.in_flight:
            file = entry.file
            values = (*here, entry.channel, file.path, entry.event_count, file.size_bytes, file.checksum)
            in_flight.append(_record(_in_flight_names(entry.is_output), values))
    numbers = (VERSION, manifest.checkpoint_id, manifest.epoch, manifest.is_unaligned)
    whole = _record(_WHOLE, (*numbers, tasks, in_flight))
    rest = json.dumps(whole, indent=1).removeprefix("{\n").encode() + b"\n"
    data = _first_line(rest) + rest
    if len(data) > MAX_MANIFEST_BYTES:
        raise LimitError("the size of a manifest", len(data), f"at most {MAX_MANIFEST_BYTES} bytes")
    return data


def decode_manifest(data: bytes, path: str = "manifest") -> Manifest:
    """Return the manifest in a file.

    Raises
    ------
    DamagedError
        If `data` is not what `encode_manifest` wrote.
    """
    if len(data) > MAX_MANIFEST_BYTES:
        raise DamagedError(path, f"more than {MAX_MANIFEST_BYTES} bytes", "what a manifest can have")
    rest = data[len(_first_line(b"")) :]
    if not data.startswith(first := _first_line(rest)):
        raise DamagedError(path, "bytes with another checksum", f"a file that begins with {first.decode()!r}")
    try:
        manifest = _manifest(json.loads(data))
    except (ValueError, TypeError, RecursionError, ContractError) as error:
        raise DamagedError(path, f"no manifest ({error})", f"a manifest of version {VERSION}") from error
    if encode_manifest(manifest) != data:
        raise DamagedError(path, "a manifest in another form", "the form in which one is written")
    return manifest


def _record(names: tuple[str, ...], values: tuple[object, ...]) -> dict[str, object]:
    return dict(zip(names, values, strict=True))


def _first_line(rest: bytes) -> bytes:
    checksum = blake2b(rest, digest_size=CHECKSUM_BYTES).hexdigest()
    return f'{{\n "checksum": "{checksum}",\n'.encode()


def _in_flight_names(is_output: bool) -> tuple[str, ...]:
    return tuple(name.format("output" if is_output else "input") for name in _IN_FLIGHT)


def _manifest(whole: object) -> Manifest:
    """Return what the parsed JSON says; that every member is there, and no other, is seen when it is written again."""
    version, checkpoint_id, epoch, is_unaligned, tasks, in_flight = _members(_records([whole])[0], _WHOLE)
    if version != VERSION:
        raise ValueError(f"version {version!r}")
    files: dict[object, list[InFlightFile]] = {}
    for entry in _records(in_flight):
        is_output = "output_id" in entry
        operator_id, subtask, channel, path, count, size, checksum = _members(entry, _in_flight_names(is_output))
        file = InFlightFile(channel, is_output, count, StoredFile(path, size, checksum))  # type: ignore[arg-type]
        files.setdefault((operator_id, subtask), []).append(file)
    parts = []
    for task in _records(tasks):
        operator_id, subtask, position, path, size, checksum = _members(task, _TASK)
        entries = tuple(files.pop((operator_id, subtask), ()))
        state = StoredFile(path, size, checksum)  # type: ignore[arg-type]
        parts.append(StoredSnapshot(operator_id, subtask, position, state, entries))  # type: ignore[arg-type]
    return Manifest(checkpoint_id, epoch, is_unaligned, tuple(parts))  # type: ignore[arg-type]


def _members(record: dict[str, object], names: tuple[str, ...]) -> list[object]:
    if not all(name in record for name in names):
        raise ValueError(f"not all of {', '.join(names)}")
    return [record[name] for name in names]


def _records(found: object) -> list[dict[str, object]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError(f"no list of records: {found!r:.40}")
    return found
