"""Every measured run predicted from the other configurations, and how far off: the errors that intervals are made of.

    python -m tests.leave_one_out            # the tables of what is kept, into the page, and its picture
    python -m tests.leave_one_out --seeds 19  # simulate anew, and keep: ten minutes on two quiet cores
    python -m tests.leave_one_out --seeds 19 --one   # the same from one configuration of each cluster alone

A configuration is a job with its rates, sizes and place, in all its modes. Costs are those of the other configurations
of the cluster with channels of the same kind; of a local one, which is alone, of the remote ones. Whether a run is
inside is asked of errors to which its own configuration has no residual.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev, variance
from typing import Any

from barrierlab.model.render.palette import SERIES as COLOURS
from barrierlab.sim import load
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.sweep.measured import DATA, load_measured, measured_in
from barrierlab.sim.twin.calibrate import calibrate, observed_from
from barrierlab.sim.twin.errors import CLOCK, ErrorTerm, Residual, family_of, fit_all, kind_of, text_of
from barrierlab.sim.twin.observed import ObservedJob
from barrierlab.sim.twin.predict import Name, simulated_figures, statistics_of
from barrierlab.sim.twin.profile import Z_END, Profile

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "tests" / "sim" / "flink" / "leave_one_out.csv"
FROM_ONE = ROOT / "tests" / "sim" / "flink" / "from_one.csv"
PAGE = ROOT / "docs" / "explanation" / "prediction.md"
PICTURE = ROOT / "docs" / "pictures" / "leave_one_out.svg"
HEADLINES = ("end to end: ", "persisted: ")
CLUSTERS = {"first": DATA} | {name: DATA / name for name in ("second", "third", "fourth", "fifth", "sixth")}
ALONE = dict.fromkeys(CLUSTERS, "R_chain_sat_4ms") | dict.fromkeys(("second", "fifth"), "R_chain_sat_16ms")
ALONE |= {"sixth": "L_chain_sat_4ms"}
"""The configuration of each cluster that the others are predicted from: saturated, in every mode that it was run in."""
REPEAT = re.compile(r"_\d+(?=_[a-z]+$)")
BLOCK = re.compile(r"(<!-- kept: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Case:
    """One job in one mode: its configuration, its scenario, and its measured runs, which are repeats."""

    configuration: str
    scenario: str
    settings: Mapping[str, Any]
    runs: tuple[ObservedJob, ...]

    @property
    def measured(self) -> dict[Name, float]:
        """The mean of the repeats."""
        found = [statistics_of(run.checkpoints) for run in self.runs]
        return {name: fmean(each[name] for each in found if name in each) for name in found[0]}


def cases(cluster: str) -> list[Case]:
    """Return the measured jobs of a cluster; the configurations of all but the first begin with its name."""
    folder = CLUSTERS[cluster]
    jobs = load_measured() if cluster == "first" else measured_in(folder)
    runs = {
        run.name: run
        for name in dict.fromkeys(job.scenario for job in jobs)
        for run in observed_from([str(folder)], load(name), debloated=True)
    }
    of = "" if cluster == "first" else f"{cluster} "
    return [
        Case(
            f"{of}{job.setup}",
            job.scenario,
            job.settings,
            tuple(run for name, run in runs.items() if job.name in (name, REPEAT.sub("", name))),
        )
        for job in jobs
    ]


def cluster_of(configuration: str) -> str:
    """Return the cluster that a configuration was measured on."""
    return configuration.partition(" ")[0] if " " in configuration else "first"


def simulate(cluster: str, seeds: int, alone: str = "") -> Iterator[Residual]:
    """Yield a residual of each figure of each measured job of a cluster, simulated on all cores.

    Costs are of the other configurations, or of the one that is named, which is then not predicted.
    """
    found = cases(cluster)
    profiles: dict[str, Profile] = {}
    for case in {case.configuration: case for case in found}.values():
        others = [each for each in found if each.configuration != case.configuration]
        fitted = [run for each in others for run in each.runs if each.configuration.endswith(alone)]
        same = [run for run in fitted if run.is_local == case.runs[0].is_local]
        if fitted:
            profiles[case.configuration] = calibrate(same or fitted)
    asked = [case for case in found if not (alone and case.configuration.endswith(alone))]
    with ProcessPoolExecutor() as pool:
        names, settings = [case.scenario for case in asked], [case.settings for case in asked]
        of_each = [profiles[case.configuration] for case in asked]
        simulated = pool.map(simulated_figures, names, settings, of_each, [seeds] * len(asked))
        for case, (values, ruled_by) in zip(asked, simulated, strict=True):
            for (statistic, operator), measured in case.measured.items():
                own = values[statistic, operator]
                if any(own) or measured:
                    kind = kind_of(statistic, operator, ruled_by)
                    yield Residual(kind, case.configuration, own, measured, case.runs[0].mode)


def kept(path: Path = KEPT) -> list[Residual]:
    """Return the residuals of a kept file."""
    with path.open(encoding="utf-8") as file:
        return [
            Residual(
                row["kind"],
                row["configuration"],
                tuple(map(float, row["simulated"].split())),
                float(row["measured"]),
                row["mode"],
            )
            for row in csv.DictReader(file)
        ]


def text_of_residuals(residuals: Sequence[Residual]) -> str:
    """Return them as a table; values with five digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "configuration", "mode", "simulated", "measured"])
    for each in residuals:
        values = " ".join(f"{value:.5g}" for value in each.simulated)
        writer.writerow([each.kind, each.configuration, each.mode, values, f"{each.measured:.6g}"])
    return out.getvalue()


