"""An answer: the sentence with its numbers, and what would change it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from textwrap import shorten
from typing import Any

from barrierlab.model.render.html import block, paragraph, table
from barrierlab.sim.ask.analyses import ANALYSES, Analysed
from barrierlab.sim.ask.bench import CONFIDENCE, Bench, Number, OutOfTimeError, mean_of
from barrierlab.sim.ask.levers import LEVERS
from barrierlab.sim.ask.measures import MEASURES
from barrierlab.sim.ask.question import Question
from barrierlab.sim.core.amounts import percent

STEP = 0.2  # each lever, up and down


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The change of the answer's number if a lever is at `factor` times what it is; adjusted for all changes."""

    lever: str
    factor: float
    by: Number

    @property
    def is_one(self) -> bool:
        """Return whether the interval leaves 0 out."""
        return self.by.low is not None and self.by.high is not None and not self.by.low <= 0 <= self.by.high


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """A sentence, its numbers, what would change the first of them, and what is to be said besides."""

    question: Question
    scenario: str
    case: str
    sentence: str
    change: str
    found: Analysed
    moves: tuple[Sensitivity, ...]
    notes: tuple[str, ...]
    runs: int

    def __repr__(self) -> str:
        return f"<Answer: {self.question.name}, {self.scenario}: {shorten(self.sentence, 100, placeholder=' ...')}>"

    def _repr_html_(self) -> str:
        notes = [paragraph(note) for note in (self.change, *self.notes)]
        title = f"{self.question.name}: {self.question.question}"
        rows = table(rows_for_people(self.found), caption=f"{self.scenario}, {self.runs} runs")
        return block(title, "", paragraph(self.sentence), *notes, rows)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""

        def plain(value: Any) -> Any:
            return asdict(value) if isinstance(value, Number) else value

        return {
            "question": self.question.name,
            "asks": self.question.question,
            "scenario": self.scenario,
            "case": self.case,
            "answer": self.sentence,
            "what_would_change_it": self.change,
            "number": next(name for name, each in self.found.numbers.items() if isinstance(each, Number)),
            "numbers": {name: plain(value) for name, value in self.found.numbers.items()},
            "moves": [asdict(move) for move in self.moves],
            "table": self.found.rows,
            "notes": list(self.notes),
            "runs": self.runs,
        }


def answered(question: Question, bench: Bench) -> Answer:
    """Return the answer to a question on a bench.

    Raises
    ------
    OutOfTimeError, NothingToSayError, BrokenRunError
        If there is none.
    """
    analyse, _ = ANALYSES[question.analysis["name"]]
    found = analyse(bench, question.analysis)
    words = {name: each if isinstance(each, str) else text_of(each) for name, each in found.numbers.items()}
    sentence = _with_sameness_once(question.answer[found.case].format(**words))
    moves, left_out = _moved(question, found)
    notes = [*found.notes]
    if bench.cut_short:
        notes.append("the budget was used up before the interval was as narrow as --precision asks for")
    if bench.shortened:
        notes.append("runs were made shorter than asked for, to some two million steps each")
    if question.also_missing:
        notes.append(f"not answered: {question.also_missing}")
    if left_out and moves:
        notes.append("what would change it was not looked at to the end: the budget was used up")
    change = _change(found, moves, left_out)
    return Answer(
        question, bench.scenario.name, found.case, sentence, change, found, tuple(moves), tuple(notes), bench.runs
    )


_SAME = re.compile(r" \((the same in \d+ runs)\)")


def _with_sameness_once(sentence: str) -> str:
    """Return a sentence that says at its end, not after each number, that its numbers are the same in all runs.

    >>> _with_sameness_once("From 1 s (the same in 5 runs) to 2 s (the same in 5 runs).")
    'From 1 s to 2 s. A measured number without an interval is the same in 5 runs.'
    """
    found = _SAME.findall(sentence)
    if len(found) < 2:
        return sentence
    return f"{_SAME.sub('', sentence)} A measured number without an interval is {found[0]}."


def _moved(question: Question, found: Analysed) -> tuple[list[Sensitivity], bool]:
    """Return by how much each lever moves the answer, seed by seed, and whether the budget ended that."""
    if found.moves is None:
        return [], False
    count = 2 * len(question.change)
    moves = []
    try:
        before = found.moves({})
        for lever in question.change:
            for factor in (1 + STEP, 1 - STEP):
                after = found.moves({lever: factor})
                if len(after) != len(before):
                    continue  # a run had no number: nothing to pair
                by = [b - a for a, b in zip(before, after, strict=True)]
                moves.append(Sensitivity(lever, factor, mean_of(by, found.answer.unit, 1 - (1 - CONFIDENCE) / count)))
    except OutOfTimeError:
        return moves, True
    return moves, False


NOTHING = "Nothing that was varied changes it."


