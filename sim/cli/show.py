"""The command `show`: a trace for the eye, or for another tool."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import click

from barrierlab.model.checkpoint.trace import COMMENT, TraceError, is_timed, judged, read, topology_of, write
from barrierlab.model.errors import InputError
from barrierlab.model.explore.checker import BROKEN, HOLDS
from barrierlab.model.render.exports import itf, mermaid, perfetto, shiviz
from barrierlab.model.render.spacetime import SpaceTime, lay_out
from barrierlab.model.render.svg import MOST_STEPS, TooLongError, svg
from barrierlab.model.spec.history import Entry, HistoryError
from barrierlab.model.spec.topology import Topology, TopologyError
from barrierlab.sim.core.files import read_text
from barrierlab.sim.core.files import write as write_file
from barrierlab.sim.core.status import OF_VERDICT


class ShowError(InputError):
    """What cannot be shown: one line, with what to do."""


def _text_of(path: Path) -> str:
    return read_text(path, ShowError, "give a trace: barrierlab run diamond --trace FILE writes one")


class Shown:
    """A trace that has been read, judged and laid out."""

    def __init__(self, path: Path, checkpoint_id: int | None) -> None:
        self.text = _text_of(path)
        self.path = path
        self.head, self.entries = self._read()
        self.topology: Topology = topology_of(self.head, path.name)
        self.drawn: SpaceTime = lay_out(self.entries, self.topology, checkpoint_id)
        if checkpoint_id is not None and not self.drawn.cut:
            cuts = sorted(
                {str(e[4][0]) for e in self.entries if e[1] == "snapshot" and isinstance(e[4], tuple)}, key=int
            )
            raise ShowError(
                f"--checkpoint {checkpoint_id}: no task took its snapshot in {path.name}; "
                f"allowed: {', '.join(cuts[:20]) or 'none, the trace has no snapshot'}"
            )
        verdict = judged(self.text, path.name)
        self.verdict = verdict.verdict
        self.verdicts = [str(violation) for violation in verdict.violations]

    def _read(self) -> tuple[dict[str, str], list[Entry]]:
        if self.text and not self.text.endswith("\n"):
            raise ShowError(f"{self.path}: its last line has no end, so that it may be cut off; give a whole trace")
        head, entries = read(self.text, self.path.name)
        if not entries:
            raise ShowError(f"{self.path}: the trace has no moves; give one with a run in it")
        return head, entries

    @property
    def title(self) -> str:
        """The first sentence on top of the trace, or the file's name."""
        comment = " ".join(self.head.get(COMMENT, "").split())
        return comment.split(". ")[0].rstrip(".") if comment else self.path.stem.replace("_", " ")

    def as_text(self) -> str:
        """The trace as it is written: read again and put in order."""
        return write(self.entries, self.head, self.verdicts)

    def as_svg(self) -> str:
        """The diagram; of a long trace the part around the checkpoint, and if need be its barrier alone."""
        drawn, title = self.drawn, self.title
        if len(drawn.times_ns) > MOST_STEPS:
            drawn = drawn.around_cut()
        if len(drawn.times_ns) > MOST_STEPS:
            drawn, title = drawn.without_events(), f"{title} (without the events that the cut does not cross)"
        return svg(drawn, title, self.verdicts)

    def as_mermaid(self) -> str:
        """`model.render.exports.mermaid`."""
        return mermaid(self.drawn, self.verdicts)

    def as_shiviz(self) -> str:
        """`model.render.exports.shiviz`."""
        return shiviz(self.drawn)

    def as_perfetto(self) -> str:
        """`model.render.exports.perfetto`; with the times of the trace if it has any that differ."""
        timed = is_timed(self.entries) and self.drawn.times_ns[-1] > self.drawn.times_ns[0]
        return perfetto(self.drawn, timed)

    def as_itf(self) -> str:
        """`model.render.exports.itf`."""
        return itf(self.entries, self.topology, self.path.name)


_TEXT_ALONE = re.compile(r"^(# (late )?)?(?P<of>join|control)( table)?: ", re.MULTILINE)
"""A field in the head of a journal, or the title of a counterexample, that has no channels to draw."""


def text_alone(text: str, path: Path, form: str) -> bool:
    """Return whether `text` is a journal of a join or of control signals, of which there is no other form.

    Raises
    ------
    ShowError
        If it is one, and another form is asked for.
    """
    found = _TEXT_ALONE.search(text.partition("\n\n")[0])
    if found is not None and form != "text":
        of = {"join": "a join", "control": "control signals"}[found["of"]]
        raise ShowError(f"{path}: a journal of {of} has no {form}; allowed: text, which is the default")
    return found is not None


FORMATS: dict[str, Callable[[Shown], str]] = {
    "text": Shown.as_text,
    "svg": Shown.as_svg,
    "mermaid": Shown.as_mermaid,
    "shiviz": Shown.as_shiviz,
    "perfetto": Shown.as_perfetto,
    "itf": Shown.as_itf,
}


@click.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="text", show_default=True)
@click.option("--checkpoint", "checkpoint_id", type=click.IntRange(min=1), help="Whose cut; the last complete one.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it there instead of to stdout.")
def show_command(file: Path, form: str, checkpoint_id: int | None, out: Path | None) -> None:
    """Show a trace or counterexample: as text, as a space-time diagram (svg), or for another tool.

    mermaid: mermaid.live; shiviz: bestchai.bitbucket.io/shiviz; perfetto: ui.perfetto.dev; itf: Apalache's viewer.
    The exit status is the verdict's: 0 holds, 1 a violation, 3 undecided.

    Example: barrierlab show counterexample.trace --format svg --out counterexample.svg
    """
    text = _text_of(file)
    try:
        if text_alone(text, file, form):
            is_broken = any(line.startswith("! ") for line in text.splitlines())
            steps, verdict = len(text.splitlines()), BROKEN if is_broken else HOLDS
        else:
            shown = Shown(file, checkpoint_id)
            text, steps, verdict = FORMATS[form](shown), len(shown.drawn.times_ns), shown.verdict
    except (TraceError, TopologyError, HistoryError, TooLongError) as error:
        message = str(error)
        raise ShowError(message if message.startswith(file.name) else f"{file.name}: {message}") from error
    if out is None:
        click.echo(text, nl=False)
    else:
        write_file(out, text, ShowError, "--out")
        click.echo(f"{out}: {form}, {steps} steps, verdict {verdict}")
    sys.exit(OF_VERDICT[verdict])
