"""Scopes checked side by side, on the cores of this machine or on Spark; each verdict is kept as soon as it is there.

What is spread are whole scopes: the states of one scope have to meet in one place, so that sharing them out costs more
than it gains. For a scope that is larger than memory there is that other way, on Spark (`sim.check.spread`).
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from barrierlab.model.checkpoint.asked import JUDGES, NotAsked, divided, left_out
from barrierlab.model.checkpoint.capabilities import DIFFERENCES, EXTENT, RULES, SIZE
from barrierlab.model.checkpoint.check import Outcome, Scope, ScopeViolation, WorldScope
from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.checkpoint.external import drains_first, load
from barrierlab.model.checkpoint.external_parts import ALIGNER, External
from barrierlab.model.checkpoint.hosting import ExternalError
from barrierlab.model.checkpoint.partial_order import Ample
from barrierlab.model.checkpoint.protocols import PROTOCOLS as OF_BARRIERS
from barrierlab.model.checkpoint.state_graph import StateGraph, state_graph
from barrierlab.model.checkpoint.world import Move, World, WorldState
from barrierlab.model.errors import InputError
from barrierlab.model.explore.checker import STATM, UNDECIDED, Exploration, NonDeterministicError, resident_bytes
from barrierlab.model.origin import is_external
from barrierlab.model.spec.history import Entry
from barrierlab.model.spec.topology import suggestion
from barrierlab.model.suites.standard import SCOPES
from barrierlab.sim.check.contained import contained
from barrierlab.sim.check.ledger import KeptError, file_of, keep, kept
from barrierlab.sim.check.program import ProgramAligner, ProgramError, aligner_of, end_programs, faults_reported
from barrierlab.sim.check.sources import VerdictKey, external_modules, key_of
from barrierlab.sim.core.collector import collector_paused
from barrierlab.sim.core.files import write

PROTOCOLS = (*OF_BARRIERS, "control", "join", "component", "store")
SPREADS = ("scopes", "states")
"""The kinds of parts that workers may share."""
STATES = SPREADS[1]
Elsewhere = Callable[[Callable[[], Components], World, float | None, Ample | None], Exploration[WorldState, Move]]
"""`Explores`, given what makes the components in a worker."""
MOST_GARBAGE_BYTES = 1 << 30
"""So much a worker may occupy before it looks for what may go: the worlds of ended scopes."""
BUDGETS_S = {"full": 3600.0}
"""Of groups of which not every scope can be seen to its end: their budgets, where none is given."""


class CheckError(InputError):
    """A refused check: one line, with what to do."""


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """The plan of a check.

    Attributes
    ----------
    group : str
        A name in `model.suites.standard.SCOPES`.
    names : tuple of str
        Of scopes there.
    implementation : str
        ``module:Class`` of an external class, several with commas between them, or the command of a program; empty:
        those of `impl`.
    folder : str
        Where its module is looked for, beside the path.
    judge : str
        One of `model.checkpoint.asked.JUDGES`; empty where no external aligner is judged.
    not_asked : tuple of NotAsked
        The scopes that need what the class does not declare.
    left_out : tuple of str
        The capabilities for want of which scopes that are asked are asked less.
    drains_first : bool
        Whether the class declares that its loop releases what may go before it reads on.
    scope : str
        The group, or the one scope, that was asked for by name.
    limit_s : float
        Seconds that a program has for an answer; 0 if it is none.
    """

    group: str
    names: tuple[str, ...]
    implementation: str = ""
    folder: str = ""
    judge: str = ""
    not_asked: tuple[NotAsked, ...] = ()
    left_out: tuple[str, ...] = ()
    drains_first: bool = False
    scope: str = ""
    limit_s: float = 0.0

    @property
    def is_program(self) -> bool:
        """Return whether the aligner is that of a program in any language."""
        return self.limit_s > 0

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The capabilities for want of which a scope is not asked, or less of it; differences that it does not permit;
        its size."""
        found = {each.capability for each in self.not_asked}.union(self.left_out)
        return tuple(name for name in (*RULES, *DIFFERENCES, *EXTENT) if name in found)


