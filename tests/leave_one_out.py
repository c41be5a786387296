"""Every measured run predicted from the other configurations, and how far off: the errors that intervals are made of.

    python -m tests.leave_one_out            # the table of what is kept, and its picture in docs
    python -m tests.leave_one_out --seeds 9  # simulate anew, and keep: five minutes on a quiet core

A configuration is a job with its rates, sizes and place, in all its modes. Costs are those of the other configurations
with channels of the same kind; of the local one, which is alone, of the remote ones. Whether a run is inside is asked
of errors to which its own configuration has no residual.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from barrierlab.sim import load
from barrierlab.sim.sweep.measured import DATA, load_measured
from barrierlab.sim.twin.calibrate import calibrate
from barrierlab.sim.twin.errors import CLOCK, Residual, fit_all, kind_of, text_of
from barrierlab.sim.twin.observed import ObservedJob, observed_tables, senders_of
from barrierlab.sim.twin.predict import simulated_figures, statistics_of

KEPT = Path(__file__).parent / "sim" / "flink" / "leave_one_out.csv"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "leave_one_out.svg"
HEADLINES = ("end to end: ", "persisted: ")


def observed() -> dict[str, ObservedJob]:
    """Return the runs of the tables, by name."""
    found = {}
    for job in load_measured():
        senders = senders_of(load(job.scenario, job.settings).topology)
        found |= {run.name: run for run in observed_tables(Path(str(DATA)), senders) if run.name == job.name}
    return found


def simulate(seeds: int) -> Iterator[Residual]:
    """Yield a residual of each figure of each measured run."""
    runs = observed()  # without those whose buffers do not keep their size
    jobs = [job for job in load_measured() if job.name in runs]
    for job in jobs:
        others = [runs[each.name] for each in jobs if each.setup != job.setup]
        alike = [run for run in others if run.is_local == runs[job.name].is_local] or others
        values, ruled_by = simulated_figures(job.scenario, job.settings, calibrate(alike), seeds)
        for key, measured in statistics_of(runs[job.name].checkpoints).items():
            if any(values[key]) or measured:
                yield Residual(kind_of(*key, ruled_by), job.setup, values[key], measured)


def kept() -> list[Residual]:
    """Return the residuals of the kept file."""
    with KEPT.open(encoding="utf-8") as file:
        return [
            Residual(
                row["kind"], row["configuration"], tuple(map(float, row["simulated"].split())), float(row["measured"])
            )
            for row in csv.DictReader(file)
        ]


def text_of_residuals(residuals: Sequence[Residual]) -> str:
    """Return them as a table; values with five digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "configuration", "simulated", "measured"])
    for each in residuals:
        values = " ".join(f"{value:.5g}" for value in each.simulated)
        writer.writerow([each.kind, each.configuration, values, f"{each.measured:.6g}"])
    return out.getvalue()


def judged(residuals: Sequence[Residual]) -> list[tuple[Residual, float, bool]]:
    """Return each with half its interval and whether it is inside; of kinds that the other configurations know."""
    terms = {
        name: fit_all([each for each in residuals if each.configuration != name])
        for name in dict.fromkeys(each.configuration for each in residuals)
    }
    found = []
    for each in residuals:
        term = terms[each.configuration].get(each.kind)
        if term is not None:
            half = term.half_width(each.simulated)
            off = abs(each.measured - each.predicted)
            found.append((each, half, off <= half + CLOCK**0.5))
    return found


def table(residuals: Sequence[Residual]) -> str:
    """Return how far off and how wide each kind is, in Markdown."""
    rows = judged(residuals)
    lines = ["| kind | inside | median error | largest | median half-width |", "|---|---:|---:|---:|---:|"]
    groups = [(kind, [row for row in rows if row[0].kind == kind]) for kind in sorted({row[0].kind for row in rows})]
    groups.append(("durations and persisted bytes of the job", [r for r in rows if r[0].kind.startswith(HEADLINES)]))
    groups.append(("all", rows))
    for kind, group in groups:
        errors = [abs(r.predicted / r.measured - 1) if r.measured else float("inf") for r, _, _ in group]
        widths = [half / r.predicted if r.predicted else float("inf") for r, half, _ in group]
        shown = " | ".join(f"{value:.1%}" for value in (median(errors), max(errors), median(widths)))
        lines.append(f"| {kind} | {sum(inside for _, _, inside in group)} of {len(group)} | {shown} |")
    return "\n".join(lines)


def draw(residuals: Sequence[Residual]) -> None:
    """Draw measured against predicted, with the intervals, of the durations and persisted bytes of the jobs."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "leave one out"
    figure, places = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
    for axes, head, unit, factor in zip(places, HEADLINES, ("duration, ms", "persisted, MB"), (1.0, 1e-6), strict=True):
        rows = [row for row in judged(residuals) if row[0].kind.startswith(head) and row[0].measured]
        for kind in sorted({row[0].kind for row in rows}):
            own = [(factor * r.measured, factor * r.predicted, factor * half) for r, half, _ in rows if r.kind == kind]
            measured, predicted, half = zip(*own, strict=True)
            low = [min(width, 0.95 * value) for value, width in zip(predicted, half, strict=True)]
            axes.errorbar(measured, predicted, yerr=(low, half), fmt="o", capsize=2, label=kind.removeprefix(head))
        ends = [min(factor * r.measured for r, _, _ in rows), max(factor * r.measured for r, _, _ in rows)]
        axes.plot(ends, ends, color="0.6", zorder=0)
        axes.set(xscale="log", yscale="log", xlabel=f"measured {unit}", ylabel="predicted, 90 % interval")
        axes.legend(fontsize=7)
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    """Print the table; simulate first, if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=0, help="simulate anew with so many runs each, and keep it")
    if seeds := parser.parse_args().seeds:
        KEPT.write_text(text_of_residuals(list(simulate(seeds))), encoding="utf-8")
        Path(str(DATA / "errors.toml")).write_text(text_of(fit_all(kept())), encoding="utf-8")
    draw(kept())
    print(table(kept()))


if __name__ == "__main__":
    main()
