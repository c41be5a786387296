"""The build of the package that runs: its hot modules compiled from their source, or the source itself."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

_IMPL = Path(__file__).parents[2] / "impl"
BUILD = "compiled" if any((_IMPL / f"messages{each}").exists() for each in EXTENSION_SUFFIXES) else "pure Python"
