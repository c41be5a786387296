"""A sweep's directory: what was asked, and Parquet files of results that are whole or not there at all.

Each finished chunk of runs is one file in each of the folders `runs`, `checkpoints`, `tasks` and `violations`, of the
same name; and in `events` and `channels` if the sweep keeps its events. A file is written under another name and
renamed when it is whole; a chunk counts once all its files are there. When all runs are done, `compact` makes few large
files of them, which `compacted.json` lists. The name of a chunk is a digest of its runs, so a
chunk computed twice is written twice under one name. One sweep at a time writes here: it holds a lock that the system
gives back when the sweep ends, however it ends. Scenario files of the user's own are copied into `scenarios`.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from barrierlab.sim.core.files import read_bytes, read_text, replace, write
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.plan import SweepPlan, short_hash
from barrierlab.sim.sweep.tables import ON_REQUEST, RUNS, TABLES, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "manifest.json"
ANALYSIS = "analysis.json"
SCENARIOS = "scenarios"
COMPACTED = "compacted.json"
STAGING = "compacting"
LOCK = "sweep.lock"
_PLACE = "_place"  # among the rows as they are stored, while they are sorted
_CHUNK = re.compile(r"[0-9a-f]{16}-(\d{5,})\.parquet")
_AGAIN = "remove it, and `barrierlab sweep ... --resume` computes its runs again"
_VERSIONS = ("barrierlab", "simpy", "numpy", "scipy", "networkx", "pyspark", "pyarrow", "pandas")


class Store:
    """The directory of one sweep."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    @staticmethod
    def create(directory: str | Path, plan: SweepPlan, keeps_events: bool = False) -> Store:
        """A new directory for `plan`; SweepError if there is something in it already, or it cannot be written."""
        if keeps_events and plan.is_of_joins:
            raise SweepError(
                f"--events: the runs of {plan.name} are joins, which keep no events of a job: leave it out"
            )
        store = Store(directory)
        if store.directory.exists() and (not store.directory.is_dir() or any(store.directory.iterdir())):
            hint = (
                f"continue with --resume ({store.count()} runs are done) or " if store._path(MANIFEST).is_file() else ""
            )
            raise SweepError(f"{directory} is there already: {hint}name another directory")
        try:
            import pyarrow.parquet  # noqa: F401  # ahead of the first folder: without it nothing can be kept there

            manifest = _manifest(plan) | {"keeps_events": keeps_events}
            for name in (*ON_REQUEST, *TABLES) if keeps_events else TABLES:
                store._path(name).mkdir(parents=True, exist_ok=True)
            store._write("sweep.toml", plan.text.encode())
            keep_scenarios(store.directory, plan.scenario_files)
            store._write(MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False).encode())
        except OSError as error:
            raise SweepError(f"{directory}: cannot be written: {error.strerror or error}") from None
        return store

    def discard(self) -> None:
        """Remove the directory, if none of its runs is done: the sweep can then be begun with other options."""
        if not self.count():
            shutil.rmtree(self.directory, ignore_errors=True)

    @staticmethod
    def open(directory: str | Path) -> Store:
        """Open the directory of a sweep that was begun; SweepError if it is none."""
        store = Store(directory)
        if not store._path(MANIFEST).is_file():
            raise SweepError(f"{directory} is not the directory of a sweep: give what `barrierlab sweep` got as --out")
        return store

    def continue_with(self, plan: SweepPlan, keeps_events: bool = False) -> None:
        """Raise SweepError if this directory was begun with another plan or version, or by who asked otherwise."""
        manifest = self.manifest()
        if manifest["digest"] != plan.digest:
            raise SweepError(
                f"{self.directory} was begun with another sweep ({manifest['sweep']}), or the file or a scenario "
                "has changed since: continue with the same, or name another directory"
            )
        if (begun := manifest["versions"]["barrierlab"]) != version("barrierlab"):
            raise SweepError(
                f"{self.directory} was begun with barrierlab {begun}, this is {version('barrierlab')}: "
                "name another directory"
            )
        if keeps_events != self.keeps_events:
            begun = "with" if self.keeps_events else "without"
            raise SweepError(f"{self.directory} was begun {begun} --events: go on so, or name another directory")

    def manifest(self) -> dict[str, Any]:
        """Return the request of the sweep, with the versions."""
        path = self._path(MANIFEST)
        hint = "the sweep has to be started afresh, in another directory"
        try:
            loaded = json.loads(read_text(path, SweepError, hint))
            if loaded.keys() >= _MANIFEST_KEYS and "barrierlab" in loaded["versions"]:
                return dict(loaded)
        except (json.JSONDecodeError, AttributeError, TypeError):
            pass
        raise SweepError(f"{path}: damaged, or not written by barrierlab sweep; {hint}")

    @property
    def is_of_joins(self) -> bool:
        """Return whether the runs are runs of joins, also while none is done."""
        manifest = self.manifest()
        return bool(manifest["is_of_joins"]) if "is_of_joins" in manifest else self.read("joins").num_rows > 0

    @property
    def keeps_events(self) -> bool:
        """Return whether the events of every run are stored."""
        return bool(self.manifest().get("keeps_events", False))

    def check_events(self) -> None:
        """Raise SweepError if the events are not stored."""
        if not self.keeps_events:
            raise SweepError(f"{self.directory} has no events: sweep it with --events, into another directory")

    @property
    def tables(self) -> dict[str, TableSchema]:
        """The tables that are stored here, by name, in the order in which they are written: `runs` is the last."""
        return ON_REQUEST | TABLES if self.keeps_events else TABLES

    def count(self) -> int:
        """Return how many runs are done, by the names of the files alone."""
        if self.lost():
            return len(self.done())
        in_chunks = sum(int(name.removesuffix(".parquet").rpartition("-")[2]) for name in self.chunks())
        return int(self.index().get("runs", 0)) + in_chunks

    def has_twins(self) -> bool:
        """Return whether two chunks hold the same run, as after two sweeps into one directory at once."""
        if not self.chunks():
            return False
        files = self.files(RUNS.name)
        ids = [run_id for file in files for run_id in read_file(RUNS, file, ("run_id",))["run_id"].to_pylist()]
        return len(set(ids)) < len(ids)

    def done(self) -> set[str]:
        """Return the ids of the runs that are done: of which no table has lost its rows."""
        lost = self.lost()
        found: set[str] = set()
        for file in self._compacted(RUNS.name):
            part = part_of(str(file))
            ranges = [(entry["first"], entry["last"]) for entry in lost if entry["part"] == part]
            if file.is_file():
                ids = read_file(RUNS, str(file), ("run_id",))["run_id"].to_pylist()
                found |= {run_id for run_id in ids if not any(first <= run_id <= last for first, last in ranges)}
        for name in self.chunks():
            found |= set(read_file(RUNS, str(self._path(RUNS.name) / name), ("run_id",))["run_id"].to_pylist())
        return found

    def write_chunk(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Store the rows of one chunk of runs (table name to rows) for good."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        runs = rows[RUNS.name]
        name = f"{short_hash([row['run_id'] for row in runs])}-{len(runs):05}.parquet"
        for table in self.tables.values():
            sink = pa.BufferOutputStream()
            pq.write_table(table.from_rows(rows[table.name]), sink, compression="zstd")
            write(self._path(table.name) / name, sink.getvalue().to_pybytes(), SweepError)

    def kept(self, basis: str) -> dict[str, Any] | None:
        """Return the analysis that was kept, if it was made on this basis."""
        path = self._path(ANALYSIS)
        try:
            found = json.loads(path.read_bytes()) if path.is_file() else {}
            analysis: dict[str, Any] | None = found["analysis"] if found.get("basis") == basis else None
            return analysis
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None  # damaged: it is built once more

    def keep(self, basis: str, analysis: dict[str, Any]) -> None:
        """Keep an analysis, unless the directory is read-only."""
        try:
            self._write(ANALYSIS, json.dumps({"basis": basis, "analysis": analysis}, allow_nan=False).encode())
        except OSError:
            pass

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the directory; SweepError, with who holds it, if another sweep does.

        What a sweep that was killed has left half written is removed at the end: while the lock is held nobody else
        writes here. Where the file system has no locks nothing is removed.
        """
        path = self._path(LOCK)
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise SweepError(f"{path}: cannot be written: {error.strerror or error}; name another directory") from None
        try:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = True
            except BlockingIOError:
                holder = os.read(number, 200).decode(errors="replace").strip() or "a process that has just begun"
                raise SweepError(
                    f"{self.directory}: another sweep is writing here ({holder}): wait until it ends, or name another "
                    "directory"
                ) from None
            except OSError:
                locked = False
            os.truncate(number, 0)
            os.write(number, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            yield
            if locked:
                self._tidy()
        finally:
            os.close(number)

    def _tidy(self) -> None:
        whole = set(self.chunks())
        for name in self.tables:
            for file in self._path(name).iterdir():
                if file.name not in whole and (_CHUNK.fullmatch(file.name) or file.name.startswith(".")):
                    file.unlink(missing_ok=True)

    def files(self, table: str) -> list[str]:
        """The files of one table: large ones, and of chunks that are whole; SweepError if a large one is missing."""
        for entry in self.lost():
            raise SweepError(
                f"{self._path(entry['file'])} is missing: `barrierlab sweep ... --resume` computes its runs again"
            )
        return [str(file) for file in (*self._compacted(table), *(self._path(table) / name for name in self.chunks()))]

    def index(self) -> dict[str, Any]:
        """Return the list of the large files (`compact`), empty while there is none."""
        path = self._path(COMPACTED)
        if not path.is_file():
            return {}
        try:
            loaded = json.loads(path.read_bytes())
            entries = [entry for each in loaded["tables"].values() for entry in each]
            texts = [*(entry[name] for entry in entries for name in _ENTRY), *loaded["absorbed"]]
            is_whole = loaded.keys() >= {"runs", "staged"} and loaded["tables"].keys() >= TABLES.keys()
            if is_whole and isinstance(loaded["runs"], int) and all(isinstance(text, str) for text in texts):
                return dict(loaded)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        raise SweepError(f"{path}: damaged; the sweep has to be started afresh, in another directory")

    def located(self, file: str) -> Path:
        """Return where a large file of the index is: at its place, or on its way there."""
        staged = self._path(STAGING) / file
        return self._path(file) if self._path(file).is_file() or not staged.is_file() else staged

    def lost(self) -> list[dict[str, Any]]:
        """Return the entries of the index of large files that are not there."""
        entries = [entry for each in self.index().get("tables", {}).values() for entry in each]
        return [entry for entry in entries if not self.located(entry["file"]).is_file()]

    def _compacted(self, table: str) -> list[Path]:
        return [self.located(entry["file"]) for entry in self.index().get("tables", {}).get(table, ())]

    def check_files(self) -> None:
        """Raise SweepError if a file of a chunk lacks the columns of its table, before Spark reads it and says less."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for declared in self.tables.values():
            for file in self.files(declared.name):
                try:
                    if not os.path.isfile(file):
                        raise OSError("it is no regular file")
                    found = pq.read_schema(file)
                except (pa.ArrowException, OSError, ValueError) as error:
                    raise _damaged(file, error) from None
                _check_columns(declared, file, found)

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """One table whole, or these columns of it; each key once, ordered by key.

        SweepError if one of its files cannot be read.
        """
        import pyarrow as pa

        declared = self.tables[table]
        names = list(dict.fromkeys((*declared.key, *columns))) if columns else declared.arrow().names
        parts = [read_file(declared, file, names) for file in self.files(table)]
        whole = sorted_once(pa.concat_tables([declared.arrow().empty_table().select(names), *parts]), declared.key)
        return whole.select(columns) if columns else whole

    def rows_of_runs(self, run_ids: Iterable[str]) -> list[dict[str, Any]]:
        """The rows of these runs in the table `runs`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        declared, wanted = self.tables[RUNS.name], pa.array(sorted(run_ids), pa.string())
        found: dict[str, dict[str, Any]] = {}
        for file in self.files(RUNS.name):
            rows = read_file(declared, file)
            found |= {row["run_id"]: row for row in rows.filter(pc.is_in(rows["run_id"], wanted)).to_pylist()}
        return [found[run_id] for run_id in sorted(found)]

    def rows(self, table: str) -> int:
        """Return the number of rows that the files of a table have, as their footers say."""
        import pyarrow.parquet as pq

        return sum(pq.read_metadata(file).num_rows for file in self.files(table))

    def chunks(self) -> list[str]:
        """Return the names of the chunks of which every table has its file."""
        found: set[str] | None = None
        for name in self.tables:
            try:
                names = {each for each in os.listdir(self._path(name)) if _CHUNK.fullmatch(each)}
            except (FileNotFoundError, NotADirectoryError):
                return []
            found = names if found is None else found & names
        return sorted((found or set()) - set(self.index().get("absorbed", ())))

    def _path(self, name: str) -> Path:
        return self.directory / name

    def _write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all, even if the machine stops."""
        replace(self._path(name), content)


def keep_scenarios(directory: Path, files: Iterable[Path]) -> None:
    """Copy scenario files into a directory of results, from where `barrierlab rerun` takes them."""
    for file in files:
        content = file.read_bytes()
        kept = directory / SCENARIOS / short_hash(content.decode(errors="replace")) / file.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace(kept, content)


def read_file(declared: TableSchema, file: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows in a file of a table, or these columns of them; SweepError if it is damaged, or of another version."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = read_bytes(Path(file), SweepError, _AGAIN)
    try:
        found = pq.read_schema(pa.BufferReader(content))
        part, wanted = part_of(file), columns or declared.arrow().names
        stored = [name for name in wanted if part is None or name != "part"]
        schema = declared.arrow() if part is None else declared.without_part()
        rows = pq.read_table(pa.BufferReader(content), columns=stored, schema=schema)
        if len(stored) < len(wanted):
            rows = rows.append_column(declared.arrow().field("part"), pa.repeat(pa.scalar(part), rows.num_rows))
        rows = rows.select(wanted)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(file, error) from None
    _check_columns(declared, file, found)
    return rows


def part_of(file: str) -> str | None:
    """Return the part whose rows a file has, as its folder says; None for the file of a chunk.

    >>> part_of("out/runs/part=a%2Fb c/g1-0000.parquet")
    'a/b c'
    """
    folder = Path(file).parent.name
    return unquote(folder.removeprefix("part=")) if folder.startswith("part=") else None


def sorted_once(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows in the order of their key; of equal keys the first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = rows.append_column(_PLACE, pa.array(range(rows.num_rows), pa.int64()))
    order = pc.sort_indices(rows, [(name, "ascending") for name in (*key, _PLACE)])
    rows = rows.take(order).drop_columns(_PLACE).combine_chunks()
    if rows.num_rows < 2:
        return rows
    later, earlier = rows.slice(1), rows.slice(0, rows.num_rows - 1)
    is_new = pc.not_equal(later[key[0]], earlier[key[0]])
    for name in key[1:]:
        is_new = pc.or_(is_new, pc.not_equal(later[name], earlier[name]))
    return rows if pc.all(is_new).as_py() else rows.filter(pa.chunked_array([pa.array([True]), *is_new.chunks]))


def _check_columns(declared: TableSchema, file: str, found: pa.Schema) -> None:
    names = [name for name in declared.arrow().names if name != "part" or part_of(file) is None]
    if lacking := [name for name in names if name not in found.names]:
        raise _damaged(file, f"it has no column {lacking[0]}")


def _damaged(file: str, reason: object) -> SweepError:
    return SweepError(f"{file}: damaged, or of another version ({' '.join(str(reason).split())[:200]}); {_AGAIN}")


_ENTRY = ("file", "part", "first", "last")
"""Of a large file, in the index."""
_MANIFEST_KEYS = {"sweep", "title", "question", "digest", "runs", "parts", "versions"}


def versions() -> dict[str, str]:
    """Return the versions of all that has a say in what a run comes to."""
    return {"python": platform.python_version(), **{name: version(name) for name in _VERSIONS}}


def _manifest(plan: SweepPlan) -> dict[str, Any]:
    return {
        "sweep": plan.name,
        "title": plan.title,
        "question": plan.question,
        "digest": plan.digest,
        "runs": len(plan.runs),
        "is_of_joins": plan.is_of_joins,
        "parts": [_part(part.name, part.measured, part.axes, part.runs) for part in plan.parts],
        "versions": versions(),
    }


def _part(name: str, measured: bool, axes: Iterable[Any], runs: Sequence[Any]) -> dict[str, Any]:
    return {
        "name": name,
        "measured": measured,
        "scenarios": sorted({run.scenario for run in runs}),
        "axes": [{"name": a.name, "kind": a.kind, "values": a.values} for a in axes],
        "seeds": sorted({run.seed for run in runs}),
        "runs": len(runs),
    }
