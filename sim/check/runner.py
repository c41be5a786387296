"""Scopes checked side by side, on the cores of this machine or on Spark; each verdict is kept as soon as it is there.

What is spread are whole scopes: the states of one scope have to meet in one place, so that sharing them out costs more
than it gains.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from barrierlab.model.checkpoint.asked import JUDGES, NotAsked, divided
from barrierlab.model.checkpoint.capabilities import DIFFERENCES, RULES
from barrierlab.model.checkpoint.check import Outcome, Scope, Violation
from barrierlab.model.checkpoint.components import SOUND, Parts
from barrierlab.model.checkpoint.external import ForeignError, capabilities_of, load, parts_of, releases_first
from barrierlab.model.explore.checker import UNDECIDED, NotRepeatableError
from barrierlab.model.spec.topology import suggestion
from barrierlab.model.suites.standard import SCOPES
from barrierlab.sim.check.sources import Key, external_modules, key_of
from barrierlab.sim.core.files import read_text, write

PROTOCOLS = ("aligned", "unaligned", "fallback", "control", "join", "component", "store")
BUDGETS_S = {"full": 3600.0}
"""Of groups of which not every scope can be seen to its end: their budgets, where none is given."""
OF_GATES = PROTOCOLS[:3]
"""Those in which an aligner of one's own can stand in."""


