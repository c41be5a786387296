"""The command `show`: a trace for the eye, or for another tool."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.checkpoint.state_graph import StateGraph, state_graph
from barrierlab.model.checkpoint.trace import COMMENT, TraceError, is_timed, judged, read, topology_of, write
from barrierlab.model.checkpoint.trace_header import bounds_of
from barrierlab.model.checkpoint.world import World
from barrierlab.model.errors import InputError
from barrierlab.model.explore.checker import BROKEN, HOLDS
from barrierlab.model.render.explorable import data_of, page
from barrierlab.model.render.exports import MERMAID_LIMIT, itf, mermaid, perfetto, shiviz
from barrierlab.model.render.spacetime import SpaceTime, lay_out
from barrierlab.model.render.svg import MOST_STEPS, TooLongError, svg
from barrierlab.model.render.trace_picture import kind_of_trace, picture_of
from barrierlab.model.spec.history import Entry, HistoryError
from barrierlab.model.spec.topology import Topology, TopologyError
from barrierlab.sim.cli.choices import FILE, GivenSettings, settings_option
from barrierlab.sim.core.files import read_text
from barrierlab.sim.core.files import write as write_file
from barrierlab.sim.core.status import OF_VERDICT
from barrierlab.sim.scenario.load import load

MOST_ENTRIES_OF_ITF = 20_000
"""Of a longer trace the states around the checkpoint are given: each holds every message that is on its way."""


class ShowError(InputError):
    """A refused request: one line, with what to do."""


def _text_of(path: Path) -> str:
    return read_text(path, ShowError, "give a trace: barrierlab run diamond --trace FILE writes one")


def read_trace(path: Path) -> tuple[str, dict[str, str], list[Entry]]:
    """Return the text of a trace, its head and its entries.

    Raises
    ------
    ShowError, TraceError
        If it cannot be read, is cut off, is no trace, or has no moves.
    """
    return parsed_trace(_text_of(path), path)


def parsed_trace(text: str, path: Path) -> tuple[str, dict[str, str], list[Entry]]:
    """Return the same of a text; errors call it by the path."""
    if kind_of_trace(text):
        raise ShowError(f"{path}: {of_other(text)} has no checkpoints; give a trace of a job")
    if text and not text.endswith("\n"):
        raise ShowError(f"{path}: its last line has no end, so that it may be cut off; give a whole trace")
    head, entries = read(text, path.name)
    if not entries:
        raise ShowError(f"{path}: the trace has no moves; give one with a run in it")
    return text, head, entries


class Shown:
    """A trace that has been read, judged and laid out."""

    def __init__(self, path: Path, checkpoint_id: int | None, text: str | None = None) -> None:
        self.path = path
        self.text, self.head, self.entries = read_trace(path) if text is None else parsed_trace(text, path)
        self.topology: Topology = topology_of(self.head, path.name)
        verdict = judged(self.text, path.name)
        self.verdict = verdict.verdict
        self.verdicts = [str(violation) for violation in verdict.violations]
        self.drawn: SpaceTime = lay_out(self.entries, self.topology, checkpoint_id)
        self.is_part = checkpoint_id is not None
        if checkpoint_id is not None and not self.drawn.cut:
            cuts = sorted(
                {str(e[4][0]) for e in self.entries if e[1] == "snapshot" and isinstance(e[4], tuple)}, key=int
            )
            raise ShowError(
                f"--checkpoint {checkpoint_id}: no task took its snapshot in {path.name}; "
                f"allowed: {', '.join(cuts[:20]) or 'none, the trace has no snapshot'}"
            )

    @property
    def title(self) -> str:
        """The first sentence on top of the trace, or the file's name."""
        comment = " ".join(self.head.get(COMMENT, "").split())
        return comment.split(". ")[0].rstrip(".") if comment else self.path.stem.replace("_", " ")

    @property
    def wanted(self) -> SpaceTime:
        """The whole trace, or the part around the checkpoint that was asked for."""
        return self.drawn.around_cut() if self.is_part else self.drawn

    def _views(self) -> Iterator[tuple[SpaceTime, str]]:
        """Yield what to draw if all before was too long, and what is to be said of it."""
        yield self.wanted, ""
        part = self.drawn.around_cut()
        if not self.is_part:
            yield part, f"the part around checkpoint {part.checkpoint_id}"
        yield part.without_events(), f"checkpoint {part.checkpoint_id}, without the events that its cut does not cross"

    def _entries_of_part(self) -> range:
        """Return the places of the entries around the cut, from the move on that the first of them belongs to."""
        part = self.drawn.steps_around_cut()
        places = [place for place, step in enumerate(self.drawn.step_of_entry) if step in part]
        first = places[0]
        while first and not self.entries[first][1].startswith(">"):
            first -= 1
        return range(first, places[-1] + 1)

    def as_text(self) -> str:
        """Return the trace as written, read again and put in order; of a part its moves, which are a trace no more."""
        if not self.is_part:
            return write(self.entries, self.head, self.verdicts)
        part = self._entries_of_part()
        lines = write(self.entries[part.start : part.stop], {}, self.verdicts).splitlines()
        of = f"entries {part.start + 1} to {part.stop} of {len(self.entries)}"
        return "\n".join([f"{self.path.name}: the part around checkpoint {self.drawn.checkpoint_id}, {of}", *lines, ""])

    def as_svg(self) -> str:
        """The diagram; of a long trace the part around the checkpoint, and if need be its barrier alone."""
        views = list(self._views())
        drawn, note = next((view for view in views if len(view[0].times_ns) <= MOST_STEPS), views[-1])
        return svg(drawn, f"{self.title} ({note})" if note else self.title, self.verdicts)

    def as_html(self) -> str:
        """A page to explore it in; of a long trace the part around the checkpoint.

        Other moves can be taken in a run of the sound machines of `impl`.
        """
        return self.page_with(self._sound_states())

    def page_with(self, graph: StateGraph | None) -> str:
        """Return the same page with the states around the run that are in `graph`."""
        data = data_of(
            self.entries,
            self.topology,
            self.title,
            verdict=self.verdict,
            violations=self.verdicts,
            checkpoint_id=self.drawn.checkpoint_id,
            permits_orphans=not protocol_of(self.head.get("mode", self.head.get("protocol", "aligned"))).is_exact,
            part=self.is_part,
            graph=graph,
        )
        return page(data)

    def _sound_states(self) -> StateGraph | None:
        if self.is_part or is_timed(self.entries) or self.verdict == BROKEN:
            return None  # of a broken run the machines are not known
        try:
            bounds = bounds_of(self.head, lambda name, actual, expected: TraceError(f"{name}: {actual}; {expected}"))
        except TraceError:
            return None
        return state_graph(World(bounds), self.entries)

    def as_mermaid(self) -> str:
        """`model.render.exports.mermaid`; of a long trace as much as Mermaid draws."""
        for drawn, note in self._views():
            text = mermaid(drawn, self.verdicts, note)
            if len(text) <= MERMAID_LIMIT:
                return text
        raise TooLongError(f"{len(text)} characters of Mermaid, which draws at most {MERMAID_LIMIT}; take --format svg")

    def as_shiviz(self) -> str:
        """`model.render.exports.shiviz`."""
        return shiviz(self.wanted)

    def as_perfetto(self) -> str:
        """`model.render.exports.perfetto`; with the times of the trace if it has any that differ."""
        timed = is_timed(self.entries) and self.drawn.times_ns[-1] > self.drawn.times_ns[0]
        return perfetto(self.wanted, timed)

    def as_itf(self) -> str:
        """`model.render.exports.itf`; of a part, or of a long trace, the states around the checkpoint."""
        is_part = self.is_part or len(self.entries) > MOST_ENTRIES_OF_ITF
        return itf(self.entries, self.topology, self.path.name, self._entries_of_part() if is_part else None)


