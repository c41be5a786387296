"""Aligners that go unaligned, of every kind, come to the same verdict reduced and whole, too."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.external import ExternalError, parts_of
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.task_transitions import TaskTransitions
from tests.model.test_reduction import reduced, whole
from tests.model.unaligned_schemes import CHOICES, Scheme, class_of

JOIN = "a->join b->join join->s"
"""A sink always aligns, so that the join is none."""
MODES = ("unaligned", "aligned_with_timeout")
FAULTS: dict[str, dict[str, Any]] = {
    "no fault": {},
    "abort": {"cancels": 1},
    "end": {"closes": True},
    "crash": {"crashes": 1, "guarantee": "exactly_once"},
    "timeout": {"expiries": 1},
}
EXTENTS: dict[str, dict[str, Any]] = {
    "no event": {"events": 0},
    "an event": {"events": 1},
    "two checkpoints": {"events": 0, "checkpoints": 2},
}

SOUND = {
    "it keeps a set of inputs": Scheme(),
    "it counts barriers by channel": Scheme(keeps="count"),
    "nothing overtakes": Scheme(overtakes=False),
    "who has delivered waits on": Scheme(waits_on=True),
}
RECORDS = {
    "it forgets what one channel has in flight": Scheme(records="first only"),
    "it forgets what comes before its barrier": Scheme(records="not passed"),
    "it forgets what its barrier passes": Scheme(records="passed"),
    "it records behind the barrier": Scheme(records="behind"),
    "it records twice": Scheme(records="twice"),
}
TURNS = {
    "the barrier goes on late": Scheme(forwards="late"),
    "it converts twice": Scheme(converts="twice"),
}
OTHERS = {
    "it records on behind a cancel": Scheme(drops=False),
    "what it aborted is not done with": Scheme(remembers=False),
    "an end completes nothing": Scheme(looks_at_ends=False),
    "an end completes nothing, and nothing overtakes": Scheme(looks_at_ends=False, overtakes=False),
    "it aborts silently": Scheme(declines=False),
}
SCHEMES = SOUND | RECORDS | TURNS | OTHERS

IN_FLIGHT = [*RECORDS, *TURNS]
"""Broken by one event, without a fault."""
WITHOUT_EVENTS = {
    *(("it converts twice", mode, fault) for mode in MODES for fault in FAULTS),
    *(("what it aborted is not done with", mode, fault) for mode in MODES for fault in ("abort", "timeout")),
    ("an end completes nothing, and nothing overtakes", "aligned_with_timeout", "end"),
    *(("it aborts silently", mode, "timeout") for mode in MODES),
}
"""Broken by a checkpoint alone."""
TO_BE_EXPLORED_WHOLE = {("it aborts silently", "timeout"), ("it records on behind a cancel", "timeout")}
"""Schemes of which the reduction says that it is not for such a system."""


@cache
def components(scheme: Scheme, mode: str) -> Components:
    """The sound components, with such an aligner."""
    return parts_of(class_of(scheme), mode)


def verdicts(scheme: Scheme, mode: str, fault: str, extent: str) -> tuple[str, str]:
    """Of the reduced exploration, `"void"` if that was not for such an aligner; and of the whole one."""
    bounds = Bounds(JOIN, mode, **EXTENTS[extent], **FAULTS[fault])
    return reduced(bounds, components(scheme, mode))[0], whole(bounds, components(scheme, mode))[1].verdict


EVERY = [
    pytest.param(name, mode, marks=[pytest.mark.slow] * ((a + b) % 2))
    for (a, name), (b, mode) in product(enumerate(SCHEMES), enumerate(MODES))
]
"""Every second one is slow: where nothing strikes, no deadline passes, and the modes differ in their settings alone."""


@pytest.mark.parametrize(("name", "mode"), EVERY)
def test_a_scheme_has_one_verdict_whatever_is_in_flight(name: str, mode: str) -> None:
    """Events that a barrier overtakes would be lost in a run that is put off; or a sound one would be called broken."""
    fast, slow = verdicts(SCHEMES[name], mode, "no fault", "an event")
    assert (fast, slow) == (("broken",) * 2 if name in IN_FLIGHT else ("holds",) * 2)


STRIKES = [(name, mode, fault) for name in SCHEMES for mode in MODES for fault in FAULTS if fault != "no fault"]
BOOKKEEPINGS = {"it keeps a set of inputs", "it counts barriers by channel"}
QUICK = {
    each for each in STRIKES if each[0] in BOOKKEEPINGS or each[::2] in TO_BE_EXPLORED_WHOLE or each in WITHOUT_EVENTS
}


@pytest.mark.parametrize(
    ("name", "mode", "fault"), [pytest.param(*each, marks=[pytest.mark.slow] * (each not in QUICK)) for each in STRIKES]
)
def test_a_scheme_has_one_verdict_whatever_happens_to_its_checkpoint(name: str, mode: str, fault: str) -> None:
    """An abort, an end, a crash or a deadline at another moment would break it, and that moment is left out."""
    fast, slow = verdicts(SCHEMES[name], mode, fault, "no event")
    assert slow == ("broken" if (name, mode, fault) in WITHOUT_EVENTS else "holds")
    assert fast == ("void" if (name, fault) in TO_BE_EXPLORED_WHOLE else slow)


ASKED_MORE = {*BOOKKEEPINGS, *OTHERS}
LARGER = [
    *((*each, "an event") for each in STRIKES if each[2] in ("end", "crash") or each[0] in ASKED_MORE),
    *((name, mode, "no fault", "two checkpoints") for name in SCHEMES for mode in MODES),
    *((name, mode, "abort", "two checkpoints") for name in OTHERS for mode in MODES),
]
"""An abort or a deadline meanwhile makes ten times as many states: asked of those that it can make a difference to."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode", "fault", "extent"), LARGER)
def test_a_scheme_has_one_verdict_in_larger_scopes(name: str, mode: str, fault: str, extent: str) -> None:
    """As above, where there is something in flight meanwhile, or one checkpoint comes behind another."""
    fast, slow = verdicts(SCHEMES[name], mode, fault, extent)
    assert fast == slow or (fast == "void" and name not in SOUND)


