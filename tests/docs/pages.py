"""The blocks of a page, typed as its reader would: commands, files, Python; what comes out is what the page shows.

A block of ``console`` has commands after ``$`` and below each what it prints; ``...`` stands for any lines. One of
``python`` is run, and its assertions are asked; one of ``toml`` is a file if the comment above it says ``file: NAME``
(or ``append: NAME``), and is read in any case. ``<!-- typed: slow -->`` leaves a block to `make test-full`, and
``<!-- not typed: WHY -->`` leaves it out. What a figure shows is measured (`tests.figures`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<language>[^\n`]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
WALL_CLOCK = re.compile(r"(?<=│) +[\d.]+(?= │ (?:holds|broken|undecided))|(?<=\bin )[\d.]+ s\b")
"""A time that another machine does not take: the seconds of a table of `check`, and what took so long."""


_ELISION = re.compile(r"^\.\.\.$", re.MULTILINE)


class Block(NamedTuple):
    """One block of code of a page; its note is the comment above it."""

    note: str
    language: str
    text: str

    @property
    def is_slow(self) -> bool:
        """Return whether it takes more than some seconds."""
        return self.note == "typed: slow"

    @property
    def is_left_out(self) -> bool:
        """Return whether nobody types it: it says why, it is a figure or a diagram, or a directive of the site."""
        is_figure = self.note.startswith(("not typed: ", "figures: "))
        return is_figure or self.language == "text" or self.language.startswith("{")


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(each["note"] or "", each["language"], each["text"]) for each in found]


def reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the environment of a reader who has installed barrierlab, with its commands in a folder of this one."""
    tools = folder / "bin"
    tools.mkdir()
    (tools / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tools / "barrierlab").write_text(f'#!/bin/sh\nexec {sys.executable} -m barrierlab "$@"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    for name in ("GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    paths = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    return os.environ | paths


def typed(text: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Type it into a shell."""
    command = ["bash", "-eo", "pipefail", "-c", text]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def sessions(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console, each with the lines that it is to print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield re.sub(r"\s+#.*", "", command), shown.splitlines()


def plain(text: str) -> list[str]:
    """Lines without what differs from machine to machine: times, and blanks at their ends."""
    return [WALL_CLOCK.sub(" T", line).rstrip() for line in text.splitlines()]


def departure(shown: list[str], printed: str) -> str | None:
    """Return the first line of what is shown and not printed in its place; None if there is none.

    Lines between two ``...`` are printed one below the other, somewhere.

    >>> departure(["a", "...", "c"], "a\\nb\\nc\\n")
    >>> departure(["a", "c"], "a\\nb\\nc\\n")
    'a'
    """
    lines, at = plain(printed.rstrip()), 0
    parts = [
        part.strip("\n").split("\n") if part.strip("\n") else []
        for part in _ELISION.split("\n".join(plain("\n".join(shown))))
    ]
    for number, part in enumerate(parts):
        is_last, may_skip = number == len(parts) - 1, number > 0
        places = range(at, len(lines) - len(part) + 1) if may_skip else [at]
        if is_last and part:
            places = [place for place in places if place + len(part) == len(lines)]
        place = next((place for place in places if lines[place : place + len(part)] == part), None)
        if place is None:
            return part[0] if part else "(nothing)"
        at = place + len(part)
    return None
