"""Result of a run: the verdict, the checkpoints under Flink's names, the journal, and frames and pictures of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from statistics import median
from typing import TYPE_CHECKING, Any, overload

from barrierlab.model.checkpoint.operators import refolding
from barrierlab.model.checkpoint.trace import header_of_topology, write
from barrierlab.model.render.html import table
from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.history import Entry, History, entry_count
from barrierlab.model.spec.invariants import Fold, Limits, Verdict, Violation, judge_attempts
from barrierlab.model.spec.witness import CutWitness, witness
from barrierlab.sim.checkpoint import figures
from barrierlab.sim.checkpoint.build import make_task_operator
from barrierlab.sim.checkpoint.coverage import Coverage, coverage_of
from barrierlab.sim.checkpoint.critical_path import PIECE_OF, CriticalPath, Journal
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.checkpoint.failover import RecoveryRecord
from barrierlab.sim.checkpoint.judged import JudgedRun, frame
from barrierlab.sim.checkpoint.metrics import NS_PER_MS, CheckpointRecord, TaskPart, ms_between
from barrierlab.sim.checkpoint.stationarity import NOT_STATIONARY, OVERLOADED, SteadyState, piles_up, steady_state
from barrierlab.sim.checkpoint.tasks import BACKPRESSURED, BUSY, OperatorNode
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.core.collector import collector_paused
from barrierlab.sim.scenario.idle import idle_keys, lines_of
from barrierlab.sim.scenario.settings import Scenario, ns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from barrierlab.sim.control.engine import ControlResult
    from barrierlab.sim.control.scenario import ControlScenario
    from barrierlab.sim.join.engine import JoinResult
    from barrierlab.sim.join.scenario import JoinScenario
    from barrierlab.sim.notebook.widget import Explorable

ALIGNED, UNALIGNED = "CHECKPOINT", "UNALIGNED_CHECKPOINT"
_SHOWN = (
    *("checkpoint_id", "status", "end_to_end_duration_ms", "start_delay_max_ms", "alignment_max_ms", "sync_max_ms"),
    *("async_max_ms", "persisted_bytes", "longest_wait", "failure_reason"),
)
"""The columns of a run that shows itself."""


class Result(JudgedRun):
    """One run, judged. Times are simulated; milliseconds unless the name says otherwise; sizes are bytes.

    Attributes
    ----------
    scenario : Scenario
    seed : int
    entries : list of Entry
        The journal (`model.spec.history`).
    verdict : str
        ``holds``, ``broken`` or ``undecided``.
    violations : list of Violation
    undecided : tuple of str
        What a longer run would have to show.
    limits : Limits
        What BOUND asked.
    """

    def __init__(self, scenario: Scenario, seed: int, engine: Engine) -> None:
        self.scenario, self.seed = scenario, seed
        self._metrics = engine.metrics
        self._engine = engine
        self.duration_ns = engine.clock.now
        self.judged = self.judge(engine)
        self.verdict: str = self.judged.verdict
        self.violations: list[Violation] = list(self.judged.violations)
        self.undecided = self.judged.undecided

    def __repr__(self) -> str:
        records = self._metrics.checkpoints.values()
        completed = sum(record.status == "COMPLETED" for record in records)
        seconds = f"{self.duration_ns / 1e9:.1f} s"
        counts = f"{completed} of {len(records)} checkpoints completed in {seconds}"
        return f"<Result: {self.scenario.name}, seed {self.seed}: {self.verdict}; {counts}>"

    def _repr_html_(self) -> str:
        rows = [{name: row.get(name) for name in _SHOWN} for row in self.checkpoint_rows()]
        return self.shown(f", {self.duration_ns / 1e9:.1f} s", self.warnings, table(rows, caption="checkpoints"))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reservations about this run's numbers, a line each."""
        lines = [*self.scenario.warnings, *lines_of(idle_keys(self.scenario))]
        if self.steady_state.verdict == NOT_STATIONARY:
            lines.append(f"{NOT_STATIONARY}: {self.steady_state.why}")
        share = self.piles_up_share
        if share is not None and share >= OVERLOADED:
            lines.append(
                f"overload: {percent(share)} of what arrives piles up "
                f"(load about {1.0 / (1.0 - min(share, 0.99)):.2f}); how long a checkpoint takes "
                "depends on the buffers, and on how long the job has run"
            )
        ahead = self._share_of_arrivals(self._metrics.ahead)
        if ahead is not None and ahead >= OVERLOADED:
            drift_s = self.scenario.watermark_alignment.max_drift_s
            lines.append(
                f"watermark alignment: {percent(ahead)} of what arrives waits at sources whose watermarks are "
                f"{drift_s:g} s ahead of that of {self._metrics.slowest}; a source without events is waited "
                "for, unless idle_after_s is given"
            )
        return tuple(lines)

    @cached_property
    def steady_state(self) -> SteadyState:
        """Return whether the durations after the warm-up are of a steady state: `sim.checkpoint.stationarity`."""
        return steady_state(
            [
                (record.ended_ns - record.triggered_ns) / NS_PER_MS
                for record in self._metrics.checkpoints.values()
                if record.status == "COMPLETED" and record.ended_ns is not None and self._steady(record)
            ]
        )

    @cached_property
    def piles_up_share(self) -> float | None:
        """The share of what arrives that piles up; None if the job failed, or there is too little to see it.

        What waits at a source since its watermark is too far ahead is none of it.
        """
        return self._share_of_arrivals(self._metrics.queued)

    def _share_of_arrivals(self, samples: list[tuple[int, float]]) -> float | None:
        """Return how much of what arrives the records of `samples` grow by."""
        if self._engine.recovery.records:
            return None
        arrivals_per_s = sum(source.rate_per_s * source.parallelism for source in self.scenario.sources.values())
        return piles_up(samples, arrivals_per_s)

    @cached_property
    def attempts(self) -> Run:
        """The journal, taken apart at the restores."""
        return Run.of(self._engine.rows, self.scenario.topology)

    @cached_property
    def entries(self) -> list[Entry]:
        """The journal, made of the rows that were written when it is asked for."""
        return self._engine.entries

    @property
    def entry_count(self) -> int:
        """Return how many entries the journal has."""
        return entry_count(self._engine.rows)

    @cached_property
    def coverage(self) -> Coverage:
        """Return how far the verdict reaches: what was not judged, which faults did nothing, whether the job got on."""
        return coverage_of(self.scenario, self._engine, self.judged)

    @property
    def history(self) -> History:
        """Return who had sent and taken what when it cut, in the last attempt."""
        return self.attempts.attempts[-1].history

    def judge(self, engine: Engine) -> Verdict:
        """Judge the run, once."""
        self.limits = limits_of(self.scenario)
        return judge_attempts(
            self.attempts, self.limits, fold_of(self.scenario), engine.cut_off, guarantees_of(self.scenario)
        )

    # Rows, for tables and sweeps.

    def run_row(self) -> dict[str, Any]:
        """One row for the whole run."""
        records = self._metrics.checkpoints.values()
        busiest, backpressure = self._pressure()
        events_in = sum(n.task.position - 1 for n in self._engine.job.source_nodes)
        events_out = sum(n.applied for n in self._sinks())
        recoveries = self._engine.recovery.records
        completed = sum(r.status == "COMPLETED" for r in records)
        arrivals = sum(node.arrivals() for node in self._engine.job.source_nodes)
        coverage = self.coverage
        ended = [r.restored_ns - r.failed_ns for r in recoveries if r.restored_ns is not None]
        seconds = self.duration_ns / 1e9
        return {
            "scenario": self.scenario.name,
            "seed": self.seed,
            "verdict": self.verdict,
            "violations": len(self.violations),
            "vacuous": " ".join(coverage.vacuous),
            "vacuous_asked_for": " ".join(coverage.asked_for),
            "faults_without_effect": len(coverage.idle_faults),
            "progress": coverage.progress,
            "falls_short": coverage.falls_short,
            "steady_state": self.steady_state.verdict,
            "piles_up_share": self.piles_up_share,
            "checkpoints_completed": completed,
            "checkpoints_failed": sum(r.status == "FAILED" for r in records),
            "completed_share": completed / len(records) if records else None,
            "events_in": events_in,
            "events_out": events_out,
            "throughput_per_s": self.throughput_per_s,
            "arrivals": arrivals,
            "arrivals_per_s": arrivals / seconds if seconds else 0.0,
            "emitted_per_s": events_in / seconds if seconds else 0.0,
            "behind": arrivals - events_in,
            "sim_duration_s": seconds,
            "journal_digest": self.digest,
            "journal_entries": self.entry_count,
            "consistency": self.scenario.mode.consistency,
            "cut_off": self._engine.cut_off,
            "backpressure_max": backpressure,
            "bottleneck": busiest,
            "failures": len(recoveries),
            "recovery_time_max_ms": _most(duration_ns / NS_PER_MS for duration_ns in ended),
            "restarts_in_a_row": coverage.restarts_in_a_row,
            "standstill_max_ms": coverage.standstill_ns / NS_PER_MS,
            "catch_up_max_ms": _most(ms for row in self.recovery_rows() if (ms := row["catch_up_ms"]) is not None),
            "events_replayed": sum(r.replayed for r in recoveries),
            "duplicates": self._duplicates(),
        }

    def _sinks(self) -> list[OperatorNode]:
        return [node for node in self._engine.job.operator_nodes if node.name in self.scenario.topology.sinks]

    def _duplicates(self) -> int:
        """Events that were written to the external system and are not among those that count: they come, or came,
        again."""
        guarantees = guarantees_of(self.scenario)
        return sum(n.written - n.applied for n in self._sinks() if guarantees[n.name] == "at_least_once")

    def recovery_rows(self) -> list[dict[str, Any]]:
        """One row for each failure."""
        return [_recovery_row(record) for record in self._engine.recovery.records]

    def checkpoint_rows(self) -> list[dict[str, Any]]:
        """One row for each checkpoint."""
        return [self._checkpoint_row(record) for record in self._metrics.checkpoints.values()]

    def _checkpoint_row(self, record: CheckpointRecord) -> dict[str, Any]:
        parts = record.parts
        acknowledged = {task: part for task, part in parts.items() if part.acknowledged_ns is not None}
        critical = max(acknowledged, key=lambda task: acknowledged[task].acknowledged_ns or 0, default=None)
        worst = acknowledged.get(critical or "")
        return {
            "checkpoint_id": record.checkpoint_id,
            "status": record.status,
            "checkpoint_type": UNALIGNED if any(p.is_unaligned for p in parts.values()) else ALIGNED,
            "steady": self._steady(record),
            "trigger_timestamp_ms": record.triggered_ns / NS_PER_MS,
            "end_to_end_duration_ms": ms_between(record.triggered_ns, record.ended_ns),
            "start_delay_max_ms": _most(self._start_delay(record, p) for p in parts.values()),
            "alignment_max_ms": _most(_alignment(p) for p in parts.values()),
            "sync_max_ms": _most(p.sync_ns / NS_PER_MS for p in parts.values()),
            "async_max_ms": _most(p.async_ns / NS_PER_MS for p in parts.values()),
            "processed_bytes": sum(p.processed_bytes for p in parts.values()),
            "persisted_bytes": sum(p.persisted_bytes for p in parts.values()),
            "checkpointed_bytes": sum(p.state_bytes + p.persisted_bytes for p in parts.values()),
            "failure_reason": record.failure,
            "critical_task": critical,
            "critical_start_delay_ms": None if worst is None else self._start_delay(record, worst),
            "critical_alignment_ms": None if worst is None else _alignment(worst),
            **self._path_columns(record),
        }

    def _path_columns(self, record: CheckpointRecord) -> dict[str, Any]:
        """Return the critical path by what was waited for, in ms, and the longest wait on it; empty if incomplete."""
        if record.status != "COMPLETED":
            return {}
        pieces = self.journal.path(record)
        spent_ns = dict.fromkeys(PIECE_OF.values(), 0)
        for piece in pieces:
            spent_ns[PIECE_OF[piece.what]] += piece.duration_ns
        longest = max(pieces, key=lambda piece: piece.duration_ns, default=None)
        return {
            **{f"path_{name}_ms": duration_ns / NS_PER_MS for name, duration_ns in spent_ns.items()},
            "longest_wait": None if longest is None else f"{longest.where}: {longest.what} ({longest.waits_for})",
            "longest_wait_ms": None if longest is None else longest.duration_ns / NS_PER_MS,
        }

    def task_rows(self) -> list[dict[str, Any]]:
        """One row for each checkpoint and subtask that saw its barrier."""
        topology = self.scenario.topology
        rows = []
        for record in self._metrics.checkpoints.values():
            for task in topology.tasks:
                part = record.parts.get(task)
                if part is None:
                    continue
                operator = topology.operator_of(task)
                rows.append(
                    {
                        "checkpoint_id": record.checkpoint_id,
                        "steady": self._steady(record),
                        "operator": operator,
                        "subtask": topology.tasks_of(operator).index(task),
                        "start_delay_ms": self._start_delay(record, part),
                        "alignment_ms": _alignment(part),
                        "sync_ms": part.sync_ns / NS_PER_MS,
                        "async_ms": part.async_ns / NS_PER_MS,
                        "end_to_end_ms": ms_between(record.triggered_ns, part.acknowledged_ns),
                        "processed_bytes": part.processed_bytes,
                        "persisted_bytes": part.persisted_bytes,
                        "checkpointed_bytes": part.state_bytes + part.persisted_bytes,
                    }
                )
        return rows

    def join_rows(self) -> list[dict[str, Any]]:
        """None: a job joins events, and not streams in shared memory."""
        return []

    def _steady(self, record: CheckpointRecord) -> bool:
        return record.triggered_ns >= ns(self.scenario.warmup_s)

    def critical_path(self, checkpoint_id: int | None = None) -> CriticalPath:
        """Return the waits of a checkpoint (by default the last completed), and where; they add up to its duration.

        Raises
        ------
        KeyError
            If there is no such checkpoint, or it has not completed.
        """
        record = self.record(checkpoint_id)
        if record.status != "COMPLETED":
            raise KeyError(f"checkpoint {record.checkpoint_id} is {record.status}; a path has only one that completed")
        return self.journal.path(record)

    @cached_property
    def journal(self) -> Journal:
        """The journal as the critical paths ask it."""
        return Journal(self._engine.rows, self.scenario.topology)

    def _start_delay(self, record: CheckpointRecord, part: TaskPart) -> float:
        return (part.first_barrier_ns - record.triggered_ns) / NS_PER_MS

    def _pressure(self) -> tuple[str | None, float]:
        """Return the busiest task, and the largest share of its time that any task was back-pressured."""
        if not self.duration_ns:
            return None, 0.0
        nodes = self._engine.job.nodes.values()
        busiest = max(nodes, key=lambda n: n.spent_ns[BUSY])
        return busiest.name, max(n.spent_ns[BACKPRESSURED] for n in nodes) / self.duration_ns

    # For machines and for the eye.

    def journal_text(self) -> str:
        """Return the text of the journal that the rows stand for."""
        return lines_of_rows(self._engine.rows)

    def trace(self) -> str:
        """The journal as text: `model.checkpoint.trace.read` reads it back, and `judged` judges it again.

        An event is written by its name, so the limit on bytes and the states are judged here alone.
        """
        limits = self.limits
        head = {
            **header_of_topology(self.scenario.topology),
            "protocol": self.scenario.protocol,
            "scenario": self.scenario.name,
            "seed": str(self.seed),
            "max_buffer_per_input": str(limits.max_buffer_per_input),
        }
        if limits.channel_capacity:
            head["channel_capacity"] = " ".join(f"{name}={count}" for name, count in limits.channel_capacity.items())
        if self._engine.cut_off:
            head["cut_off"] = "yes"
        head["guarantees"] = " ".join(f"{sink}={guarantee}" for sink, guarantee in guarantees_of(self.scenario).items())
        return write(self.entries, head, self.violations)

    def measured(self) -> dict[str, Any]:
        """Return it as Flink's REST interface gives a job's: times in ms, sizes in bytes."""
        tasks: dict[int, list[dict[str, Any]]] = {}
        for row in self.task_rows():
            tasks.setdefault(row["checkpoint_id"], []).append(
                {
                    "name": row["operator"],
                    "subtask": row["subtask"],
                    "start_delay": row["start_delay_ms"],
                    "alignment_duration": row["alignment_ms"],
                    "sync": row["sync_ms"],
                    "async": row["async_ms"],
                    "end_to_end_duration": row["end_to_end_ms"],
                    "processed_data": row["processed_bytes"],
                    "persisted_data": row["persisted_bytes"],
                    "checkpointed_size": row["checkpointed_bytes"],
                }
            )
        row = self.run_row()
        seconds = row["sim_duration_s"]
        return {
            "steady_state": self.steady_state._asdict(),
            "undecided": list(self.undecided),
            **self.coverage.as_json(),
            "longest_standstill_ms": row["standstill_max_ms"],
            "checkpoints": [
                {
                    "id": c["checkpoint_id"],
                    "status": c["status"],
                    "checkpoint_type": c["checkpoint_type"],
                    "trigger_timestamp": c["trigger_timestamp_ms"],
                    "end_to_end_duration": c["end_to_end_duration_ms"],
                    "processed_data": c["processed_bytes"],
                    "persisted_data": c["persisted_bytes"],
                    "checkpointed_size": c["checkpointed_bytes"],
                    "failure_message": c["failure_reason"],
                    "steady": c["steady"],
                    "tasks": tasks.get(c["checkpoint_id"], []),
                }
                for c in self.checkpoint_rows()
            ],
            "recoveries": self.recovery_rows(),
            "throughput": {
                "events_in": row["events_in"],
                "events_out": row["events_out"],
                "duration_s": seconds,
                "records_out_per_s": row["throughput_per_s"],
                **{key: row[key] for key in ("arrivals", "arrivals_per_s", "emitted_per_s", "behind")},
            },
            "backpressure": self.backpressure(),
            **({"debloating": self.debloating()} if self.scenario.buffer_debloat.enabled else {}),
        }

    @property
    def throughput_per_s(self) -> float:
        """Records that sinks took and that stayed, for each second of the run."""
        seconds = self.duration_ns / 1e9
        return sum(node.applied for node in self._sinks()) / seconds if seconds else 0.0

    def backpressure(self) -> dict[str, dict[str, float]]:
        """The time of each task, in ms of a second, under Flink's names."""
        return {
            name: {
                "busyTimeMsPerSecond": self._per_second(node.spent_ns[BUSY]),
                "backPressuredTimeMsPerSecond": self._per_second(node.spent_ns[BACKPRESSURED]),
                "idleTimeMsPerSecond": self._per_second(node.spent_ns[0]),
            }
            for name, node in self._engine.job.nodes.items()
        }

    def debloating(self) -> list[dict[str, Any]]:
        """Return the buffer sizes that gates asked for after the warm-up, under Flink's names, one row a gate.

        The size is a mean, the estimate a median: while a gate is blocked, it is as good as infinite. Empty where
        buffers keep their size.
        """
        warm_ns = ns(self.scenario.warmup_s)
        rows = []
        for (task, edge), sizes in self._metrics.buffer_sizes.items():
            steady = [size for size in sizes if size.at_ns >= warm_ns] or sizes
            rows.append(
                {
                    "task": task,
                    "exchange": edge,
                    "debloatedBufferSize": sum(size.buffer_bytes for size in steady) / len(steady),
                    "estimatedTimeToConsumeBuffersMs": 1e3 * median(size.estimated_s for size in steady),
                    "last_buffer_bytes": sizes[-1].buffer_bytes,
                }
            )
        return rows

    def _per_second(self, spent_ns: int) -> float:
        return 1000.0 * spent_ns / self.duration_ns if self.duration_ns else 0.0

    @property
    def checkpoints(self) -> pd.DataFrame:
        """`checkpoint_rows` as a frame."""
        return frame(self.checkpoint_rows())

    @property
    def tasks(self) -> pd.DataFrame:
        """`task_rows` as a frame."""
        return frame(self.task_rows())

    @property
    def recoveries(self) -> pd.DataFrame:
        """`recovery_rows` as a frame."""
        return frame(self.recovery_rows())

    @property
    def events(self) -> pd.DataFrame:
        """The journal as a frame: at_ms, verb, node, channel, subject (text)."""
        return frame(
            [
                {
                    "at_ms": at_ns / NS_PER_MS,
                    "verb": verb,
                    "node": node,
                    "channel": channel,
                    "subject": "" if what is None else str(what),
                }
                for at_ns, verb, node, channel, what in self.entries
            ]
        )

    def witness(self, checkpoint_id: int) -> CutWitness:
        """Return the run that passes through the state which a complete checkpoint recorded, or what is in its way.

        Raises
        ------
        WitnessError
            If the checkpoint is not complete.
        """
        return witness(self.entries, self.attempts, checkpoint_id, fold_of(self.scenario))

    def timeline(self, checkpoint_id: int | None = None) -> Figure:
        """Draw when the barrier of one checkpoint (by default the last completed) reached and left each
        task."""
        return figures.timeline(self.scenario.title, self.scenario.topology, self.record(checkpoint_id))

    def graph(self, checkpoint_id: int | None = None) -> Figure:
        """The tasks and their channels, with the time at which each task cut (by default in the last completed)."""
        return figures.topology(self.scenario.topology, self.record(checkpoint_id))

    def space_time(self, checkpoint_id: int | None = None) -> Figure:
        """The walk of one checkpoint's barrier (by default the last completed) among the events around it, drawn."""
        scenario, record = self.scenario, self.record(checkpoint_id)
        return figures.space_time(scenario.title, scenario.topology, record, self.entries, self.duration_ns)

    spacetime = space_time

    def queues(self) -> Figure:
        """The messages in the fullest channels over time, and those that are buffered behind a barrier, drawn."""
        return figures.queues(self.scenario.title, self.scenario.topology.channels, self.entries)

    def explore(self, checkpoint_id: int | None = None) -> Explorable:
        """A widget to explore the run in: zoom, step, and a cut that one drags; by default the last complete one.

        With a checkpoint only the part around it; of a long run as much as there is room for.

        Raises
        ------
        NoWidgetError
            If anywidget is not installed.
        """
        from barrierlab.sim.notebook import widget_of

        return widget_of(self.explorable(checkpoint_id))

    def explorable(self, checkpoint_id: int | None = None) -> dict[str, Any]:
        """The input of the explorable run (`model.render.explorable`): the run, or the part around a checkpoint."""
        from barrierlab.model.render.explorable import data_of

        if checkpoint_id is not None:
            self.record(checkpoint_id)
        scenario = self.scenario
        return data_of(
            self.entries,
            scenario.topology,
            scenario.title,
            verdict=self.verdict,
            violations=map(str, self.violations),
            checkpoint_id=checkpoint_id,
            permits_orphans=not scenario.mode.is_exact,
            part=checkpoint_id is not None,
        )

    def record(self, checkpoint_id: int | None = None) -> CheckpointRecord:
        """The record of one checkpoint, by default the last completed.

        Raises
        ------
        KeyError
            If there is no such checkpoint.
        """
        records = self._metrics.checkpoints
        if checkpoint_id is None:
            done = [i for i, r in records.items() if r.status == "COMPLETED"]
            if not done:
                raise KeyError("no checkpoint completed in this run")
            checkpoint_id = done[-1]
        if checkpoint_id not in records:
            raise KeyError(
                f"there is no checkpoint {checkpoint_id} in this run; allowed: {', '.join(map(str, records))}"
            )
        return records[checkpoint_id]


