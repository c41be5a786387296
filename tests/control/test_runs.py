"""Long runs of a live head and processor: what the explored pipeline cannot show is noticed, by a short run."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from barrierlab.impl.control import (
    BarrierIdAllocator,
    Carrier,
    ControlProcessor,
    ControlSourceProcessor,
    IdentityAligner,
    InstantControlSignal,
)
from barrierlab.impl.control import aligner as aligners
from barrierlab.impl.control.outlets import Outlets
from barrierlab.impl.messages import EndOfInput
from barrierlab.model.checkpoint.check import CaseScope
from barrierlab.model.checkpoint.components import SOUND
from barrierlab.model.control.invariants import HeadWatch
from barrierlab.model.control.refinement import SCOPES as TABLES
from barrierlab.model.control.runs import BEHIND_THE_END, MOVES, SCOPES, ControlRunScope
from barrierlab.model.control.scopes import SMALL
from barrierlab.model.suites.standard import SCOPES as GROUPS
from tests.control.support import CONTROL, DATA, QUICK, sync

ALL = {scope.name: scope for scope in (*SCOPES, *TABLES, *SMALL)}
RUNS = [scope for scope in SCOPES if isinstance(scope, ControlRunScope)]


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope.name)
def test_machine_and_reference_agree(scope: ControlRunScope | CaseScope) -> None:
    """Something that only a machine shows that lives, or is called wrongly, would come out otherwise than it should."""
    outcome = scope.check(SOUND, None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())
    assert outcome.states > 40
    assert outcome.states == getattr(scope, "states", outcome.states)


def test_the_runs_are_part_of_every_group() -> None:
    """Nobody would make them."""
    for group in GROUPS.values():
        assert {scope.name for scope in SCOPES} <= {scope.name for scope in group()}


@pytest.mark.parametrize("scope", RUNS, ids=lambda scope: scope.name)
def test_a_run_meets_what_it_is_for(scope: ControlRunScope) -> None:
    """It would hold because nothing happens in it: each verb, refusals, restores, and calls behind the end."""
    told, calls = set(), set()
    for number in range(scope.runs):
        made, difference = scope._run(number)
        assert difference is None
        assert len(made) <= MOVES
        calls |= {call.verb for call in made}
        pair = scope.pair(Random(number))
        for call in made:
            pair.reference.effects = []
            assert pair.difference(call) is None
            told |= {verb for verb, _, _, _ in pair.reference.effects}
    of_head = {"forward", "end", "sent"}
    if scope.of == "the head":
        assert (told, calls) == (of_head, {"signal", "pop", "renew"})
    else:
        verbs = {"deliver", "arrive", "close", "complete", "flush", "abort", "drop", "fail"}
        assert (told, calls) == (of_head | verbs, {"offer", "emit", "fail", "pop", "renew"})
    assert BEHIND_THE_END < MOVES


# Machines with one mistake each, which the explored pipeline does not show.


def tells_after_it_has_sent(patch: pytest.MonkeyPatch) -> None:
    """A listener cannot write down a journal in which a signal is forwarded before it enters a channel."""

    def forward(self: Outlets, carrier: Carrier, signal: object) -> None:
        self.send(carrier, signal)
        self.tell("forward", carrier, -1, signal)

    patch.setattr(Outlets, "forward", forward)


def takes_what_has_closed(patch: pytest.MonkeyPatch) -> None:
    """Behind the end of the processor, an upstream that has closed may go on."""
    original = ControlProcessor._swallow

    def swallow(self: ControlProcessor, carrier: Carrier, upstream: int, message: object) -> None:
        if type(message) is not EndOfInput:
            original(self, carrier, upstream, message)

    patch.setattr(ControlProcessor, "_swallow", swallow)


def waits_for_another_end(patch: pytest.MonkeyPatch) -> None:
    """A terminal barrier whose fence is there already ends the processor only with the next end of an upstream."""

    def complete(self: ControlProcessor, carrier: Carrier, barrier: object) -> None:
        self.tell("complete", carrier, -1, barrier)
        if barrier.is_terminal:
            self._terminal = carrier, barrier
        else:
            self.outlets.forward(carrier, barrier)

    patch.setattr(ControlProcessor, "_complete", complete)


def restores_all_but_the_operator(patch: pytest.MonkeyPatch) -> None:
    """A window is lost with each restart."""
    original = ControlProcessor.restore

    def restore(self: ControlProcessor, value: object) -> None:
        outputs, aligners, still_open, _, terminal, failure = value
        original(self, (outputs, aligners, still_open, self.operator.checkpoint(), terminal, failure))

    patch.setattr(ControlProcessor, "restore", restore)


def says_nothing_of_the_flush(patch: pytest.MonkeyPatch) -> None:
    """A journal would not say for whom the operator learned that it is over."""
    original = ControlProcessor._flush

    def flush(self: ControlProcessor) -> None:
        tell, self.tell = self.tell, lambda *_: None
        original(self)
        self.tell = tell

    patch.setattr(ControlProcessor, "_flush", flush)


def begins_with_three(patch: pytest.MonkeyPatch) -> None:
    """Ids would not begin where the caller said that they do."""
    original = BarrierIdAllocator.allocate
    patch.setattr(BarrierIdAllocator, "allocate", lambda self: original(self) + 2)


def signals_behind_the_end(patch: pytest.MonkeyPatch) -> None:
    """Something follows the end of a channel."""
    patch.setattr(Outlets, "check_open", lambda self, came: None)


def ends_with_nothing_instant(patch: pytest.MonkeyPatch) -> None:
    """A quick end passes, and nobody ends."""
    patch.setattr(InstantControlSignal, "is_terminal", property(lambda self: False))


def counts_upstreams_in_fractions(patch: pytest.MonkeyPatch) -> None:
    """An aligner for 1.5 upstreams waits for ever, or fails where nobody looks for it."""
    patch.setattr(aligners, "check_number", lambda name, value, least: None)


def takes_any_upstream(patch: pytest.MonkeyPatch) -> None:
    """A copy of nobody, or of one that has closed, counts."""
    patch.setattr(IdentityAligner, "_check", lambda self, upstream, message: None)


def aligns_what_is_instant(patch: pytest.MonkeyPatch) -> None:
    """A quick end waits for the other upstreams."""
    patch.setattr(
        "barrierlab.model.control.refinement.align_control_signal",
        lambda aligner, upstream, signal: aligner.align(upstream, signal) if signal is not QUICK else None,
    )


def sends_no_instant_signal(patch: pytest.MonkeyPatch) -> None:
    """The head closes its channels, and nobody knows why."""

    def send_instant(self: ControlSourceProcessor, signal: InstantControlSignal, carrier: Carrier) -> None:
        self.outlets.check_open(signal)
        self.outlets.end(signal)

    patch.setattr(ControlSourceProcessor, "send_instant", send_instant)


HOLDING, HEAD, VALUES = "control runs: a processor that holds data", "control runs: the head", SCOPES[-1].name
MISTAKES: tuple[tuple[Callable[[pytest.MonkeyPatch], None], str, int, str], ...] = (
    (tells_after_it_has_sent, HOLDING, 4, "effects: by the reference it is "),
    (
        takes_what_has_closed,
        HOLDING,
        3,
        "answer: by the reference it is refused: ClosedInputError, the machine has True",
    ),
    (waits_for_another_end, HOLDING, 6, "effects: by the reference it is "),
    (restores_all_but_the_operator, HOLDING, 3, "restored from "),
    (says_nothing_of_the_flush, HOLDING, 6, "flush data -1 "),
    (ends_with_nothing_instant, HOLDING, 1, "StreamQuickEnd: effects: "),
    (begins_with_three, HEAD, 1, "answer: by the reference it is "),
    (signals_behind_the_end, HEAD, 2, "answer: by the reference it is refused: AfterEndError, the machine has "),
    (sends_no_instant_signal, HEAD, 1, "StreamQuickEnd"),
    (
        counts_upstreams_in_fractions,
        VALUES,
        1,
        "upstreams: the code answers 'taken', the document 'refused: LimitError'",
    ),
    (
        takes_any_upstream,
        TABLES[1].name,
        0,
        "deliver -1 SyncTest 1: the table raises InputIndexError, the aligner takes it",
    ),
    (aligns_what_is_instant, TABLES[0].name, 0, "StreamQuickEnd: it is to be processed now"),
    (
        sends_no_instant_signal,
        "control: a quick end on control",
        14,
        "the head was asked for StreamQuickEnd on control and has not sent it",
    ),
)


@pytest.mark.parametrize(("breaks", "name", "most", "words"), MISTAKES, ids=lambda each: getattr(each, "__name__", ""))
def test_a_mistake_is_told_by_a_short_run(
    breaks: Callable[[pytest.MonkeyPatch], None], name: str, most: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would see it; or a run of sixty calls would be shown for it."""
    breaks(monkeypatch)
    outcome = ALL[name].check(SOUND, None)
    assert outcome.verdict == "broken"
    violation = outcome.violations[0]
    assert words in violation.reason
    assert violation.steps <= most, violation.trace


def test_a_run_is_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counterexample could not be reproduced."""
    waits_for_another_end(monkeypatch)
    first, second = (ALL[HOLDING].check(SOUND, None) for _ in range(2))
    assert (first.violations, first.states) == (second.violations, second.states)
    assert first.violations


def test_time_that_is_too_short_decides_nothing() -> None:
    """It would look like a proof."""
    outcome = SCOPES[0].check(SOUND, 0.0)
    assert (outcome.verdict, outcome.why) == ("undecided", f"0 of {SCOPES[0].runs} runs were made in 0 s")


def test_a_head_owes_what_it_was_asked_for() -> None:
    """One signal would pay for another, or one channel for the other."""
    watch = HeadWatch()
    for text in ("SyncTest on data", "SyncTest on data", "StreamQuickEnd on control"):
        watch.see(">signal", None, text)
    watch.see("forward", str(DATA), sync(1))
    watch.see("forward", str(DATA), QUICK)
    assert watch.owed == ["SyncTest on data", "StreamQuickEnd on control"]
    watch.see("forward", str(CONTROL), QUICK)
    assert watch.owed == ["SyncTest on data"]
