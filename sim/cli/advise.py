"""The command `advise`."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from barrierlab.sim.advise.advice import Advice, advise, span
from barrierlab.sim.advise.limits import TimeoutAdvice, better_mode, in_mode, limits, pieces_by_mode
from barrierlab.sim.advise.pieces import NoAdviceError, Pieces, measured
from barrierlab.sim.advise.simulated import SimulatedPoint, simulated
from barrierlab.sim.cli.choices import settings_option
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.core.budget import SECONDS
from barrierlab.sim.core.printed import say
from barrierlab.sim.core.status import UNDECIDED, stdout_console
from barrierlab.sim.scenario.file import ScenarioError
from barrierlab.sim.scenario.load import load
from barrierlab.sim.scenario.settings import Scenario


def _read_slo(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Return the seconds of ``lag=60s``."""
    if value is None:
        return None
    found = re.fullmatch(r"lag=(.+)", value.strip())
    if not found:
        raise click.BadParameter(f"{value!r}: allowed: lag=TIME, such as lag=60s", ctx, param)
    return SECONDS.convert(found[1], param, ctx)


@click.command("advise")
@click.argument("scenario")
@click.option("--mtbf", "mtbf_s", type=SECONDS, required=True, help="Mean time between failures, such as 1h or 90m.")
@click.option(
    "--slo",
    "lag_s",
    callback=_read_slo,
    metavar="lag=TIME",
    help="The lag a failure may cause, lag=60s; none by default.",
)
@settings_option()
@click.option(
    "--seeds", type=click.IntRange(0, 100), default=5, show_default=True, help="Runs at each interval; 0: no check."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def advise_command(
    scenario: str, mtbf_s: float, lag_s: float | None, settings: dict[str, Any], seeds: int, as_json: bool
) -> None:
    """Say how often SCENARIO should take a checkpoint, if it fails every --mtbf in the mean.

    SCENARIO is the name of a shipped one (barrierlab scenarios) or a TOML file. The interval is the one that loses
    least time; with --slo, of those that keep the lag after a failure below. Runs with failures check it.

    Example: barrierlab advise crash_and_recover --mtbf 1h --slo lag=60s
    """
    if seeds == 1:
        raise click.BadParameter("1: allowed: 0, or 2 to 100: one run has no spread", param_hint="--seeds")
    loaded = load(scenario, settings)
    if not isinstance(loaded, Scenario):
        raise ScenarioError(f"{loaded.name}: takes no checkpoints; allowed: a scenario with sources and operators")
    try:
        by_mode = _by_mode(loaded, mtbf_s, lag_s)
    except NoAdviceError as none:
        if as_json:
            click.echo(json.dumps({"scenario": loaded.name, "interval_s": None, "reason": str(none)}, indent=2))
        else:
            click.echo(f"no advice: {none}")
        sys.exit(UNDECIDED)
    lost = {mode: 1 - advice.choices[0].utilisation for mode, (_, advice) in by_mode.items()}
    own, mode = next(iter(lost)), better_mode(lost)
    if mode != own:
        loaded = in_mode(loaded, mode)
    pieces, advice = by_mode[mode]
    points, thinned, unchecked = _checked(loaded, pieces, mtbf_s, advice, seeds)
    bounds = limits(pieces, points, mtbf_s, advice.interval_s)
    if as_json:
        found = {
            "scenario": loaded.name,
            "mtbf_s": mtbf_s,
            "slo_lag_s": lag_s,
            **_plain(asdict(advice)),
            "mode": mode,
            "time_lost_by_mode": lost,
            "limits": asdict(bounds),
            "pieces": _plain(asdict(pieces)),
            "simulated": [_plain(asdict(point)) for point in points],
            "one_event_of": thinned,
            "not_simulated": unchecked,
        }
        click.echo(json.dumps(found, indent=2, allow_nan=False))
    else:
        console = stdout_console()
        _show(console, loaded, pieces, advice, points, thinned, unchecked)
        _say_limits(console, lost, mode, bounds)


def _by_mode(loaded: Scenario, mtbf_s: float, lag_s: float | None) -> dict[str, tuple[Pieces, Advice]]:
    """Return the costs of each way of aligning and the interval for it, the scenario's own first.

    Raises
    ------
    NoAdviceError
        If there is no advice for its own; another one without is left out.
    """
    own = measured(loaded)
    found = {}
    for mode, pieces in pieces_by_mode(loaded, own).items():
        try:
            found[mode] = pieces, advise(pieces, mtbf_s, loaded.checkpoint.interval_s, lag_s)
        except NoAdviceError:
            if pieces is own:
                raise
    return found


def _checked(
    loaded: Scenario, pieces: Pieces, mtbf_s: float, advice: Advice, seeds: int
) -> tuple[list[SimulatedPoint], float | None, str | None]:
    """Return the points, of how many events one is simulated, and why there are none."""
    if not seeds:
        return [], None, "not simulated: --seeds 0"
    try:
        return *simulated(loaded, pieces, mtbf_s, advice.interval_s, seeds), None
    except NoAdviceError as none:
        return [], None, str(none)


def _plain(value: Any) -> Any:
    """Return a value without infinities, which JSON does not have: null."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(
    console: Console,
    loaded: Scenario,
    pieces: Pieces,
    advice: Advice,
    points: list[SimulatedPoint],
    thinned: float | None,
    unchecked: str | None,
) -> None:
    bound = " (its whole duration, at most)" if pieces.is_upper_bound else ""
    say(console, f"{loaded.title}: a checkpoint costs {span(pieces.cost_s)}{bound} and takes {span(pieces.duration_s)}")
    say(
        console,
        f"a failure: detection {span(pieces.detection_s)}, restart {span(pieces.restart_s)}, read "
        f"{span(pieces.read_s)}, then what came since the last checkpoint; {pieces.bottleneck} is busy "
        f"{percent(pieces.load)} of the time; steady state: {pieces.steady}",
    )
    say(console, *(f"not given: {line}" for line in pieces.missing), *(f"warning: {line}" for line in pieces.warnings))
    table = Table("interval", "every", "time lost %", "lag at most", "catch-up at most", title_justify="left")
    for choice in advice.choices:
        times = (choice.interval_s, choice.lag_s, choice.catch_up_s)
        every, lag, catch_up = ("-" if each is None else _or_never(each) for each in times)
        table.add_row(choice.name, every, f"{100 * (1 - choice.utilisation):.2f}", lag, catch_up)
    console.print(table, highlight=False)
    low_s, high_s = advice.band_s
    say(console, f"from {span(low_s)} to {_or_never(high_s)} the time lost is within 1 % of the least")
    if advice.limit:
        say(console, f"the interval is bound by: {advice.limit}")
    if unchecked:
        say(console, unchecked)
    else:
        _show_points(console, points, thinned or 1.0)
        for point in points:
            if point.differs:
                say(console, f"at {span(point.interval_s)} the simulation parts from the closed form: {_why(point)}")
    say(console, advice.sentence)


def _say_limits(console: Console, lost: dict[str, float], mode: str, bounds: TimeoutAdvice) -> None:
    each = ", ".join(f"{name} {percent(share, 3)}" for name, share in lost.items())
    verb = "Keep" if mode == next(iter(lost)) else "Change to"
    say(
        console,
        f"{verb} {mode} barriers (time lost at the best interval: {each}; another mode must save 1 % of that).",
        bounds.sentence,
    )


def _show_points(console: Console, points: list[SimulatedPoint], thinned: float) -> None:
    title = "Simulated, with the same failures at each interval"
    if thinned > 1:
        title += f"; of {thinned:.0f} events one is simulated"
    table = Table("every", "utilisation %", "±", "closed form %", "failures", title=title, title_justify="left")
    for point in points:
        shares = (f"{100 * each:.2f}" for each in (point.utilisation, point.half_width, point.closed))
        table.add_row(span(point.interval_s), *shares, f"{point.failures} of {point.expected:.0f} expected")
    console.print(table, highlight=False)


def _why(point: SimulatedPoint) -> str:
    return "; ".join(point.why) or "no reason is known; please report it"


def _or_never(seconds: float) -> str:
    return span(seconds) if math.isfinite(seconds) else "never"
