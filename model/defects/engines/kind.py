"""A scheme as a few guarded moves, as reported and as repaired; and an entry of the second catalogue.

Where the explored dataflows have what a report is about, its entry is a `BarrierDefect`: an aligner or a task in a
world, judged by the invariants of all worlds. The rest - threads, futures, logs, pools of buffers - is a scheme of its
own. A scheme states its invariant itself, in the terms of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from barrierlab.model.checkpoint.check import ALWAYS, QUIESCENT
from barrierlab.model.defects.catalogue import CatalogueEntry
from barrierlab.model.defects.kinds.barrier import BOUND, BarrierDefect, Bounds, Components, found_in
from barrierlab.model.defects.kinds.found import Found
from barrierlab.model.explore.checker import Always, Exploration, Quiescent, S, explore, traps
from barrierlab.model.explore.text_table import rows_of

MoveRule = tuple[Callable[[S], bool], Callable[[S], S]]
"""A condition under which a move can be made, and the state behind it."""


STANDINGS = {
    "repaired": "repaired since",
    "open": "open when this was written",
    "open pull request": "from a pull request that was not merged",
    "review remark": "a remark in a review, of code that was not merged",
    "latent": "latent: the engine as it is run does not come to it",
    "documented": "a documented limit, and no defect of what is promised",
}
"""The standing of a report: how far the engine has what it says."""


class Scheme(Generic[S]):
    """A system of guarded moves.

    Parameters
    ----------
    begin : S
        The state in which every run begins.
    rules : mapping of str to MoveRule
        By the line of text of the move, in the order in which they are tried.
    wrong : callable, optional
        Given any state, what is wrong with it, ``"CUT: ..."``; None if nothing.
    left : callable, optional
        Given a state where a run ends or in which it goes round for ever, what has not ended; None if all has.
    faults : sequence of str
        Moves that a fair run need not make.
    """

    def __init__(
        self,
        begin: S,
        rules: Mapping[str, MoveRule[S]],
        *,
        wrong: Callable[[S], str | None] = lambda state: None,
        left: Callable[[S], str | None] = lambda state: None,
        faults: Sequence[str] = (),
    ) -> None:
        self.begin, self.rules, self.wrong, self.left, self.faults = begin, rules, wrong, left, frozenset(faults)

    def start(self) -> S:
        """The state in which every run begins."""
        return self.begin

    def moves(self, state: S) -> Sequence[str]:
        """The moves whose guards hold."""
        return [name for name, (guard, _) in self.rules.items() if guard(state)]

    def after(self, state: S, move: str) -> S:
        """The state behind a move."""
        return self.rules[move][1](state)

    def explored(self) -> Exploration[S, str]:
        """The first violation on a shortest run, of every fair run."""
        result = explore(self, [Always(ALWAYS, self.wrong), Quiescent(QUIESCENT, self.left)], limits=BOUND)
        return result if result.violations else self._gone_round(result)

    def _gone_round(self, result: Exploration[S, str]) -> Exploration[S, str]:
        left: dict[S, str] = {}
        for _, states in traps(self.begin, self.moves, self.after, self.faults.__contains__, BOUND):
            reasons = [self.left(state) for state in states]
            if None not in reasons and (len(states) > 1 or self.moves(states[0])):
                left |= {
                    state: f"{reason}; it goes round for ever" for state, reason in zip(states, reasons, strict=True)
                }
        return explore(self, [Always(QUIESCENT, left.get)], limits=BOUND) if left else result


def scheme(
    begin: S, rules: str, *, wrong: str = "", left: str = "", faults: Sequence[str] = (), **names: object
) -> Scheme[S]:
    """Return the scheme that a text says, whose states are named tuples.

    Parameters
    ----------
    begin : S
    rules : str
        A move in each line: ``its text | condition | field=value, ...``, in Python; an indented line goes on with the
        one before. Conditions and values have the fields of the state, `names`, and ``put(values, at, value)``.
    wrong, left : str
        ``condition | CUT: what, with {values}``, as of `Scheme`.
    faults : sequence of str
    **names
        What stands for something else than a field.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Count(NamedTuple):
    ...     sent: int = 0
    >>> sends = "an event is sent | sent < most | sent=sent + 1"
    >>> found = scheme(Count(), sends, wrong="sent > 1 | CUT: {sent}", most=2)
    >>> found.explored().violations[0].reason
    'CUT: 2'
    """

    def given(text: str, form: str = "({})") -> Callable[[S], Any]:
        code = compile(form.format(text), f"<{type(begin).__name__}>", "eval")
        return lambda state: eval(code, {"put": _put, **names, **state._asdict()})  # type: ignore[attr-defined]

    def rule(guard: str, then: str) -> MoveRule[S]:
        holds, fields = given(guard), given(then, "dict({})")
        return lambda state: bool(holds(state)), lambda state: state._replace(**fields(state))

    def reason(text: str) -> Callable[[S], str | None]:
        ((guard, said),) = rows_of(text) if text else (("False", ""),)
        holds, words = given(guard), given(repr(said), "f{}")
        return lambda state: words(state) if holds(state) else None

    moves = {name: rule(guard, then) for name, guard, then in rows_of(rules)}
    return Scheme(begin, moves, wrong=reason(wrong), left=reason(left), faults=faults)


def _put(values: tuple[Any, ...], at: int, value: object) -> tuple[Any, ...]:
    """The values with another at a place."""
    return (*values[:at], value, *values[at + 1 :])


@dataclass(frozen=True, slots=True)
class SchemeDefect(Generic[S]):
    """A scheme as it was reported, and as it was repaired.

    Attributes
    ----------
    entry, kind, breaks, title : str
        As of `model.defects.kinds.barrier.BarrierDefect`.
    scheme : callable
        Given whether it is repaired, the scheme.
    """

    entry: str
    kind: str
    breaks: str
    title: str
    scheme: Callable[[bool], Scheme[S]]

    def as_documented(self) -> Found:
        """The shortest run that breaks something."""
        return found_in(self.title, self.scheme(False).explored())

    def sound(self) -> Found:
        """Every run of the repaired scheme."""
        return found_in(self.title, self.scheme(True).explored())


Exhibit = Callable[[bool], Scheme[Any]] | tuple[Bounds, Components, Components]
"""A scheme, given whether it is repaired; or the bounds of a dataflow, and its components as reported and repaired."""


@dataclass(frozen=True, slots=True, repr=False)
class EngineEntry(CatalogueEntry):
    """An entry of the second catalogue.

    Attributes
    ----------
    row : int
        Its place in the list of reports; two entries may share a report.
    engine : str
    reports : tuple of str
        Addresses.
    standing : str
        One of `STANDINGS`.
    wrong, repair : str
        A sentence each.
    """

    row: int = 0
    engine: str = ""
    reports: tuple[str, ...] = ()
    standing: str = ""
    wrong: str = ""
    repair: str = ""

    @property
    def document(self) -> str:
        """The engine that it is about."""
        return self.engine


def entry(
    row: int,
    name: str,
    engine: str,
    reports: Sequence[str],
    wrong: str,
    repair: str,
    defect: BarrierDefect | SchemeDefect[Any],
    standing: str = "repaired",
) -> EngineEntry:
    """Return an entry with its page; `name` is the sentence at its head, with ``_`` for blanks."""
    title = name.replace("_", " ")
    links = "\n".join(f"    {link}" for link in reports)
    page = (
        f"{title[0].upper()}{title[1:]}.\n\nReport\n{links}\n    ({STANDINGS[standing]})\n"
        f"What goes wrong\n    {wrong}\nRepair\n    {repair}"
    )
    about = (row, engine, tuple(reports), standing, wrong, repair)
    return EngineEntry(defect.entry, name, defect, page, *about)
