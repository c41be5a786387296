"""The explorable run as a widget of Jupyter: the same module and style that a page has, by way of anywidget."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from barrierlab.model.render import palette
from barrierlab.model.render.explorable import MODULE, STYLE, packed

_DARK = ('[data-jp-theme-light="false"] .brl', ".vscode-dark .brl", 'html[theme="dark"] .brl')
_LIGHT = ('[data-jp-theme-light="true"] .brl', ".vscode-light .brl")


class Explorable(anywidget.AnyWidget):
    """A run to explore.

    Attributes
    ----------
    data : str
        The run, as JSON.
    cut : dict of str to int
        Of each task the step behind which it is cut, as it was dragged last.
    verdict : str
        What is said of that cut.
    """

    _esm = MODULE.read_text(encoding="utf-8")
    _css = f"{palette.css('.brl', ', '.join(_DARK), ', '.join(_LIGHT))}\n{STYLE.read_text(encoding='utf-8')}"
    data = traitlets.Unicode().tag(sync=True)
    cut = traitlets.Dict().tag(sync=True)
    verdict = traitlets.Unicode().tag(sync=True)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Explorable:
        """The widget of a run."""
        return cls(data=json.dumps(packed(data), separators=(",", ":")))

    def __repr__(self) -> str:
        return f"<Explorable: {self.verdict or 'not shown yet'}>"