OTHER_FORMATS = ("text", "svg")
"""Of a journal of a join or of control signals, which has no cuts of checkpoints."""


def of_other(text: str) -> str:
    """Return what a journal is of, if that is no job."""
    return "a journal of " + {"join": "a join", "control": "control signals"}[kind_of_trace(text)]


def as_other(text: str, path: Path, form: str) -> str:
    """Return a journal of a join or of control signals in another form.

    Raises
    ------
    ShowError
        If there is no such form of it, or nothing in it to draw.
    """
    if form not in OTHER_FORMATS:
        raise ShowError(f"{path}: {of_other(text)} has no {form}; allowed: {', '.join(OTHER_FORMATS)}")
    if form == "text":
        return text
    try:
        return picture_of(text)
    except ValueError as error:
        raise ShowError(f"{path}: {error}") from error


FORMATS: dict[str, Callable[[Shown], str]] = {
    "text": Shown.as_text,
    "svg": Shown.as_svg,
    "html": Shown.as_html,
    "mermaid": Shown.as_mermaid,
    "shiviz": Shown.as_shiviz,
    "perfetto": Shown.as_perfetto,
    "itf": Shown.as_itf,
}


def _is_scenario(run_of: Path) -> bool:
    """Return whether it is no trace: what is not there is looked for among the scenarios, as `witness` does."""
    return run_of.suffix == ".toml" or not (run_of.suffix == ".trace" or run_of.exists())


