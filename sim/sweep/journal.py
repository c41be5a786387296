"""The journal of a run as rows of the tables `events` and `channels`: what each entry is about, typed for SQL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from barrierlab.model.checkpoint.trace import text_of
from barrierlab.model.spec.history import EFFECTS, MOVES, Entry
from barrierlab.model.spec.invariants import Limits
from barrierlab.model.spec.messages import UNALIGNED_FLAG, MessageView, kind_of, size_of
from barrierlab.model.spec.topology import Topology
from barrierlab.sim.scenario.file import ScenarioError
from barrierlab.sim.sweep.tables import EVENTS

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Typed = dict[str, object]


def journal_columns(entries: Iterable[Entry], begin: int = 0) -> dict[str, pa.Array]:
    """The journal as the columns of `events`, but for the run's id; `begin` is the number of the first entry.

    One object is the subject of many entries, so it is taken apart once, and its values are put where it stands.
    """
    import pyarrow as pa

    subjects: list[Typed] = [{}]
    places: dict[tuple[str, int], int] = {}  # of a subject among those, by what it is and its identity
    times: list[int] = []
    verbs: list[str] = []
    nodes: list[str] = []
    channels: list[str | None] = []
    about: list[int] = []
    for at_ns, verb, node, channel, subject in entries:
        times.append(at_ns)
        verbs.append(verb)
        nodes.append(node)
        channels.append(channel)
        if subject is None:
            about.append(0)
            continue
        what = _WHAT[verb]
        place = places.get((what, id(subject)))
        if place is None:
            place = places[what, id(subject)] = len(subjects)
            subjects.append({"subject": text_of(subject), **_TYPED[what](subject)})
        about.append(place)
    own = {
        "number": range(begin, begin + len(times)),
        "at_ns": times,
        "verb": verbs,
        "node": nodes,
        "channel": channels,
    }
    schema = EVENTS.arrow()
    indices = pa.array(about, pa.int32())
    return {
        name: pa.array(own[name], schema.field(name).type)
        if name in own
        else pa.array([each.get(name) for each in subjects], schema.field(name).type).take(indices)
        for name in schema.names
        if name != "run_id"
    }


class EventsFile:
    """A Parquet file of a journal that comes piece by piece: the columns of `events`, but for the run's id.

    Each piece is a row group. The file has its name when it is whole: until then, and if it never is, there is none.

    Raises
    ------
    ScenarioError
        If it cannot be written, or what has its name is a device or a pipe, which a rename would replace.
    """

    def __init__(self, path: Path) -> None:
        target = Path(os.path.realpath(path))  # a link goes on pointing to the file that it names
        if target.exists() and not target.is_file():
            raise ScenarioError(f"--events {path}: is no file, and Parquet is written into nothing else; give a file")
        self._path, self._draft = target, target.with_name(f".{target.name}.{os.getpid()}.tmp")
        self._count = 0
        self._schema = EVENTS.arrow().remove(0)
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> EventsFile:
        import pyarrow.parquet as pq

        with self._one_line():
            self._writer = pq.ParquetWriter(self._draft, self._schema, compression="zstd")
        return self

    def write(self, entries: Sequence[Entry]) -> None:
        """Write the next entries."""
        import pyarrow as pa

        assert self._writer is not None
        columns = journal_columns(entries, self._count)
        self._count += len(entries)
        with self._one_line():
            self._writer.write_table(pa.table(columns, schema=self._schema))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        assert self._writer is not None
        try:
            with self._one_line():
                self._writer.close()
                if kind is None:
                    self._draft.replace(self._path)
        finally:
            self._draft.unlink(missing_ok=True)

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ScenarioError(f"--events {self._path}: cannot be written: {error.strerror or error}") from None


def channel_rows(topology: Topology, limits: Limits) -> list[dict[str, Any]]:
    """The channels of a job as rows of `channels`, but for the run's id."""
    return [
        {
            "number": number,
            "channel": channel,
            "sender": topology.ends(channel)[0],
            "receiver": topology.ends(channel)[1],
            "edge": topology.edge_of(channel),
            "exchange": topology.exchange(topology.edge_of(channel)),
            "capacity": limits.channel_capacity.get(channel),
            "receiver_most_buffered": limits.max_buffer_per_input,
            "receiver_most_buffered_bytes": limits.max_buffer_memory_bytes,
            "part_most_recorded_bytes": limits.max_inflight_buffer_bytes,
        }
        for number, channel in enumerate(topology.channels)
    ]


def _message(subject: object) -> Typed:
    kind, marked = kind_of(subject), cast(MessageView, subject)
    found: Typed = {"message": text_of(subject), "kind": kind, "size_bytes": size_of(subject)}
    if kind == "Event":
        return found | {
            "source": marked.source,
            "sequence": marked.sequence,
            "timestamp_ms": marked.timestamp_ms,
        }
    if kind == "CheckpointBarrier":
        unaligned = bool(marked.flags & UNALIGNED_FLAG)
        return found | {"checkpoint_id": marked.checkpoint_id, "epoch": marked.epoch, "unaligned": unaligned}
    if kind == "Watermark":
        return found | {"timestamp_ms": marked.timestamp_ms}
    return found | ({"checkpoint_id": marked.checkpoint_id} if kind == "CancelBarrier" else {})


def _id(subject: object) -> Typed:
    return {"checkpoint_id": subject}


def _id_and(name: str) -> Callable[[object], Typed]:
    return lambda subject: {"checkpoint_id": cast(tuple[int, str], subject)[0], name: cast(tuple[int, str], subject)[1]}


def _id_and_message(subject: object) -> Typed:
    checkpoint_id, message = cast(tuple[int, object], subject)
    return _message(message) | {"checkpoint_id": checkpoint_id}


def _transaction_first(subject: object) -> Typed:
    return {"transaction": cast(tuple[str, object], subject)[0]}


# What the subject of each verb is, out of its description; and how that is taken apart.
_WHAT = {verb: text.split(": ")[0].split(", ", 2)[2] for verb, text in (MOVES | EFFECTS).items()}
_TYPED: dict[str, Callable[[object], Typed]] = {
    "event": _message,
    "message": _message,
    "barrier": _message,
    "id": _id,
    "id or -": _id,
    "late or -": lambda subject: {},
    "timestamp in ms": lambda subject: {"timestamp_ms": subject},
    "(id, reason)": _id_and("reason"),
    "(id, digest of the state)": _id_and("digest"),
    "(id, digest)": _id_and("digest"),
    "(id, message)": _id_and_message,
    "transaction": lambda subject: {"transaction": subject},
    "(transaction, count)": _transaction_first,
    "(transaction, events)": _transaction_first,
}
