"""A question: one TOML file with what is varied, an analysis by name, and the sentence of its answer.

    question = "Which aligned checkpoint timeout?"
    asked = "FLINK-23041"                     # where
    oracle = "..."                            # what holds the answer to be right, and in which test
    scenario = "flink_chain"                  # a shipped one; --scenario asks about another
    checkpoints = 25                          # so many intervals a run lasts after its warm-up
    set = { level = "sat_4ms" }               # of the shipped scenario alone
    always = { no_faults = true }             # levers and keys of any scenario (sim.ask.levers)
    change = ["service", "buffers"]           # levers: by how much +-20 % of each moves the number
    [analysis]
    name = "crossover"                        # one of sim.ask.analyses.ANALYSES; the rest is its own
    [answer]                                  # a sentence for each case that the analysis can come to
    found = "... {timeout} ..."               # with its numbers, by name

`of_joins = true` asks it of scenarios with a table [join]. `missing` in place of analysis and answer says what the
simulator has not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from barrierlab.sim.ask.bench import QuestionError
from barrierlab.sim.ask.levers import LEVERS
from barrierlab.sim.scenario.readers import suggest

QUESTIONS = files("barrierlab.sim") / "scenarios" / "questions"
KEYS = (
    *("question", "asked", "oracle", "scenario", "checkpoints", "set", "always", "change", "analysis", "answer"),
    *("missing", "also_missing", "of_joins"),
)
NEEDED = ("question", "asked", "oracle", "scenario", "analysis", "answer")


@dataclass(frozen=True, slots=True)
class Question:
    """One file. `missing` is what the simulator lacks to answer it, `also_missing` to answer a part of it."""

    name: str
    question: str
    asked: str = ""
    oracle: str = ""
    scenario: str = ""
    checkpoints: int = 25
    set: Mapping[str, Any] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)
    change: tuple[str, ...] = ()
    analysis: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""
    also_missing: str = ""
    of_joins: bool = False


def names() -> list[str]:
    """Return the names of all questions, in order of their numbers; of the joins (J1) last."""
    found = [path.name.removesuffix(".toml") for path in QUESTIONS.iterdir() if path.name.endswith(".toml")]
    return sorted(found, key=lambda name: (name[0] != "Q", int(name[1:])))


def question_of(name: str) -> Question:
    """Return the question of that name, however it is written: ``Q3``, ``q03``.

    Raises
    ------
    QuestionError
        If there is none.
    """
    known = {each.lower(): each for each in names()}
    letter, digits = name[:1].lower(), name[1:].lstrip("0")
    found = known.get(name.lower()) or known.get(f"{letter}{digits}")
    if found is None:
        raise QuestionError(
            f"there is no question {name!r}; allowed: {', '.join(known.values())}{suggest(name, known.values())}"
        )
    return read(found, (QUESTIONS / f"{found}.toml").read_text(encoding="utf-8"))


def read(name: str, text: str) -> Question:
    """Return the question that a file holds.

    Raises
    ------
    QuestionError
        If a key is unknown or not there.
    """
    data = tomllib.loads(text)
    for key in data:
        if key not in KEYS:
            raise QuestionError(f"{name}.toml: no key {key!r}; allowed: {', '.join(KEYS)}{suggest(key, KEYS)}")
    if "missing" not in data:
        for key in NEEDED:
            if key not in data:
                raise QuestionError(f"{name}.toml: has no key {key!r}")
    for lever in data.get("change", []):
        if lever not in LEVERS:
            raise QuestionError(f"{name}.toml: change: no lever {lever!r}; allowed: {', '.join(LEVERS)}")
    return Question(name, **{**data, "change": tuple(data.get("change", ()))})
