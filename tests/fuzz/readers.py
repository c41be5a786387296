"""Any bytes through every reader of stored data: each is what was written, or damaged, and nothing else happens.

    python -m tests.fuzz.readers [-runs=N] [-max_total_time=SECONDS] [libFuzzer options, corpus folders]

runs under coverage-guided fuzzing (Atheris); it starts from well-formed files, one for each format. The first byte of
an input says which reader gets the rest, and whether its checksum is put right first: otherwise no mutation would get
past that. Memory is limited, so a length that is believed is found as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType

from barrierlab.impl import CheckpointBarrier, DamagedError, Event, InFlight, Manifest, TaskSnapshot, Watermark, join
from barrierlab.impl.storage.encoding import decode, encode
from barrierlab.impl.storage.manifest import decode_manifest, encode_manifest
from barrierlab.impl.storage.snapshot import decode_in_flight, decode_state, encode_in_flight, encode_state, files_of

CHECKSUM_BYTES = 16
SUBTASK = 0
MOST_MB = 512

EVENTS = (encode(Event("a", 1, key="k", value=(1.5, None))), encode(Watermark(7)), encode(CheckpointBarrier(3, 3)))
SNAPSHOT = TaskSnapshot("join", SUBTASK, EVENTS[0], 5, (InFlight(1, EVENTS),), (InFlight(0, EVENTS),))


def sealed(data: bytes) -> bytes:
    """A frame with its length and checksum put right."""
    body = bytearray(data[:-CHECKSUM_BYTES])
    body[16:24] = len(data).to_bytes(8, "little")
    return bytes(body) + blake2b(body, digest_size=CHECKSUM_BYTES).digest()


def sealed_manifest(data: bytes) -> bytes:
    """A manifest with its first line put right."""
    rest = b"".join(data.splitlines(keepends=True)[2:])
    return f'{{\n "checksum": "{blake2b(rest, digest_size=CHECKSUM_BYTES).hexdigest()}",\n'.encode() + rest


def in_flight(data: bytes) -> bytes:
    """A record, written again."""
    return encode_in_flight(SUBTASK, decode_in_flight(data, SUBTASK))


def state(data: bytes) -> bytes:
    """A state, written again."""
    return encode_state(SUBTASK, decode_state(data, SUBTASK))


def manifest(data: bytes) -> bytes:
    """A manifest, written again."""
    return encode_manifest(decode_manifest(data))


def value(data: bytes) -> bytes:
    """A value, written again."""
    return encode(decode(data))


def merge_map(data: bytes) -> bytes:
    """A message about a merge map, written again; of a newer version, of which bytes are skipped, as it is."""
    said = join.decode(data)
    if isinstance(said, join.Undecodable | join.InvalidMergeMap):
        raise DamagedError("a message", said.reason, "a message about a merge map")
    return join.encode(said) if data[6:8] == join.encode(said)[6:8] else data


MERGE_MAP = join.SequenceMergeMapAnnounce(9, 2, (join.SequenceMergeRule.at_offset(1, -2),), 50)
Reader = tuple[Callable[[bytes], bytes], Callable[[bytes], bytes], bytes]
"""By kind: the reader that writes again, the repair of a checksum, and a well-formed input."""

READERS: tuple[Reader, ...] = (
    (in_flight, sealed, encode_in_flight(SUBTASK, SNAPSHOT.inputs[0])),
    (state, sealed, encode_state(SUBTASK, SNAPSHOT.state)),
    (manifest, sealed_manifest, encode_manifest(Manifest(3, 3, True, (files_of(SNAPSHOT)[0],)))),
    (merge_map, bytes, join.encode(MERGE_MAP)),
    (value, bytes, encode((1, -(2**80), "x", b"y", (None, True, 0.5), Event("a", 1)))),
)


def seeds() -> list[bytes]:
    """One well-formed input for each reader, as it is and with its checksum put right."""
    return [bytes([2 * index + right]) + reader[2] for index, reader in enumerate(READERS) for right in (0, 1)]


def one_input(data: bytes) -> bool:
    """Return whether `data` is accepted by the reader that it chooses.

    Raises
    ------
    AssertionError
        If what was accepted is not what would be written.
    """
    if not data:
        return False
    again, put_right, _ = READERS[data[0] // 2 % len(READERS)]
    content = put_right(data[1:]) if data[0] % 2 and len(data) > 64 else data[1:]
    try:
        written = again(content)
    except DamagedError:
        return False
    assert written == content, "bytes were accepted that are not written so"
    return True


def main(arguments: list[str]) -> None:
    """Fuzz until libFuzzer has enough, or something is found."""
    import atheris

    for module in (
        "barrierlab.impl.storage.encoding",
        "barrierlab.impl.join.codec",
        "barrierlab.impl.storage.manifest",
        "barrierlab.impl.storage.snapshot",
    ):
        for function in vars(sys.modules[module]).values():
            if isinstance(function, FunctionType) and function.__module__ == module:
                function.__code__ = atheris.instrument_func(function).__code__
    with TemporaryDirectory() as corpus:
        for index, seed in enumerate(seeds()):
            Path(corpus, str(index)).write_bytes(seed)
        atheris.Setup([sys.argv[0], f"-rss_limit_mb={MOST_MB}", *arguments, corpus], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
