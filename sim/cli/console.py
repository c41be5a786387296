"""Results printed for people: tables of what happened, and the verdict of the invariants."""

from __future__ import annotations

from rich.console import Console

from barrierlab.sim.checkpoint.result import Result
from barrierlab.sim.control.engine import ControlResult
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.core.printed import say, table_of
from barrierlab.sim.core.status import OF_VERDICT, UNDECIDED
from barrierlab.sim.join.engine import JoinResult


def show(console: Console, result: Result | JoinResult | ControlResult) -> None:
    """Print a result, whichever engine gave it."""
    if isinstance(result, JoinResult):
        _show_join(console, result)
    elif isinstance(result, ControlResult):
        _show_signals(console, result)
    else:
        _show_checkpoints(console, result)


_CHECKPOINTS = (
    *("id", "status", "trigger\ns", "end to\nend ms", "start\ndelay ms", "alignment\nms", "processed\nB"),
    *("persisted\nB", "longest\nwait ms", "at"),
)
_FAILURES = ("cause", "failed s", "noticed s", "from checkpoint", "runs again s", "down ms", "replayed", "catch-up ms")


def _show_checkpoints(console: Console, result: Result) -> None:
    table = table_of(_CHECKPOINTS, ("status", "at"), f"{result.scenario.title} (seed {result.seed})", is_wide=True)
    for row in result.checkpoint_rows():
        table.add_row(
            str(row["checkpoint_id"]),
            row["status"] if row["failure_reason"] is None else f"{row['status']}: {row['failure_reason']}",
            f"{row['trigger_timestamp_ms'] / 1000:.3f}",
            _ms(row["end_to_end_duration_ms"]),
            _ms(row["start_delay_max_ms"]),
            _ms(row["alignment_max_ms"]),
            str(row["processed_bytes"]),
            str(row["persisted_bytes"]),
            _ms(row.get("longest_wait_ms")),
            row.get("longest_wait") or "",
        )
    console.print(table)
    if result.recovery_rows():
        _show_recoveries(console, result)
    if sizes := result.debloating():
        text = ", ".join(f"{each['task']} {each['debloatedBufferSize']:.0f}" for each in sizes)
        console.print(f"debloated buffer size, mean after the warm-up, bytes: {text}")
    row = result.run_row()
    console.print(
        f"{_shown(row['sim_duration_s'])} s simulated; {row['arrivals']} events due, {row['events_in']} emitted, "
        f"{row['events_out']} at sinks ({_shown(row['throughput_per_s'])} a second); "
        f"busiest task: {row['bottleneck']}; "
        f"most back-pressured: {percent(row['backpressure_max'])} of the time",
        highlight=False,
    )
    state = result.steady_state
    console.print(f"steady state: {state.verdict} ({state.why})", highlight=False)
    _show_verdict(console, result)


def _show_verdict(console: Console, result: Result | JoinResult | ControlResult) -> None:
    for warning in result.warnings:
        console.print(f"warning: {warning}", highlight=False, markup=False)
    for violation in result.violations:
        console.print(f"! {violation.invariant}: {violation.reason}", highlight=False)
    for reason in result.undecided if isinstance(result, Result) else ():
        console.print(f"? {reason}", highlight=False)
    for note in result.coverage.notes:
        console.print(f"note: {note}", highlight=False)
    console.print(f"digest: {result.digest}", highlight=False)
    say(console, verdict_line(result))


def verdict_line(result: Result | JoinResult | ControlResult) -> str:
    """Return the verdict with what a reader must know at once: ``verdict: holds (0 violations; vacuous: WM, REC)``."""
    coverage = result.coverage
    counts = [f"{len(result.violations)} violations"]
    if coverage.vacuous:
        counts.append(f"vacuous: {', '.join(coverage.vacuous)}")
    if number := len(coverage.idle_faults):
        counts.append(f"{number} fault{'' if number == 1 else 's'} without effect")
    but = f", but {coverage.headline}" if coverage.headline else ""
    return f"verdict: {result.verdict}{but} ({'; '.join(counts)})"


