"""The configuration of the documentation as a site: `make docs`, strictly, with nothing loaded from elsewhere."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

project = "barrierlab"
author = "the barrierlab authors"
version = release = version_of("barrierlab")

extensions = ["myst_parser", "docs.generated"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "barrierlab"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
pygments_style = "tango"
pygments_dark_style = "monokai"
highlight_language = "none"