def terms_without(residuals: Sequence[Residual]) -> dict[str, dict[str, ErrorTerm]]:
    """Return the errors of all kinds by the configuration to which they owe nothing."""
    return {
        name: fit_all([each for each in residuals if each.configuration != name])
        for name in dict.fromkeys(each.configuration for each in residuals)
    }


Judged = Sequence[tuple[Residual, float, bool]]


def judged(residuals: Sequence[Residual], terms: Mapping[str, Mapping[str, ErrorTerm]] | None = None) -> Judged:
    """Return each with half its interval and whether it is inside; of kinds that other configurations know."""
    terms = terms_without(residuals) if terms is None else terms
    found = []
    for each in residuals:
        term = terms[each.configuration].get(each.kind)
        if term is not None:
            half = term.half_width(each.simulated)
            off = abs(each.measured - each.predicted)
            found.append((each, half, off <= half + CLOCK**0.5))
    return found


@cache
def judged_of_kept() -> Judged:
    """Return what is kept of predictions from the other configurations, judged; it takes a second or two."""
    return judged(kept())


HEADS = ["| {} | inside | median error | largest | median half-width |", "|---|---:|---:|---:|---:|"]


def row(name: str, rows: Judged) -> str:
    """Return the row of a table: how many are inside, how far off they are, and how wide their intervals."""
    errors = [abs(r.predicted / r.measured - 1) for r, _, _ in rows if r.measured]
    widths = [half / r.predicted for r, half, _ in rows if r.predicted]
    shown = " | ".join(percent(value, 1) for value in (median(errors), max(errors), median(widths)))
    return f"| {name} | {sum(inside for _, _, inside in rows)} of {len(rows)} | {shown} |"


def between_repeats() -> dict[str, float]:
    """Return half an interval that holds 90 % of repeats, as a share of their mean: whoever knew the mean of further
    runs could not say less. By family, of durations and bytes of the whole job.

    Runs of one configuration in one mode are repeats, and so are, below saturation, those with and without a timeout.
    """
    kinds = {(each.configuration, each.mode, each.kind.split(": ")[0]): each.kind for each in kept()}
    groups: dict[str, list[list[float]]] = {}
    for case in (each for cluster in CLUSTERS for each in cases(cluster) if len(each.runs) > 1):
        for head in HEADLINES:
            statistic = head.removesuffix(": ")
            kind = kinds.get((case.configuration, case.runs[0].mode, statistic))
            values = [statistics_of(run.checkpoints).get((statistic, ""), 0.0) for run in case.runs]
            if kind and all(values):
                groups.setdefault(family_of(kind), []).append(values)
    below: dict[str, list[float]] = {}
    for each in kept():
        if each.kind == "end to end: below saturation":
            below.setdefault(each.configuration, []).append(each.measured)
    groups["end to end: below saturation"] += [values for values in below.values() if len(values) > 1]
    found_of = {}
    for name, repeats in groups.items():
        squares = sum(variance(values) / fmean(values) ** 2 * (len(values) - 1) for values in repeats)
        found_of[name] = Z_END * (squares / sum(len(values) - 1 for values in repeats)) ** 0.5
    return found_of


