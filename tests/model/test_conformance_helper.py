"""One test file is enough to check an aligner: what the helper asks, and what it says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barrierlab.impl import UnalignedCheckpointer
from barrierlab.model.checkpoint.check import Outcome, ScopeViolation, WorldScope
from barrierlab.model.checkpoint.gate_scopes import SCOPES as GATES
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.suites.conformance import SOURCES, ConformanceCase, cases, report
from barrierlab.model.suites.standard import SCOPES
from docs.aligner.aligner import PhasedAligner
from docs.aligner.planted import PhasedAligner as Planted

PROTOCOLS = ("aligned", "unaligned", "aligned_with_timeout")


def case_of(kind: type, name: str) -> ConformanceCase:
    """The case of that name."""
    (found,) = [case for case in cases(kind, judge="table") if str(case) == name]
    return found


@pytest.mark.parametrize("scope", ["tiny", "small"])
def test_every_scope_and_every_gate_is_a_case(scope: str) -> None:
    """A part of the protocol would not be asked of another's aligner."""
    of_one, of_both = (cases(kind, scope, judge="table") for kind in (PhasedAligner, UnalignedCheckpointer))
    assert {case.scope.protocol for case in of_one} == {"aligned"}
    assert {case.scope.protocol for case in of_both} == set(PROTOCOLS)
    for found, protocols in ((of_one, PROTOCOLS[:1]), (of_both, PROTOCOLS)):
        asked = {case.scope for case in found}
        assert {each for each in SCOPES[scope]() if each.protocol in protocols} <= asked
        assert {each for each in GATES if each.protocol in protocols and not each.slow} <= asked
        assert len(asked) == len(found)


@pytest.mark.parametrize("kind", [PhasedAligner, UnalignedCheckpointer])
def test_without_a_word_whole_dataflows_are_the_judge(kind: type) -> None:
    """A sound aligner of another scheme would be called broken by default."""
    assert {type(case.scope) for case in cases(kind)} == {WorldScope}


def test_every_case_has_a_name_of_its_own() -> None:
    """Two tests would be distinguished by a number at best."""
    names = [str(case) for case in cases(UnalignedCheckpointer, judge="table")]
    assert len(set(names)) == len(names)
    assert "aligned: a->s b->s; events 1, checkpoints 1; abort" in names
    assert "aligned_with_timeout table: a sink" in names
    assert repr(cases(PhasedAligner)[0]).startswith("<PhasedAligner: aligned: a->s; ")


def test_a_scope_that_there_is_not_is_told_so() -> None:
    """A slip would check nothing, and all would look well."""
    with pytest.raises(ValueError, match=r"there is no scope 'tine'; .*tiny"):
        cases(PhasedAligner, "tine")


@pytest.mark.parametrize("name", ["aligned table: one input", "aligned: a->s b->s; events 1, checkpoints 1; abort"])
def test_a_sound_aligner_passes(name: str) -> None:
    """A team would look for a fault where there is none."""
    case_of(PhasedAligner, name).check()


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        (
            "aligned table: one input",
            "TABLE is broken after 2 moves: arrive 0 barrier 1: the table says 'ignore 0 barrier 1', the machine",
            "! TABLE: arrive 0 barrier 1: the table says 'ignore 0 barrier 1', the machine 'block",
        ),
        (
            "aligned: a->s b->s; events 1, checkpoints 1; abort",
            "LIVE is broken after 15 moves: s still waits for checkpoint 1 (aligned: a->s b->s; events 1, checkpoints",
            "! LIVE: s still waits on b->s for checkpoint 1, which was aborted",
        ),
    ],
)  # fmt: skip
def test_a_failure_says_what_is_broken_and_how_it_comes_to_that(name: str, first: str, last: str) -> None:
    """A team would see that a test is red, and no more."""
    with pytest.raises(AssertionError) as failed:
        case_of(Planted, name).check()
    lines = str(failed.value).splitlines()
    assert lines[0].startswith(first)
    assert lines[-1].startswith(last)
    assert name in lines[0]


def test_what_is_undecided_fails() -> None:
    """A time that is too short would look like a proof."""
    scope = WorldScope("two sources", Bounds("a->s b->s"))
    with pytest.raises(AssertionError, match="two sources: undecided: the limit of 0 s is reached"):
        ConformanceCase(PhasedAligner, scope).check(seconds=0)


def test_a_class_that_cannot_stand_in_fails_in_a_line() -> None:
    """A team would be shown the inside of the checker."""
    with pytest.raises(AssertionError) as failed:
        cases(int)[0].check()
    assert str(failed.value).startswith("int has no method 'offer'; aligned checkpoints need offer, ")
    assert len(str(failed.value).splitlines()) == 1


def test_several_faults_are_told_one_after_the_other() -> None:
    """All but the first would be lost."""
    faults = tuple(ScopeViolation(name, "a scope", 1, "why", "> move\n") for name in ("CUT", "LIVE"))
    outcome = Outcome("a scope", "aligned", "broken", "why", 1, 1, 0.0, faults)
    assert report(outcome) == (
        "CUT is broken after 1 move: why (a scope)\n\n> move\n\nLIVE is broken after 1 move: why (a scope)\n\n> move"
    )


def test_it_needs_no_test_framework() -> None:
    """A team with another one could not use it."""
    code = "import sys, barrierlab.model.suites.conformance; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_there_is_one_place_for_what_is_asked() -> None:
    """A source of cases would be left out, or empty."""
    assert all(list(source("tiny")) for source in SOURCES)
