"""The site is built as `make docs` does it, and its pages hang together."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import chromium

ROOT = Path(__file__).parents[2]
STYLE = ROOT / "docs" / "_static" / "site.css"


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


def test_a_formula_is_one_line(tmp_path: Path) -> None:
    """A style of the site would put each sign of a formula on a line of its own, and draw a fraction over the page."""
    style = STYLE.read_text(encoding="utf-8")
    signs = "<mo>=</mo>".join(f"<mi>{name}</mi>" for name in "SRC")
    page = f"<style>{style}</style><div class='formula'><math display='block'>{signs}</math></div>"
    with chromium(tmp_path) as browser:
        browser.script(f"document.body.innerHTML = {json.dumps(page)}")
        boxes = browser.script(
            "[...document.querySelectorAll('mi')].map((e) => e.getBoundingClientRect()).map((b) => [b.left, b.top])"
        )
    assert boxes[0][0] < boxes[1][0] < boxes[2][0]
    assert len({top for _, top in boxes}) == 1


def test_a_table_with_long_names_is_no_wider_than_its_page(tmp_path: Path) -> None:
    """Its last columns would be cut off, as the words not to say were in the glossary."""
    style = STYLE.read_text(encoding="utf-8")
    table = f"<table><tr><td><code>{'long_name_' * 20}</code></td><td>the last</td></tr></table>"
    with chromium(tmp_path) as browser:
        page = f"<style>{style}</style><div style='width: 400px'>{table}</div>"
        browser.script(f"document.body.innerHTML = {json.dumps(page)}")
        assert browser.script("document.querySelector('table').getBoundingClientRect().width") <= 400


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