@pytest.mark.slow
@settings(max_examples=40, derandomize=True)
@given(st.data())
def test_any_scheme_has_one_verdict(data: st.DataObject) -> None:
    """A kind of aligner that nobody has thought of would pass for another reason than that it is sound."""
    names = data.draw(st.lists(st.sampled_from(sorted(CHOICES)), max_size=4, unique=True))
    scheme = Scheme(**{name: data.draw(st.sampled_from(CHOICES[name])) for name in names})  # type: ignore[arg-type]
    mode = data.draw(st.sampled_from(MODES))
    try:
        components(scheme, mode)
    except ExternalError:
        assume(False)
    fault, extent = data.draw(st.sampled_from([("no fault", "an event"), *((each, "no event") for each in FAULTS)]))
    fast, slow = verdicts(scheme, mode, fault, extent)
    assert fast in (slow, "void"), scheme


def test_there_are_enough_of_them() -> None:
    """A test of few schemes, or of sound ones, would let any reduction pass."""
    assert len(set(SCHEMES.values())) == len(SCHEMES) == 16
    assert len({*IN_FLIGHT, *(name for name, _, _ in WITHOUT_EVENTS)}) == 10


@pytest.mark.parametrize("mode", MODES)
def test_a_look_that_is_left_out_is_missed(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline of a system that declines nothing would be planned, and a checkpoint that never ends would hold."""
    monkeypatch.setattr(TaskTransitions, "declines_what_is_late", lambda self: True)
    assert verdicts(SCHEMES["it aborts silently"], mode, "timeout", "no event") == ("holds", "broken")
