"""Pieces of HTML with which a result shows itself in a notebook: tables and verdicts, with no style but their own.

They take the colours of the page that they are put into, so that they read on light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from barrierlab.model.render import palette

MOST_ROWS = 20
_CELL = "padding:.15em .6em;white-space:nowrap;text-align:"
_COLOURS = {"holds": palette.RESTORED, "broken": palette.WRONG}


def block(title: str, verdict: str = "", *parts: str) -> str:
    """A title with a verdict behind it, and what stands below."""
    colour = _COLOURS.get(verdict.partition(" ")[0].rstrip(",;:"), "inherit")
    said = f' <b style="color:{colour}">{escape(verdict)}</b>' if verdict else ""
    return f'<div style="max-width:60em"><div><b>{escape(title)}</b>{said}</div>{"".join(filter(None, parts))}</div>'


def paragraph(text: str) -> str:
    """A line of text; nothing if it is empty."""
    return f'<div style="white-space:pre-line">{escape(text)}</div>' if text else ""


def pre(text: str) -> str:
    """Text as it stands; nothing if it is empty."""
    return f"<pre>{escape(text)}</pre>" if text else ""


def table(rows: Sequence[Mapping[str, object]], caption: str = "") -> str:
    """Rows as a table, with all columns that have a value anywhere, and with `MOST_ROWS` rows at most."""
    if not rows:
        return ""
    found = {name: any(row.get(name) is not None for row in rows) for row in rows for name in row}
    names = [name for name, is_known in found.items() if is_known]
    numeric = {name for name in names if any(isinstance(row.get(name), int | float) for row in rows)}
    head = "".join(f'<th scope="col" style="{_CELL}{_side(name in numeric)}">{escape(name)}</th>' for name in names)
    shown = rows if len(rows) <= MOST_ROWS else [*rows[: MOST_ROWS // 2], *rows[-(MOST_ROWS - MOST_ROWS // 2) :]]
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL}{_side(name in numeric)}">{escape(text_of(row.get(name)))}</td>' for name in names
        )
        + "</tr>"
        for row in shown
    )
    left = f"{len(shown)} of {len(rows)} rows" if len(shown) < len(rows) else ""
    words = "; ".join(filter(None, (caption, left)))
    said = f'<caption style="text-align:left">{escape(words)}</caption>' if words else ""
    return f"<table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(values: Mapping[str, object]) -> str:
    """Names and values, a line each."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL}left">{escape(name)}</th><td style="{_CELL}left;white-space:normal">'
        f"{escape(text_of(value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def in_xml(text: str) -> str:
    """Return text as it stands in SVG. `xml.sax.saxutils` has the same, and its import brings half a browser."""
    return escape(text, quote=False)


def text_of(value: object) -> str:
    """Return a value as a reader has it: a float to four figures, nothing as a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return str(value)


def _side(is_number: bool) -> str:
    return "right" if is_number else "left"
