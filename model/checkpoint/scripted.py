"""A scripted case: a short trace with comments that the explored world makes again, byte for byte.

The header says what the world is made of (`model.checkpoint.trace_header`), the lines after ``>`` what moves, in the
words of `model.checkpoint.trace`, and without times. All else that is not the reader's comes of that: the effects below
each move, and at the end the verdicts, of the properties at rest too unless the header says ``cut_off: yes``. A move
may be written as short as it is clear, ``> emit a`` for ``> emit a a1``.

Beside the moves of the world there is ``> stabilize``: whatever can move moves, faults aside and in the world's order,
until nothing is left. Those moves stand below it, indented by two blanks, and below them, after ``!``, what has not
ended well then.

`cases` are the scripted cases that come with the package. Whoever brings a gate of their own
(`model.checkpoint.external`) has behaved as the protocol asks in all of them if `replay` gives the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.trace import LINES, NS_PER_MOVE, STABILIZE, TraceError, lines_of, read
from barrierlab.model.checkpoint.trace_header import CUT_OFF, bounds_of
from barrierlab.model.checkpoint.world import Move, World
from barrierlab.model.spec.history import Entry

FOLDER = Path(__file__).parents[1] / "cases"
MOST_MOVES = 10_000
"""The most moves that `stabilize` makes: a world without end is none that can rest."""

_MOVE, _EFFECT, _NESTED, _VERDICT = "> ", "    ", "  > ", "! "
_LATE = "late"


def cases(mode: str | None = None) -> dict[str, str]:
    """The scripted cases that come with the package, by theme and name: ``"alignment/events_are_held_in_order"``.

    Parameters
    ----------
    mode : str, optional
        Only those of the protocol: ``"aligned"``, ``"unaligned"`` or ``"aligned_with_timeout"``.
    """
    scripted_cases = {
        path.relative_to(FOLDER).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(FOLDER.glob("**/*.trace"))
    }
    return {name: text for name, text in scripted_cases.items() if mode in (None, mode_of(text, name))}


def mode_of(text: str, name: str = "scripted case") -> str:
    """Return the protocol that a scripted case is about."""
    return bounds_of_case(text, name).mode


def bounds_of_case(text: str, name: str = "scripted case") -> Bounds:
    """The bounds that the header of a scripted case tells."""
    return _ScriptedCase(text, name).bounds()


def replay(text: str, components: Components = SOUND, name: str = "scripted case") -> str:
    """The scripted case `text` as machines make it: `text` itself, if it is right and they are sound.

    Parameters
    ----------
    text : str
    components : Components, optional
        Whose machines; those of `impl` by default.
    name : str, optional
        What errors call it: the file's name.

    Raises
    ------
    TraceError
        If the header tells no world, or a line is none of a scripted case.
    ScriptedCaseError
        If a move cannot be made; it holds the run so far.

    Examples
    --------
    >>> print(replay("topology: a->s\\ncut_off: yes\\n\\n> emit a\\n"), end="")
    topology: a->s
    cut_off: yes
    <BLANKLINE>
    > emit a a1
        a send a->s a1
    """
    scripted_case = _ScriptedCase(text, name)
    is_driven = not any(step.move.startswith("poll ") for step in scripted_case.steps)
    run = _Run(World(scripted_case.bounds(), components), is_driven)
    lines = list(scripted_case.head_lines)
    for step in scripted_case.steps:
        try:
            lines += step.put_among(run.make(step, scripted_case) if step.move else [])
        except TraceError as error:
            made = [*lines, *(f"{_VERDICT}{verdict}" for verdict in run.verdicts(True))]
            raise ScriptedCaseError(str(error), "\n".join(made)) from error
    lines += [f"{_VERDICT}{verdict}" for verdict in run.verdicts(scripted_case.header.get(CUT_OFF) == "yes")]
    return "\n".join([*lines, *scripted_case.behind]) + "\n"


class ScriptedCaseError(TraceError):
    """A move of a scripted case that cannot be made.

    Attributes
    ----------
    made : str
        The scripted case up to there, as the machines made it, and what is broken by then.
    """

    def __init__(self, message: str, made: str) -> None:
        super().__init__(message)
        self.made = made


class _CaseMove:
    """A move of a scripted case, and the reader's lines from there to the next.

    Attributes
    ----------
    number : int
        Of its line.
    move : str
        Without the ``>``; empty for what stands ahead of the first.
    kept : list of (int, str)
        The reader's lines, and behind how many others they stand.
    """

    __slots__ = ("kept", "lines", "move", "number")

    def __init__(self, number: int, move: str) -> None:
        self.number, self.move = number, move
        self.lines = 1 if move else 0
        self.kept: list[tuple[int, str]] = []

    def put_among(self, outcome: Sequence[str]) -> list[str]:
        """The lines of an outcome, with the reader's in their places; those that stood at its end stand there again."""
        lines = list(outcome)
        for behind, line in reversed(self.kept):
            lines.insert(len(outcome) if behind >= self.lines else min(behind, len(outcome)), line)
        return lines


