"""The ratios of all benchmarks beside the kept ones of `docs/bench.md`.

    python -m tests.bench.table [MODULE ...]              print them
    python -m tests.bench.table --compare [MODULE ...]    name each that became 20 % slower; exit status 1 if one did
    python -m tests.bench.table --write [MODULE ...]      keep them; other modules and the other build stay

A module of `tests.bench` has a function `ratios`, which measures and returns a list of `Ratio`. What a run of a build
that mypyc has compiled measures stands in a column of its own.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from barrierlab.sim.core.amounts import percent
from tests.bench.ratios import Ratio

KEPT = Path(__file__).parents[2] / "docs" / "bench.md"
TOLERANCE = 1.20
AGAIN = 2  # times that a benchmark which looks slower is measured again: other work on the machine makes one look so
BUILDS = ("pure Python", "compiled")
LIBRARIES = ("simpy", "mypy")


class Kept(NamedTuple):
    """A row of the kept table: the ratio of each build, None where it has not been measured."""

    module: str
    name: str
    floor: str
    ratios: tuple[float | None, ...]


def modules() -> list[str]:
    """Return the names of the benchmarks that have ratios."""
    found = []
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        if re.search(r"^def ratios\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.append(path.stem)
    return found


def measured(module: str) -> list[Ratio]:
    """Measure the ratios of one benchmark."""
    found: list[Ratio] = import_module(f"tests.bench.{module}").ratios()
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise ValueError(f"tests.bench.{module} names a ratio twice: {names}")
    return found


def build() -> str:
    """Return which build of the package is imported here."""
    import barrierlab.impl.checkpoint.alignment as hot

    return BUILDS[not str(hot.__file__).endswith(".py")]


def machine() -> str:
    """Return the kind of machine and the versions, as the table has them."""
    cores = os.cpu_count()
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{platform.machine()}, {cores} cores, {platform.system()}, {platform.python_implementation()} "
        f"{platform.python_version()}, {libraries}"
    )


# The kept table.


def read(text: str) -> list[Kept]:
    """Return the rows of a kept table."""
    rows = []
    for line in text.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if line.startswith("| `bench_") and len(cells) == 3 + len(BUILDS):
            module, name, *ratios, floor = cells
            rows.append(Kept(module, name, floor, tuple(float(cell) if cell != "-" else None for cell in ratios)))
    return rows


def merged(kept: list[Kept], found: dict[str, list[Ratio]], which: str) -> list[Kept]:
    """Return the kept rows with what was measured now in the column of this build."""
    at = BUILDS.index(which)
    before = {(row.module, row.name): row for row in kept}
    rows = [row for row in kept if row.module not in found]
    for module, ratios in found.items():
        for each in ratios:
            old = before.get((module, each.name))
            columns: list[float | None] = list(old.ratios) if old else [None] * len(BUILDS)
            columns[at] = each.ratio
            rows.append(Kept(module, each.name, each.floor, tuple(columns)))
    return sorted(rows, key=lambda row: row.module)


def page(rows: list[Kept], about: str) -> str:
    """Return the page of the kept table."""
    lines = [
        PAGE.format(about=about, tolerance=percent(TOLERANCE - 1)).rstrip(),
        "",
        f"| benchmark | ratio of | {' | '.join(BUILDS)} | floor |",
        f"| --- | --- | {' | '.join('---:' for _ in BUILDS)} | --- |",
    ]
    for row in rows:
        cells = " | ".join("-" if ratio is None else shown(ratio) for ratio in row.ratios)
        lines.append(f"| `{row.module}` | `{row.name}` | {cells} | {row.floor} |")
    return "\n".join(lines) + "\n"


def documents(text: str) -> str:
    """Return the page's table of the documents' benchmarks, that of each build below a line that names it."""
    return text.partition(DOCUMENTS)[2]


def with_documents(text: str, which: str, table: list[str]) -> str:
    """Return the same with the table of one build put in."""
    parts = dict(re.findall(r"^### (.+?)\n\n(.*?)(?=^### |\Z)", text, re.MULTILINE | re.DOTALL))
    parts[which] = "\n".join(table)
    return "".join(f"### {name}\n\n{parts[name].strip()}\n\n" for name in BUILDS if name in parts).strip()


def shown(ratio: float) -> str:
    """Return a ratio with three digits."""
    return f"{ratio:.3g}" if ratio < 1000 else f"{ratio:.0f}"


def slower(kept: list[Kept], found: dict[str, list[Ratio]], which: str) -> list[str]:
    """Return a line for each ratio that became so much slower than the kept one of its build."""
    at = BUILDS.index(which)
    before = {(row.module, row.name): row.ratios[at] for row in kept}
    lines = []
    for module, ratios in found.items():
        for each in ratios:
            old = before.get((module, each.name))
            if old is not None and each.ratio > TOLERANCE * old:
                by = f"{percent(each.ratio / old - 1)} slower"
                lines.append(f"{module}: {each.name} was {shown(old)}, is {shown(each.ratio)} times {each.floor}: {by}")
    return lines


DOCUMENTS = """
## The documents' fifteen benchmarks