def tables() -> dict[str, str]:
    """Return the tables of the page, in Markdown, by name."""
    rows = judged_of_kept()
    kinds = {kind: [each for each in rows if each[0].kind == kind] for kind in sorted({r.kind for r, _, _ in rows})}
    headlines = [each for each in rows if each[0].kind.startswith(HEADLINES)]
    repeats = between_repeats()
    jobs = [HEADS[0].format("of the job") + " between repeats |", HEADS[1] + "---:|"]
    jobs += [
        row(kind.replace("end to end", "duration"), kinds[kind])
        + (f" {percent(repeats[family_of(kind)], 1)} |" if family_of(kind) in repeats else " |")
        for kind in kinds
        if kind.startswith(HEADLINES)
    ]
    unaligned = [each for each in headlines if each[0].kind.startswith("end to end: unaligned")]
    jobs += [row("unaligned durations", unaligned) + " |"]
    jobs += [row("all others", [each for each in headlines if each not in unaligned]) + " |"]
    jobs += [row("all of them", headlines) + " |"]
    operators = [HEADS[0].format("of an operator, or processed"), HEADS[1]]
    operators += [row(kind, kinds[kind]) for kind in kinds if not kind.startswith(HEADLINES)]
    operators += [row("all figures", rows)]
    alone = [HEADS[0].format("calibrated on"), HEADS[1]]
    for cluster, name in ALONE.items():
        found = from_one(cluster)
        for head, label in zip(HEADLINES, ("durations", "persisted bytes"), strict=True):
            for is_unaligned in (False, True):
                group = [
                    each
                    for each in found
                    if each[0].kind.startswith(head) and (": unaligned" in each[0].kind) == is_unaligned
                ]
                if group:
                    mode = "unaligned" if is_unaligned else "aligned or with a timeout"
                    alone.append(row(f"{name} of the {cluster} cluster: {label}, {mode}", group))
        alone.append(row(f"{name} of the {cluster} cluster: all figures", found))
    found_of = {
        "jobs": jobs,
        "operators": operators,
        "alone": alone,
        "third": beside("third"),
        "fourth": beside("fourth"),
    }
    return {name: "\n".join(each) for name, each in found_of.items()}


def from_one(cluster: str) -> Judged:
    """Return the figures of a cluster predicted from one configuration of it, by the errors of those of the others."""
    residuals = kept(FROM_ONE)
    own = [each for each in residuals if cluster_of(each.configuration) == cluster]
    terms = fit_all([each for each in residuals if cluster_of(each.configuration) != cluster])
    return judged(own, dict.fromkeys((each.configuration for each in own), terms))


def beside(cluster: str) -> list[str]:
    """Return a table of what was measured of each job, with the spread of its repeats, beside what was predicted."""
    lines = ["| configuration | mode | | measured | predicted | 90 % interval | off | |"]
    lines += ["|---|---|---|---:|---:|---:|---:|---|"]
    found = {(r.configuration, r.mode, r.kind.split(": ")[0]): (r, *rest) for r, *rest in from_one(cluster)}
    for case in cases(cluster):
        for head, shown, factor, digits in (
            ("end to end", "duration, ms", 1, 0),
            ("persisted", "persisted, MB", 1e-6, 2),
        ):
            key = (case.configuration, case.runs[0].mode, head)
            if key in found and found[key][0].measured:
                each, half, is_inside = found[key]
                spread = stdev(statistics_of(run.checkpoints)[head, ""] for run in case.runs)
                values = (each.measured, spread, each.predicted, max(0.0, each.predicted - half), each.predicted + half)
                measured, sd, predicted, low, high = (f"{factor * value:.{digits}f}" for value in values)
                off = percent(each.predicted / each.measured - 1, 1, sign=True)
                name, mode = case.configuration.removeprefix(f"{cluster} "), case.runs[0].mode
                cells = (name, mode, shown, f"{measured} ± {sd}", predicted, f"{low} to {high}", off)
                lines.append(f"| {' | '.join(cells)} | {'inside' if is_inside else 'outside'} |")
    return lines


