"""The reading loop may be the external aligner's own: the world says what is readable, and it chooses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from barrierlab.model.checkpoint.asked import divided
from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.model.checkpoint.check import WorldScope, properties
from barrierlab.model.checkpoint.external import ExternalError, goes_unaligned, parts_of
from barrierlab.model.checkpoint.partial_order import Ample
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.scripted import replay
from barrierlab.model.checkpoint.scripted_scopes import ScriptedScope, scripted_cases
from barrierlab.model.checkpoint.trace import judged
from barrierlab.model.checkpoint.world import World
from barrierlab.model.defects.engines.aligners import Alternating, LeavesInChannel, Stash
from barrierlab.model.defects.engines.loops import JetLoop, StashLoop
from barrierlab.model.explore.checker import explore
from barrierlab.model.suites.standard import SCOPES
from docs.aligner.aligner import PhasedAligner

TINY = [each for each in SCOPES["tiny"]() if isinstance(each, WorldScope)]
SMALL = [each for each in SCOPES["small"]() if isinstance(each, WorldScope) and each not in TINY]
PAIR = Bounds("a->s b->s", events=1, checkpoints=1)
LONGEST = "aligned: a->join b->join join->s; events 1, checkpoints 1; timeout"


class FirstSeen(LeavesInChannel):
    """Reads what was seen first."""

    capabilities = Capabilities(timeout=False)

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        return next((each for each in readable if self.can_take(each)), None)

    def take(self, input_id: int, message: Any, now_ns: int) -> None:
        super().offer(input_id, message, now_ns)


class AlternatingLoop(Alternating):
    """Goes unaligned, and reads the lowest input first."""

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        return next((each for each in sorted(readable) if self.can_take(each)), None)

    def take(self, input_id: int, message: Any, now_ns: int) -> None:
        super().offer(input_id, message, now_ns)


class ForgetsAnInput(FirstSeen):
    """Never reads the second input."""

    def can_take(self, input_id: int) -> bool:
        return input_id != 1 and super().can_take(input_id)


class LooksTwice(FirstSeen):
    """Reads nothing in every other round."""

    def __init__(self, port: Any, config: Any) -> None:
        super().__init__(port, config)
        self.is_ready = False

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        self.is_ready = not self.is_ready
        return None if self.is_ready else super().poll(readable, now_ns)


class WaitsForTheFirst(FirstSeen):
    """Reads other inputs only while the first waits behind its barrier, or has ended."""

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        return None if 0 not in readable and self.can_take(0) else super().poll(readable, now_ns)


class ForgetsItsTurn(FirstSeen):
    """Reads the inputs in turn, and captures not whose turn it is."""

    def __init__(self, port: Any, config: Any) -> None:
        super().__init__(port, config)
        self.turn = 0

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        return super().poll(sorted(readable, key=lambda each: (each < self.turn, each)), now_ns)

    def take(self, input_id: int, message: Any, now_ns: int) -> None:
        self.turn = input_id + 1
        super().take(input_id, message, now_ns)

    def capture(self) -> Any:
        turn, self.turn = self.turn, 0
        value = super().capture()
        self.turn = turn
        return value


class LetsGoLater(FirstSeen):
    """Lets the inputs go that waited in the round behind the one that completed the checkpoint."""

    def __init__(self, port: Any, config: Any) -> None:
        super().__init__(_Later(port), config)

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        if self.port.resumed and self._may_let_go(readable):
            self.port.let_go()
            return None
        return None if self.port.resumed else super().poll(readable, now_ns)

    def _may_let_go(self, readable: Sequence[int]) -> bool:
        return True

    def capture(self) -> Any:
        return super().capture(), self.port.resumed

    def restore(self, value: Any) -> None:
        inner, self.port.resumed = value
        super().restore(inner)


class _Later:
    """A port whose `resume` waits until it is let go."""

    def __init__(self, port: Any) -> None:
        self._port, self.resumed = port, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def resume(self, checkpoint_id: int) -> None:
        self.resumed = checkpoint_id

    def let_go(self) -> None:
        self._port.resume(self.resumed)
        self.resumed = 0


class LetsGoWithTheNext(LetsGoLater):
    """Lets them go with the next message only, which may never come."""

    def _may_let_go(self, readable: Sequence[int]) -> bool:
        return bool(readable)


looked_at = cache(parts_of)


def of(scopes: list[WorldScope], protocol: str = "aligned") -> list[Any]:
    """To be parametrized with."""
    return [
        pytest.param(each, id=each.name, marks=[pytest.mark.slow] * (each.name == LONGEST))
        for each in scopes
        if each.protocol == protocol
    ]


@pytest.mark.parametrize("scope", of(TINY))
def test_a_sound_loop_holds(scope: WorldScope) -> None:
    """A loop would be blamed for a fault that it has not."""
    outcome = scope.check(looked_at(JetLoop, "aligned"), None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())


def test_a_loop_may_look_twice() -> None:
    """A user who goes round once without reading would be taken for one that never reads."""
    outcome = WorldScope("a pair", PAIR).check(looked_at(LooksTwice, "aligned"), None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())


def test_what_is_left_unread_while_a_source_is_idle_is_a_violation() -> None:
    """A loop that starves its inputs would be called right, as it reads on when the sources end."""
    outcome = WorldScope("a pair", PAIR).check(looked_at(WaitsForTheFirst, "aligned"), None)
    assert [str(each.reason) for each in outcome.violations] == ["b1 is left behind in b->s"]
    assert outcome.violations[0].trace.endswith("! LIVE: b1 is left behind in b->s\n")


def test_a_loop_that_forgets_whose_turn_it_is_cannot_stand_in() -> None:
    """Another loop would be checked than the one that runs: each step begins with a restore."""
    with pytest.raises(ExternalError, match=r"restored after 'arrive .*', it reads 0 of \(0, 1\), and not 1"):
        parts_of(ForgetsItsTurn, "aligned")


@pytest.mark.parametrize(("kind", "verdict"), [(LetsGoLater, "holds"), (LetsGoWithTheNext, "broken")])
def test_inputs_may_be_let_go_in_a_later_round(kind: type, verdict: str) -> None:
    """A loop would be blamed for a wait that it ends in its next round; or one that never ends would not be seen."""
    outcome = WorldScope("a pair", PAIR).check(looked_at(kind, "aligned"), None)
    assert (outcome.verdict, [each.invariant for each in outcome.violations]) == (
        verdict,
        ["LIVE"] * (verdict != "holds"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("scope", of(SMALL))
def test_a_sound_loop_holds_in_small_dataflows(scope: WorldScope) -> None:
    """As above, where there is more to come."""
    assert scope.check(looked_at(JetLoop, "aligned"), None).verdict == "holds"


@pytest.mark.parametrize("mode", ["unaligned", "aligned_with_timeout"])
def test_barriers_that_overtake_are_announced_to_a_loop(mode: str) -> None:
    """A loop could not be asked for unaligned checkpoints."""
    assert goes_unaligned(AlternatingLoop)
    bounds = Bounds("a->join b->join join->s", mode, events=1, checkpoints=1)
    outcome = WorldScope("a join", bounds).check(looked_at(AlternatingLoop, mode), None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())


def test_what_overtakes_a_stashed_barrier_is_found() -> None:
    """The loop reads on before the barrier is out (hazelcast PR 22207), and the world would always release it first."""
    (violation,) = WorldScope("a pair", PAIR).check(looked_at(StashLoop, "aligned"), None).violations
    assert (violation.invariant, violation.steps) == ("CUT", 11)
    assert violation.reason == "1 event of b->s is orphaned: taken before the cut in checkpoint 1"
    assert [line for line in violation.trace.splitlines() if line.startswith("> poll")] == [
        *("> poll s b->s", "> poll s a->s", "> poll s b->s", "> poll s"),
    ]


def test_a_run_of_a_loop_is_replayed_and_judged() -> None:
    """A counterexample could not be read back."""
    components = looked_at(StashLoop, "aligned")
    (violation,) = WorldScope("a pair", PAIR).check(components, None).violations
    assert replay(violation.trace, components) == violation.trace
    (found,) = judged(violation.trace).violations
    assert f"! {found}" == violation.trace.splitlines()[-1]


class DrainsItself(PhasedAligner):
    """Buffers, drains in rounds of its own before it reads on, and does what the table says."""

    capabilities = Capabilities(limits=False)

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        if self.can_drain:
            self.drain_next(now_ns)
            return None
        return next((each for each in readable if self.can_take(each)), None)

    def take(self, input_id: int, message: Any, now_ns: int) -> None:
        self.offer(input_id, message, now_ns)


CASES, _ = divided(
    (each for each in scripted_cases() if each.protocol == "aligned"), DrainsItself.capabilities, "table"
)


@pytest.mark.parametrize("scope", CASES, ids=lambda case: case.name)
def test_a_loop_tells_the_scripted_cases_of_a_driver(scope: ScriptedScope) -> None:
    """A sound loop would be broken by every scripted case, because none has a round of a loop in it."""
    outcome = scope.check(looked_at(DrainsItself, "aligned"), None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())


@pytest.mark.parametrize("bounds", [PAIR, Bounds("a->s b->s", events=1, checkpoints=1, closes=True)])
def test_a_loop_that_leaves_for_ever_what_is_readable_is_found(bounds: Bounds) -> None:
    """It would look as if it waited for something."""
    (violation,) = WorldScope("a pair", bounds).check(looked_at(ForgetsAnInput, "aligned"), None).violations
    assert violation.invariant == "LIVE"


@pytest.mark.parametrize("kind", [FirstSeen, StashLoop, Stash])
@pytest.mark.parametrize("fault", [{}, {"cancels": 1}, {"closes": True}], ids=str)
def test_the_reduction_says_the_same_of_who_reads_on(kind: type, fault: dict[str, Any]) -> None:
    """It would take for granted that what may be drained is drained before anything is read."""
    bounds = Bounds("a->s b->s", events=1, checkpoints=1, **fault)
    components = looked_at(kind, "aligned")
    world = World(bounds, components)
    whole = explore(world, properties(world), acyclic=True)
    assert WorldScope("a pair", bounds).check(components, None).verdict == whole.verdict


def test_a_loop_that_goes_round_is_explored_reduced() -> None:
    """Whoever remembers whose turn it is would be explored whole, which costs twenty times as much."""
    bounds = Bounds("a->s b->s", events=1, checkpoints=1, cancels=1)
    assert WorldScope("a pair", bounds).check(looked_at(JetLoop, "aligned"), None).states < 1_000


def test_what_may_be_released_is_put_off_for_what_is_still_to_come() -> None:
    """The reduction would always release first: who reads on may read what a source has yet to make."""
    world = World(Bounds("a->s b->s", events=1, checkpoints=1, closes=True), looked_at(Stash, "aligned"))
    state = world.start()
    begun = ("emit a", "trigger 1", "inject a", "inject b", "close a", "ack a", "ack b", "finished a")
    for text in (*begun, "deliver a->s", "deliver a->s", "deliver b->s", "deliver a->s"):
        (move,) = [each for each in world.moves(state) if each.text.startswith(text)][:1]
        state = world.after(state, move)
    moves = world.moves(state)
    assert "drain s" in map(str, moves)
    assert "emit b" in map(str, Ample(world).moves(state, moves))


def test_every_order_in_which_inputs_can_be_seen_is_offered() -> None:
    """A loop would be asked about one order of events, and break in another."""
    seen = set()

    class Watched(FirstSeen):
        def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
            seen.add(readable)
            return super().poll(readable, now_ns)

    world = World(Bounds("a->s b->s c->s", events=1, checkpoints=0), looked_at(Watched, "aligned"))
    explore(world, properties(world))
    seen = {each for each in seen if len(each) == 3}
    assert seen == {(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)}


class AnswersAnInputThatThereIsNot(FirstSeen):
    """Counts from 7."""

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        return 7


class AnswersText(FirstSeen):
    """Knows inputs by name."""

    def poll(self, readable: Sequence[int], now_ns: int) -> Any:
        return "s"


class TakesNothing(LeavesInChannel):
    """Chooses, and no more."""

    capabilities = Capabilities(timeout=False)

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        return None


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (AnswersAnInputThatThereIsNot, "AnswersAnInputThatThereIsNot.poll answered 7 for (0,); allowed: 0 or None"),
        (AnswersText, "AnswersText.poll answered 's'; allowed: int or None"),
        (TakesNothing, "TakesNothing has no method 'take'; aligned checkpoints need poll, take, abort, "),
    ],
)
def test_a_loop_that_cannot_stand_in_is_told_so_in_a_line(kind: type, told: str) -> None:
    """A team would be shown a traceback."""
    with pytest.raises(ExternalError) as raised:
        parts_of(kind, "aligned")
    assert str(raised.value).startswith(told)
    assert len(str(raised.value).splitlines()) == 1
