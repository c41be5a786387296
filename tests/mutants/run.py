"""The mutation run: which planted mistakes `barrierlab check` notices, and by what.

Planted are the kept patches (tests/mutants/*.patch) and, in each module of `impl`, a sample of the line-wise edits of
`tests.mutants.mutations`, drawn by a seed. Each mutant is checked in a copy of the product, up to the first scope that
is broken; scopes that have caught mutants of the same module come first, and those that never reach the changed lines
are left out. Neither mutmut nor cosmic-ray fits: both plant into one tree, ask a test command for an exit status, and
plant no patches; here it counts which invariant of which scope said so, and a catch by wording alone is none.

    noticed     a scope is broken, raises, does not end within ten times its time, or cannot be imported
    by wording  only the golden traces differ (STORY): the verdict rests on words; that does not count as noticed
    survived    every scope holds that reaches the lines
    equivalent  in equivalent.toml, with the reason: left out of the share

`--resume DIR` keeps there what is known of this very tree: run again, it goes on where it stopped. The exit status is
0, or 1 below `--bar`; 2 if a patch does not apply, an equivalent is none of the edits, or the sound product is broken.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from tests.mutants.mutations import Edit, edits
from tests.mutants.tree import (
    PACKAGES,
    ROOT,
    WORDING,
    MutantError,
    Tree,
    changed_functions,
    comment_of,
    marked,
    patched,
)

FOLDER = Path(__file__).parent
NOT_EDITED = ("__init__", "errors", "reasons")
"""Modules of texts and names."""
LEAST_S, TIMES = 10.0, 10.0
"""A scope may take so many times the CPU seconds of the sound product, and these at least: slow is not endless."""
AHEAD = 8
"""So many mutants may be under way: the order of scopes is learned from those before, whatever the number of jobs."""
NOTICED, BY_WORDING, SURVIVED = "noticed", "by wording", "survived"


@dataclass(frozen=True)
class Mutant:
    """A planted mistake.

    Attributes
    ----------
    module : str
        Path of the module in the repository; of a patch, of the first it changes.
    name : str
        Line and edit, or the patch and its comment.
    sources : dict of str to str
        The changed modules, by path.
    lines : dict of str to set of int, or None
        Of today's modules, lines of which one is reached where the mistake shows; None: it may show anywhere.
    edit : Edit or None
        None for a patch.
    """

    module: str
    name: str
    sources: dict[str, str]
    lines: dict[str, set[int]] | None = None
    edit: Edit | None = None


@dataclass
class Result:
    """The outcome of a mutant.

    Attributes
    ----------
    module, name : str
    verdict : str
    invariant, scope, why : str
        The first thing that was broken.
    broken, buffered : list of str
        Scopes.
    """

    module: str
    name: str
    verdict: str = SURVIVED
    invariant: str = ""
    scope: str = ""
    why: str = "no scope reaches it"
    broken: list[str] = field(default_factory=list)
    buffered: list[str] = field(default_factory=list)


def patches(modules: Sequence[str]) -> Iterator[Mutant]:
    """The kept patches that change one of the modules.

    Raises
    ------
    MutantError
        If one does not apply, whatever it changes.
    """
    for patch in sorted(FOLDER.glob("*.patch")):
        sources = patched(patch)
        if set(sources) & set(modules):
            lines = {
                path: changed_functions((ROOT / path).read_text(encoding="utf-8"), sources[path]) for path in sources
            }
            in_functions = None if None in lines.values() else {path: found or set() for path, found in lines.items()}
            yield Mutant(next(iter(sources)), f"{patch.stem}: {comment_of(patch)}", sources, in_functions)


def planted(module: str, sample: int, seed: int) -> list[Mutant]:
    """A sample of the edits of a module, in the order of its lines."""
    found = edits((ROOT / module).read_text(encoding="utf-8"))
    chosen = sorted(random.Random(f"{module} {seed}").sample(range(len(found)), min(sample, len(found))))
    return [_of_edit(module, found[at]) for at in chosen]


def _of_edit(module: str, edit: Edit) -> Mutant:
    lines = {module: set(range(edit.line, edit.last_line + 1))} if edit.in_function else None
    return Mutant(module, f"{edit.line}: {edit.what}", {module: edit.source}, lines, edit)


@dataclass(frozen=True)
class Equivalents:
    """The kept list of edits that change nothing that the protocol asks for.

    Attributes
    ----------
    reasons : dict
        By module, function, line and edit.
    """

    reasons: dict[tuple[str, str, str, str], str]

    @classmethod
    def read(cls, path: Path = FOLDER / "equivalent.toml") -> Equivalents:
        """As they are kept.

        Raises
        ------
        MutantError
            If one is none of the edits of its module, or has no reason.
        """
        reasons = {}
        for each in tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", []):
            key = each["module"], each["function"], each["line"], each["edit"]
            if not each.get("reason"):
                raise MutantError(f"{path.name}: {' | '.join(key)}: no reason; give one")
            reasons[key] = each["reason"]
        known = {key for module in {key[0] for key in reasons} for key in map(_key, _edits_of(module))}
        for key in reasons:
            if key not in known:
                raise MutantError(f"{path.name}: {' | '.join(key)}: no such edit; the code has moved: look at it again")
        return cls(reasons)

    def reason(self, mutant: Mutant) -> str | None:
        """Return the reason why it is equivalent; None if it is not."""
        return None if mutant.edit is None else self.reasons.get(_key((mutant.module, mutant.edit)))


def _edits_of(module: str) -> list[tuple[str, Edit]]:
    path = ROOT / module
    return [(module, edit) for edit in edits(path.read_text(encoding="utf-8"))] if path.is_file() else []


def _key(of: tuple[str, Edit]) -> tuple[str, str, str, str]:
    module, edit = of
    return module, edit.function, edit.text, edit.what


class Run:
    """Mutants checked against scopes.

    Parameters
    ----------
    group : str
        As `barrierlab check --scope`.
    folder : Path
        Where what is known is kept.
    work : Path
        Where copies of the product are made.
    jobs : int
    """

    def __init__(self, group: str, folder: Path, work: Path, jobs: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.group, self.folder, self.jobs = group, folder, jobs
        self.tree_digest = _digest({path: path.read_bytes() for path in _sources()}, group)
        self.trees: SimpleQueue[Tree] = SimpleQueue()
        for number in range(jobs):
            self.trees.put(Tree(work / f"{number}"))
        self.known = self._known()
        self.sound = self._sound()
        self.tried: dict[tuple[str, str], list[int]] = {}

    def _known(self) -> dict[str, Result]:
        path = self.folder / "results.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return {key: Result(**result) for key, result in map(json.loads, lines)}

    def _sound(self) -> dict[str, dict[str, Any]]:
        """Return what each scope costs on the sound product, and which lines of `impl` it reaches."""
        path = self.folder / f"sound-{self.tree_digest}.json"
        if not path.exists():
            print("checking the sound product, with its lines marked ...", file=sys.stderr, flush=True)
            sources = {module: marked((ROOT / module).read_text(encoding="utf-8")) for module in modules_of("impl")}
            tree = self.trees.get()
            with tree.planted(sources):
                outcomes = tree.check(self.group, (), 3600.0)
            self.trees.put(tree)
            for each in outcomes:
                if each["verdict"] != "holds":
                    raise MutantError(f"the sound product: {each['scope']}: {each['why']}; mend it first")
            path.write_text(json.dumps({each["scope"]: each for each in outcomes}), encoding="utf-8")
        sound: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return sound

    def results(self, mutants: Sequence[Mutant]) -> Iterator[Result]:
        """Return what becomes of each, in their order."""
        with ThreadPoolExecutor(self.jobs) as pool:
            futures: list[Future[Result]] = []
            for at, mutant in enumerate(mutants):
                if at >= AHEAD:
                    self._learn(futures[at - AHEAD].result())
                    yield futures[at - AHEAD].result()
                futures.append(pool.submit(self._result, mutant, self._order(mutant)))
            for future in futures[-AHEAD:]:
                yield future.result()

    def _result(self, mutant: Mutant, scopes: list[str]) -> Result:
        key = _digest(mutant.sources, self.tree_digest)
        if key not in self.known:
            result = Result(mutant.module, mutant.name)
            if scopes:
                limits = [(name, max(LEAST_S, TIMES * self.sound[name]["seconds"])) for name in scopes]
                tree = self.trees.get()
                with tree.planted(mutant.sources):
                    outcomes = tree.check(self.group, limits, LEAST_S)
                self.trees.put(tree)
                self._judge(result, outcomes)
            self.known[key] = result
            with (self.folder / "results.jsonl").open("a", encoding="utf-8") as kept:
                kept.write(json.dumps((key, asdict(result))) + "\n")
        return self.known[key]

    def _judge(self, result: Result, outcomes: Sequence[dict[str, Any]]) -> None:
        """The first break that is none of words; else the first of words."""
        broken = [each for each in outcomes if each["verdict"] != "holds"]
        result.buffered = [each["scope"] for each in outcomes if each["verdict"] == "holds"]
        result.broken = [each["scope"] for each in broken if each["invariant"] != WORDING]
        result.why = "every scope holds that reaches it"
        if broken:
            first = min(broken, key=lambda each: each["invariant"] == WORDING)
            result.verdict = BY_WORDING if first["invariant"] == WORDING else NOTICED
            result.invariant, result.scope, result.why = first["invariant"], first["scope"], first["why"]

    def _order(self, mutant: Mutant) -> list[str]:
        """The scopes that reach the mutant: first those that promise most for what they cost, scripted cases last."""
        reaching = [name for name, sound in self.sound.items() if _reaches(sound["reached"], mutant.lines)]

        def promise(name: str) -> tuple[bool, float]:
            caught, tried = self.tried.get((mutant.module, name), (0, 0))
            return " scripted case: " in name, -(caught + 0.2) / (tried + 1) / (self.sound[name]["transitions"] + 500)

        return sorted(reaching, key=promise)

    def _learn(self, result: Result) -> None:
        for names, caught in ((result.buffered, 0), (result.broken, 1)):
            for name in names:
                known = self.tried.setdefault((result.module, name), [0, 0])
                known[0] += caught
                known[1] += 1


def _reaches(reached: dict[str, list[int]], lines: dict[str, set[int]] | None) -> bool:
    if lines is None:
        return True
    return any(lines[path].intersection(reached.get(_dotted(path), ())) for path in lines)


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _digest(sources: dict[Any, Any], beside: str) -> str:
    digest = hashlib.sha256(beside.encode())
    for path, source in sorted(sources.items()):
        digest.update(f"\n{path}\n".encode() + (source if isinstance(source, bytes) else source.encode()))
    return digest.hexdigest()[:16]


def _sources() -> list[Path]:
    """All on which a verdict may depend."""
    return [
        path
        for package in PACKAGES
        for path in (ROOT / package).glob("**/*")
        if path.is_file() and "__pycache__" not in path.parts
    ]


def modules_of(asked: str) -> list[str]:
    """The paths of a module, or of all modules of a folder, that have something to edit: `coordinator`, `join`, `impl`.

    Raises
    ------
    MutantError
        If there is none.
    """
    inside = asked.removeprefix("impl").strip("./").replace(".", "/")
    found = sorted((ROOT / "impl").glob(f"**/{inside}.py" if inside else "**/*.py"))
    found = found or sorted((ROOT / "impl").glob(f"{inside}/**/*.py"))
    paths = [str(path.relative_to(ROOT)) for path in found if path.stem not in NOT_EDITED]
    if not paths:
        every = ", ".join(path.removeprefix("impl/").removesuffix(".py") for path in modules_of("impl"))
        raise MutantError(f"--module {asked}: nothing to edit; allowed: {every}, or a folder of them")
    return paths


# What it came to.


def rows(mutants: Sequence[Mutant], results: Sequence[Result], equivalents: Equivalents) -> list[dict[str, Any]]:
    """A row a module, edits and patches apart, and one of all."""
    groups: dict[str, list[tuple[Mutant, Result]]] = {}
    for mutant, result in zip(mutants, results, strict=True):
        of = _dotted(mutant.module).removeprefix("impl.") if mutant.edit else "patches"
        for name in (of, "all"):
            groups.setdefault(name, []).append((mutant, result))
    whole = groups.pop("all", [])
    return [_row(name, pairs, equivalents) for name, pairs in (*groups.items(), ("all", whole))]


def _row(name: str, pairs: Sequence[tuple[Mutant, Result]], equivalents: Equivalents) -> dict[str, Any]:
    count = {verdict: sum(result.verdict == verdict for _, result in pairs) for verdict in (NOTICED, BY_WORDING)}
    equivalent = sum(result.verdict != NOTICED and equivalents.reason(mutant) is not None for mutant, result in pairs)
    by: dict[str, int] = {}
    for _, result in pairs:
        if result.verdict == NOTICED:
            by[result.invariant] = by.get(result.invariant, 0) + 1
    judged = len(pairs) - equivalent
    return {
        "module": name,
        "planted": len(pairs),
        "applied": len(pairs),  # one that does not apply has ended the run
        **count,
        "equivalent": equivalent,
        SURVIVED: judged - count[NOTICED] - count[BY_WORDING],
        "share": round(100 * count[NOTICED] / judged, 1) if judged else 100.0,
        "by": dict(sorted(by.items(), key=lambda each: (-each[1], each[0]))),
    }


def lines(table: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The table as text."""
    yield f"{'module':18} planted applied noticed wording survived equivalent  noticed %  by"
    for row in table:
        by = ", ".join(f"{name} {count}" for name, count in row["by"].items())
        counts = f"{row['planted']:7} {row['applied']:7} {row[NOTICED]:7} {row[BY_WORDING]:7} {row[SURVIVED]:8}"
        yield f"{row['module']:18} {counts} {row['equivalent']:10} {row['share']:10.1f}  {by}"