def _change(found: Analysed, moves: list[Sensitivity], left_out: bool) -> str:
    """Say which levers move the number, the strongest first, and which do not."""
    if not moves:
        return f"What would change it was not looked at{': the budget was used up' if left_out else ''}."
    at = found.answer.at
    named = sorted((move for move in moves if move.is_one), key=lambda move: -abs(move.by.at))
    parts = []
    for lever in dict.fromkeys(move.lever for move in named):
        steps = [
            f"{percent(abs(move.factor - 1))} {'more' if move.factor > 1 else 'less'}: {signed(move.by)}"
            + (f" ({percent(move.by.at / at, sign=True)})" if at else "")
            for move in named
            if move.lever == lever
        ]
        parts.append(f"{LEVERS[lever][0]} ({', '.join(steps)})")
    rest = [
        LEVERS[lever][0] for lever in dict.fromkeys(m.lever for m in moves) if lever not in {m.lever for m in named}
    ]
    nothing = "Nothing that was varied before the budget was used up changes it." if left_out else NOTHING
    says = f"What would change it: {'; '.join(parts)}." if parts else nothing
    return says + (f" No effect beyond chance: {percent(STEP)} more or less of {', '.join(rest)}." if rest else "")


_UNITS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "ms": (("h", 3.6e6), ("min", 6e4), ("s", 1e3), ("ms", 1.0)),
    "s": (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)),
    "B": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)),
    "%": (("%", 0.01),),
    "/s": (("/s", 1.0),),
    "x": (("times", 1.0),),
    "": (("", 1.0),),
}


UNITS_OF_CHARTS: Mapping[str, tuple[str, float]] = {
    "ms": ("ms", 1.0),
    "s": ("s", 1.0),
    "B": ("kB", 1e3),
    "%": ("%", 0.01),
    "/s": ("1/s", 1.0),
    "x": ("times", 1.0),
    "": ("", 1.0),
}
"""By unit: the one that an axis has, and how large it is."""


def _scale(value: float, unit: str) -> tuple[str, float]:
    scales = _UNITS.get(unit, ((unit, 1.0),))
    return next((each for each in scales if abs(value) >= (2 if each[0] in ("h", "min") else 1) * each[1]), scales[-1])


def _digits(value: float, more: int = 0) -> str:
    return f"{value:.{more}f}" if abs(value) >= 100 else f"{value:.{3 + more}g}"


def _bounds(low: float, high: float) -> str:
    """Return an interval, with as many digits as tell its ends apart."""
    more = next((n for n in range(4) if _digits(low, n) != _digits(high, n)), 0)
    return f"{_digits(low, more)} to {_digits(high, more)}"


def text_of(number: Number) -> str:
    """Return a number for people, with its interval.

    >>> text_of(Number(1467.0, 1450.0, 1484.0, "ms", 5)), text_of(Number(0.25, None, None, "%", 3))
    ('1.47 s (95 % interval 1.45 to 1.48)', '25 %')
    >>> text_of(Number(1219.0, 1218.4, 1219.6, "ms", 5))
    '1.22 s (95 % interval 1.218 to 1.22)'
    """
    name, size = _scale(number.at, number.unit)
    at = f"{_digits(number.at / size)}{' ' if name and name[0] != '/' else ''}{name}"
    if number.low is None or number.high is None:
        if number.low is None and number.high is None:
            return at
        side = f"at least {_digits((number.low or 0) / size)}" if number.low is not None else "no lower bound"
        return f"{at} (95 % interval: {side}; too few values for the other bound)"
    if math.isclose(number.low, number.high, rel_tol=1e-6, abs_tol=1e-12):
        return f"{at} (the same in {number.n} runs)"
    return f"{at} (95 % interval {_bounds(number.low / size, number.high / size)})"


UNITS: dict[str, str] = {name: unit for name, (unit, _) in MEASURES.items()} | dict.fromkeys(
    ("lost", "share", "simulated"), "%"
)
NOT_SHOWN = ("gap", "bounds")  # how far a point of a search is from its end, and what a picture draws


def rows_for_people(found: Analysed) -> list[dict[str, str]]:
    """Return the rows of an answer's table with units, without the points at which a search measured nothing else.

    >>> rows = [{"timeout_s": 2.0, "gap": 3.0}, {"timeout_s": 0.5, "gap": 0.0, "persisted": 2e5}]
    >>> rows_for_people(Analysed({}, "", rows=rows))
    [{'timeout s': '0.5', 'persisted': '200 kB'}]
    """
    rows = [{name: each for name, each in row.items() if name not in NOT_SHOWN} for row in found.rows]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [
        {name.replace("_", " "): "" if row.get(name) is None else _cell(name, row[name]) for name in names}
        for row in rows
        if len(row) > 1
    ]


def _cell(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    return text_of(Number(value, None, None, UNITS[name], 1)) if name in UNITS else f"{value:.4g}"


def signed(number: Number) -> str:
    """Return a change for people.

    >>> signed(Number(-120.0, None, None, "ms", 5))
    '-120 ms'
    """
    name, size = _scale(number.at, number.unit)
    unit = "" if not name else f" {name}" if name[0] != "/" else name
    return f"{number.at / size:+.3g}{unit}"
