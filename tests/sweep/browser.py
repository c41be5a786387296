"""Headless Chromium for reports: what a page measures, and pictures of it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
MEASURE = """
<script>
addEventListener("load", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  const sizes = [], wide = [], width = innerWidth;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE", "title"].includes(element.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const svg = element.ownerSVGElement;
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    sizes.push([parseFloat(getComputedStyle(element).fontSize) * scale, node.data.trim().slice(0, 60)]);
    if (box.right > width + 1) wide.push(node.data.trim().slice(0, 60));
  }
  sizes.sort((a, b) => a[0] - b[0]);
  const scrolled = [...document.querySelectorAll("*")].filter(
    each => !each.ownerSVGElement && each.scrollWidth > each.clientWidth + 1
      && ["auto", "scroll"].includes(getComputedStyle(each).overflowX));
  const style = getComputedStyle(document.body);
  const nav = document.querySelector("nav").getBoundingClientRect();
  const main = document.querySelector("main").getBoundingClientRect();
  const found = {
    width, scrollWidth: document.documentElement.scrollWidth,
    smallest: sizes[0], texts: sizes.length, wide: wide.slice(0, 5),
    scrolled: scrolled.map(each => (each.getAttribute("aria-label") || each.tagName).slice(0, 60)),
    paper: style.backgroundColor, ink: style.color, contentsAtLeft: nav.right <= main.left && nav.top < innerHeight,
    requests: performance.getEntriesByType("resource").length,
  };
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
});
</script>
"""


def _chromium(folder: Path, *arguments: str) -> str:
    """Run Chromium with a profile of its own; what it printed."""
    profile = folder / "profile"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    shutil.rmtree(profile, ignore_errors=True)
    return done.stdout


def measured(page: str, folder: Path, width: int, *flags: str) -> dict[str, Any]:
    """Lay a page out at a width with all its details open, and measure it.

    It stands in a frame of that width: a window of Chromium may be wider than it is set to be.
    """
    file, outer = folder / "measured.html", folder / "outer.html"
    file.write_text(page.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    outer.write_text(
        f'<!doctype html><body style="margin:0"><iframe id="f" src="{file.name}" width="{width}" height="900" '
        'style="border:0"></iframe><pre id="result"></pre><script>document.getElementById("f").onload = e => '
        '{ document.getElementById("result").textContent = '
        'e.target.contentDocument.getElementById("found").textContent; };</script></body>',
        encoding="utf-8",
    )
    size = f"--window-size={max(width, 600)},1000"
    flags = (*flags, size, "--allow-file-access-from-files", "--virtual-time-budget=20000")
    text = _chromium(folder, *flags, "--dump-dom", outer.as_uri())
    found = re.search(r'<pre id="result">(.*?)</pre>', text, re.DOTALL)
    assert found is not None, f"Chromium printed no measures: {text[:300]!r}"
    measures: dict[str, Any] = json.loads(html.unescape(found[1]))
    return measures


def picture(page: Path, out: Path, width: int, height: int, *flags: str) -> bytes:
    """A picture of a page, as PNG."""
    _chromium(out.parent, *flags, f"--window-size={width},{height}", f"--screenshot={out}", page.as_uri())
    return out.read_bytes()


def printed(page: Path, out: Path) -> bytes:
    """A page as it is printed, as PDF."""
    _chromium(out.parent, "--no-pdf-header-footer", f"--print-to-pdf={out}", page.as_uri())
    return out.read_bytes()
