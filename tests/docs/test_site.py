"""The site is built as `make docs` does it, and its pages hang together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """A reader would follow a link to nowhere, or find a page that says `Unknown directive`."""
    out = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html", "docs", str(out)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    pages = {path: path.read_text(encoding="utf-8") for path in out.glob("**/*.html")}
    assert len(pages) > 40
    assert "<math" in pages[out / "explanation" / "theory.html"]
    loaded = re.findall(r'(?:<script|<link|<img)[^>]*(?:src|href)="(https?://[^"]+)"', "\n".join(pages.values()))
    assert loaded == []  # the site stands alone


@pytest.mark.slow
def test_a_broken_link_fails(tmp_path: Path) -> None:
    """The test above would pass on anything."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# A page\n\n[nowhere](nowhere.md)\n")
    (docs / "conf.py").write_text('extensions = ["myst_parser"]\nhtml_theme = "furo"\n')
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        str(docs),
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nowhere.md" in done.stderr
