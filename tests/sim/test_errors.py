"""The error of the simulation by kind of figure, and what runs that were left out say of its intervals."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest

from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.sim.sweep.measured import DATA
from barrierlab.sim.twin.errors import ErrorTerm, Residual, fit_all, fitted, kind_of, regime, scale, text_of
from tests.leave_one_out import BLOCK, PAGE, judged, kept, tables


def test_the_shipped_errors_are_what_the_kept_residuals_say() -> None:
    """A figure in them would be somebody's wish."""
    assert (DATA / "errors.toml").read_text(encoding="utf-8") == text_of(fit_all(kept()))


def test_a_planted_error_is_found_again() -> None:
    """Intervals would be narrower or wider than the errors are."""
    random = Random(1)
    rows = []
    for number in range(60):
        size = random.choice((5.0, 1000.0))
        error = random.gauss(0.0, (3.0**2 + (0.1 * size) ** 2) ** 0.5)
        rows.append(Residual("persisted: x", str(number), (size, size), size + error))
    term = fitted(rows)
    assert (term.floor, term.share) == (pytest.approx(3.0, rel=0.35), pytest.approx(0.1, rel=0.35))
    assert (term.configurations, term.quantile) == (60, pytest.approx(1.6706, abs=0.001))


def test_of_one_configuration_little_is_known() -> None:
    """A job that once came out by chance would be predicted to a hair."""
    once = fitted([Residual("end to end: x", "1", (90.0, 100.0, 110.0), 95.0)])
    assert (once.configurations, once.quantile) == (1, pytest.approx(6.3138))
    assert once.half_width((100.0, 100.0)) == pytest.approx(5 * 6.3138, rel=0.05)  # all of it, though runs differ by 10


@pytest.mark.parametrize("runs", [2, 5, 9, 19])
def test_few_runs_know_little_of_their_chance(runs: int) -> None:
    """Two runs that come out alike would make an interval of nothing: with a normal quantile it holds half."""
    random, term, inside = Random(runs), ErrorTerm(0.0, 0.0, 9, 1.0), 0
    for _ in range(1500):
        simulated = [random.gauss(100.0, 1.0) for _ in range(runs)]
        inside += abs(random.gauss(100.0, 1.0) - median(simulated)) <= term.half_width(simulated)
    assert inside / 1500 == pytest.approx(0.9, abs=0.03)


def test_an_interval_by_hand() -> None:
    """The chance of the runs would be left out, or counted twice."""
    assert ErrorTerm(3.0, 0.1, 5, 2.0).half_width((40.0, 40.0)) == pytest.approx(10.0)
    chance = 2.2219 * 0.399 * 2.0 * 1.5**0.5  # the Qn of two runs, and by how much their median is off besides
    assert ErrorTerm(0.0, 0.0, 5, 2.0).half_width((39.0, 41.0)) == pytest.approx(6.3138 * chance, rel=1e-4)
    assert ErrorTerm(1.0, 0.0, 5, 2.0).half_width((39.0, 41.0)) ** 2 == pytest.approx(
        4 + (6.3138 * chance) ** 2, rel=1e-4
    )


def test_a_few_slow_runs_are_not_all_there_is() -> None:
    """One run in which everything was slow would make every interval as wide as itself."""
    usual = [100.0, 101.0, 99.0, 102.0, 98.0, 100.5, 99.5]
    assert scale([*usual, 103.0, 97.0]) == pytest.approx(2.2219 * 0.872 * 1.0)  # the 10th of 36 differences
    assert scale([*usual, 1000.0, 2000.0]) < 1.6 * scale([*usual, 103.0, 97.0])
    assert scale([5.0]) == 0.0


def test_kinds_are_told_apart() -> None:
    """The error of a few ms below saturation would be that of seconds above it."""
    modes = [protocol_of(name) for name in ("aligned", "aligned_with_timeout", "unaligned", "tracked")]
    assert [regime(mode, True) for mode in modes] == [
        "aligned, saturated",
        "timeout, saturated",
        "unaligned, saturated",
        "tracked, saturated",
    ]
    assert [regime(mode, False) for mode in modes[:3]] == ["below saturation"] * 2 + ["unaligned, below saturation"]
    assert regime(modes[0], True, True) == "aligned, saturated, debloated"
    assert regime(modes[0], False, True) == "below saturation"
    assert kind_of("persisted", "", "r") != kind_of("persisted", "slow", "r")
    assert kind_of("start delay", "slow", "r") == "start delay: r"


def test_nine_of_ten_figures_are_inside() -> None:
    """Intervals of 90 % would hold half, as they did without an error of the simulation, or everything."""
    rows = judged(kept())
    assert len(rows) > 700
    assert 0.80 <= sum(inside for _, _, inside in rows) / len(rows) <= 0.97
    first = [each for each in rows if not each[0].configuration.startswith("second ")]
    waits = [
        (row, half)
        for row, half, _ in first
        if row.kind.startswith(("end to end: aligned", "end to end: timeout", "persisted: "))
        and row.kind.endswith(", saturated")
    ]
    assert len(waits) == 22
    errors = [abs(row.predicted / row.measured - 1) for row, _ in waits]
    assert max(errors) <= 0.10
    assert median(errors) <= 0.05
    assert median(half / row.predicted for row, half in waits) <= 0.15
    debloated = [row for row, _, _ in rows if row.kind == "end to end: aligned, saturated, debloated"]
    assert len(debloated) == 4
    assert max(abs(row.predicted / row.measured - 1) for row in debloated) <= 0.15
    durations = [row for row, _, _ in first if row.kind == "end to end: unaligned, saturated"]
    off = median(abs(row.predicted / row.measured - 1) for row in durations)
    assert 0.30 < off < 0.60  # of all of them, predicted worst: the bar of 30 % is not reached


def test_the_page_has_the_tables_of_the_kept_residuals() -> None:
    """A table of an earlier version would stand beside a picture of this one."""
    found = {name: body for _, name, body, _ in BLOCK.findall(PAGE.read_text(encoding="utf-8"))}
    assert found == {name: f"{table}\n" for name, table in tables().items()}
