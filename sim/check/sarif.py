"""The violations of a check as SARIF 2.1.0, which code scanning reads, and the place in the source that they are at.

The place is the class statement of the external class: which of its lines is wrong no exploration can tell. A check of
the machines of this package has no place.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0 Plus Errata 01.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from barrierlab.model.checkpoint.check import REFINES, Outcome, ScopeViolation, reach_of
from barrierlab.model.checkpoint.external import load
from barrierlab.model.checkpoint.scripted_scopes import TELLS
from barrierlab.model.explore.checker import UNDECIDED
from barrierlab.model.spec.invariants import MEANING
from barrierlab.sim.check.runner import CheckPlan

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
"""The base of a relative path: by convention the top of the checkout."""
BESIDE_INVARIANTS = {
    REFINES: "each machine does, effect for effect, what the table of its protocol says",
    TELLS: "each scripted case comes out as it is written",
}
"""Names that a violation has where no invariant is broken."""


class Place(NamedTuple):
    """The class statement of an external class, or the file of a program.

    Attributes
    ----------
    path : Path
        Absolute.
    file : str
        As it is shown, with slashes: relative to GITHUB_WORKSPACE or to the working directory, or absolute.
    line : int
        Counted from 1; it is 1 if the class is made without a statement.
    name : str
        ``module.Class``, or the command of a program.
    """

    path: Path
    file: str
    line: int
    name: str


def place_of(chosen: CheckPlan) -> Place | None:
    """Return where the class that is checked is written; None without one, or if it comes from no source file.

    Of a program, the place is the first file below the working directory or the checkout that its command names.
    """
    if not chosen.implementation:
        return None
    bases = [Path(base).resolve() for base in (os.environ.get("GITHUB_WORKSPACE"), chosen.folder) if base]
    if chosen.is_program:
        paths = [Path(chosen.folder, word).resolve() for word in shlex.split(chosen.implementation)]
        files = (path for path in paths if path.is_file() and any(map(path.is_relative_to, bases)))
        program = next(files, None)
        return None if program is None else _place(program, 1, chosen.implementation, bases)
    kind = load(chosen.implementation.split(",")[0], chosen.folder)  # of several classes, the first
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    try:
        path = Path(file or "").resolve()
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    line = next((line for name, line in _classes(tree) if name == kind.__qualname__), 1)
    return _place(path, line, f"{kind.__module__}.{kind.__qualname__}", bases)


def _place(path: Path, line: int, name: str, bases: Sequence[Path]) -> Place:
    base = next((base for base in bases if path.is_relative_to(base)), None)
    shown = path.relative_to(base) if base is not None else path
    return Place(path, shown.as_posix(), line, name)


def _classes(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield the qualified name and the line of every class statement below `node`."""
    for child in ast.iter_child_nodes(node):
        inside = prefix
        if isinstance(child, ast.ClassDef):
            yield f"{prefix}{child.name}", child.lineno
            inside = f"{prefix}{child.name}."
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = f"{prefix}{child.name}.<locals>."
        yield from _classes(child, inside)


def steps_of(trace: str) -> list[str]:
    """Return the steps of a run: each move with what it brings about, without the head and the verdict.

    >>> steps_of("# A head.\\nmode: aligned\\n\\n> emit a a1\\n    a send a->s a1\\n> inject a 1\\n! LIVE: s waits")
    ['> emit a a1\\n    a send a->s a1', '> inject a 1']
    >>> steps_of("# aligned table: one input.\\narrive 0 barrier 1\\n! TABLE: the table says otherwise")
    ['arrive 0 barrier 1']
    """
    body = trace if "\n> " not in trace else trace[trace.index("\n> ") + 1 :]
    lines = [line for line in body.splitlines() if line and not line.startswith(("#", "!"))]
    return re.split(r"\n(?! )", "\n".join(lines)) if lines else []


def sarif(outcomes: Sequence[Outcome], violations: Sequence[ScopeViolation], chosen: CheckPlan, status: int) -> str:
    """Return a log with one run: a result a violation, and a notification for each scope that is undecided.

    Parameters
    ----------
    outcomes : sequence of Outcome
    violations : sequence of ScopeViolation
        Of `outcomes`, in the order in which they are to be shown.
    chosen : CheckPlan
    status : int
        The exit status of the command.
    """
    place, names = place_of(chosen), list(dict.fromkeys(each.invariant for each in violations))
    reach = reach_of(outcomes)
    undecided = [each for each in outcomes if each.verdict == UNDECIDED]
    run = {
        "tool": {
            "driver": {
                "name": "barrierlab",
                "version": version("barrierlab"),
                "rules": [{"id": name, "shortDescription": {"text": _meaning(name)}} for name in names],
            }
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": status,
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": f"undecided: {each.name}: {each.why}"}}
                    for each in undecided
                ],
            }
        ],
        "results": [_result(each, names.index(each.invariant), chosen, place) for each in violations],
        "properties": {
            "scope": chosen.scope,
            "implementation": chosen.implementation,
            "judge": chosen.judge,
            "scopes": len(outcomes),
            "states": sum(each.states for each in outcomes),
            "kept": sum(each.kept for each in outcomes),
            "notAsked": {each.name: each.capability for each in chosen.not_asked},
            "vacuous": list(reach.vacuous),
            "struckNothing": list(reach.idle),
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _meaning(name: str) -> str:
    return {**MEANING, **BESIDE_INVARIANTS}.get(name, name)


def _result(violation: ScopeViolation, rule: int, chosen: CheckPlan, place: Place | None) -> dict[str, Any]:
    identity = f"{violation.invariant}\n{violation.scope}\n{chosen.implementation}"
    steps = steps_of(violation.trace)
    found: dict[str, Any] = {
        "ruleId": violation.invariant,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": f"{violation.reason} ({violation.scope}; {violation.steps} steps)"},
        "partialFingerprints": {"invariantAndScope/v1": hashlib.sha256(identity.encode()).hexdigest()},
        "properties": {"scope": violation.scope, "steps": violation.steps, "trace": violation.trace},
    }
    if place is not None:
        found["locations"] = [_location(place)]
        if steps:
            flow = [{"location": {**_location(place), "message": {"text": step}}} for step in steps]
            found["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    return found


def _location(place: Place) -> dict[str, Any]:
    is_relative = not Path(place.file).is_absolute()
    file = {"uri": quote(place.file), "uriBaseId": ROOT} if is_relative else {"uri": place.path.as_uri()}
    return {
        "physicalLocation": {"artifactLocation": file, "region": {"startLine": place.line}},
        "logicalLocations": [{"fullyQualifiedName": place.name, "kind": "type"}],
    }
