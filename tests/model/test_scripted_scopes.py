"""A scripted case that comes out otherwise says what is broken, where it departs, and how the run went until then."""

from __future__ import annotations

from barrierlab.impl.checkpoint.alignment import BarrierAligner
from barrierlab.impl.checkpoint.gate import Gate
from barrierlab.impl.checkpoint.task import OperatorTask
from barrierlab.impl.messages import CheckpointBarrier, StreamMessage
from barrierlab.model.checkpoint.components import SOUND, Components, with_aligner, with_gate
from barrierlab.model.checkpoint.scripted_scopes import ScriptedScope, scripted_cases
from tests.model.mutants import MUTANTS_RECOVERING


def scripted_case(name: str) -> ScriptedScope:
    """The one of that name."""
    [found] = [each for each in scripted_cases() if each.of.endswith(f"/{name}")]
    return found


class TakesNoBarrier(Gate):
    """Leaves every barrier in its channel."""

    __slots__ = ()

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        return type(message) is not CheckpointBarrier and super().offer(input_id, message, now_ns)


def test_a_move_that_cannot_be_made_shows_the_run_until_then() -> None:
    """A reader would learn that a move is not possible, and nothing of how it came to that."""
    scope = scripted_case("one_checkpoint_follows_the_other")
    outcome = scope.check(with_gate(TakesNoBarrier), None)
    (violation,) = [each for each in outcome.violations if each.invariant == "STORY"]
    assert "the move 'deliver a->join' cannot be made here; these can: trigger 2, emit a a1, " in violation.reason
    assert violation.steps == 3
    lines = violation.trace.splitlines()
    assert lines[: lines.index("") + 1] == scope.text.splitlines()[: lines.index("") + 1]
    assert "> trigger 1" in lines
    assert lines[-1] == f"! STORY: {violation.reason}"


def test_the_move_itself_is_named_where_nothing_departs_before_it() -> None:
    """Anything that could be done instead would not be said."""
    text = "topology: a->s\ncut_off: yes\n\n> emit a a1\n    a send a->s a1\n> ack s 1\n"
    outcome = ScriptedScope("theme/name", "aligned", text).check(SOUND, None)
    (violation,) = outcome.violations
    assert violation.reason == (
        "theme/name:6: the move 'ack s 1' cannot be made here; these can: trigger 1, emit a a2, deliver a->s, stabilize"
    )
    assert violation.trace == f"{text.rpartition('> ')[0]}! STORY: {violation.reason}\n"
    assert violation.steps == 1


def test_what_is_broken_is_said_by_its_invariant() -> None:
    """A mistake of meaning would be reported as one of wording."""
    outcome = scripted_case("what_was_not_complete_is_rolled_back").check(MUTANTS_RECOVERING["RollsNothingBack"], None)
    assert [each.invariant for each in outcome.violations] == ["REC", "REC", "REC", "STORY"]
    assert f"! REC: {outcome.violations[1].reason}" in outcome.violations[1].trace.splitlines()


def test_what_is_only_said_otherwise_breaks_no_invariant() -> None:
    """Everything would look like a mistake of meaning."""

    class SaysLess(OperatorTask):
        def ignore(self, input_id: int, message: StreamMessage) -> None:
            """Not a word."""

    outcomes = [each.check(Components(task=SaysLess), None) for each in scripted_cases()]
    found = [violation.invariant for outcome in outcomes for violation in outcome.violations]
    assert set(found) == {"STORY"}


def test_a_sound_machine_tells_every_scripted_case() -> None:
    """The sound code would be broken."""
    assert {
        each.check(with_aligner(BarrierAligner), None).verdict
        for each in scripted_cases()
        if each.protocol == "aligned"
    } == {"holds"}