def exit_status(result: Result | JoinResult | ControlResult, strict: bool = False) -> int:
    """Return the exit status of a run: of its verdict, and 3 where a `strict` one judged less than was asked for."""
    short = strict and result.verdict == "holds" and result.coverage.falls_short
    return UNDECIDED if short else OF_VERDICT[result.verdict]


def _show_recoveries(console: Console, result: Result) -> None:
    table = table_of(_FAILURES, ("cause",), "Failures")
    for row in result.recovery_rows():
        table.add_row(
            row["cause"],
            _s(row["failed_at_ms"]),
            _s(row["detected_ms"]),
            "" if row["checkpoint_id"] is None else str(row["checkpoint_id"] or "none: begin"),
            _s(row["restored_ms"]),
            _ms(row["downtime_ms"]),
            str(row["events_replayed"]),
            _ms(row["catch_up_ms"]),
        )
    console.print(table)
    run = result.run_row()
    console.print(
        f"{run['events_replayed']} events replayed; {run['duplicates']} written to the external system more than once",
        highlight=False,
    )


def _s(value_ms: float | None) -> str:
    return "" if value_ms is None else f"{value_ms / 1000:.3f}"


def _show_join(console: Console, result: JoinResult) -> None:
    row = result.join_rows()[0]
    title = f"{result.scenario.title} (seed {result.seed}): {row['barrier']} join"
    table = table_of(("of each output", "mean ms", "median ms", "99 % ms"), ("of each output",), title)
    for name, words in (
        ("wait", "waited since it was wanted"),
        ("age", "age of its oldest frame"),
        ("skew", "between its oldest and newest frame"),
    ):
        table.add_row(words, *(_ms(row[f"{name}_{which}_ms"]) for which in ("mean", "p50", "p99")))
    console.print(table)
    skips = ", ".join(f"{count} {reason}" for reason, count in result.skip_counts().items()) or "none"
    console.print(
        f"{row['outputs']} outputs ({row['output_rate_per_s']:.1f} a second), {row['complete']} of them complete, of "
        f"{row['wanted']} wanted; skipped: {skips}; {result.waiting_line or 'none waiting at the end'}",
        highlight=False,
    )
    _show_verdict(console, result)


def _show_signals(console: Console, result: ControlResult) -> None:
    metrics = result.metrics
    names = ("barrier", "channel", "sent s", "first ms", "last ms", "skew ms", "longest wait ms", "at")
    table = table_of(names, ("barrier", "channel", "at"), f"{result.scenario.title} (seed {result.seed})")
    for row in metrics.barrier_rows():
        table.add_row(
            f"{row['kind']} {row['id']}",
            row["channel"],
            f"{row['sent_ms'] / 1000:.3f}",
            *(_ms(row[key]) for key in ("first_ms", "last_ms", "skew_ms", "wait_max_ms")),
            row["wait_max_at"] or "",
        )
    console.print(table)
    columns = ("processor", "channel", "barriers", "mean ms", "max ms")
    waits = table_of(columns, ("processor", "channel"), "alignment wait")
    for row in metrics.alignment_rows():
        mean, most = _ms(row["wait_mean_ms"]), _ms(row["wait_max_ms"])
        waits.add_row(row["processor"], row["channel"], str(row["barriers"]), mean, most)
    console.print(waits)
    end = metrics.end_row()
    if end is not None:
        console.print(
            f"{end['signal']} sent at {end['sent_ms'] / 1000:.3f} s; drained in {_ms(end['drain_ms'])} ms; "
            f"last to end: {end['last']}; longest wait for older data or signals: {_ms(end['fence_wait_max_ms'])} ms",
            highlight=False,
        )
    console.print(f"{result.emitted_count} events emitted, {result.lost_count} lost", highlight=False)
    _show_verdict(console, result)


def _shown(value: float) -> str:
    """Return a number with one decimal place, or, of one below 1, with three digits."""
    return f"{value:.1f}" if value >= 1 else f"{value:.3g}"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
