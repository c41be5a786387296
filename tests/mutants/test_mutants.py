"""The mutation run itself: a mistake that nobody notices must not look noticed, and one that is none must not count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mutants import run as mutation
from tests.mutants.mutations import edits
from tests.mutants.run import BY_WORDING, FOLDER, NOTICED, SURVIVED, Equivalents, Mutant, Result, Run
from tests.mutants.tree import ROOT, MutantError, changed_functions, marked, patched

PATCHES = sorted(FOLDER.glob("*.patch"))
SCOPE = "aligned table: one input"
GATE = "impl/checkpoint/gate.py"


@pytest.fixture(scope="module")
def checking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of a single small scope."""
    folder = tmp_path_factory.mktemp("mutants")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutation, "LEAST_S", 1.0)
        yield Run(SCOPE, folder / "results", folder / "work", 1)


def of_gate(old: str, new: str) -> Mutant:
    """A gate in which one text is another."""
    source = (ROOT / GATE).read_text(encoding="utf-8")
    assert source.count(old) == 1
    return Mutant(GATE, "1: a mistake", {GATE: source.replace(old, new)})


def test_there_are_kept_patches() -> None:
    """The next test would judge nothing."""
    assert len(PATCHES) >= 33


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_kept_patch_applies(patch: Path) -> None:
    """Code has moved, and a mistake that was noticed once is planted no more: make the change again where it is now."""
    for path, source in patched(patch).items():
        assert source != (ROOT / path).read_text(encoding="utf-8")
        compile(source, path, "exec")


def test_a_patch_that_does_not_apply_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mutation run would leave it out, and look better than it is."""
    stale = PATCHES[0].read_text(encoding="utf-8").replace("\n-", "\n-as it never was ")
    (tmp_path / "stale.patch").write_text(stale, encoding="utf-8")
    (tmp_path / "equivalent.toml").write_text("", encoding="utf-8")
    monkeypatch.setattr(mutation, "FOLDER", tmp_path)
    assert mutation.main(["--patches-only"]) == 2
    assert "stale.patch does not apply" in capsys.readouterr().err


def test_a_module_that_is_none_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing would be planted, and all of that noticed."""
    assert mutation.main(["--module", "coordinate"]) == 2
    assert "allowed: checkpoint/actions, checkpoint/alignment" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "invariant"),
    [
        pytest.param(
            "self.port.forward(barrier)\n            self._complete", "self._complete", "TABLE", marks=pytest.mark.slow
        ),
        pytest.param(
            "_PASS: Final = AlignmentAction.PASS_THROUGH",
            "_PASS: Final = AlignmentAction.NO_SUCH_ACTION",
            "RAISED",
            marks=pytest.mark.slow,
        ),
        ("step = self.aligner.drain_next(now_ns)", "step = self.aligner.drain_next(1 / 0)", "TABLE"),
        ("step = self.aligner.drain_next(now_ns)", "step = iter(int, 1) and [1 for _ in iter(int, 1)]", "TIMEOUT"),
    ],
    ids=["another effect", "no import", "an exception", "no end"],
)
def test_a_mistake_is_noticed(checking: Run, old: str, new: str, invariant: str) -> None:
    """A mistake that `check` sees would count as one that it does not see."""
    [result] = checking.results([of_gate(old, new)])
    assert (result.verdict, result.invariant) == (NOTICED, invariant), result


def test_what_is_no_mistake_is_not_noticed(checking: Run) -> None:
    """A run that notices everything has planted nothing."""
    [result] = checking.results([of_gate("_PASS: Final = ", "_ANOTHER = 1\n_PASS: Final = ")])
    assert (result.verdict, result.buffered) == (SURVIVED, [SCOPE])


def test_what_no_scope_reaches_is_not_noticed(checking: Run) -> None:
    """It would be checked in vain, or be taken for noticed."""
    mutant = of_gate("count += 1", "count += 2")
    line = 1 + (ROOT / GATE).read_text(encoding="utf-8").split("count += 1")[0].count("\n")
    [result] = checking.results([Mutant(GATE, mutant.name, mutant.sources, {GATE: {line}})])
    assert (result.verdict, result.buffered, result.why) == (SURVIVED, [], "no scope reaches it")