def plan(scope: str, protocols: Sequence[str], implementation: str, judge: str = "", limit_s: float = 0.0) -> CheckPlan:
    """The scopes of a group, or one scope by its name, for some protocols: by default all that apply.

    Of an external aligner, those that `judge` asks, and that need no more than it declares. With `limit_s` it is a
    program, which has so many seconds for an answer.

    Raises
    ------
    CheckError, ExternalError, ProgramError
        If there is no such scope, or the class or the program cannot be checked so.
    """
    group, names = _named(scope)
    asked: tuple[str, ...] = tuple(protocols) or PROTOCOLS
    folder = str(Path.cwd())
    scopes = [each for each in SCOPES[group]() if not names or each.name in names]
    not_asked: tuple[NotAsked, ...] = ()
    less: tuple[str, ...] = ()
    first = False
    if judge and not implementation:
        raise CheckError(
            f"--judge {judge} needs --impl MODULE:CLASS or --exec COMMAND: the machines of this package are judged by "
            "both"
        )
    if implementation:
        asks = f"{'--exec' if limit_s else '--impl'} {implementation}"
        external = External.of(_kinds(implementation, folder, limit_s))
        aligner, capabilities = external.aligner, external.capabilities
        first = aligner is not None and drains_first(aligner)
        if judge == "table" and tuple(external.of_role) != (ALIGNER,):
            raise CheckError(f"--judge table with {asks}: allowed for an aligner alone")
        able = external.able
        beyond = [protocol for protocol in protocols if protocol not in able]
        if beyond:
            raise CheckError(f"--protocol {beyond[0]} with {asks}: allowed for it: {', '.join(able)}")
        asked = tuple(protocol for protocol in asked if protocol in external.protocols)
        for protocol in able:
            if protocol in asked:
                _looked_at(external, protocol)
        judge = judge or JUDGES[0]
        its = [each for each in scopes if each.protocol in asked and external.takes_part(each)]
        scopes, others = divided(its, capabilities, judge, external.reducible)
        not_asked, less = tuple(others), left_out(scopes, capabilities)
        if its and not scopes:
            lacks = ", ".join(dict.fromkeys(each.capability for each in others))
            kinds = ", ".join(kind.__name__ for kind in external.of_role.values())
            reason = f"all of it needs what {kinds} does not declare: {lacks}" if others else _ONLY_THE_TABLE
            if lacks == SIZE:
                reason = f"there are only {EXTENT[SIZE]}; take --scope small, or a smaller dataflow by its name"
            raise CheckError(f"--scope {scope!r}: nothing is left to ask of {asks}: {reason}")
    found = tuple(each.name for each in scopes if each.protocol in asked)
    if not found:
        raise CheckError(
            f"--scope {scope!r} has nothing of {', '.join(asked)}; leave --protocol out to check all of it"
        )
    return CheckPlan(group, found, implementation, folder, judge, not_asked, less, first, scope, limit_s)


def _kinds(implementation: str, folder: str, limit_s: float) -> tuple[type, ...]:
    """Return the classes that are checked: those that are imported, or a program seen as one."""
    if not limit_s:
        with contained():
            return tuple(load(each, folder) for each in implementation.split(","))
    with faults_reported():
        return (aligner_of(implementation, folder, limit_s),)