def lines_of_rows(rows: Iterable[Entry]) -> str:
    """The entries for which `rows` stand, a line each, as the digest of a journal is made of them."""
    texts: dict[int, str] = {}  # one object is the subject of many rows, and its text is what costs
    lines = []
    for at_ns, verb, node, channel, subject in rows:
        text = texts.get(id(subject))
        if text is None:
            text = texts[id(subject)] = str(subject)
        if verb == "pass":
            lines.append(
                f"{at_ns} >deliver {node} {channel} None\n"
                f"{at_ns} take {node} {channel} {text}\n{at_ns} deliver {node} {channel} {text}"
            )
        elif verb == "push":
            lines.append(f"{at_ns} >push {node} None None\n{at_ns} send {node} {channel} {text}")
        else:
            lines.append(f"{at_ns} {verb} {node} {channel} {text}")
    return "\n".join(lines)


def limits_of(scenario: Scenario) -> Limits:
    """Return what BOUND asks of a run, and what its checkpoints promise."""
    checkpoint, topology = scenario.checkpoint, scenario.topology
    settings = {channel: scenario.channels[topology.edge_of(channel)] for channel in topology.channels}
    return Limits(
        channel_capacity={channel: its.capacity for channel, its in settings.items() if its.form == "spsc"},
        max_buffer_per_input=checkpoint.max_buffer_per_input,
        max_buffer_memory_bytes=checkpoint.max_buffer_memory_bytes,
        max_inflight_buffer_bytes=checkpoint.max_inflight_bytes,
        consistency=scenario.mode.consistency,
    )


