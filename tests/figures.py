"""Measure the figures of README and docs anew: run their commands, keep what they print in reports/figures.json.

``make figures`` calls it. A block of a page between ``<!-- figures: NAME -->`` and ``<!-- end -->`` is what the command
of that name printed, or the lines of it that `EXCERPTS` names; the picture of the measured comparison is drawn of the
same lines. A test holds the pages, the picture, the kept report and the JSON against each other, so that none is stale
alone.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.measured_picture import PICTURE, picture

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "reports" / "figures.json"
PAGES = [ROOT / "README.md", *sorted(path for path in ROOT.glob("docs/**/*.md") if "_build" not in path.parts)]
REPORT = ROOT / "reports" / "aligned_under_backpressure.html"
BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n(?:```\n)?)(.*?)((?:```\n)?<!-- end -->)", re.DOTALL)

Commands = Sequence[Sequence[str]]
"""Arguments of barrierlab, one after the other; the output of the last is kept."""

FIGURES: dict[str, tuple[Commands, Callable[[list[str]], list[str]]]] = {
    "demo": (
        [["sweep", "aligned_under_backpressure", "--out", "demo"], ["report", "demo"]],
        lambda lines: [line for line in lines if not line.startswith("report: ")],
    ),
    "check": ([["check"]], lambda lines: lines),
    "measured": ([["measured", "--seeds", "3"]], lambda lines: lines),
    "survive": (
        [["sweep", "survive_anything", "--out", "survive"], ["report", "survive"]],
        lambda lines: [line for line in lines if line.strip().startswith("Jobs failed") or "violations in" in line],
    ),
    "joins": (
        [["sweep", "which_join", "--out", "joins", "--master", "processes"], ["report", "joins"]],
        lambda lines: [*lines[:2], *(line for line in lines if "violations in" in line)],
    ),
}
"""By the name of a figure: what is run, and which lines of the output are kept."""

EXCERPTS: dict[str, tuple[str, Callable[[list[str]], list[str]]]] = {
    "answer": (
        "demo",
        lambda lines: [
            *(line for line in lines[:1] if line),
            *(
                line
                for line in lines
                if line.startswith(("  In part “skewed join”", "  What changes the duration most"))
            ),
            *(line for line in lines if "measured on a real Flink cluster" in line),
            *lines[-1:],
        ],
    ),
    "targets": ("measured", lambda lines: lines[-1:]),
}
"""By the name of a block that shows less of a figure: the figure, and which of its lines."""


def shown(name: str, figures: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """Return the lines that the block of this name shows."""
    figure, chosen = EXCERPTS.get(name, (name, list))
    return chosen(figures[figure]["lines"])


def blocks(text: str) -> dict[str, list[str]]:
    """Return the lines of each block of a page, by its name."""
    return {found[2]: found[3].strip("\n").split("\n") for found in BLOCK.finditer(text)}


def measure(name: str, folder: Path) -> list[str]:
    """Run the commands of a figure in a folder, and return the lines that are shown."""
    commands, kept = FIGURES[name]
    out = ""
    for arguments in commands:
        command = [sys.executable, "-m", "barrierlab.sim.cli.main", *arguments]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"barrierlab {' '.join(arguments)} ended with {done.returncode}: no figure is kept of it")
        out = done.stdout
    return [line.rstrip() for line in kept(out.strip("\n").split("\n"))]


def main(names: Sequence[str]) -> None:
    """Measure the figures of these names, all if none is given, and print them in README and docs."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {"figures": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or FIGURES:
            commands = [f"barrierlab {' '.join(arguments)}" for arguments in FIGURES[name][0]]
            kept["figures"][name] = {"commands": commands, "lines": measure(name, Path(folder))}
            if name == "demo":
                shutil.copy(Path(folder) / "demo" / "report.html", REPORT)
    kept["versions"] = {name: version(name) for name in ("barrierlab", "simpy", "numpy", "scipy", "pyspark")}
    KEPT.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    PICTURE.write_text(picture(kept["figures"]["measured"]["lines"]), encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        filled = BLOCK.sub(lambda found: _filled(found, kept["figures"]), text)
        if filled != text:
            page.write_text(filled, encoding="utf-8")


def _filled(found: re.Match[str], figures: Mapping[str, Mapping[str, list[str]]]) -> str:
    if EXCERPTS.get(found[2], (found[2],))[0] not in figures:
        return found[0]
    return found[1] + "\n".join(shown(found[2], figures)) + "\n" + found[4]


if __name__ == "__main__":
    main(sys.argv[1:])
