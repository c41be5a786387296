"""The error of the simulation by kind of figure, and what runs that were left out say of its intervals."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from statistics import median

import pytest

from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.sim.sweep.measured import DATA
from barrierlab.sim.twin.errors import (
    ErrorTerm,
    Residual,
    UsualChance,
    family_of,
    fit_all,
    fitted,
    kind_of,
    regime,
    scale,
    text_of,
    usual_chance,
)
from tests.leave_one_out import (
    BLOCK,
    CLUSTERS,
    FROM_ONE,
    HEADLINES,
    KEPT,
    PAGE,
    cluster_of,
    from_one,
    judged_of_kept,
    kept,
    tables,
)

UNALIGNED = "end to end: unaligned"


@pytest.mark.parametrize(("name", "path"), [("errors", KEPT), ("errors_of_one", FROM_ONE)])
def test_the_shipped_errors_are_what_the_kept_residuals_say(name: str, path: Path) -> None:
    """A figure in them would be somebody's wish."""
    assert (DATA / f"{name}.toml").read_text(encoding="utf-8") == text_of(fit_all(kept(path)))


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


@pytest.mark.parametrize(("spread", "freedom"), [(0.0, (10.0, 1000.0)), (0.7, (1.0, 3.0))])
def test_runs_of_one_figure_are_judged_beside_those_of_its_like(spread: float, freedom: tuple[float, float]) -> None:
    """Seven runs that come out close together would make a narrow interval, though those of all others are apart."""
    random = Random(2)
    figures = []
    for _ in range(300):
        size = random.choice((10.0, 1000.0))
        own = 0.05 * size * math.exp(random.gauss(0.0, spread))
        figures.append([random.gauss(size, own) for _ in range(7)])
    usual = usual_chance(figures)
    assert freedom[0] <= usual.freedom <= freedom[1]
    if not spread:
        assert usual.share == pytest.approx(0.05 * (8 / 7) ** 0.5, rel=0.1)
        moderated = [ErrorTerm(0.0, 0.0, 9, 1.0, usual).half_width(each) for each in figures]
        alone = [ErrorTerm(0.0, 0.0, 9, 1.0).half_width(each) for each in figures]
        assert median(moderated) < 0.8 * median(alone)
        inside = [
            abs(random.gauss(10.0 if each[0] < 100 else 1000.0, 0.5 if each[0] < 100 else 50.0) - median(each)) <= half
            for each, half in zip(figures, moderated, strict=True)
        ]
        assert sum(inside) / 300 == pytest.approx(0.9, abs=0.04)


def test_little_is_usual() -> None:
    """Two figures would say what is usual, and one that is nothing would be divided by itself."""
    assert usual_chance([[9.0, 10.0, 11.0]] * 2) == UsualChance()
    assert usual_chance([[0.0, 0.0, 1.0]] * 9) == UsualChance()
    assert UsualChance(0.1, 4.0).moderated([0.0, 0.0, 1.0]) == UsualChance().moderated([0.0, 0.0, 1.0])
    assert UsualChance().moderated([5.0]) == (0.0, 1.0)
    assert UsualChance(0.1, 4.0).moderated([50.0]) == (pytest.approx(25.0), 4.0)


def test_others_of_a_family_count_as_one_configuration() -> None:
    """Many figures of another kind would outvote the few of a figure's own, or say nothing where there are none."""
    own = [Residual("end to end: x, a", str(number), (100.0, 100.0), 101.0) for number in range(4)]
    others = [Residual("end to end: x, b", str(number), (100.0, 100.0), 300.0) for number in range(50)]
    alone, beside, without = fitted(own), fitted(own, others), fitted([], others)
    widths = [each.half_width((100.0, 100.0)) for each in (alone, beside, without)]
    assert (alone.configurations, beside.configurations, without.configurations) == (4, 5, 1)
    assert widths == sorted(widths)
    assert (beside.floor**2 + (100 * beside.share) ** 2) ** 0.5 == pytest.approx((200**2 / 5) ** 0.5, rel=0.1)