def fold_of(scenario: Scenario) -> Fold:
    """Return a fold that computes the states of tasks again, with operators of its own."""
    return refolding(scenario.topology, lambda task: make_task_operator(scenario, task))


def guarantees_of(scenario: Scenario) -> dict[str, str]:
    """Return the guarantee of each sink task."""
    topology = scenario.topology
    return {sink: scenario.operators[topology.operator_of(sink)].guarantee for sink in topology.sinks}


@overload
def run(scenario: Scenario, seed: int | None = None, **make: Any) -> Result: ...


@overload
def run(scenario: JoinScenario, seed: int | None = None, **make: Any) -> JoinResult: ...


@overload
def run(scenario: ControlScenario, seed: int | None = None, **make: Any) -> ControlResult: ...


def run(scenario: Any, seed: int | None = None, **make: Any) -> Any:
    """Simulate `scenario` once and judge it: a `Result`, or what the engine of another kind of scenario gives.

    Parameters
    ----------
    scenario : Scenario, JoinScenario or ControlScenario
        From `load`.
    seed : int, optional
        The scenario's own where not given.
    **make
        `parts=`: a `model.checkpoint.components.Components`, of others' machines in place of those of `impl`.

    Examples
    --------
    >>> from barrierlab.sim import load, run
    >>> run(load("diamond"), seed=1).verdict
    'holds'
    """
    chosen = scenario.seed if seed is None else seed
    kinds = Engine, Result
    if not isinstance(scenario, Scenario):
        kinds = import_module(scenario.engine).KINDS
    with collector_paused():
        engine = kinds[0](scenario, chosen, **make)
        engine.run()
        return kinds[1](scenario, chosen, engine)


def _most(values: Any) -> float | None:
    return max(values, default=None)


def _alignment(part: TaskPart) -> float:
    return (part.last_barrier_ns - part.first_barrier_ns) / NS_PER_MS


def _recovery_row(record: RecoveryRecord) -> dict[str, Any]:
    """Return all that is known of a failure; None for what the run did not come to."""
    return {
        "attempt": record.attempt,
        "cause": record.cause,
        "failed_at_ms": ms_between(0, record.failed_ns),
        "detected_ms": ms_between(0, record.noticed_ns),
        "restored_ms": ms_between(0, record.restored_ns),
        "checkpoint_id": record.checkpoint_id,
        "starts": record.starts,
        "recovery_duration_ms": ms_between(record.noticed_ns, record.restored_ns),
        "downtime_ms": ms_between(record.failed_ns, record.restored_ns),
        "events_replayed": record.replayed,
        "catch_up_ms": ms_between(record.restored_ns, record.caught_up_ns),
    }