class CheckError(ValueError):
    """What cannot be checked: one line, with what to do."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be checked.

    Attributes
    ----------
    group : str
        A name in `model.suites.standard.SCOPES`.
    names : tuple of str
        Of scopes there.
    implementation : str
        ``module:Class`` of whose aligner it is; empty: that of `impl`.
    folder : str
        Where its module is looked for, beside the path.
    judge : str
        One of `model.checkpoint.asked.JUDGES`; empty where no external aligner is judged.
    not_asked : tuple of NotAsked
        The scopes that need what the class does not declare.
    releases_first : bool
        Whether the class declares that its loop releases what may go before it reads on.
    scope : str
        The group, or the one scope, that was asked for by name.
    """

    group: str
    names: tuple[str, ...]
    implementation: str = ""
    folder: str = ""
    judge: str = ""
    not_asked: tuple[NotAsked, ...] = ()
    releases_first: bool = False
    scope: str = ""

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The capabilities for want of which a scope is not asked, and then the differences that it does not permit."""
        found = {each.capability for each in self.not_asked}
        return tuple(name for name in (*RULES, *DIFFERENCES) if name in found)


def plan(scope: str, protocols: Sequence[str], implementation: str, judge: str = "") -> Plan:
    """The scopes of a group, or one scope by its name, for some protocols: by default all that apply.

    Of an external aligner, those that `judge` asks, and that need no more than it declares.

    Raises
    ------
    CheckError, ForeignError
        If there is no such scope, or the class cannot be checked so.
    """
    group, names = _named(scope)
    asked = tuple(protocols) or PROTOCOLS
    folder = str(Path.cwd())
    scopes = [each for each in SCOPES[group]() if not names or each.name in names]
    not_asked: tuple[NotAsked, ...] = ()
    first = False
    if judge and not implementation:
        raise CheckError(f"--judge {judge} needs --impl MODULE:CLASS: the machines of this package are judged by both")
    if implementation:
        kind = load(implementation, folder)
        capabilities, first = capabilities_of(kind), releases_first(kind)
        able = OF_GATES if capabilities.unaligned else ("aligned",)
        beyond = [protocol for protocol in protocols if protocol not in able]
        if beyond:
            raise CheckError(
                f"--protocol {beyond[0]} with --impl {implementation}: allowed for this class: {', '.join(able)}"
            )
        asked = tuple(protocol for protocol in asked if protocol in OF_GATES)
        for protocol in able:
            if protocol in asked:
                parts_of(kind, protocol)
        judge = judge or JUDGES[0]
        its = [each for each in scopes if each.protocol in asked]
        scopes, others = divided(its, capabilities, judge)
        not_asked = tuple(others)
        if its and not scopes:
            needs = ", ".join(dict.fromkeys(each.capability for each in others))
            reason = f"all of it needs what {kind.__name__} does not declare: {needs}" if others else _ONLY_THE_TABLE
            raise CheckError(f"--scope {scope!r}: nothing is left to ask of --impl {implementation}: {reason}")
    found = tuple(each.name for each in scopes if each.protocol in asked)
    if not found:
        raise CheckError(
            f"--scope {scope!r} has nothing of {', '.join(asked)}; leave --protocol out to check all of it"
        )
    return Plan(group, found, implementation, folder, judge, not_asked, first, scope)


_ONLY_THE_TABLE = "it compares with a table; add --judge table"


def _named(scope: str) -> tuple[str, tuple[str, ...]]:
    if scope in SCOPES:
        return scope, ()
    for group, scopes in SCOPES.items():
        if scope in (each.name for each in scopes()):
            return group, (scope,)
    raise CheckError(
        f"there is no scope {scope!r}; {suggestion(scope, list(SCOPES))}, or the name of one as a report has it"
    )


def run(
    chosen: Plan,
    master: str,
    budget_s: float | None,
    directory: Path | None = None,
    resume: bool = False,
    tick: Callable[[int], None] = lambda done: None,
    say: Callable[[str], None] = lambda line: None,
) -> list[Outcome]:
    """Check what is planned, and give the outcomes in the plan's order.

    Parameters
    ----------
    chosen : Plan
    master : str
        A Spark master, or `processes` or `processes[N]`.
    budget_s : float or None
        Seconds. When it is used up, what is not decided stays so; and none of many scopes gets more than twice its
        share, so that one that is too large does not leave the others without.
    directory : Path, optional
        Where verdicts are kept, a file each.
    resume : bool
        Whether those that are decided there already count, if nothing has changed on which they depend.
    tick : callable
        Told, some times a second, how many are done.
    say : callable
        Told, in a line, which kept verdicts do not count, and why.

    Raises
    ------
    CheckError
        If the folder cannot be made, or a verdict in it cannot be read.
    """
    if directory is not None:
        return _run(chosen, master, budget_s, directory, resume, tick, say)
    with TemporaryDirectory(prefix="barrierlab-check-") as temporary:
        return _run(chosen, master, budget_s, Path(temporary), False, tick, say)


def _run(
    chosen: Plan,
    master: str,
    budget_s: float | None,
    directory: Path,
    resume: bool,
    tick: Callable[[int], None],
    say: Callable[[str], None],
) -> list[Outcome]:
    from barrierlab.sim.sweep.execute import interrupts, on_processes, on_spark
    from barrierlab.sim.sweep.session import check_master, process_count, spark_session

    processes = process_count(check_master(master))
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckError(f"--save {directory}: cannot be made: {error.strerror}; give another folder") from error
    files = {name: directory / f"{_digest(chosen, name)}.json" for name in chosen.names}
    _drop_outdated([path for path in files.values() if path.exists()], chosen, resume, say)
    missing = [name for name, path in files.items() if not path.exists()]
    deadline_s = share_s = None
    if budget_s is not None:
        deadline_s = time.time() + budget_s
        share_s = min(budget_s, 2 * budget_s * (processes or os.cpu_count() or 1) / max(1, len(missing)))
    work = partial(_check_into, chosen, str(directory.resolve()), deadline_s, share_s)
    with interrupts() as interrupted:

        def watch() -> None:
            tick(sum(path.exists() for path in files.values()))
            if interrupted():
                raise KeyboardInterrupt

        if missing and processes is None:
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (chosen.folder, os.environ.get("PYTHONPATH"))))
            on_spark(spark_session(master), missing, work, watch)
        elif missing:
            on_processes(processes or 1, missing, work, watch)
        watch()
    return [_kept(path)[1] for path in files.values()]


def _digest(chosen: Plan, name: str) -> str:
    return hashlib.sha256(f"{name}\n{chosen.implementation}".encode()).hexdigest()[:16]


def _drop_outdated(paths: Sequence[Path], chosen: Plan, resume: bool, say: Callable[[str], None]) -> None:
    """Remove the kept verdicts that do not count: all but those to be resumed that are decided and of the same key."""
    key = key_of(chosen.implementation, chosen.folder) if resume else Key("")
    decided = changed = 0
    for path in paths:
        if resume:
            kept_key, outcome = _kept(path)
            if outcome.verdict != UNDECIDED:
                decided += 1
                if key.digest and kept_key == key.digest:
                    continue
                changed += 1
        path.unlink()
    if changed:
        why = key.reason or "what they depend on has changed, or was not known"
        say(f"--resume: {changed} of {decided} kept verdicts do not count: {why}; their scopes are checked again")


def _kept(path: Path) -> tuple[str, Outcome]:
    """Return the key of a kept verdict, and the verdict."""
    text = read_text(path, CheckError, "remove it, and its scope is checked again")
    try:
        kept = json.loads(text)
        return kept.pop("key"), Outcome(
            **{
                **kept,
                "violations": tuple(Violation(**each) for each in kept["violations"]),
                "asked_for": tuple(kept["asked_for"]),
            }
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckError(
            f"{path} is no verdict that can be read ({type(error).__name__}); allowed: files that check --save wrote; "
            "remove it, and its scope is checked again"
        ) from error


# In the worker.


def _check_into(chosen: Plan, directory: str, deadline_s: float | None, share_s: float | None, name: str) -> None:
    """Check one scope, and write down what it came to: whole or not at all."""
    seconds = None if deadline_s is None or share_s is None else min(deadline_s - time.time(), share_s)
    key = _key(chosen)  # of what this process loads, whatever the plan was made of
    outcome = check_one(chosen, name, seconds)
    late = external_modules() - _imported if chosen.implementation else set()
    path = Path(directory) / f"{_digest(chosen, name)}.json"
    write(path, json.dumps({"key": "" if late else key.digest, **asdict(outcome)}), CheckError, "--save")


def check_one(chosen: Plan, name: str, seconds: float | None = None) -> Outcome:
    """Check one scope of a plan, here and now."""
    scope = _scopes(chosen.group)[name]
    if seconds is not None and seconds <= 0:
        return Outcome(name, scope.protocol, UNDECIDED, "the budget was used up before it began", 0, 0, 0.0)
    begun = time.monotonic()
    gc.disable()  # an exploration makes millions of values and no cycles: a tenth of its time would go into looking
    try:
        outcome = scope.check(_parts(chosen, scope.protocol), seconds)
    except (ForeignError, NotRepeatableError) as error:  # the class did something that it must not, deep in a run
        violation = Violation("RAISED", name, 0, str(error))
        return Outcome(name, scope.protocol, "broken", str(error), 0, 0, time.monotonic() - begun, (violation,))
    finally:
        gc.enable()
    return replace(outcome, seconds=round(outcome.seconds, 3))


_known_scopes: dict[str, dict[str, Scope]] = {}
_known_parts: dict[tuple[str, str], Parts] = {}
_known_keys: dict[str, Key] = {}
_imported: set[str] = set()
"""External modules that were loaded before anything was explored, and which the key therefore covers."""


def _scopes(group: str) -> dict[str, Scope]:
    """Once a process."""
    if group not in _known_scopes:
        _known_scopes[group] = {scope.name: scope for scope in SCOPES[group]()}
    return _known_scopes[group]


def _key(chosen: Plan) -> Key:
    """Return the key of the code as this process has loaded it: once, since it loads it once."""
    if chosen.implementation not in _known_keys:
        _known_keys[chosen.implementation] = key_of(chosen.implementation, chosen.folder)
    return _known_keys[chosen.implementation]


def _parts(chosen: Plan, protocol: str) -> Parts:
    if not chosen.implementation:
        return SOUND
    key = chosen.implementation, protocol
    if key not in _known_parts:
        kind = load(chosen.implementation, chosen.folder)
        _imported.update(external_modules())
        _known_parts[key] = parts_of(kind, protocol)
    return _known_parts[key]
