"""One template system for all reports: a page that needs nothing beside it, of tables, figures and sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barrierlab.model.render import palette
from barrierlab.model.render.explorable import resources
from barrierlab.sim.sweep import drawings

if TYPE_CHECKING:
    from markupsafe import Markup

Section = tuple[str, str]
"""Its id, and its title."""
MOST_ROWS = 2000
"""Of a table: a page of more would be for nobody's eyes; the whole is in the tables of the sweep."""


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table: its caption, the heads of its columns, and its rows; of each row the run that makes it again.

    Attributes
    ----------
    text : int
        So many columns, from the left, are words.
    runs : sequence of str
        By row: the id of a run, or in some words why it has none; empty if the rows are of no runs.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    text: int = 1
    runs: Sequence[str] = ()

    @staticmethod
    def of(caption: str, head: Sequence[str], rows: Iterable[tuple[str, Sequence[Any]]], text: int = 1) -> PageTable:
        """Return a table of rows that are each of a run: its id comes first."""
        listed = list(rows)
        more = f" The first {MOST_ROWS} of {len(listed)} rows." if len(listed) > MOST_ROWS else ""
        kept = listed[:MOST_ROWS]
        return PageTable(caption + more, head, [row for _, row in kept], text, [run for run, _ in kept])


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure for a page and for a telephone, what it shows in words, and the table behind it."""

    wide: Markup
    narrow: Markup
    words: str
    table: PageTable | None


def figure_of(draw: Callable[..., str], name: str, words: str, table: PageTable | None) -> PageFigure:
    """A figure from what draws it: `draw(name, narrow=...)`, as SVG."""
    from markupsafe import Markup

    # It is drawn here, from numbers, and labels that matplotlib or `html.escape` has escaped.
    return PageFigure(Markup(draw(name, narrow=False)), Markup(draw(f"{name}n", narrow=True)), words, table)


def render_page(template: str, sections: Sequence[Section], **context: Any) -> str:
    """A page of one of the templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("barrierlab.sim.sweep", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = f"{palette.css()}\n{drawings.style()}"
    paper = ";".join(["color-scheme:light", *(f"--{name}:{pair[0]}" for name, pair in palette.PAGE.items())])
    common = {"sections": sections, "palette": style, "paper": paper, "component": Markup(resources())}
    return environment.get_template(template).render(**common, **context)