def test_what_is_known_is_not_checked_again(checking: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was interrupted would restart from the initial state; or one of other code would be taken for this
    one."""
    mutant = of_gate("_PASS: Final = ", "_KNOWN = 1\n_PASS: Final = ")
    [before] = checking.results([mutant])
    again = Run(SCOPE, checking.folder, checking.folder / "again", 1)
    monkeypatch.setattr(mutation.Tree, "check", lambda *_: pytest.fail("it is checked again"))
    assert list(again.results([mutant])) == [before]
    with pytest.raises(pytest.fail.Exception):
        list(again.results([of_gate("_PASS: Final = ", "_NEW = 1\n_PASS: Final = ")]))


def test_a_catch_by_wording_alone_is_counted_apart(checking: Run) -> None:
    """A message that reads otherwise would count as a mistake that was found."""
    words = {"scope": "a scripted case", "verdict": "broken", "invariant": "STORY", "why": "line 3"}
    cut = {"scope": "a world", "verdict": "broken", "invariant": "CUT", "why": "lost"}
    alone, both = Result(GATE, "1: x"), Result(GATE, "1: x")
    checking._judge(alone, [words])
    checking._judge(both, [words, cut])
    assert (alone.verdict, alone.invariant) == (BY_WORDING, "STORY")
    assert (both.verdict, both.invariant, both.scope) == (NOTICED, "CUT", "a world")
    table = mutation.rows([of_gate("_PASS: Final = ", "_A = 1\n_PASS: Final = ")] * 2, [alone, both], Equivalents({}))
    assert [(row[NOTICED], row[BY_WORDING], row["share"]) for row in table] == [(1, 1, 50.0)] * 2


SMALL = '''
"""Text."""
LEAST = 1
def f(self, a, by=2):
    """Text."""
    assert a > 0
    if a < 1:
        raise ValueError(f"{a} < 1")
    if a <= by and not self.full:
        self.x = min(a, 3)
        self.note(a)
        self.tell(a)
    return a
'''


def test_edits_are_of_meaning() -> None:
    """Texts, assertions and refusals of wrong calls would be edited, which nobody can notice; or nothing else would."""
    assert [(edit.line, edit.what, edit.in_function) for edit in edits(SMALL.lstrip())] == [
        (2, "constant: 1 -> 2", False),
        (8, "negated: a <= by and not self.full -> (not (a <= by and (not self.full)))", True),
        (8, "and for or: a <= by and not self.full -> (a <= by or not self.full)", True),
        (8, "without a condition: a <= by and not self.full -> (not self.full)", True),
        (8, "without a condition: a <= by and not self.full -> (a <= by)", True),
        (8, "compared: a <= by -> (a < by)", True),
        (9, "dropped: self.x = min(a, 3) -> pass", True),
        (9, "called: min -> max", True),
        (9, "constant: 3 -> 4", True),
        (10, "dropped: self.note(a) -> pass", True),
        (10, "swapped: self.note(a) and self.tell(a)", True),
        (11, "dropped: self.tell(a) -> pass", True),
    ]


def test_the_strict_of_a_zip_is_not_edited() -> None:
    """It refuses a wrong call and does nothing else: each would be a survivor, and be called equivalent."""
    source = "def f(a, b):\n    return list(zip(a, b, strict=True)), True\n"
    assert [edit.what for edit in edits(source)] == ["constant: True -> False"]
    assert "strict=True" in edits(source)[0].source


def test_each_edit_is_another_module_that_compiles() -> None:
    """A mutant that is no Python would count as noticed."""
    source = (ROOT / "impl/checkpoint/injector.py").read_text(encoding="utf-8")
    found = edits(source)
    assert len({edit.source for edit in found} | {source}) == len(found) + 1
    for edit in found:
        compile(edit.source, "injector", "exec")


def test_marked_lines_are_those_that_are_reached() -> None:
    """A scope would be left out that reaches a mistake."""
    module: dict[str, object] = {}
    exec(marked(SMALL.lstrip() + "def g():\n    try:\n        return 1\n    finally:\n        pass\n"), module)
    module["f"](type("S", (), {"full": True})(), 1)  # type: ignore[operator]
    assert module["reached_lines"] == {4, 5, 6, 8, 12}
    module["g"]()  # type: ignore[operator]
    assert module["reached_lines"] == {4, 5, 6, 8, 12, 14, 15, 17}


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("self.note(a)", "self.note(by)", set(range(3, 13))),
        ("    return a", "    a += 1\n    return a", set(range(3, 13))),
        ("by=2", "by=3", None),
        ("LEAST = 1", "LEAST = 2", None),
    ],
)
def test_a_patch_is_where_its_functions_are(old: str, new: str, lines: set[int] | None) -> None:
    """A scope would be left out that reaches what a patch changes."""
    source = SMALL.lstrip()
    assert changed_functions(source, source.replace(old, new)) == lines


def test_few_edits_are_equivalent_and_each_for_a_reason() -> None:
    """The list would be where survivors go."""
    known = Equivalents.read()
    for module in {key[0] for key in known.reasons}:
        most = len(edits((ROOT / module).read_text(encoding="utf-8"))) / 20
        assert sum(key[0] == module for key in known.reasons) <= most, module


def test_an_equivalent_that_is_no_edit_is_an_error(tmp_path: Path) -> None:
    """Code has changed, and what was equivalent then may be a mistake now."""
    path = tmp_path / "equivalent.toml"
    entry = f'[[equivalent]]\nmodule = "{GATE}"\nfunction = "f"\nline = "x"\nedit = "dropped: x -> pass"\n'
    path.write_text(entry, encoding="utf-8")
    with pytest.raises(MutantError, match="no reason"):
        Equivalents.read(path)
    path.write_text(entry + 'reason = "none"\n', encoding="utf-8")
    with pytest.raises(MutantError, match="no such edit"):
        Equivalents.read(path)
