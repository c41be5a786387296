"""Checkpoints as they were measured: from the answers of a Flink REST server, or from a folder of tables."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.spec.topology import Topology
from barrierlab.sim.core.files import read_text
from barrierlab.sim.scenario.settings import Scenario
from barrierlab.sim.twin.answers import FlinkAnswers, TwinError, at, items, number, text
from barrierlab.sim.twin.import_flink import ALIGNED_SHIPS, LATEST, NEVER_MS, FlinkJob

SETUP = (
    *("parallelism", "record_bytes", "rate_A", "rate_B"),
    *("slow_service_ms", "merge_service_ms", "segment_bytes", "debloat_target_ms"),
)
"""The columns of a table that say how a run was set up, besides its place and its mode."""
ALIGNING = {"forward": ("fast", "slow")}
"""Of a table's dataflows, by its column dag: the operators with an exchange of one to one before them."""
EXACT = 1e-6  # of a setting: by less the figures of a file and of a scenario may differ
STEADY = 6  # of the completed checkpoints the last so many are compared, as in sim/data/flink


@dataclass(frozen=True, slots=True)
class Subtask:
    """One subtask's measures of one checkpoint. Times in ms, as Flink gives them; None is not in the answers."""

    operator: str
    index: int
    start_delay_ms: float | None
    alignment_ms: float | None
    sync_ms: float | None
    async_ms: float | None
    end_to_end_ms: float | None
    persisted_bytes: float | None
    processed_bytes: float | None

    @property
    def last_barrier_ms(self) -> float | None:
        """Return when its last barrier is in, since the trigger."""
        if self.start_delay_ms is None or self.alignment_ms is None:
            return None
        return self.start_delay_ms + self.alignment_ms


