"""Long runs of a live gate: what drifts in it is noticed, and told by a short run and the name of what differs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barrierlab.impl.checkpoint.alignment import BarrierAligner
from barrierlab.impl.checkpoint.recorder import Recorder
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointer
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, Event
from barrierlab.model.checkpoint.components import SOUND
from barrierlab.model.checkpoint.external import parts_of
from barrierlab.model.checkpoint.gate_runs import MOVES, SCOPES, RunScope
from barrierlab.model.checkpoint.gate_scopes import SCOPES as GATES
from barrierlab.model.suites.standard import SCOPES as GROUPS
from docs.aligner.aligner import PhasedAligner
from docs.aligner.planted import PhasedAligner as Planted
from docs.aligner.unaligned import RecordingAligner


def scope(name: str) -> RunScope:
    """The one of that name."""
    [found] = [each for each in SCOPES if each.name == name]
    return found


@pytest.mark.parametrize(
    "each",
    [pytest.param(each, id=each.name, marks=[pytest.mark.slow] * (at % 3 > 0)) for at, each in enumerate(SCOPES)],
)
def test_machine_and_table_agree_in_long_runs(each: RunScope) -> None:
    """Something that only a gate shows that lives would come out otherwise than the protocol says."""
    outcome = each.check(SOUND, None)
    assert (outcome.verdict, outcome.states, outcome.violations) == ("holds", each.runs * MOVES, ())


def test_the_runs_are_part_of_every_group() -> None:
    """Nobody would make them."""
    for group in GROUPS.values():
        assert {each.name for each in SCOPES} <= {each.name for each in group()}


# Aligners in which something drifts that `restore` puts right.


def keeps_the_bytes(patch: pytest.MonkeyPatch) -> None:
    """Anything that is drained goes on counting against the limit, if it is no event."""
    original = BarrierAligner.drain_next

    def drain_next(self: BarrierAligner, now_ns: int = 0) -> object:
        step = original(self, now_ns)
        if step is not None and type(step[1]) is not Event:
            self.inputs.bytes_left -= self.size_of(step[1])
        return step

    patch.setattr(BarrierAligner, "drain_next", drain_next)


def forgets_what_was_done(patch: pytest.MonkeyPatch) -> None:
    """A stale barrier begins a checkpoint in a task that has come back."""
    original = BarrierAligner.recover
    patch.setattr(BarrierAligner, "recover", lambda self, last_terminated_id, ended: original(self, 0, ended))


def wants_the_next_id(patch: pytest.MonkeyPatch) -> None:
    """An id that was burned is waited for."""
    original = BarrierAligner.on_barrier

    def on_barrier(self: BarrierAligner, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> object:
        if barrier.checkpoint_id > self.last_terminated_id + 1:
            return self.repeated(barrier, barrier)
        return original(self, input_id, barrier, now_ns)

    patch.setattr(BarrierAligner, "on_barrier", on_barrier)


def holds_ends_that_count(patch: pytest.MonkeyPatch) -> None:
    """An end that is buffered is one of what is no event for ever."""
    original = BarrierAligner.drain_next

    def drain_next(self: BarrierAligner, now_ns: int = 0) -> object:
        step = original(self, now_ns)
        if step is not None and type(step[1]) is EndOfInput:
            self.inputs._control_count += 1
        return step

    patch.setattr(BarrierAligner, "drain_next", drain_next)


def releases_the_last_first(patch: pytest.MonkeyPatch) -> None:
    """One input is emptied before another has its turn."""
    original = BarrierAligner.drain_next

    def drain_next(self: BarrierAligner, now_ns: int = 0) -> object:
        step = original(self, now_ns)
        if step is not None and step[0] in self.inputs.ready:
            self.inputs.ready.remove(step[0])
            self.inputs.ready.appendleft(step[0])
        return step

    patch.setattr(BarrierAligner, "drain_next", drain_next)


def switches_at_the_threshold(patch: pytest.MonkeyPatch) -> None:
    """A barrier that comes when the threshold is reached switches, and not only a later one (Flink: R8)."""
    original = UnalignedCheckpointer._is_overdue
    patch.setattr(UnalignedCheckpointer, "_is_overdue", lambda self, now_ns: original(self, now_ns + 1))


def forgets_the_fast_limit(patch: pytest.MonkeyPatch) -> None:
    """Once a part was unaligned, nothing is buffered on the short way any more: no harm, and no drift."""
    original = UnalignedCheckpointer.terminate

    def end(self: UnalignedCheckpointer, checkpoint_id: int) -> None:
        original(self, checkpoint_id)
        self.inputs.set_fast(False)

    patch.setattr(UnalignedCheckpointer, "terminate", end)


def counts_a_switch_twice(patch: pytest.MonkeyPatch) -> None:
    """The metrics of a job would say that more went unaligned than did."""
    original = UnalignedCheckpointer._start

    def start(self: UnalignedCheckpointer, switched: bool) -> object:
        self.threshold_switches += switched
        return original(self, switched)

    patch.setattr(UnalignedCheckpointer, "_start", start)


def measures_events_itself(patch: pytest.MonkeyPatch) -> None:
    """Anything that a barrier overtakes counts what the event says, and not what the caller's own function does."""
    patch.setattr(Recorder, "measure", lambda self, events: sum(event.size_bytes for event in events))


