"""The many small files of a sweep's chunks become few large ones, sorted by run, in a folder for each part.

Workers leave a file for each chunk and table, so that nothing is lost; a reader wants few. `compact` writes them anew
in `compacting/`, and then the index, which is the moment at which the new ones count and the old ones do not. What is
left - to move files and to remove others - `settle` does, or does after a crash: each step can be taken twice.
Folders are named as Hive names them (`runs/part=NAME/`), so that a reader leaves out the parts that it is not asked of;
and rows are in the order of their keys, so that of a file it reads the rows of a run alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from barrierlab.sim.core.files import replace
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.store import COMPACTED, STAGING, Store, read_file, sorted_once
from barrierlab.sim.sweep.tables import RUNS, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

TARGET_BYTES = 128 << 20
LEAST_BYTES = 64 << 20
"""A file has at least this, if its table has as much in its part; and less than twice the target."""
ROWS_IN_GROUP = 1 << 17
_FILE = re.compile(r"g\d+-\d{4,}\.parquet")


def compact(store: Store) -> None:
    """Bring the chunks of a sweep that is done into large files; SweepError if they cannot be read, or written."""
    with store.writing():
        settle(store)
        if store.chunks():
            try:
                _write(store)
            except OSError as error:
                raise SweepError(
                    f"{store.directory}: its files cannot be brought together: {error.strerror or error}; all runs are "
                    "stored: make room, and take --resume"
                ) from None
            settle(store)


def settle(store: Store) -> None:
    """Finish what a crash has left of bringing files together. Only who writes into the directory may do so."""
    staging, index = store.directory / STAGING, store.index()
    if index.get("staged"):
        listed = {entry["file"] for entries in index["tables"].values() for entry in entries}
        for name in sorted(listed):
            if (staging / name).is_file():
                (store.directory / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(staging / name, store.directory / name)
        for table in store.tables:
            folder = store.directory / table
            for file in folder.glob("part=*/*.parquet"):
                if _FILE.fullmatch(file.name) and str(file.relative_to(store.directory)) not in listed:
                    file.unlink()
            for name in index["absorbed"]:
                (folder / name).unlink(missing_ok=True)
        _write_index(store, {**index, "staged": False, "absorbed": []})
    shutil.rmtree(staging, ignore_errors=True)


def _write_index(store: Store, index: dict[str, Any]) -> None:
    replace(store.directory / COMPACTED, json.dumps(index, ensure_ascii=False).encode())


def _write(store: Store) -> None:
    """Write all that is stored into the folder for that, and then the index."""
    names, old = store.chunks(), store.index()
    generation = old.get("generation", 0) + 1
    part_of_runs = {
        name: read_file(RUNS, str(store.directory / RUNS.name / name), ("run_id", "part")) for name in names
    }
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, declared in store.tables.items():
        chunks = [(min(part_of_runs[name]["run_id"].to_pylist(), default=""), "", name) for name in names]
        files = [
            (entry["first"], entry["part"], str(store.located(entry["file"])))
            for entry in old.get("tables", {}).get(table, ())
            if store.located(entry["file"]).is_file()
        ]
        sources = sorted([*chunks, *files])
        writers: dict[str, _PartWriter] = {}
        pending: dict[str, pa.Table] = {}
        for number, (_, part, name) in enumerate(sources, 1):
            if name in part_of_runs:
                by_part = _by_part(read_file(declared, str(store.directory / table / name)), part_of_runs[name])
            else:
                by_part = {part: read_file(declared, name)}
            _add(pending, by_part)
            border = sources[number][0] if number < len(sources) else None
            for part in sorted(pending):
                if part not in writers:
                    writers[part] = _PartWriter(store, declared, part, generation)
                writers[part].add(_taken(pending, part, border, declared), (len(sources) - number) / number)
        tables[table] = [entry for part in sorted(writers) for entry in writers[part].close()]
    found = sum(entry["rows"] for entry in tables[RUNS.name])
    index = {"generation": generation, "runs": found, "tables": tables, "absorbed": names, "staged": True}
    _write_index(store, index)


def _by_part(rows: pa.Table, runs: pa.Table) -> dict[str, pa.Table]:
    """The rows of a chunk by the part of their run."""
    import pyarrow.compute as pc

    of_runs = pc.fill_null(runs["part"], "")
    parts = of_runs.to_pylist()
    if len(set(parts)) == 1:
        return {parts[0]: rows}
    of_row = of_runs.take(pc.index_in(rows["run_id"], runs["run_id"].combine_chunks()))
    return {part: rows.filter(pc.equal(of_row, part)) for part in dict.fromkeys(parts)}


def _add(pending: dict[str, pa.Table], more: dict[str, pa.Table]) -> None:
    import pyarrow as pa

    for part, rows in more.items():
        pending[part] = pa.concat_tables([pending[part], rows]) if part in pending else rows


def _taken(pending: dict[str, pa.Table], part: str, border: str | None, declared: TableSchema) -> pa.Table:
    """Take the rows of the runs before `border`, which no other file has; each once, in the order of their keys."""
    import pyarrow.compute as pc

    rows = pending[part]
    if border is None:
        pending[part] = rows.slice(0, 0)
    else:
        is_whole = pc.less(rows["run_id"], border)
        rows, pending[part] = rows.filter(is_whole), rows.filter(pc.invert(is_whole))
    return sorted_once(rows, declared.key)


class _PartWriter:
    """Writes the rows of a table and part into files of a size, one after another."""

    def __init__(self, store: Store, declared: TableSchema, part: str, generation: int) -> None:
        self._store, self._declared, self._part, self._generation = store, declared, part, generation
        self._schema = declared.without_part()  # which the folder says
        self._waiting = self._schema.empty_table()
        self._entries: list[dict[str, Any]] = []
        self._writer: Any = None
        self._done_bytes = 0

    def add(self, rows: pa.Table, left: float) -> None:
        """Add rows behind the others; `left` is how many times as many as all so far are still to come, roughly."""
        import pyarrow as pa

        self._waiting = pa.concat_tables([self._waiting, rows.select(self._schema.names)])
        while self._waiting.num_rows >= ROWS_IN_GROUP:
            self._write(self._waiting.slice(0, ROWS_IN_GROUP))
            self._waiting = self._waiting.slice(ROWS_IN_GROUP).combine_chunks()
            size = self._sink.tell()
            if size >= TARGET_BYTES and left * (self._done_bytes + size) >= LEAST_BYTES:
                self._end()

    def close(self) -> list[dict[str, Any]]:
        """Write what is left; what the index says of the files."""
        if self._waiting.num_rows:
            self._write(self._waiting)
        self._end()
        return self._entries

    def _write(self, rows: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            name = f"g{self._generation}-{len(self._entries):04}.parquet"
            file = f"{self._declared.name}/part={quote(self._part, safe=' ')}/{name}"
            path = self._store.directory / STAGING / file
            path.parent.mkdir(parents=True, exist_ok=True)
            self._sink = pa.OSFile(str(path), "wb")
            self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd")
            self._entries.append({"file": file, "part": self._part, "first": rows["run_id"][0].as_py(), "rows": 0})
        self._writer.write_table(rows, row_group_size=ROWS_IN_GROUP)
        self._entries[-1] |= {
            "last": rows["run_id"][-1].as_py(),
            "rows": self._entries[-1]["rows"] + rows.num_rows,
        }

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._done_bytes += self._sink.tell()
            self._sink.close()
            self._writer = None
            _sync(self._store.directory / STAGING / self._entries[-1]["file"])


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