def _looked_at(external: External, protocol: str) -> Components:
    """Return the components with external ones among them, or say in a line why they cannot stand in."""
    with faults_reported(), contained():
        parts = external.parts(protocol)
        if external.aligner is not None and issubclass(external.aligner, ProgramAligner):
            external.aligner.program.take_again()
        return parts


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
    chosen: CheckPlan,
    master: str,
    budget_s: float | None,
    directory: Path | None = None,
    resume: bool = False,
    tick: Callable[[int], None] = lambda done: None,
    say: Callable[[str], None] = lambda line: None,
    is_ledger: bool = False,
    spread: str = SPREADS[0],
) -> list[Outcome]:
    """Check what is planned, and give the outcomes in the plan's order.

    An external class is checked in this process in the tiny group, unless verdicts are kept or `master` gives a number
    of processes: to start one costs about a second of CPU time, as much as some twenty scopes.

    Parameters
    ----------
    chosen : CheckPlan
    master : str
        A Spark master, or `processes` or `processes[N]`.
    budget_s : float or None
        Seconds. When it is used up, what is not decided stays so; and none of many scopes gets more than twice its
        share of what is left, so that one that is too large does not leave the others without. On processes the
        scopes that look the smallest come first: what they leave of their shares is the larger ones'. What is left in
        the end is for those that are not decided.
    directory : Path, optional
        Where verdicts are kept, a file each.
    resume : bool
        Whether those that are decided there already count, if nothing has changed on which they depend.
    tick : callable
        Told, some times a second, how many are done.
    say : callable
        Told, in a line, which kept verdicts do not count, and why.
    is_ledger : bool
        Whether the folder is a ledger: it is resumed, and if a verdict in it cannot be read, that is said, and
        everything is checked anew.
    spread : str
        One of `SPREADS`: the scopes, or the states of each, one scope after the other (`sim.check.spread`).

    Raises
    ------
    CheckError
        If states are to be spread over processes.
        If the folder cannot be made, or a verdict in it cannot be read that is in no ledger.
    """
    from barrierlab.sim.sweep.execute import interrupts, on_processes, on_spark
    from barrierlab.sim.sweep.session import PROCESSES, check_master, process_count, spark_session

    processes = process_count(check_master(master))
    if spread == STATES and processes is not None:
        raise CheckError(f"--spread {spread} with --master {master}: allowed with a Spark master, such as local[2]")
    with ExitStack() as stack:
        stack.callback(end_programs)
        keeps = directory is not None
        if not keeps and chosen.implementation and chosen.group == "tiny" and master == PROCESSES:
            return _run_here(chosen, budget_s, tick)
        if directory is None:
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="barrierlab-check-")))
        is_new = not directory.exists()
        make_folder(directory, "--ledger" if is_ledger else "--save")
        if is_ledger and is_new:  # a cache is not for version control
            write(directory / ".gitignore", "*\n", CheckError, "--ledger")
        files = {name: file_of(directory, chosen.implementation, name) for name in chosen.names}
        taken = _taken_over(list(files.values()), chosen, resume, is_ledger, say)
        missing = [name for name, path in files.items() if path not in taken]
        workers = 1 if spread == STATES else processes or os.cpu_count() or 1
        if budget_s is not None and processes is not None:
            missing.sort(key=lambda name: size_rank(_scopes(chosen.group)[name]))
        budget = Budget.of(budget_s, workers)
        work = partial(_check_into, chosen, str(directory.resolve()), budget, keeps)
        interrupted = stack.enter_context(interrupts())

        def watch() -> None:
            tick(sum(path.exists() for path in files.values()))
            if interrupted():
                raise KeyboardInterrupt

        if missing and processes is None:
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (chosen.folder, os.environ.get("PYTHONPATH"))))
            session = spark_session(master)
            if spread == STATES:
                from barrierlab.sim.check.spread import explored_on

                for name in missing:
                    work(name, partial(explored_on, session, directory.resolve(), watch))
                    watch()
            else:
                on_spark(session, missing, work, watch)
        elif missing:
            on_processes(processes or 1, missing, work, watch)
            if budget_s is not None and (again := _worth_more({n: kept(files[n])[1] for n in missing}, budget)):
                for name in again:
                    files[name].unlink()
                on_processes(processes or 1, again, work, watch)
        watch()
        return [taken[path] if path in taken else kept(path)[1] for path in files.values()]