DRIFTING = (
    (keeps_the_bytes, "aligned runs: two inputs", 6, "buffered_bytes(): by the table it is 0, the machine says "),
    (forgets_what_was_done, "aligned runs: two inputs", 1, "the table leaves last id that is done with: "),
    (wants_the_next_id, "aligned runs: two inputs", 1, "row 'only barrier': if barrier, takes effect, of a newer "),
    pytest.param(
        *(holds_ends_that_count, "aligned runs: three inputs", 15, "drain_runs(): by the table "),
        marks=pytest.mark.slow,
    ),
    (releases_the_last_first, "aligned runs: two inputs", 8, "the table leaves inputs to drain, in turn: ("),
    (
        switches_at_the_threshold,
        "aligned_with_timeout runs: two inputs",
        4,
        "row 'first barrier': if barrier, takes effect, of a newer ",
    ),
    (measures_events_itself, "aligned_with_timeout runs: sizes of the caller's own", 1, "overtake "),
    (
        counts_a_switch_twice,
        "aligned_with_timeout runs: two inputs",
        2,
        "the counts of unaligned parts: by the table it is ",
    ),
)


@pytest.mark.parametrize(("breaks", "name", "most", "words"), DRIFTING, ids=lambda each: getattr(each, "__name__", ""))
def test_what_drifts_is_told_by_a_short_run(
    breaks: Callable[[pytest.MonkeyPatch], None], name: str, most: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reachable gate shows it that is put into its state; or a run of sixty moves would be shown for it."""
    breaks(monkeypatch)
    outcome = scope(name).check(SOUND, None)
    (violation,) = outcome.violations
    assert (outcome.verdict, violation.invariant) == ("broken", "TABLE")
    assert words in violation.reason
    assert violation.steps <= most, violation.trace
    assert violation.trace.splitlines()[-1] == f"! TABLE: {violation.reason}"


def test_a_run_is_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counterexample could not be reproduced."""
    keeps_the_bytes(monkeypatch)
    first, second = (scope("aligned_with_timeout runs: a sink").check(SOUND, None) for _ in range(2))
    assert (first.violations, first.states) == (second.violations, second.states)
    assert first.violations


def test_what_does_not_drift_is_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that nobody can see would be a fault."""
    forgets_the_fast_limit(monkeypatch)
    assert scope("aligned_with_timeout runs: two inputs").check(SOUND, None).verdict == "holds"


# Another's aligner.


@pytest.mark.parametrize(
    "each",
    [pytest.param(each, id=each.name, marks=[pytest.mark.slow] * (at % 9 > 0)) for at, each in enumerate(SCOPES)][::3],
)
def test_a_sound_aligner_of_another_holds(each: RunScope) -> None:
    """It would be held against what only `impl` has."""
    kind = PhasedAligner if each.protocol == "aligned" else RecordingAligner
    outcome = each.check(parts_of(kind, each.protocol), None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())


def test_a_bug_of_another_is_told_by_a_short_run() -> None:
    """A team would hear that there is one, and not how it shows."""
    (violation,) = scope("aligned runs: two inputs").check(parts_of(Planted, "aligned"), None).violations
    assert violation.steps <= 3
    assert "the machine '" in violation.reason


def test_one_that_takes_no_id_but_the_next_is_refuted() -> None:
    """An id that was burned would stop it for ever, and every scope would hold."""

    class Consecutive(PhasedAligner):
        def offer(self, input_id: int, message: object, now_ns: int) -> bool:
            if type(message) is CheckpointBarrier and message.checkpoint_id > self.done + 1:
                self.port.ignore(input_id, message)
                return True
            return super().offer(input_id, message, now_ns)

    components = parts_of(Consecutive, "aligned")
    assert scope("aligned runs: two inputs").check(components, None).verdict == "broken"
    [leaves_some_out] = [each for each in GATES if str(each) == "aligned: ids that leave some out"]
    assert leaves_some_out.check(components, None).verdict == "broken"


def test_time_that_is_too_short_decides_nothing() -> None:
    """It would look like a proof."""
    outcome = SCOPES[0].check(SOUND, 0.0)
    assert (outcome.verdict, outcome.why) == ("undecided", "0 of 60 runs were made in 0 s")