def test_families_are_of_a_statistic_and_a_way_to_align() -> None:
    """A steady aligned duration would have the width of an unaligned one, or bytes that of times."""
    assert family_of("end to end: aligned, saturated, debloated") == family_of("end to end: aligned, saturated")
    assert family_of("end to end: unaligned, below saturation") == family_of("end to end: below saturation")
    apart = ["end to end: aligned, saturated", "end to end: timeout, saturated", "end to end: unaligned, saturated"]
    apart += ["end to end: below saturation", "persisted: unaligned, saturated"]
    assert len({family_of(each) for each in apart}) == 5


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
    assert scale((*usual, 103.0, 97.0)) == pytest.approx(2.2219 * 0.872 * 1.0)  # the 10th of 36 differences
    assert scale((*usual, 1000.0, 2000.0)) < 1.6 * scale((*usual, 103.0, 97.0))
    assert scale((5.0,)) == 0.0


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
    rows = judged_of_kept()
    assert len(rows) > 1000
    assert 0.80 <= sum(inside for _, _, inside in rows) / len(rows) <= 0.97
    headlines = [(row, half) for row, half, _ in rows if row.kind.startswith(HEADLINES)]
    others = [half / row.predicted for row, half in headlines if UNALIGNED not in row.kind]
    assert (len(headlines), len(others)) == (144, 110)
    assert median(others) <= 0.15
    full = ("end to end: aligned", "end to end: timeout", "persisted: timeout", "persisted: unaligned")
    waits = [(row, half) for row, half, _ in rows if row.kind in {f"{each}, saturated" for each in full}]
    assert len(waits) == 66
    errors = [abs(row.predicted / row.measured - 1) for row, _ in waits]
    assert max(errors) <= 0.10
    assert median(errors) <= 0.05
    assert median(half / row.predicted for row, half in waits) <= 0.15
    debloated = [row for row, _, _ in rows if row.kind == "end to end: aligned, saturated, debloated"]
    assert len(debloated) == 7
    assert max(abs(row.predicted / row.measured - 1) for row in debloated) <= 0.15
    unaligned = {
        cluster: [
            abs(row.predicted / row.measured - 1)
            for row, _ in headlines
            if row.kind.startswith(UNALIGNED) and cluster_of(row.configuration) == cluster
        ]
        for cluster in CLUSTERS
    }
    every = [off for found in unaligned.values() for off in found]
    assert len(every) == 34
    assert median(every) <= 0.30
    assert [cluster for cluster, found in unaligned.items() if median(found) > 0.30] == ["first", "second", "third"]
    # Of clusters that had run for a while, on a machine with nothing else to do:
    quiet = [row for row, _ in headlines if cluster_of(row.configuration) in ("fourth", "fifth", "sixth")]
    persisted = [row for row in quiet if row.kind.startswith("persisted: unaligned, saturated")]
    assert len(persisted) == 10
    assert max(abs(row.predicted / row.measured - 1) for row in persisted) <= 0.10


def test_unaligned_durations_of_other_jobs_say_less_than_their_costs() -> None:
    """The page would claim that simulating them gains something: off by 27 %, where the usual duration is by 44."""
    rows = [each for each in kept() if each.kind.startswith("end to end: unaligned, saturated")]
    simulated, usual = [], []
    for row in rows:
        others = [
            each.measured
            for each in rows
            if each is not row and cluster_of(each.configuration) == cluster_of(row.configuration)
        ]
        if not row.kind.endswith("debloated"):
            simulated.append(abs(row.predicted / row.measured - 1))
            usual.append(abs(median(others) / row.measured - 1))
    assert (round(median(simulated), 2), round(median(usual), 2)) == (0.27, 0.44)


def test_nine_of_ten_figures_are_inside_from_one_configuration_of_another_cluster() -> None:
    """A job that is alone on its cluster would get the intervals of costs from many."""
    rows = [each for cluster in CLUSTERS for each in from_one(cluster)]
    assert len(rows) > 1400
    assert 0.85 <= sum(inside for _, _, inside in rows) / len(rows) <= 0.95
    for cluster in ("third", "fourth"):  # what the first two lack
        found = [inside for _, _, inside in from_one(cluster)]
        assert 0.80 <= sum(found) / len(found) <= 0.97


def test_the_page_has_the_tables_of_the_kept_residuals() -> None:
    """A table of an earlier version would stand beside a picture of this one."""
    found = {name: body for _, name, body, _ in BLOCK.findall(PAGE.read_text(encoding="utf-8"))}
    assert found == {name: f"{table}\n" for name, table in tables().items()}