def make_folder(directory: Path, option: str) -> None:
    """Make a folder that an option names, unless it is there.

    Raises
    ------
    CheckError
        If it cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckError(f"{option} {directory}: cannot be made: {error.strerror}; give another folder") from error


def _run_here(chosen: CheckPlan, budget_s: float | None, tick: Callable[[int], None]) -> list[Outcome]:
    budget, outcomes = Budget.of(budget_s, 1), []
    for number, name in enumerate(chosen.names):
        outcomes.append(check_one(chosen, name, budget.share_s(len(chosen.names) - number)))
        tick(number + 1)
    return outcomes


class Budget(NamedTuple):
    """The time that several workers have for many scopes.

    Attributes
    ----------
    deadline_s : float or None
        When it is used up; None if it never is.
    workers : int
    """

    deadline_s: float | None
    workers: int

    @classmethod
    def of(cls, budget_s: float | None, workers: int) -> Budget:
        """Return a budget of so many seconds from now."""
        return cls(None if budget_s is None else time.time() + budget_s, workers)

    def share_s(self, scopes: int) -> float | None:
        """Return what the next of so many scopes gets at most: four times its share of what is left; few take long."""
        if self.deadline_s is None:
            return None
        left_s = self.deadline_s - time.time()
        return min(left_s, 4 * left_s * self.workers / max(1, scopes))


def _worth_more(outcomes: Mapping[str, Outcome], budget: Budget) -> list[str]:
    """Return the undecided scopes that would have more than twice the time now that they had."""
    undecided = {name: outcome for name, outcome in outcomes.items() if outcome.verdict == UNDECIDED}
    share_s = budget.share_s(len(undecided)) or 0.0
    return [name for name, outcome in undecided.items() if share_s > 2 * outcome.seconds]


def size_rank(scope: Scope) -> int:
    """Return a rank by which scopes that take longer come later, as a rule: a step is about four times the states.

    >>> from barrierlab.model.checkpoint.scope import Bounds
    >>> chain, pair = Bounds("a->s"), Bounds("a->s b->s", mode="unaligned", closes=True)
    >>> [size_rank(WorldScope("", bounds)) for bounds in (chain, pair)]
    [3, 9]
    """
    if not isinstance(scope, WorldScope):
        return 0
    bounds, topology = scope.bounds, scope.bounds.graph()
    faults = 2 * (bounds.closes + bool(bounds.crashes) + bool(bounds.expiries)) + bool(bounds.cancels)
    return len(topology.channels) + 2 * len(topology.sources) + faults + bounds.protocol.goes_unaligned


def _taken_over(
    paths: Sequence[Path], chosen: CheckPlan, resume: bool, is_ledger: bool, say: Callable[[str], None]
) -> dict[Path, Outcome]:
    """Return the kept verdicts that count, those that are decided and of the same key, and remove the others."""
    there = [path for path in paths if path.exists()]
    option = "--changed" if is_ledger else "--resume"
    found: dict[Path, Outcome] = {}
    if there and (resume or is_ledger):
        try:
            key = key_of(chosen.implementation, chosen.folder)
            decided = {path: each for path in there if (each := kept(path))[1].verdict != UNDECIDED}
        except KeptError as error:
            if not is_ledger:
                raise CheckError(f"{error}; remove it, and its scope is checked again") from error
            say(f"{option}: {error}; everything is checked anew")
        else:
            of_key = [path for path, (its_key, _) in decided.items() if key.digest and its_key == key.digest]
            found = {path: replace(decided[path][1], kept=True) for path in of_key}
            if changed := len(decided) - len(found):
                why = key.reason or "what they depend on has changed, or was not known"
                counts = f"{changed} of {len(decided)} kept verdicts do not count"
                say(f"{option}: {counts}: {why}; their scopes are checked again")
    for path in there:
        if path not in found:
            path.unlink(missing_ok=True)
    return found


# In the worker.


def _check_into(
    chosen: CheckPlan,
    directory: str,
    budget: Budget,
    keeps: bool,
    name: str,
    elsewhere: Elsewhere | None = None,
) -> None:
    """Check one scope, and write down what it came to: whole or not at all.

    If the verdict is to be kept, it gets a key, unless what it depends on was loaded or read behind that key's back.
    """
    key = (
        _key(chosen) if keeps and not chosen.is_program else VerdictKey("")
    )  # of what this process loads, whatever the plan was made of
    keeps_garbage = elsewhere is None and _makes_no_cycles(chosen)
    with _noting_files(), _garbage_kept() if keeps_garbage else nullcontext():
        outcome = check_one(chosen, name, _share_s(chosen, Path(directory), budget), elsewhere)
    late = chosen.implementation and (external_modules() - _imported or _opened - key.files)
    keep(file_of(Path(directory), chosen.implementation, name), "" if late else key.digest, outcome)


def _share_s(chosen: CheckPlan, directory: Path, budget: Budget) -> float | None:
    """Return how many seconds a scope gets now: those that are checked have a file."""
    if budget.deadline_s is None:
        return None
    return budget.share_s(sum(not file_of(directory, chosen.implementation, name).exists() for name in chosen.names))


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Keep what becomes garbage meanwhile as long as it is little, and do not look through it."""
    with collector_paused():
        try:
            yield
        finally:
            if resident_bytes() < MOST_GARBAGE_BYTES:
                gc.freeze()
            else:
                gc.unfreeze()
                gc.collect()