A document's figure is of compiled code on its author's machine. Here a message is one event; to the documents it is a
batch, which each machine takes as one message, so an event of a batch of 100 costs a hundredth.
`python -m tests.bench.bench_impl --documents` prints the table.

"""


def quicker(first: list[Ratio], second: list[Ratio]) -> list[Ratio]:
    """Return the lesser of two measurements of each ratio."""
    least = {each.name: each.ratio for each in second}
    return [each._replace(ratio=min(each.ratio, least.get(each.name, each.ratio))) for each in first]


PAGE = """\
# Speed, as ratios

Each figure is a time divided by the time of a floor that the same run measured, so that another machine gives nearly
the same figure: more is slower. Measured on: {about}.

`make bench` prints every ratio; `make bench-compare` names each that became {tolerance} slower than this table has it,
and fails then; `python -m tests.bench.table --write` keeps what it measures here. The column *compiled* is of a build
from the same source by mypyc, where there is one. `bench_sim`: below 1 is faster than a model of the same job that has
neither checkpoints nor journal nor verdict; `python -m tests.bench.bench_sim` prints both, in microseconds a message.
`bench_least`: the floor is the plainest Python that keeps the rules of one situation and knows no other.
"""


def main(arguments: list[str] | None = None) -> int:
    """Print, compare or keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(modules())} (default: all)")
    parser.add_argument("--compare", action="store_true", help="with the kept table; exit status 1 if one is slower")
    parser.add_argument("--write", action="store_true", help="into the kept table")
    asked = parser.parse_args(arguments)
    if unknown := [each for each in asked.modules if each not in modules()]:
        parser.error(f"no benchmark with ratios: {', '.join(unknown)}; there are {', '.join(modules())}")
    text = KEPT.read_text(encoding="utf-8") if KEPT.exists() else ""
    kept, which = read(text), build()
    found = {}
    for module in asked.modules or modules():
        found[module] = measured(module)
        for each in found[module]:
            print(f"{module:<16} {each.name:<42} {shown(each.ratio):>8}x {each.floor}", flush=True)
    if asked.write:
        of_documents = documents(text)
        if "bench_impl" in found:
            of_documents = with_documents(of_documents, which, import_module("tests.bench.bench_impl").documented())
        written = page(merged(kept, found, which), machine())
        KEPT.write_text(f"{written}{DOCUMENTS}{of_documents.strip()}\n", encoding="utf-8")
        print(f"kept in {KEPT}, column {which}")
    if not asked.compare:
        return 0
    if not any(row.ratios[BUILDS.index(which)] is not None for row in kept if row.module in found):
        print(f"{KEPT} has no ratio to compare with ({which}); --write keeps some", file=sys.stderr)
        return 2
    worse = slower(kept, found, which)
    for _ in range(AGAIN):
        for module in {line.partition(":")[0] for line in worse}:
            found[module] = quicker(found[module], measured(module))
        worse = slower(kept, found, which)
    print(
        "\n".join(worse) if worse else f"nothing became {percent(TOLERANCE - 1)} slower than the kept table ({which})"
    )
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
