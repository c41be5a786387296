"""Machines alone beside models of their rules: both say the same everywhere, and each model notices what it is for."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from barrierlab.impl.checkpoint.actions import Actions
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.impl.checkpoint.injector import BarrierInjectorConfig, CheckpointBarrierInjector
from barrierlab.impl.checkpoint.recovery import Restore, Wiring, plan
from barrierlab.impl.checkpoint.task import OperatorTask, SourceTask
from barrierlab.impl.checkpoint.transactions import Ledger, SinkWriter
from barrierlab.impl.messages import CheckpointBarrier, Event
from barrierlab.impl.reasons import Reason
from barrierlab.impl.storage.snapshot import Checkpoint
from barrierlab.model.checkpoint.component import (
    AGREE,
    MODEL,
    CallStimulus,
    Component,
    ComponentDifference,
    Reference,
    Under,
    drift,
    stimulus,
)
from barrierlab.model.checkpoint.components import COUNTERS, SOUND, Components
from barrierlab.model.explore.checker import ExplorationLimits, explore
from barrierlab.model.suites.standard import COMPONENTS, SCOPES

BY_NAME = {scope.name: scope for scope in COMPONENTS}
MOST = 1_200
"""Scopes with more states are slow."""


@pytest.mark.parametrize(
    "name", [pytest.param(each.name, marks=[pytest.mark.slow] * (each.states > MOST)) for each in COMPONENTS]
)
def test_a_machine_does_what_its_model_says_in_every_state_that_is_counted(name: str) -> None:
    """The protocol would be broken, or a model have become so small that it asks nothing."""
    outcome = BY_NAME[name].check(SOUND, None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())
    assert outcome.states == BY_NAME[name].states
    assert outcome.transitions > outcome.states  # one state of many stimuli, or many states


FIRST = 300
"""So many states of a larger scope are enough for what goes wrong soon: every kind of stimulus was among them."""


@pytest.mark.parametrize("name", [each.name for each in COMPONENTS if each.states > MOST])
def test_so_it_does_in_the_first_states_of_a_larger_scope(name: str) -> None:
    """As above, without the slow tests."""
    scope = BY_NAME[name]
    component = Component(lambda: scope.make(SOUND), scope.model())
    found = explore(component, [AGREE], limits=ExplorationLimits(states=FIRST))
    assert (found.verdict, found.violations) == ("undecided", ()), found.why
    assert found.counts.states >= FIRST


@pytest.mark.parametrize("group", ["small", "full"])
def test_components_are_asked_in_every_group_but_the_tiny_one(group: str) -> None:
    """A user would never hear of them."""
    assert {*BY_NAME} <= {scope.name for scope in SCOPES[group]()}


class TakesDoubtForDone(CheckpointCoordinator):
    """A manifest that may be there is taken to be there."""

    def publish_failed(
        self, checkpoint_id: int, now_ns: int, definite: bool, why: Reason = Reason.STORE_FAILED
    ) -> Actions:
        if not definite and not self.suspended:
            return self.published(checkpoint_id, now_ns)
        return super().publish_failed(checkpoint_id, now_ns, definite, why)


class PausesFromTheTrigger(CheckpointCoordinator):
    """The pause counts from the last trigger."""

    def _refusal(self, now_ns: int) -> Reason | None:
        kept, self._completed_ns = self._completed_ns, self._triggered_ns
        try:
            return super()._refusal(now_ns)
        finally:
            self._completed_ns = kept


class NeverForgetsAFailure(CheckpointCoordinator):
    """Failures are counted on over a recovery."""

    def resume(self, checkpoint_id: int, now_ns: int, finished: Any) -> None:
        kept = self.failures_in_row
        super().resume(checkpoint_id, now_ns, finished)
        self.failures_in_row = kept


class KeepsTheFirstRow(Ledger):
    """A row that is there is not replaced."""

    def upsert(self, sink: str, event: Event) -> None:
        if event not in self.visible(sink):
            super().upsert(sink, event)


class CommitsTheNewestFirst(SinkWriter):
    """Of several transactions the last is made visible first."""

    def _commit(self, transactions: Iterable[str]) -> None:
        super()._commit(reversed(list(transactions)))


class AsksByTheRequest(CheckpointBarrierInjector):
    """A barrier does not begin the interval anew."""

    def poll_barrier(self, now_ns: int) -> CheckpointBarrier | None:
        kept = self._since_ns
        try:
            return super().poll_barrier(now_ns)
        finally:
            self._since_ns = kept


def forgets_what_senders_recorded(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """Nothing that was in flight on the way out comes back."""
    return plan(
        replace(checkpoint, snapshots=tuple(replace(each, outputs=()) for each in checkpoint.snapshots)), wiring
    )


class HurriesUnrecorded(SourceTask):
    """Anything that an aligned barrier passes in the outbox, when its time is up, is in no part."""

    def prioritise_barrier(self, output: int, barrier: CheckpointBarrier) -> bool:
        kept = list(self.outbox)
        self.outbox.extendleft([entry for entry in kept if type(entry[1]) is CheckpointBarrier])
        found = super().prioritise_barrier(output, barrier)
        for entry in [each for each in self.outbox if each == (output, CheckpointBarrier(barrier.checkpoint_id, 1))]:
            self.outbox.remove(entry)
        return found


class CancelsTwice(SourceTask):
    """A source that declines does not remember it: the abort cancels once more."""

    def decline(self, checkpoint_id: int, reason: Reason) -> None:
        super().decline(checkpoint_id, reason)
        self.last_terminated_id = checkpoint_id - 1


class EndedSince(OperatorTask):
    """An unaligned part names the inputs that have ended when it is complete, not at its cut."""

    def complete(self, barrier: CheckpointBarrier) -> None:
        self._image_ended = self._ended()
        super().complete(barrier)


@pytest.mark.parametrize(
    ("components", "name", "move"),
    [
        (Components(source=HurriesUnrecorded), "a source whose barriers go ahead, or hurry", "hurry 0 1"),
        (Components(source=CancelsTwice), "a source whose outputs close", "abort 1"),
        (Components(task=EndedSince), "two inputs: a barrier goes ahead", "end_of 1"),
        (Components(ledger=KeepsTheFirstRow), "rows that are written again", "write s 1 1"),
        (Components(writer=CommitsTheNewestFirst), "transactions of one sink", "complete s 2"),
        (Components(injector=AsksByTheRequest), "its clock", "poll"),
        (Components(plan=forgets_what_senders_recorded), "every small checkpoint of a join", "recover 3"),
        (
            Components(coordinator=TakesDoubtForDone),
            "three under way, manifests that fail or stay in doubt",
            "doubted 1",
        ),
        (Components(coordinator=PausesFromTheTrigger), "interval, pause and timeout", "request"),
        (Components(coordinator=NeverForgetsAFailure), "failures in a row", "resume 0"),
    ],
    ids=["hurries", "cancels", "ends", "rows", "order", "clock", "recorded", "doubt", "pause", "failures"],
)
def test_a_mistake_is_shown_by_a_shortest_run(components: Components, name: str, move: str) -> None:
    """A coordinator would be called sound that paces, counts or completes otherwise; or the run would not say where."""
    scope = next(scope for scope in COMPONENTS if name in scope.name)
    (violation,) = scope.check(components, None).violations
    assert (violation.invariant, violation.scope) == (MODEL, scope.name)
    assert violation.reason.startswith(f"{move}: the model answers '")
    assert violation.trace.splitlines()[-2:] == [move, f"! {MODEL}: {violation.reason}"]


class Counter(Under):
    """A machine of two fields, of which `restore` works one out afresh."""

    __slots__ = ("doubled", "value")

    def __init__(self) -> None:
        self.value = self.doubled = 0

    @property
    def machines(self) -> Sequence[object]:
        return (self,)

    def add(self, amount: int) -> tuple[str, ...]:
        self.value += amount
        self.doubled += 2 * amount if amount < 3 else 0
        return (str(self.value),)

    def capture(self) -> Hashable:
        return self.value

    def restore(self, value: Any) -> None:
        self.value, self.doubled = value, 2 * value


class Counted(Counter, Reference):  # type: ignore[misc]
    """Its model: what it adds up to."""

    def stimuli(self) -> Sequence[CallStimulus]:
        return [stimulus("add", amount) for amount in (1, 3)] if self.value < 3 else []


def test_a_field_that_a_restore_works_out_afresh_may_not_drift() -> None:
    """A machine that runs on would do otherwise than the one that is explored, and no state would show it."""
    component = Component(Counter, Counted())
    state = component.after(component.start(), stimulus("add", 1))
    assert not isinstance(state, ComponentDifference)
    state = component.after(state, stimulus("add", 3))
    assert isinstance(state, ComponentDifference)
    assert state.reason == "add 3: Counter.doubled is 2 in a machine that ran on, 8 in one restored to the same"


def test_what_only_counts_is_not_compared() -> None:
    """Every machine would drift."""
    one, other = Counter(), Counter()
    assert drift([one], [other]) == ""
    one.value = 1
    assert drift([one], [other]).startswith("Counter.value is 1 ")
    counting = type("Counting", (Counter,), {"__slots__": COUNTERS})
    one, other = counting(), counting()
    for name in COUNTERS:
        setattr(one, name, 1)
        setattr(other, name, 2)
    assert drift([one], [other]) == ""


@pytest.mark.parametrize(
    ("ran_on", "restored", "same"),
    [
        ({"a": [1], "b": [2]}, {"b": [2], "a": [1]}, True),
        ({"a": [1], "b": [2]}, {"a": [1], "b": [3]}, False),
        ({"a": {Event("a", 1, value=1)}}, {"a": {Event("a", 1, value=1)}}, True),
        ({"a": {Event("a", 1, value=1)}}, {"a": {Event("a", 1, value=2)}}, False),
        (deque([Event("a", 1, value=1)]), [Event("a", 1, value=2)], False),
        (deque([Event("a", 1, value=1)]), [Event("a", 1, value=1)], True),
        ([BarrierInjectorConfig(None, "a")], [BarrierInjectorConfig(None, "a")], True),
        ([BarrierInjectorConfig(None, "a")], [BarrierInjectorConfig(None, "b")], False),
        ((), [], True),
        ((), None, False),
        (print, None, True),
    ],
)
def test_fields_are_compared_in_every_detail(ran_on: object, restored: object, same: bool) -> None:
    """Two events of one name are equal to the protocol; a dict has no order; what can be called is no state."""
    one, other = Counter(), Counter()
    one.value, other.value = ran_on, restored  # type: ignore[assignment]
    for _ in range(2):  # what has parts is told apart by type the first time
        assert (drift([one], [other]) == "") is same


def test_a_field_that_only_one_of_the_two_has_is_a_difference() -> None:
    """A `restore` that sets an attribute too many would be compared as far as the other has it, or raise."""

    class Open(Counter):
        pass

    one, other = Open(), Open()
    vars(other)["more"] = (1,)
    assert drift([one], [other]) == "Open.more is None in a machine that ran on, (1,) in one restored to the same"
    assert drift([other], [one]) == "Open.more is (1,) in a machine that ran on, None in one restored to the same"


def test_a_machine_that_raises_is_shown() -> None:
    """It would end the exploration."""

    class Raises(Counter):
        def add(self, amount: int) -> tuple[str, ...]:
            raise ValueError(amount)

    component = Component(Raises, Counted())
    state = component.after(component.start(), stimulus("add", 1))
    assert state == ComponentDifference("add 1: the model answers '1', the machine 'raised ValueError: 1'")
    assert component.moves(state) == ()