@dataclass(frozen=True, slots=True)
class ObservedCheckpoint:
    """One completed checkpoint."""

    id: int
    end_to_end_ms: float
    persisted_bytes: float | None
    processed_bytes: float | None
    subtasks: tuple[Subtask, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    def of(self, operator: str) -> list[Subtask]:
        """Return the rows of one operator's subtasks."""
        return [each for each in self.subtasks if each.operator == operator]


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """One measured job: how it aligns, who sends to whom, and its completed checkpoints, oldest first.

    `is_local` is None where some channels are and some are not. `busy` and `pressed` are the
    shares of time that an operator is busy and back-pressured, `services_s` each of its subtasks' busy time by records.
    `setup` is how a run of a table was set up, by column. `rates_per_s` are the records that a subtask takes, on
    average, and `period_s` is how far apart its checkpoints are begun at least, of which the second part is a pause.
    `aligning` are the operators with an input on which no barrier overtakes, whatever the mode. So many `failed`
    checkpoints there are besides.
    """

    name: str
    mode: str
    senders: Mapping[str, tuple[str, ...]]
    parallelism: Mapping[str, int]
    is_local: bool | None
    busy: Mapping[str, float]
    pressed: Mapping[str, float]
    services_s: Mapping[str, tuple[float, ...]]
    checkpoints: tuple[ObservedCheckpoint, ...]
    setup: Mapping[str, str] = field(default_factory=dict)
    rates_per_s: Mapping[str, float] = field(default_factory=dict)
    period_s: tuple[float, float] = (0.0, 0.0)
    aligning: tuple[str, ...] = ()
    failed: int = 0

    @property
    def configuration(self) -> tuple[Any, ...]:
        """Return what its runs in all modes have in common, as far as it is known: its place, shape and setup."""
        setup = tuple(each for each in self.setup.items() if each[0] != "timeout_ms")
        return self.is_local, tuple(self.senders.items()), tuple(self.parallelism.items()), setup

    @property
    def always_aligns(self) -> bool:
        """Return whether no barrier of it overtook; a mode that is no protocol's, of a table, did neither."""
        return self.mode in PROTOCOLS and PROTOCOLS[self.mode].always_aligns

    @property
    def is_flagged(self) -> bool:
        """Return whether its checkpoints were unaligned from the start."""
        return self.mode in PROTOCOLS and PROTOCOLS[self.mode].settings.is_flagged

    @property
    def unaligned_from_ms(self) -> float | None:
        """Return from when on, since the trigger, its barriers overtake; infinity: never; None: nothing says so."""
        if self.always_aligns:
            return math.inf
        if self.is_flagged:
            return 0.0
        return float(self.setup["timeout_ms"]) if "timeout_ms" in self.setup and self.mode in PROTOCOLS else None

    def service_s(self, operator: str) -> float | None:
        """Return how long an operator works at a record, on average; None where nothing says so."""
        if services := self.services_s.get(operator):
            return fmean(services)
        busy, rate = self.busy.get(operator), self.rates_per_s.get(operator)
        return busy / rate if busy and rate else None

    @property
    def steady(self) -> tuple[ObservedCheckpoint, ...]:
        """The checkpoints that are compared."""
        return steady(self.checkpoints)


def steady(checkpoints: Sequence[ObservedCheckpoint]) -> tuple[ObservedCheckpoint, ...]:
    """Return the last `STEADY` of the completed checkpoints of a job, but not its first: queues were filling up then.

    That counts if there is no other.
    """
    last = tuple(checkpoints[-STEADY:])
    return tuple(each for each in last if each.id > 1) or last


def mode_of(checkpointing: Mapping[str, Any]) -> str:
    """Return the mode that a job's configuration asks for, as scenarios call it."""
    if text(checkpointing, "mode") == "at_least_once":
        return "tracked"
    if at(checkpointing, "unaligned_checkpoints") is not True:
        return "aligned"
    return "aligned_with_timeout" if number(checkpointing, "aligned_checkpoint_timeout", low=1.0) else "unaligned"


def observed_in(answers: FlinkAnswers, job: FlinkJob) -> ObservedJob:
    """Return the checkpoints that the answers have of a job, the last `LATEST` completed ones; savepoints are none."""
    place = f"/jobs/{job.id}/checkpoints"
    ids = [
        int(found)
        for each in items(answers.get(place), "history")
        if text(each, "status") == "COMPLETED" and at(each, "is_savepoint") is not True
        if (found := number(each, "id", low=1)) is not None
    ]
    checkpoints = [
        _checkpoint(answers, job, f"{place}/details/{number_of_it}") for number_of_it in sorted(ids)[-LATEST:]
    ]
    pairs = [(job.vertex(sender), each) for each in job.vertices for sender, _ in each.inputs]
    same = {a == b for sender, each in pairs for a in sender.managers for b in each.managers}
    return ObservedJob(
        job.name,
        mode_of(job.checkpointing),
        {each.operator: tuple(job.vertex(sender).operator for sender, _ in each.inputs) for each in job.vertices},
        {each.operator: each.parallelism for each in job.vertices},
        same.pop() if len(same) == 1 else None,
        {each.operator: each.busy for each in job.vertices if each.busy is not None},
        {each.operator: each.pressed for each in job.vertices if each.pressed is not None},
        {each.operator: _services(answers, job, each.id, bool(each.inputs)) for each in job.vertices},
        tuple(each for each in checkpoints if each is not None),
        {
            name: f"{found:g}"
            for name, field in (("interval_ms", "interval"), ("timeout_ms", "aligned_checkpoint_timeout"))
            if (found := number(job.checkpointing, field, low=1.0, high=NEVER_MS)) is not None
            and (name != "timeout_ms" or mode_of(job.checkpointing) == "aligned_with_timeout")
        },
        aligning=tuple(
            each.operator for each in job.vertices if any(ship.upper() in ALIGNED_SHIPS for _, ship in each.inputs)
        ),
        failed=sum(text(each, "status") == "FAILED" for each in items(answers.get(place), "history")),
    )


def _services(answers: FlinkAnswers, job: FlinkJob, vertex: str, takes: bool) -> tuple[float, ...]:
    """Return the busy time by records of each subtask: of those that it takes, of a source those that it gives."""
    found = []
    for each in items(answers.get(f"/jobs/{job.id}/vertices/{vertex}"), "subtasks"):
        busy_ms = number(each, "metrics", "accumulated-busy-time")
        records = number(each, "metrics", "read-records" if takes else "write-records", low=1)
        if busy_ms is not None and records is not None:
            found.append(busy_ms / 1000 / records)
    return tuple(found)


def _checkpoint(answers: FlinkAnswers, job: FlinkJob, place: str) -> ObservedCheckpoint | None:
    """Return one checkpoint, None if the answers have no duration of it."""
    whole = answers.get(place)
    duration = number(whole, "end_to_end_duration")
    number_of_it = number(whole, "id", low=1)
    if duration is None or number_of_it is None:
        return None
    subtasks = []
    for vertex in job.vertices:
        for each in items(answers.get(f"{place}/subtasks/{vertex.id}"), "subtasks"):
            index = number(each, "index")
            if text(each, "status") == "completed" and at(each, "aborted") is not True and index is not None:
                subtasks.append(_subtask(vertex.operator, int(index), each))
    persisted, processed = number(whole, "persisted_data"), number(whole, "processed_data")
    return ObservedCheckpoint(int(number_of_it), duration, persisted, processed, tuple(subtasks))


def _subtask(operator: str, index: int, each: Mapping[str, Any]) -> Subtask:
    return Subtask(
        operator,
        index,
        number(each, "start_delay"),
        number(each, "alignment", "duration"),
        number(each, "checkpoint", "sync"),
        number(each, "checkpoint", "async"),
        number(each, "end_to_end_duration"),
        number(each, "alignment", "persisted"),
        number(each, "alignment", "processed"),
    )


# Tables of measurements: the folder's runs.csv and subtasks.csv, with the columns of sim/data/flink.


def senders_of(topology: Topology) -> dict[str, tuple[str, ...]]:
    """Return whom each operator gets records from, in the order of its inputs."""
    return {name: tuple(edge.split("->")[0] for edge in topology.edges_in(name)) for name in topology.operators}


def observed_tables(folder: Path, senders: Mapping[str, tuple[str, ...]], debloated: bool = False) -> list[ObservedJob]:
    """Return the runs of a folder whose operators are those of `senders`.

    Those whose buffers do not keep their size are left out, unless they are asked for.

    Raises
    ------
    TwinError
        If one of the tables cannot be read, or lacks a column.
    """
    runs = {row["run"]: row for row in _table(folder / "runs.csv", "run")}
    rows = [row for row in _table(folder / "subtasks.csv", "run") if debloated or not row.get("debloat_target_ms")]
    found = []
    for name, of_run in groupby(rows, key=lambda row: row["run"]):
        each = list(of_run)
        if {row.get("task") for row in each} != set(senders):
            continue
        checkpoints = [_read(list(group)) for _, group in groupby(each, key=lambda row: row["ckpt_id"])]
        first, run = each[0], runs.get(name, {})
        found.append(
            ObservedJob(
                name,
                "aligned_with_timeout" if "timeout" in first.get("mode", "") else first.get("mode", ""),
                senders,
                dict.fromkeys(senders, int(_cell(first, "parallelism"))),
                first.get("topology") == "local",
                {op: _cell(run, f"{op}.busy") / 1000 for op in senders if run.get(f"{op}.busy")},
                {op: _cell(run, f"{op}.bp") / 1000 for op in senders if run.get(f"{op}.bp")},
                {op: services for op in senders if (services := _services_in(run, op))},
                tuple(sorted(checkpoints, key=lambda checkpoint: checkpoint.id)),
                {column: first[column] for column in SETUP if column in first} | _timeout_in(first.get("mode", "")),
                {op: _cell(run, name) for op in senders if run.get(name := f"{op}.recs_per_s_per_subtask")},
                aligning=ALIGNING.get(first.get("dag", ""), ()),
            )
        )
    return found


def _services_in(run: Mapping[str, str], operator: str) -> tuple[float, ...]:
    """Return the services of an operator's subtasks, in a column as "4.18 4.16"; nothing of one that never works."""
    column = f"{operator}.service_ms"
    found = tuple(_cell({**run, column: each}, column) / 1000 for each in run.get(column, "").split())
    return found if any(found) else ()


def _timeout_in(mode: str) -> dict[str, str]:
    """Return the timeout in a mode's name, "aligned-timeout-300ms"; nothing of another."""
    found = mode.rpartition("timeout-")[2].removesuffix("ms")
    return {"timeout_ms": found} if found.isdigit() else {}


def departures(run: ObservedJob, job: Scenario) -> list[str]:
    """Return the settings in which a measured run is not the job: "rate_A is 250, here 750".

    Of a table the columns of `SETUP`: a rate is of all subtasks of the first source (A) or the second (B), a service of
    the operators whose names begin as the column does. Of answers the parallelism, the interval and the timeout.
    """
    own = _settings_of(job)
    found = [
        f"the parallelism of {name} is {count}, here {job.topology.parallelism(name)}"
        for name, count in run.parallelism.items()
        if count != job.topology.parallelism(name)
    ]
    for column, text_of_it in run.setup.items():
        here, there = own.get(column), _number_of(text_of_it)
        if column in own and (here is None) != (there is None):
            found.append(f"{column} is {text_of_it or 'none'}, here {'none' if here is None else f'{here:g}'}")
        elif here is not None and there is not None and abs(there - here) > EXACT * max(abs(there), abs(here)):
            found.append(f"{column} is {there:g}, here {here:g}")
    return found


def _number_of(text_of_it: str) -> float | None:
    try:
        return float(text_of_it)
    except ValueError:
        return None


def _settings_of(job: Scenario) -> dict[str, float | None]:
    """Return what the columns of a setup would be of a job, of those that have one value in it."""
    own: dict[str, float | None] = {"interval_ms": None, "timeout_ms": None, "debloat_target_ms": None}
    if job.checkpoint.interval_s is not None:
        own["interval_ms"] = 1000 * job.checkpoint.interval_s
    if job.mode.goes_unaligned and not job.mode.settings.is_flagged:
        own["timeout_ms"] = 1000 * job.checkpoint.aligned_checkpoint_timeout_s
    if job.buffer_debloat.enabled:
        own["debloat_target_ms"] = 1000 * job.buffer_debloat.target_s
    for letter, (name, source) in zip("AB", job.sources.items(), strict=False):
        own[f"rate_{letter}"] = source.rate_per_s * job.topology.parallelism(name)
    sizes = {source.record_bytes.mean for source in job.sources.values()}
    if len(sizes) == 1:
        own["record_bytes"] = sizes.pop()
    segments = {channel.segment_bytes for channel in job.channels.values()}
    if len(segments) == 1:
        own["segment_bytes"] = segments.pop()
    for column in SETUP:
        head, of_service, _ = column.partition("_service_ms")
        services = {each.service_s.mean for name, each in job.operators.items() if name.startswith(head)}
        if of_service and len(services) == 1:
            own[column] = 1000 * services.pop()
    return own


def _table(path: Path, needed: str) -> list[dict[str, str]]:
    hint = "give a folder with runs.csv and subtasks.csv, or files of answers"
    rows = list(csv.DictReader(io.StringIO(read_text(path, TwinError, hint))))
    if not rows or any(not row.get(needed) or None in row or None in row.values() for row in rows):
        raise TwinError(f"{path}: no table with a column {needed} and whole rows; {hint}")
    return rows


def _cell(row: Mapping[str, str], column: str) -> float:
    """Return a number of a table.

    Raises
    ------
    TwinError
        If it is not there, or none that a measurement can have.
    """
    try:
        found = float(row.get(column, ""))
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e15:
        raise TwinError(f"run {row.get('run')}: {column} is {row.get(column)!r}; allowed: a number of at least 0")
    return found


def _read(rows: Sequence[Mapping[str, str]]) -> ObservedCheckpoint:
    columns = ["start_delay_ms", "alignment_ms", "sync_ms", "async_ms", "subtask_e2e_ms"]
    columns += ["subtask_persisted_bytes", "subtask_processed_bytes"]
    subtasks = [
        Subtask(row["task"], int(_cell(row, "subtask")), *(_cell(row, column) for column in columns)) for row in rows
    ]
    duration, persisted, processed = (
        _cell(rows[0], f"ckpt_{n}") for n in ("e2e_ms", "persisted_bytes", "processed_bytes")
    )
    return ObservedCheckpoint(int(_cell(rows[0], "ckpt_id")), duration, persisted, processed, tuple(subtasks))


# What is kept of answers.

_OPTIONS = ("taskmanager.memory.segment-size", "taskmanager.network.memory.", "execution.buffer-timeout.")
_FIELDS = frozenset(
    """jid name state jobs flink-version key value plan nodes id description inputs ship_strategy parallelism status
    vertices metrics read-records write-records write-bytes accumulated-busy-time accumulated-backpressured-time
    subtasks subtask taskmanager-id status-duration RUNNING avg history is_savepoint end_to_end_duration
    persisted_data processed_data index start_delay alignment duration persisted processed checkpoint sync async
    aborted mode interval timeout min_pause max_concurrent unaligned_checkpoints tolerable_failed_checkpoints
    aligned_checkpoint_timeout""".split()  # noqa: SIM905
)


def saved_text(answers: FlinkAnswers) -> str:
    """Return the answers as a file of JSON: of what was asked the fields that are read; no host, no path.

    Task managers are numbered, since it matters alone which subtasks share one.
    """
    managers: dict[str, str] = {}

    def trim(value: Any) -> Any:
        if isinstance(value, list):
            return [trim(each) for each in value]
        if not isinstance(value, dict):
            return value
        kept = {key: trim(each) for key, each in value.items() if key in _FIELDS}
        manager = text(value, "taskmanager-id") or text(value, "endpoint") or text(value, "host")
        if "subtask" in value and manager:
            kept["taskmanager-id"] = managers.setdefault(manager, f"taskmanager-{len(managers) + 1}")
        return kept

    kept = {}
    for path, answer in answers.asked.items():
        if answer is None:
            continue
        if path == "/jobmanager/config":
            answer = [each for each in items(answer) if str(each.get("key")).startswith(_OPTIONS)]
        kept[path] = trim(answer)
    lines = [f"{json.dumps(path)}: {json.dumps(answer, separators=(',', ':'))}" for path, answer in kept.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"
