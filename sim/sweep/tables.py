"""The tables of a sweep, declared once: name, type, unit and meaning of every column.

The pyarrow schema, the Spark schema and the report's data dictionary all come from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from barrierlab.impl.join import SkipReason

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class Column(NamedTuple):
    """One column. `kind` is text, whole, real or flag; `unit` is empty where there is none."""

    name: str
    kind: str
    unit: str
    meaning: str


class TableSchema(NamedTuple):
    """One table. No two rows agree in all of `key`."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    def arrow(self) -> pa.Schema:
        """The pyarrow schema; every column but the key's may be missing."""
        return _arrow(self)

    def without_part(self) -> pa.Schema:
        """Return the same without the column `part`, which the folder of a file says."""
        import pyarrow as pa

        return pa.schema([field for field in self.arrow() if field.name != "part"])

    def spark(self) -> StructType:
        """The Spark schema of the same table."""
        from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

        kinds = {"text": StringType, "whole": LongType, "real": DoubleType, "flag": BooleanType}
        return StructType([StructField(c.name, kinds[c.kind](), c.name not in self.key) for c in self.columns])

    def from_rows(self, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
        """The rows as an Arrow table; KeyError names a column that a row has and the table has not."""
        import pyarrow as pa

        rows, schema = list(rows), self.arrow()
        present = {name for keys in {tuple(row) for row in rows} for name in keys}
        if unknown := present.difference(schema.names):
            raise KeyError(f"table {self.name!r} has no column {', '.join(sorted(unknown))}")
        columns = [
            pa.array([row.get(field.name) for row in rows], field.type)
            if field.name in present
            else pa.nulls(len(rows), field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)


@cache  # a chunk of short runs is written a hundred times a minute
def _arrow(table: TableSchema) -> pa.Schema:
    import pyarrow as pa

    kinds = {"text": pa.string(), "whole": pa.int64(), "real": pa.float64(), "flag": pa.bool_()}
    return pa.schema([pa.field(c.name, kinds[c.kind], c.name not in table.key) for c in table.columns])


_RUN = Column("run_id", "text", "", "the run: a digest of scenario, parameters and seed")
_CHECKPOINT = Column("checkpoint_id", "whole", "", "the checkpoint's number within its run")
_STEADY = Column("steady", "flag", "", "triggered after the scenario's warm-up")

RUNS = TableSchema(
    "runs",
    "one row a run, whether it went well or not",
    ("run_id",),
    (
        _RUN,
        Column("part", "text", "", "part of the sweep that the run belongs to"),
        Column("scenario", "text", "", "the scenario's name"),
        Column("parameters", "text", "JSON", "what the sweep set in the scenario"),
        Column("seed", "whole", "", "the seed of all random streams of the run"),
        Column("status", "text", "", "OK; RAISED if a machine under test raised; ERROR if it could not be finished"),
        Column("error", "text", "", "what stopped it, if the status is not OK"),
        Column("verdict", "text", "", "holds, broken or undecided: the invariants over the run's whole history"),
        Column("violations", "whole", "count", "violations of the invariants"),
        Column("vacuous", "text", "", "invariants that had nothing to judge in this run"),
        Column("vacuous_asked_for", "text", "", "of those, the ones that the scenario asks for"),
        Column("faults_without_effect", "whole", "count", "faults that never struck, or met nothing"),
        Column("progress", "text", "", "goes on, no checkpoint completed, restart loop, stands still, no output"),
        Column("falls_short", "flag", "", "judged less than was asked for, or did not get on: status 3 with --strict"),
        Column("steady_state", "text", "", "stationary, not stationary or too short to judge: MSER-5 over durations"),
        Column("piles_up_share", "real", "share", "of what arrives, how much piles up; from 0.05 on it is overload"),
        Column("checkpoints_completed", "whole", "count", "checkpoints that every task acknowledged"),
        Column("checkpoints_failed", "whole", "count", "checkpoints that were aborted"),
        Column("completed_share", "real", "share", "completed checkpoints of those that were triggered"),
        Column("events_in", "whole", "count", "records that sources emitted, each counted once"),
        Column("events_out", "whole", "count", "records that sinks took, each counted once"),
        Column("throughput_per_s", "real", "1/s", "records that sinks took in a simulated second"),
        Column("arrivals", "whole", "count", "records that fell due at the sources, emitted or not"),
        Column("arrivals_per_s", "real", "1/s", "records that fell due in a simulated second"),
        Column("emitted_per_s", "real", "1/s", "records that sources emitted in a simulated second, each counted once"),
        Column("behind", "whole", "count", "records that were due at the end and not emitted"),
        Column("sim_duration_s", "real", "s", "simulated time that the run covers"),
        Column("journal_digest", "text", "", "digest of everything that happened, in order"),
        Column("journal_entries", "whole", "count", "entries of the run's history"),
        Column("consistency", "text", "", "what its checkpoints promise: exactly_once, or at_least_once"),
        Column("cut_off", "flag", "", "stopped before it had ended: what was pending then may yet have ended well"),
        Column("backpressure_max", "real", "share", "largest share of its time that a task spent back-pressured"),
        Column("bottleneck", "text", "", "the task that was busy longest"),
        Column("failures", "whole", "count", "times that the job failed and was restored"),
        Column("recovery_time_max_ms", "real", "ms", "longest time from a failure until the job ran again"),
        Column("restarts_in_a_row", "whole", "count", "most restarts from one checkpoint with none completed between"),
        Column("standstill_max_ms", "real", "ms", "longest time without a record at a sink while events were overdue"),
        Column(
            "catch_up_max_ms",
            "real",
            "ms",
            "longest time from a restart until no source had a record overdue, whatever is queued by then",
        ),
        Column("events_replayed", "whole", "count", "records that sources emitted again after a restore"),
        Column("duplicates", "whole", "count", "records that at-least-once sinks wrote to the external system again"),
    ),
)

CHECKPOINTS = TableSchema(
    "checkpoints",
    "one row a checkpoint, under Flink's names",
    ("run_id", "checkpoint_id"),
    (
        _RUN,
        _CHECKPOINT,
        Column("status", "text", "", "COMPLETED, FAILED, or IN_PROGRESS when the run ended"),
        Column("checkpoint_type", "text", "", "CHECKPOINT: barriers were aligned"),
        _STEADY,
        Column("trigger_timestamp_ms", "real", "ms", "simulated time of the trigger"),
        Column("end_to_end_duration_ms", "real", "ms", "from the trigger until it was complete"),
        Column("start_delay_max_ms", "real", "ms", "longest start delay of a task"),
        Column("alignment_max_ms", "real", "ms", "longest alignment of a task"),
        Column("sync_max_ms", "real", "ms", "longest blocking part of a snapshot"),
        Column("async_max_ms", "real", "ms", "longest background part of a snapshot"),
        Column("processed_bytes", "whole", "B", "bytes taken between first and last barrier, over all tasks"),
        Column("persisted_bytes", "whole", "B", "bytes stored as channel state: 0 when barriers are aligned"),
        Column("checkpointed_bytes", "whole", "B", "bytes of state written"),
        Column("failure_reason", "text", "", "why a FAILED checkpoint was aborted"),
        Column("critical_task", "text", "", "the task that acknowledged last"),
        Column("critical_start_delay_ms", "real", "ms", "its start delay"),
        Column("critical_alignment_ms", "real", "ms", "its alignment"),
        Column("path_start_delay_ms", "real", "ms", "on the critical path: until tasks had their first barrier"),
        Column("path_alignment_ms", "real", "ms", "on the critical path: from a first barrier to the last"),
        Column("path_sync_ms", "real", "ms", "on the critical path: blocking parts of snapshots"),
        Column("path_rest_ms", "real", "ms", "on the critical path: all else; the four add up to the duration"),
        Column("longest_wait", "text", "", "the longest wait on it: where, what, and for what"),
        Column("longest_wait_ms", "real", "ms", "how long that was"),
    ),
)

TASKS = TableSchema(
    "tasks",
    "one row a checkpoint and subtask",
    ("run_id", "checkpoint_id", "operator", "subtask"),
    (
        _RUN,
        _CHECKPOINT,
        _STEADY,
        Column("operator", "text", "", "the operator's name"),
        Column("subtask", "whole", "", "index of the subtask within the operator, from 0"),
        Column("start_delay_ms", "real", "ms", "from the trigger to the first barrier at this subtask"),
        Column("alignment_ms", "real", "ms", "from the first to the last barrier at this subtask"),
        Column("sync_ms", "real", "ms", "the blocking part of its snapshot"),
        Column("async_ms", "real", "ms", "the background part of its snapshot"),
        Column("end_to_end_ms", "real", "ms", "from the trigger to its acknowledgement"),
        Column("processed_bytes", "whole", "B", "bytes taken between first and last barrier"),
        Column("persisted_bytes", "whole", "B", "bytes stored as channel state: 0 when barriers are aligned"),
        Column("checkpointed_bytes", "whole", "B", "bytes of state written"),
    ),
)

VIOLATIONS = TableSchema(
    "violations",
    "one row a violation of an invariant",
    ("run_id", "number"),
    (
        _RUN,
        Column("number", "whole", "", "place among the run's violations, from 0"),
        Column("invariant", "text", "", "which invariant, by the name under which the report says what it means"),
        Column("reason", "text", "", "what is wrong"),
        Column("at_ns", "whole", "ns", "simulated time at which it shows"),
    ),
)

SKIPS = {
    SkipReason.FAILED: "a frame of it was gone when it was read",
    SkipReason.REPLACED: "a newer one took its place while it waited",
    SkipReason.HELD: "an older one was waiting still",
    SkipReason.OVERFLOW: "too many were waiting",
    SkipReason.PASSED: "a later one had come out before it",
    SkipReason.IMPOSSIBLE: "it could never be ready",
    SkipReason.NEXT_TICK: "a frame of its tick was gone, and the next tick tries again",
}  # an attempt that a changed map made void (MAP_CHANGED) skips nothing: its output may still come


def skip_column(reason: SkipReason) -> str:
    """Return the column of `joins` that counts the outputs skipped for this reason."""
    return f"skipped_{reason.value.replace(' ', '_')}"


JOINS = TableSchema(
    "joins",
    "one row a run of a join of streams in shared memory; what is counted and measured is after the warm-up",
    ("run_id",),
    (
        _RUN,
        Column("barrier", "text", "", "sequence, timestamp or latest"),
        Column("lateness_ms", "real", "ms", "lateness of a timestamp barrier: how much less than required is enough"),
        Column("wanted", "whole", "count", "outputs asked for, of sequences those begun: outputs, skipped and waiting"),
        Column("outputs", "whole", "count", "outputs that came out"),
        Column("complete", "whole", "count", "of them those without an absent input"),
        Column("degraded", "whole", "count", "of them those with an absent input"),
        Column("skipped", "whole", "count", "outputs that were passed over"),
        *(Column(skip_column(reason), "whole", "count", f"of them: {words}") for reason, words in SKIPS.items()),
        Column(
            "waiting",
            "whole",
            "count",
            "outputs not out at the end; of sequences those with a frame",
        ),
        Column("output_rate_per_s", "real", "1/s", "outputs in a simulated second"),
        Column("complete_share", "real", "share", "complete outputs of those wanted"),
        *(
            Column(f"{name}_{which}_ms", "real", "ms", f"{words}: {meaning}")
            for name, words in (
                ("wait", "from when an output was wanted (a sequence: from its first frame) until it came out"),
                ("age", "from when its oldest frame was captured until an output came out"),
                ("skew", "between the capture of an output's oldest and newest frame, less the offsets of their rules"),
            )
            for which, meaning in (("mean", "mean"), ("p50", "median"), ("p99", "99th percentile"))
        ),
    ),
)


class Journals(TableSchema):
    """A table of so many rows a run that a row is never alone: a run's are given as one mapping, of whole columns."""

    def from_rows(self, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
        """The journals as one Arrow table; of each run the columns, and the id that its rows have in common."""
        import pyarrow as pa

        schema = self.arrow()
        pieces = [
            pa.Table.from_pydict({**row, _RUN.name: pa.repeat(row[_RUN.name], len(row["number"]))}, schema=schema)
            for row in rows
        ]
        return pa.concat_tables([schema.empty_table(), *pieces])


EVENTS = Journals(
    "events",
    "one row an entry of a run's journal, in the order in which things happened",
    ("run_id", "number"),
    (
        _RUN,
        Column("number", "whole", "", "place in the run's journal, from 0"),
        Column("at_ns", "whole", "ns", "simulated time"),
        Column(
            "verb", "text", "", "what happened, as `barrierlab.model.spec.history` says; what begins with > is a move"
        ),
        Column("node", "text", "", "the task that did it, or coordinator"),
        Column("channel", "text", "", "the channel on which, if on one"),
        Column("subject", "text", "", "what about, as a trace has it"),
        Column("message", "text", "", "the message that it is about; two are equal if these are"),
        Column("kind", "text", "", "of the message: Event, Watermark, CheckpointBarrier, CancelBarrier, EndOfInput"),
        Column("source", "text", "", "of an event: the task that made it"),
        Column("sequence", "whole", "", "of an event: its place in its source, from 1"),
        Column("size_bytes", "whole", "B", "what the message counts against a limit in bytes"),
        Column("timestamp_ms", "whole", "ms", "event time of an event or a watermark"),
        Column("checkpoint_id", "whole", "", "the checkpoint that it is about"),
        Column("epoch", "whole", "", "of a barrier: its epoch"),
        Column("unaligned", "flag", "", "of a barrier: whether it may go ahead of its place"),
        Column("digest", "text", "", "of a state that was kept or restored"),
        Column("reason", "text", "", "why a checkpoint was aborted"),
        Column("transaction", "text", "", "of a sink"),
    ),
)

CHANNELS = TableSchema(
    "channels",
    "one row a channel of a run's job",
    ("run_id", "number"),
    (
        _RUN,
        Column("number", "whole", "", "place among the job's channels, from 0"),
        Column("channel", "text", "", "its name: sender->receiver"),
        Column("sender", "text", "", "the task that sends"),
        Column("receiver", "text", "", "the task that takes"),
        Column("edge", "text", "", "the edge of the job that it belongs to"),
        Column("exchange", "text", "", "how the events of the edge are spread: forward, rebalance, hash or broadcast"),
        Column("capacity", "whole", "count", "the most messages that it may hold; none if it has no such limit"),
        Column("receiver_most_buffered", "whole", "count", "the most messages of it that may wait behind its barrier"),
        Column("receiver_most_buffered_bytes", "whole", "B", "the most that the receiver may hold of all its channels"),
        Column("part_most_recorded_bytes", "whole", "B", "the most that a task may record as in flight; of all tasks"),
    ),
)

# A run counts as done once it is in `runs`, so that table is written last.
TABLES = {table.name: table for table in (CHECKPOINTS, TASKS, JOINS, VIOLATIONS, RUNS)}
ON_REQUEST: dict[str, TableSchema] = {EVENTS.name: EVENTS, CHANNELS.name: CHANNELS}
"""The tables that a sweep adds if it keeps its events."""