@contextmanager
def _noting_files() -> Iterator[None]:
    """Note in `_opened` which external files are opened meanwhile."""
    global _is_noting  # noqa: PLW0603 - a hook cannot be taken off again, so that it is put on once and asks this
    if not _hooked:
        sys.addaudithook(_note)
        _hooked.append(True)
    _is_noting = True
    try:
        yield
    finally:
        _is_noting = False


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _is_noting and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        opened = Path(os.fsdecode(arguments[0]))
        if opened == STATM:  # the explorer's own look at its memory
            return
        path = opened.resolve()
        if is_external(path) and "__pycache__" not in path.parts:  # where what was imported is kept, compiled
            _opened.add(str(path))


def check_one(
    chosen: CheckPlan, name: str, seconds: float | None = None, elsewhere: Elsewhere | None = None
) -> Outcome:
    """Check one scope of a plan, here and now; the states of a dataflow elsewhere, if that is said."""
    scope = _scopes(chosen.group)[name]
    if seconds is not None and seconds <= 0:
        return Outcome(name, scope.protocol, UNDECIDED, "the budget was used up before it began", 0, 0, 0.0)
    begun = time.monotonic()
    try:
        with faults_reported(), collector_paused() if _makes_no_cycles(chosen) else contained():
            components = _components(chosen, scope.protocol)
            if elsewhere is not None and isinstance(scope, WorldScope):
                explores = partial(elsewhere, partial(_components, chosen, scope.protocol))
                outcome = scope.check(components, seconds, explores)
            else:
                outcome = scope.check(components, seconds)
            if chosen.is_program:
                aligner_of(chosen.implementation, chosen.folder, chosen.limit_s).program.take_again()
    except (ExternalError, NonDeterministicError) as error:  # the class did something that it must not, deep in a run
        if chosen.is_program:
            raise ProgramError(f"--exec {chosen.implementation!r}: {error}") from None
        violation = ScopeViolation("RAISED", name, 0, str(error))
        return Outcome(name, scope.protocol, "broken", str(error), 0, 0, time.monotonic() - begun, (violation,))
    return replace(outcome, seconds=round(outcome.seconds, 3))


def _makes_no_cycles(chosen: CheckPlan) -> bool:
    """Return whether no external class runs here: of `impl`, a scope makes millions of values, and one cycle."""
    return not chosen.implementation or chosen.is_program


def states_of(chosen: CheckPlan, violation: ScopeViolation, entries: Sequence[Entry]) -> StateGraph | None:
    """Return the states around a counterexample; None of a program, and of what is no run of a dataflow."""
    scope = _scopes(chosen.group).get(violation.scope)
    if not isinstance(scope, WorldScope) or chosen.is_program:
        return None
    try:
        with faults_reported(), contained():
            world = World(scope.bounds, _components(chosen, scope.protocol))
            return state_graph(world, entries, reason=f"{violation.invariant}: {violation.reason}")
    except (ExternalError, NonDeterministicError):
        return None


_known_scopes: dict[str, dict[str, Scope]] = {}
_known_parts: dict[tuple[tuple[type, ...], str], Components] = {}
_known_keys: dict[str, VerdictKey] = {}
_imported: set[str] = set()
"""External modules that were loaded before anything was explored, and which the key therefore covers."""
_hooked: list[bool] = []
_is_noting = False
_opened: set[str] = set()
"""External files that were opened while a scope was explored, in this process; of later scopes, too, for what was read
may be remembered."""


def _scopes(group: str) -> dict[str, Scope]:
    """Return the scopes of a name, read once a process."""
    if group not in _known_scopes:
        _known_scopes[group] = {scope.name: scope for scope in SCOPES[group]()}
    return _known_scopes[group]


def _key(chosen: CheckPlan) -> VerdictKey:
    """Return the key of the code as this process has loaded it: once, since it loads it once."""
    if chosen.implementation not in _known_keys:
        _known_keys[chosen.implementation] = key_of(chosen.implementation, chosen.folder)
    return _known_keys[chosen.implementation]


def _components(chosen: CheckPlan, protocol: str) -> Components:
    if not chosen.implementation:
        return SOUND
    kinds = _kinds(chosen.implementation, chosen.folder, chosen.limit_s)
    key = kinds, protocol
    if key not in _known_parts:
        _imported.update(external_modules())
        _known_parts[key] = _looked_at(External.of(kinds), protocol)
    return _known_parts[key]
