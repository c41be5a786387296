"""Runs in a notebook: the explorable run as a widget.

>>> from barrierlab.sim.notebook import explore
>>> explore("topology: a->s\\n\\n> emit a a1\\n").data[:12]  # doctest: +SKIP
'{"title":"tr'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barrierlab.model.checkpoint.check import ScopeViolation
from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.checkpoint.state_graph import state_graph
from barrierlab.model.checkpoint.trace import COMMENT, judged, read, topology_of
from barrierlab.model.checkpoint.world import World
from barrierlab.model.errors import InputError
from barrierlab.model.render.explorable import data_of

if TYPE_CHECKING:
    from barrierlab.sim.notebook.widget import Explorable


class NoWidgetError(InputError):
    """There is no anywidget here: one line, with what to install."""


def explore(run: str | ScopeViolation, checkpoint_id: int | None = None, world: World | None = None) -> Explorable:
    """A widget to explore a run in: a trace, or a counterexample. (A `Result` has a method of that name.)

    Parameters
    ----------
    run : str or ScopeViolation
        The text of a trace, or what a check has found.
    checkpoint_id : int, optional
        Whose cut is shown first, and with it the part of the run around it.
    world : World, optional
        Whose run it is: then other moves can be taken in each state of it.

    Raises
    ------
    NoWidgetError
        If anywidget is not installed.
    TraceError, TopologyError, HistoryError
        If it is no trace of a dataflow.
    """
    text = run if isinstance(run, str) else run.trace
    head, entries = read(text)
    found = judged(text)
    comment = " ".join(head.get(COMMENT, "trace").split())
    protocol = protocol_of(head.get("mode", head.get("protocol", "aligned")))
    graph = None if world is None else state_graph(world, entries, reason="; ".join(map(str, found.violations)))
    return widget_of(
        data_of(
            entries,
            topology_of(head),
            comment,
            verdict=found.verdict,
            violations=map(str, found.violations),
            checkpoint_id=checkpoint_id,
            permits_orphans=not protocol.is_exact,
            part=checkpoint_id is not None and graph is None,
            graph=graph,
        )
    )


def widget_of(data: dict[str, Any]) -> Explorable:
    """The widget of what `model.render.explorable.data_of` gives."""
    try:
        from barrierlab.sim.notebook.widget import Explorable
    except ModuleNotFoundError as error:
        raise NoWidgetError(
            f"a widget needs {error.name}, which is not installed; pip install 'barrierlab[notebook]', or write a page "
            "of it: barrierlab show TRACE --format html"
        ) from error
    return Explorable.of(data)