def look_of(kind: str) -> dict[str, str]:
    """Return how a kind of figure is drawn: colours are those of the other pictures, hollow is below saturation.

    >>> look_of("unaligned, saturated, debloated")
    {'label': 'unaligned, saturated, debloated', 'color': '#e08a1e', 'fmt': 's', 'mfc': '#e08a1e'}
    """
    below = "below saturation"
    label = f"aligned or with a timeout, {below}" if kind == below else kind
    colour = COLOURS[1 if kind.startswith("unaligned") else 2 if kind.startswith("timeout") else 0]
    hollow = kind.endswith(below)
    marker = "s" if kind.endswith("debloated") else "o"
    return {"label": label, "color": colour, "fmt": marker, "mfc": "white" if hollow else colour}


def draw() -> None:
    """Draw measured against predicted, with the intervals, of the durations and persisted bytes of the jobs."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "leave one out"
    every = judged_of_kept()
    figure, places = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
    for axes, head, unit, factor in zip(places, HEADLINES, ("duration, ms", "persisted, MB"), (1.0, 1e-6), strict=True):
        rows = [row for row in every if row[0].kind.startswith(head) and row[0].measured]
        for kind in sorted({row[0].kind for row in rows}):
            own = [(factor * r.measured, factor * r.predicted, factor * half) for r, half, _ in rows if r.kind == kind]
            measured, predicted, half = zip(*own, strict=True)
            low = [min(width, 0.95 * value) for value, width in zip(predicted, half, strict=True)]
            look = look_of(kind.removeprefix(head))
            axes.errorbar(measured, predicted, yerr=(low, half), capsize=2, markersize=5, **look)
        ends = [min(factor * r.measured for r, _, _ in rows), max(factor * r.measured for r, _, _ in rows)]
        axes.plot(ends, ends, color="0.6", zorder=0)
        axes.set(xscale="log", yscale="log", xlabel=f"measured {unit}", ylabel="predicted, 90 % interval")
        axes.legend(fontsize=6.5, loc="lower right")
    figure.savefig(PICTURE, metadata={"Date": None})


def write_page() -> None:
    """Put the tables into their places of the page."""
    shown = tables()
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda found: f"{found[1]}{shown[found[2]]}\n{found[4]}", text), encoding="utf-8")


def main() -> None:
    """Write the tables and the picture; simulate first, if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=0, help="simulate anew with so many runs each, and keep it")
    parser.add_argument("--one", action="store_true", help="from one configuration of each cluster alone")
    parser.add_argument("--cluster", choices=CLUSTERS, help="simulate one cluster, and keep the other as it is")
    options = parser.parse_args()
    if options.seeds:
        path = FROM_ONE if options.one else KEPT
        found = []
        for cluster, alone in ALONE.items():
            if options.cluster in (None, cluster):
                found += list(simulate(cluster, options.seeds, alone if options.one else ""))
            else:
                found += [each for each in kept(path) if cluster_of(each.configuration) == cluster]
        path.write_text(text_of_residuals(found), encoding="utf-8")
        for name, found in (("errors", kept()), ("errors_of_one", kept(FROM_ONE))):
            (ROOT / "sim" / "data" / "flink" / f"{name}.toml").write_text(text_of(fit_all(found)), encoding="utf-8")
    draw()
    write_page()
    print("\n\n".join(tables().values()))


if __name__ == "__main__":
    main()