class _ScriptedCase:
    """The text, taken apart.

    Attributes
    ----------
    header : dict of str to str
    head_lines : list of str
        As they stand there, with the blank line behind them.
    steps : list of _CaseMove
    behind : list of str
        The reader's lines behind the verdicts.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        lines = text.splitlines()
        ends = lines.index("") + 1 if "" in lines else len(lines)
        self.head_lines = lines[:ends]
        self.header, _ = read("\n".join(self.head_lines), name)
        self.steps = [_CaseMove(ends, "")]
        self.behind: list[str] = []
        self._take_apart(lines[ends:], ends)

    def _take_apart(self, lines: Sequence[str], above: int) -> None:
        judged = False
        for number, line in enumerate(lines, above + 1):
            step = self.steps[-1]
            if line.startswith(_VERDICT):
                judged = True
            elif not line or line.startswith("#"):
                if judged:
                    self.behind.append(line)
                else:
                    step.kept.append((step.lines, line))
            elif judged:
                raise self.error(number, f"{line!r} stands behind a verdict", "verdicts end a scripted case")
            elif line.startswith(_MOVE):
                self.steps.append(_CaseMove(number, line.removeprefix(_MOVE)))
            elif line.startswith((_EFFECT, _NESTED)):
                step.lines += 1
            else:
                raise self.error(number, f"{line!r} is no line of a scripted case", LINES)

    def bounds(self) -> Bounds:
        """Return what the header tells."""
        return bounds_of(self.header, self._wrong_field)

    def error(self, number: int, actual: str, expected: str) -> TraceError:
        return TraceError(f"{self.name}:{number}: {actual}; {expected}")

    def _wrong_field(self, field: str, actual: str, expected: str) -> TraceError:
        at = [n for n, line in enumerate(self.head_lines, 1) if line.startswith(f"{field}:")]
        return self.error(at[0] if at else 1, actual, expected)


class _Run:
    """A run of a world, and its journal so far.

    If a driver reads the channels in it (`is_driven`), rounds of a loop that reads them itself are written as that
    driver's moves.
    """

    def __init__(self, world: World, is_driven: bool) -> None:
        self.world, self.state, self._is_driven = world, world.start(), is_driven
        self.entries: list[Entry] = []
        self.moves = 0

    def make(self, step: _CaseMove, scripted_case: _ScriptedCase) -> list[str]:
        """The lines of a move, and of what comes of it."""
        if step.move == STABILIZE:
            return [_MOVE + STABILIZE, *self._stabilized(step, scripted_case)]
        possible = {self._line(move): move for move in self._possible()}
        found = [line for line in possible if line == step.move] or [
            line for line in possible if line.startswith(f"{step.move} ") and not line.endswith(" late")
        ]
        if len(found) != 1:
            now = f"these can: {', '.join((*possible, STABILIZE))}" if possible else "nothing can"
            actual = "cannot be made here" if not found else f"may be any of {', '.join(found)}"
            raise scripted_case.error(step.number, f"the move {step.move!r} {actual}", now)
        return self._made(possible[found[0]])

    def _possible(self) -> list[Move]:
        """Return the moves that are possible; when nothing goes on any more, the sources may end."""
        moves = self.world.moves(self.state)
        return moves if self.world.enabled_fair_moves(self.state) else [*moves, *self.world.close_sources(self.state)]

    def _made(self, move: Move) -> list[str]:
        self.state, notes = self.world.noted(self.state, move)
        self.moves += 1
        entries = [(self.moves * NS_PER_MOVE, *note) for note in notes]
        self.entries += entries
        return self._lines_of(entries)

    def _line(self, move: Move) -> str:
        """Return how `move` is written."""
        note, *_ = self.world.noted(self.state, move)[1]
        return self._lines_of([(0, *note)])[0].removeprefix(_MOVE)

    def _lines_of(self, entries: list[Entry]) -> list[str]:
        return lines_of(map(_of_a_driver, entries) if self._is_driven else entries)

    def _stabilized(self, step: _CaseMove, scripted_case: _ScriptedCase) -> Iterator[str]:
        for _ in range(MOST_MOVES):
            moves = self.world.enabled_fair_moves(self.state)
            if not moves:
                reason = self.world.liveness_violation(self.state)
                if reason is not None:
                    yield f"{_EFFECT}{_VERDICT}{reason}"
                return
            move, *effects = self._made(moves[0])
            yield f"  {move}"
            yield from effects
        raise scripted_case.error(step.number, f"after {MOST_MOVES} moves it does not rest", "make the world smaller")

    def verdicts(self, cut_off: bool) -> list[str]:
        """Return what is wrong with the run."""
        return self.world.verdicts(self.state, self.world.judge(self.entries, cut_off))


def _of_a_driver(entry: Entry) -> Entry:
    """The entry; a round of a loop that sees one input as the delivery from it, one that sees none as a drain."""
    at_ns, verb, name, _, readable = entry
    if verb != ">poll":
        return entry
    words = cast("tuple[str, ...]", readable or ())
    channels = [word for word in words if word != _LATE]
    if len(channels) > 1:
        return entry
    made, channel = (">deliver", channels[0]) if channels else (">drain", None)
    return at_ns, made, name, channel, _LATE if _LATE in words else None