def told(mutant: Mutant, result: Result, equivalents: Equivalents) -> str:
    """A result in a line."""
    reason = equivalents.reason(mutant)
    verdict = f"equivalent ({reason})" if reason and result.verdict != NOTICED else result.verdict
    by = f" by {result.invariant} in {result.scope}" if result.invariant else f": {result.why}"
    return f"{verdict}{by} | {mutant.module}:{mutant.name}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    described = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tests.mutants.run", description=__doc__, formatter_class=described)
    parser.add_argument("--module", action="append", help="only of this one, such as coordinator, or join; repeatable")
    parser.add_argument("--scope", default="small", help="as barrierlab check --scope: small by default")
    parser.add_argument("--patches-only", action="store_true", help="the kept patches, and no edits")
    parser.add_argument("--sample", type=int, default=8, help="how many edits of each module; 8 by default, 0 for none")
    parser.add_argument("--seed", type=int, default=0, help="of the sample; 0 by default")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time; 2 by default")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="keep results there, and take over what is known")
    parser.add_argument("--bar", type=float, default=0.0, metavar="PERCENT", help="exit status 1 below that")
    parser.add_argument("--verbose", action="store_true", help="a line for those that are noticed, too")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    given = parser.parse_args(arguments)
    try:
        return _run(given)
    except MutantError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2


def _run(given: argparse.Namespace) -> int:
    modules = [path for asked in given.module or ["impl"] for path in modules_of(asked)]
    equivalents = Equivalents.read()
    mutants = list(patches(modules))
    if not given.patches_only:
        mutants += [mutant for module in modules for mutant in planted(module, given.sample, given.seed)]
    with TemporaryDirectory(prefix="barrierlab-mutants-") as work:
        run = Run(given.scope, given.resume or Path(work) / "results", Path(work), max(1, given.jobs))
        results = []
        for mutant, result in zip(mutants, run.results(mutants), strict=True):
            results.append(result)
            if result.verdict != NOTICED or given.verbose:
                print(told(mutant, result, equivalents), file=sys.stderr if given.json else sys.stdout, flush=True)
    table = rows(mutants, results, equivalents)
    if given.json:
        print(json.dumps({"modules": table, "mutants": [asdict(result) for result in results]}, indent=2))
    else:
        print("\n".join(["", *lines(table)]))
    return int(table[-1]["share"] < given.bar)


if __name__ == "__main__":
    sys.exit(main())
