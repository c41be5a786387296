"""The advice: an interval, what it costs beside others, and what would change it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from barrierlab.model.render.html import block, paragraph, table
from barrierlab.sim.advise.laws import (
    band_s,
    best_period_s,
    catch_up_s,
    daly_work_s,
    largest_lag_s,
    utilisation,
    young_work_s,
)
from barrierlab.sim.advise.pieces import NoAdviceError, Pieces
from barrierlab.sim.core.amounts import percent

FIVE_MINUTES_S = 300.0


@dataclass(frozen=True, slots=True)
class Choice:
    """An interval that one might take; None for none at all.

    `utilisation` is the share of all time that is work which stays; `lag_s` the worst after a failure, and
    `catch_up_s` the time until that is worked off.
    """

    name: str
    interval_s: float | None
    utilisation: float
    lag_s: float | None
    catch_up_s: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Advice:
    """The interval that is advised, and its reasons. Seconds.

    `band_s` are the intervals whose cost is within 1 % of the best cost; `limit` says what kept the interval from the
    optimum, or nothing. `choices` begins with the advised one.
    """

    interval_s: float
    band_s: tuple[float, float]
    limit: str
    choices: tuple[Choice, ...]
    sentence: str

    def __repr__(self) -> str:
        low_s, high_s = self.band_s
        return f"<Advice: every {self.interval_s:.3g} s; about as good: {low_s:.3g} to {high_s:.3g} s>"

    def _repr_html_(self) -> str:
        return block("advice", "", paragraph(self.sentence), table([asdict(choice) for choice in self.choices]))


def utilisation_at(pieces: Pieces, mtbf_s: float, interval_s: float) -> float:
    """Return the share of all time that is work which stays; a period is never shorter than a checkpoint takes."""
    return utilisation(max(interval_s, pieces.least_s), pieces.cost_s, mtbf_s, pieces.lost_s, exposed=True)


def advise(pieces: Pieces, mtbf_s: float, own_s: float | None, lag_s: float | None = None) -> Advice:
    """Return the interval for failures `mtbf_s` apart: the one with the best utilisation of those that keep `lag_s`.

    Raises
    ------
    NoAdviceError
        If no interval keeps the lag, or what failures leave of the capacity is less than the load.
    """
    best_s = best_period_s(pieces.cost_s, mtbf_s)
    limit = ""
    interval_s = max(best_s, pieces.least_s)
    if best_s < pieces.least_s:
        limit = f"a checkpoint and its pause take {span(pieces.least_s)}, more than the optimum of {span(best_s)}"
    if lag_s is not None:
        most_s = lag_s - largest_lag_s(0.0, pieces.duration_s, pieces.down_s)
        if most_s < pieces.least_s:
            need_s = largest_lag_s(pieces.least_s, pieces.duration_s, pieces.down_s)
            raise NoAdviceError(
                f"no interval keeps the lag below {span(lag_s)}: with the shortest, {span(pieces.least_s)}, a failure "
                f"makes it {span(need_s)} (down {span(pieces.down_s)}, a checkpoint of {span(pieces.duration_s)})"
            )
        if most_s < interval_s:
            interval_s, limit = most_s, f"lag below {span(lag_s)}"
    kept = utilisation_at(pieces, mtbf_s, interval_s)
    if kept <= pieces.load:
        raise NoAdviceError(
            f"saturated: with a failure every {span(mtbf_s)} an interval of {span(interval_s)} leaves "
            f"{percent(kept, 1)} of the capacity, and {pieces.bottleneck} needs {percent(pieces.load, 1)}; "
            "the job falls behind for ever"
        )
    cost_s = pieces.cost_s
    others = {
        "the scenario's own": own_s,
        "the exact optimum": best_s,
        "Young": young_work_s(cost_s, mtbf_s) + cost_s,
        "Daly": daly_work_s(cost_s, mtbf_s) + cost_s,
        "five minutes": FIVE_MINUTES_S,
    }
    choices = [_choice("advised", pieces, mtbf_s, interval_s)]
    choices += [_choice(name, pieces, mtbf_s, each_s) for name, each_s in others.items() if each_s is not None]
    choices.append(Choice("Flink's default: none", None, 0.0, None, None))
    band = band_s(cost_s, mtbf_s, pieces.lost_s, exposed=True)
    low_s = max(band[0], pieces.least_s)
    sentence = _sentence(pieces, mtbf_s, choices[0], lag_s, interval_s < best_s)
    return Advice(interval_s, (low_s, max(band[1], low_s)), limit, tuple(choices), sentence)


def _choice(name: str, pieces: Pieces, mtbf_s: float, interval_s: float) -> Choice:
    kept = utilisation_at(pieces, mtbf_s, interval_s)
    lag_s = largest_lag_s(max(interval_s, pieces.least_s), pieces.duration_s, pieces.down_s)
    caught_up_s = catch_up_s(lag_s, pieces.load)
    return Choice(name, interval_s, kept, lag_s, caught_up_s)


def _sentence(pieces: Pieces, mtbf_s: float, chosen: Choice, lag_s: float | None, is_bound: bool) -> str:
    lost = 1 - chosen.utilisation
    begins = (
        f"Take a checkpoint every {span(chosen.interval_s or 0.0)}: checkpoints and failures then cost "
        f"{percent(lost, 2)} of the time"
    )
    if lag_s is not None and is_bound:
        down_s = pieces.down_s
        return (
            f"{begins}, and after a failure the job is at most {span(lag_s)} behind; each second that it is down less "
            f"(now {span(down_s)}), or that a checkpoint takes less (now {span(pieces.duration_s)}), allows a second "
            "more."
        )
    if lag_s is not None:
        begins += f", and after a failure the job is at most {span(chosen.lag_s or 0.0)} behind"
    rarer_s = max(best_period_s(pieces.cost_s, 4 * mtbf_s), pieces.least_s)
    cheaper_s = best_period_s(pieces.cost_s / 4, mtbf_s)
    return (
        f"{begins}; failures four times as rare (every {span(4 * mtbf_s)}) would make it {span(rarer_s)}, and "
        f"checkpoints that cost a quarter ({span(pieces.cost_s / 4)}) {span(cheaper_s)}."
    )


def span(seconds: float) -> str:
    """Return a time for people, to three digits.

    >>> span(0.25), span(85.188), span(677.9), span(14400.0)
    ('250 ms', '85.2 s', '11.3 min', '4 h')
    """
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= (2 if size > 1 else 1) * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{1000 * seconds:.3g} ms"
