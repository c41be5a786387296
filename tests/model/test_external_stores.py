"""Stores of an engine over a file system that may forget: mistakes come out, and what is sound holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from barrierlab.model.checkpoint.check import Outcome
from barrierlab.model.checkpoint.external_parts import External
from barrierlab.model.checkpoint.hosting import ExternalError
from barrierlab.model.checkpoint.interfaces import CheckpointStore
from barrierlab.model.storage.scopes import WORLDS
from barrierlab.sim.check.runner import plan
from docs.parts.coordinator import Plain
from docs.parts.store import Files
from tests.model.external_stores import PLANTED, OfImpl, WritesTheListInPlace
from tests.model.test_external_coordinators import CHAIN, check

SCOPES = {each.name: each for each in WORLDS}
FIRST = "store: the first checkpoint, and a crash"
MODULE = "tests.model.external_stores"


def outcome(kind: type, name: str) -> Outcome:
    """Return what a class comes to in a scope."""
    return SCOPES[name].check(External.of([kind]).parts("store"), None)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_mistake_comes_out(kind: type) -> None:
    """An engine would hear that its checkpoints survive."""
    name, invariant = PLANTED[kind]
    found = outcome(kind, name)
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", [invariant]), found.why
    (violation,) = found.violations
    assert violation.trace.startswith(f"# {name}.\nwriter: ")
    assert f"! {invariant}: " in violation.trace


@pytest.mark.parametrize("name", [each.name for each in WORLDS if each.has_one_writer and each.bounds.until])
def test_a_store_need_not_come_where_a_scope_begins(name: str) -> None:
    """A store that renames nothing would get an internal error for a verdict."""
    assert outcome(WritesTheListInPlace, name).verdict in ("holds", "broken")


NAMES = [each.name for each in WORLDS if each.has_one_writer]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((Files, name) for name in NAMES),
        *(pytest.param(OfImpl, name, marks=[pytest.mark.slow] * (n % 3 > 0)) for n, name in enumerate(NAMES)),
    ],
)
def test_what_is_sound_holds(kind: type, name: str) -> None:
    """An engine with another layout would hear that it is wrong."""
    found = outcome(kind, name)
    assert (found.verdict, found.why) == ("holds", "every reachable state was seen")


def test_a_store_is_asked_what_one_writer_can_do() -> None:
    """It would be asked for what no interface promises, or for nothing."""
    chosen = plan("tiny", (), "docs.parts.store:Files")
    assert set(chosen.names) == {each.name for each in WORLDS if each.has_one_writer}
    assert len(chosen.names) == 9


class TakesNoName(Files):
    """Parts without names."""

    def put(self, checkpoint_id: int, data: bytes) -> None:  # type: ignore[override]
        ...


class CannotBeMade(Files):
    """Needs nothing to be made."""

    def __init__(self) -> None: ...


class KeepsItsFilesOpen(Files):
    """Holds a generator."""

    def __init__(self, folder: str, files: Any) -> None:
        super().__init__(folder, files)
        self.names = (name for name in "ab")


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (TakesNoName, "TakesNoName.put cannot be called with (checkpoint_id, name, data): too many positional "),
        (CannotBeMade, "CannotBeMade cannot be made: TypeError: "),
        (KeepsItsFilesOpen, "KeepsItsFilesOpen cannot be copied: TypeError: cannot pickle 'generator' object; "),
        (type("Without", (), {"role": "store"}), "Without has no method 'begin'; a store needs begin, put, complete, "),
    ],
)
def test_a_class_that_cannot_stand_in_is_told_so_in_a_line(kind: type, line: str) -> None:
    """An engine would see a traceback, or a counterexample that leads nowhere."""
    with pytest.raises(ExternalError) as failed:
        External.of([kind]).parts("store")
    assert str(failed.value).startswith(line)
    assert "\n" not in str(failed.value)


class ListsNames(Files):
    """Lists no numbers."""

    def list(self) -> Iterable[Any]:  # type: ignore[override]
        return ["1"]


class ListsAWord(Files):
    """Lists nothing that can be counted."""

    def list(self) -> Iterable[Any]:  # type: ignore[override]
        return "none"


class KnowsNoNumber(Files):
    """Answers no number."""

    def highest_id(self) -> Any:
        return None


class GivesBytes(Files):
    """Answers no parts."""

    def get(self, checkpoint_id: int) -> Any:
        return b""


class Raises(Files):
    """Has an error of its own."""

    def put(self, checkpoint_id: int, name: str, data: bytes) -> None:
        raise RuntimeError("no space that I know of")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (ListsNames, "list answered '1'; allowed: ids"),
        (ListsAWord, "list answered 'none'; allowed: ids"),
        (KnowsNoNumber, "highest_id answered None; allowed: a number"),
        (GivesBytes, "get answered b''; allowed: the parts, by name"),
        (Raises, "writer, at take: RuntimeError: no space that I know of"),
    ],
)
def test_what_it_may_not_do_comes_out_with_the_run(kind: type, why: str) -> None:
    """An engine would not see where its class fails."""
    found = outcome(kind, FIRST)
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", ["RAISED"])
    assert why in found.violations[0].reason


class TriesAnotherName(Files):
    """Names what it writes first by how often it was called."""

    calls = 0

    def complete(self, checkpoint_id: int, names: Sequence[str]) -> None:
        TriesAnotherName.calls += 1
        new = f"{checkpoint_id}.new{TriesAnotherName.calls % 2}"
        self._write(new, " ".join(names).encode())
        self.files.rename(self._path(new), self._path(f"{checkpoint_id}.complete"))
        self.files.flush_folder(self.folder)


def test_one_that_does_not_do_the_same_twice_is_told_so() -> None:
    """The explored space would be a mixture of runs that there are not."""
    found = outcome(TriesAnotherName, FIRST)
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", ["RAISED"])
    assert "writer, at take, does not do the same twice: " in found.why


def test_the_command_checks_a_store_alone_and_with_a_coordinator(capsys: pytest.CaptureFixture[str]) -> None:
    """It could only be checked from Python."""
    assert check(capsys, "--impl", f"{MODULE}:FlushesNoPart", "--scope", FIRST)[0] == 1
    assert check(capsys, "--impl", "docs.parts.store:Files", "--scope", FIRST)[0] == 0
    status, _, err = check(capsys, "--impl", "docs.parts.store:Files", "--scope", FIRST, "--protocol", "aligned")
    assert (status, err.endswith("allowed for it: store\n")) == (2, True)
    status, _, err = check(capsys, "--impl", "docs.parts.store:Files", "--scope", CHAIN)
    assert (status, "has nothing of store" in err) == (2, True)
    both = ("--impl", f"{Plain.__module__}:Plain", "--impl", "docs.parts.store:Files")
    assert plan(FIRST, (), ",".join(both[1::2])).names == (FIRST,)
    assert check(capsys, *both, "--scope", CHAIN)[0] == 0


def test_the_interface_has_ten_methods_at_most() -> None:
    """An engine would have to write more than it was asked to."""
    assert (
        len([name for name in vars(CheckpointStore) if callable(getattr(CheckpointStore, name)) and name[0] != "_"])
        == 8
    )