def _of_scenario(name: str, seed: int | None, settings: GivenSettings) -> str:
    """Return the journal of a run of a scenario, as `run --trace` writes it."""
    from barrierlab.sim.checkpoint.result import run  # a trace is shown without a simulator

    text: str = run(load(name, settings), seed).trace()
    return text


@click.command("show")
@click.argument("run_of", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), default="text", show_default=True, help="What is written."
)
@click.option(
    "--checkpoint",
    "checkpoint_id",
    type=click.IntRange(min=1),
    help="Show the part around it, and its cut; by default the last complete one.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of a scenario; its own by default.")
@settings_option("Of a scenario, as for run; repeatable.")
@click.option("--out", type=FILE, help="Write it there instead of to stdout.")
def show_command(
    run_of: Path, form: str, checkpoint_id: int | None, seed: int | None, settings: GivenSettings, out: Path | None
) -> None:
    """Show a trace or counterexample: as text, as a picture (svg), as a page to explore it in (html), or for a tool.

    RUN is a trace (barrierlab run --trace, check --save), or a scenario, which is run. The cut is that of --checkpoint,
    or of the last complete one; of a trace that is too long for a picture, the part around that is drawn. mermaid:
    mermaid.live; shiviz: bestchai.bitbucket.io/shiviz; perfetto: ui.perfetto.dev; itf: Apalache's viewer. The exit
    status is the verdict's: 0 holds, 1 a violation, 3 undecided.

    Example: barrierlab show diamond --format html --out diamond.html
    """
    if _is_scenario(run_of):
        text = _of_scenario(str(run_of), seed, settings)
    elif seed is not None or settings:
        raise ShowError("--seed and --set are of a scenario, and a trace is given; leave them out")
    else:
        text = _text_of(run_of)
    try:
        if kind_of_trace(text):
            if checkpoint_id is not None:
                raise ShowError(f"{run_of}: {of_other(text)} has no checkpoints; leave --checkpoint out")
            is_broken = any(line.startswith("! ") for line in text.splitlines())
            steps, verdict = len(text.splitlines()), BROKEN if is_broken else HOLDS
            text = as_other(text, run_of, form)
        else:
            shown = Shown(run_of, checkpoint_id, text)
            text, steps, verdict = FORMATS[form](shown), len(shown.drawn.times_ns), shown.verdict
    except (TraceError, TopologyError, HistoryError, TooLongError) as error:
        message = str(error)
        raise ShowError(message if message.startswith(run_of.name) else f"{run_of.name}: {message}") from error
    if out is None:
        click.echo(text, nl=False)
    else:
        write_file(out, text, ShowError, "--out")
        click.echo(f"{out}: {form}, {steps} steps, verdict {verdict}")
    sys.exit(OF_VERDICT[verdict])
