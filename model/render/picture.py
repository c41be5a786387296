"""A trace as a picture that a notebook shows."""

from __future__ import annotations

from barrierlab.model.checkpoint.trace import COMMENT, judged, read, topology_of
from barrierlab.model.render.spacetime import lay_out
from barrierlab.model.render.svg import svg


class Picture:
    """The space-time diagram of a trace: a line a task, an arrow a message, the cut dashed; what is wrong is red.

    Parameters
    ----------
    trace : str
        As `run(...).trace()`, a counterexample or an entry of the catalogue has it.
    checkpoint_id : int, optional
        Whose cut is drawn, and the part around it; without it the last complete one, and all of the run.

    Raises
    ------
    ValueError
        If it is no trace of checkpoints, or too long for a picture.

    Examples
    --------
    >>> trace = "topology: a->s\\n\\n> emit a a1\\n    a send a->s a1\\n"
    >>> Picture(trace).svg[:4]
    '<svg'
    """

    def __init__(self, trace: str, checkpoint_id: int | None = None) -> None:
        head, entries = read(trace)
        drawn = lay_out(entries, topology_of(head), checkpoint_id)
        comment = " ".join(head.get(COMMENT, "").split())
        verdicts = [str(violation) for violation in judged(trace).violations]
        self.text = trace
        self.svg = svg(drawn.around_cut() if checkpoint_id is not None else drawn, comment, verdicts)

    def _repr_svg_(self) -> str:
        return self.svg
