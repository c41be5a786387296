"""The invariants of control signals can fail: journals by hand, each broken in one way."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from barrierlab.model.control.invariants import EFFECTS, MOVES, NAMES, ControlEntry, ControlMonitor, judge, rows_of
from barrierlab.model.control.topology import ControlWiring
from barrierlab.model.control.world import ControlBounds, ControlWorld
from tests.control.support import CONTROL, DATA, GRACEFUL, SYNC, explore

WIRING = ControlWiring("a->join b->join")


# The invariants know no class of the code: these only have the names.


@dataclass(frozen=True)
class BarrierControlSignal:
    """A barrier."""

    barrier_id: int
    kind: str = "SyncTest"

    @property
    def is_terminal(self) -> bool:
        return self.kind == "StreamGracefulEnd"


@dataclass(frozen=True)
class InstantControlSignal:
    """A quick end."""

    is_terminal: bool = True


@dataclass(frozen=True)
class Event:
    """An event."""

    source: str
    sequence: int
    value: object = None

    def __str__(self) -> str:
        return f"{self.source}{self.sequence}"


END = "the end"
K1, K2, TERMINAL, QUICK = (
    *(BarrierControlSignal(1), BarrierControlSignal(2)),
    *(BarrierControlSignal(9, "StreamGracefulEnd"), InstantControlSignal()),
)
A1 = Event("a", 1)


def line(channel: str, *messages: object) -> list[tuple[str, str, str, object]]:
    """Messages that are sent on a channel, taken and, if they are barriers, delivered."""
    sender, receiver = channel.replace("=>", "->").split("->")
    found: list[tuple[str, str, str, object]] = []
    for message in messages:
        found += [("send", sender, channel, message), ("take", receiver, channel, message)]
        if type(message) is BarrierControlSignal:
            found.append(("arrive", receiver, channel, message))
        elif type(message) is Event:
            found.append(("deliver", receiver, channel, message))
        elif message == END:
            found.append(("close", receiver, channel, message))
    return found


def through(carrier: str, barrier: BarrierControlSignal) -> list[tuple[str, str, str | None, object]]:
    """A barrier as it should be, from the head to `join`."""
    arrow = {"data": "->", "control": "=>"}[carrier]
    found: list[tuple[str, str, str | None, object]] = [("forward", "head", carrier, barrier)]
    for node in "ab":
        found += line(f"head{arrow}{node}", barrier)
        found += [("complete", node, carrier, barrier), ("forward", node, carrier, barrier)]
    for node in "ab":
        found += line(f"{node}{arrow}join", barrier)
    return [*found, ("complete", "join", carrier, barrier), ("forward", "join", carrier, barrier)]


def ended(*nodes: str) -> list[tuple[str, str, str | None, object]]:
    """These have ended."""
    return [("end", node, None, "why") for node in nodes]


def verdict(*entries, **options) -> list[str]:
    """Return what is wrong, a line each."""
    journal: list[ControlEntry] = [(n, *entry) for n, entry in enumerate(entries)]
    return [str(violation) for violation in judge(journal, WIRING, **options).violations]


def without(entries, *wanted) -> list:
    """`entries` without the first that is like `wanted`."""
    place = next(n for n, entry in enumerate(entries) if entry[: len(wanted)] == wanted)
    return [*entries[:place], *entries[place + 1 :]]


GOOD = [*through("data", K1), *through("control", K2), (">emit", "a", None, A1), *line("a->join", A1)]


def test_a_good_run_holds() -> None:
    """Whatever was judged would be broken."""
    assert verdict(*GOOD) == []
    assert verdict(*GOOD, *through("data", TERMINAL), *ended("a", "b", "join")) == []
    assert judge([], WIRING).verdict == "holds"


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (
            [*line("a->join", K1), ("complete", "join", "data", K1)],
            "ALL: SyncTest 1 is complete at join, but b->join has not delivered it",
        ),
        (
            [*line("a=>join", K1), *line("b=>join", K2), ("complete", "join", "control", K1)],
            "ALL: SyncTest 1 is complete at join, but b=>join has not delivered it",
        ),
        (
            [*line("head->a", K1), ("forward", "a", "data", K1)],
            f"ALL: a forwards {K1} on the data channel, where it is not complete",
        ),
        (
            [*line("head->a", K1), ("complete", "a", "data", K1), ("forward", "a", "control", K1)],
            f"ALL: a forwards {K1} on the control channel, where it is not complete",
        ),
        (
            [*through("data", K1), *line("head->a", K1), ("complete", "a", "data", K1)],
            "ONCE: SyncTest 1 is complete at a on the data channel, where 1 was before",
        ),
        (
            [*through("data", K2), *line("head->a", K1), ("complete", "a", "data", K1)],
            "ONCE: SyncTest 1 is complete at a on the data channel, where 2 was before",
        ),
        (
            [("send", "a", "a->join", A1), ("send", "a", "a->join", K1), ("take", "join", "a->join", K1)],
            f"FIFO: {K1} was taken from a->join; next is a1",
        ),
        ([("take", "join", "a->join", A1)], "FIFO: a1 was taken from a->join; next is nothing"),
        (
            [*line("a->join", K1, A1)],
            "FIFO: a1 took effect at join ahead of SyncTest 1, which came before it on a->join",
        ),
        (
            [*line("a=>join", K1, K2), *line("b=>join", K2), ("complete", "join", "control", K2)],
            "FIFO: SyncTest 2 is complete at join before SyncTest 1 of a=>join",
        ),
        ([*GOOD, ("send", "a", "a->join", A1)], "LIVE: a1 is never taken from a->join"),
        ([*line("a=>join", K1)], "LIVE: SyncTest 1 of a=>join waits at join for ever"),
        (
            [*line("a=>join", K1), *ended("join")],
            "LIVE: join has ended and neither completed nor aborted SyncTest 1 of a=>join",
        ),
        (
            [*without(through("data", K1), "complete", "join")],
            "LIVE: SyncTest 1 is never complete at join",
        ),
        (
            [("forward", "head", "data", K1), *ended("a", "b", "join")],
            "LIVE: SyncTest 1 is never complete at a",
        ),
        (
            [*line("a=>join", K1), ("abort", "join", "control", K1), *ended("join")],
            "LIVE: SyncTest 1 of the control channel was aborted at join",
        ),
        ([("fail", "join", "a=>join", "no room")], "LIVE: join failed: no room"),
        (
            [*through("data", TERMINAL), *ended("a", "b")],
            "LIVE: join has not ended, although a terminal signal was sent",
        ),
        ([("forward", "head", "data", QUICK), *ended("a", "b")], "LIVE: join has not ended, although a terminal"),
        (
            [("send", "a", "a->join", A1), ("take", "join", "a->join", A1), ("drop", "join", "a->join", A1)],
            "NOLOSS: a1 came to join after its end",
        ),
        (
            [(">emit", "a", None, A1), *through("data", TERMINAL), *ended("a", "b", "join")],
            "NOLOSS: a1 never reached join",
        ),
        (
            [(">emit", "a", None, A1), *line("a->join", A1), *line("a->join", A1)],
            "NOLOSS: a1 reached join 2 times instead of 1",
        ),
    ],
    ids=lambda value: value.split(":")[0] + value[-28:] if isinstance(value, str) else "",
)
def test_one_way_to_be_wrong(entries, reason: str) -> None:
    """This way would not be seen, or be reported in other words."""
    found = verdict(*entries)
    assert any(each.startswith(reason) for each in found), found


def test_a_closed_channel_counts_as_delivered() -> None:
    """Anything that rule 26 allows would be called broken."""
    run = [*line("a=>join", K1), *line("b=>join", END), ("complete", "join", "control", K1)]
    assert verdict(*run) == []


def test_without_a_point_of_synchronisation_data_may_pass() -> None:
    """`hold_data` off, which rule 25 allows, would always be broken."""
    run = [*line("a->join", K1, A1), *line("b->join", K1), ("complete", "join", "data", K1)]
    assert verdict(*run, hold_data=False) == []
    assert verdict(*run) != []


@pytest.mark.parametrize(
    "ending", [[("forward", "head", "control", QUICK)], [(">fail", "b", None, None), ("fail", "b", None, "it broke")]]
)
def test_what_a_quick_end_or_a_breakdown_may_lose(ending) -> None:
    """Nobody promised more: it would be called broken. But what came is aborted, in so many words."""
    came = [*line("a=>join", K1), ("send", "a", "a->join", A1), ("take", "join", "a->join", A1)]
    aborted = [("abort", "join", "control", K1), ("drop", "join", "a->join", A1), *ended("a", "b", "join")]
    assert verdict((">emit", "a", None, A1), *ending, *came, *aborted) == []
    assert verdict(*ending, *came, *aborted[1:]) != []


def test_what_is_dropped_on_purpose_is_not_missing() -> None:
    """A filter would break NOLOSS; and below another way to the sink, nothing would be asked any more."""
    run = [(">emit", "a", None, A1), *through("data", TERMINAL), *ended("a", "b", "join")]
    assert verdict(*run, discards=("a",)) == []
    assert verdict(*run, discards=("join",)) == ["NOLOSS: a1 never reached join"]


def test_each_way_to_a_sink_is_asked() -> None:
    """Anything that one branch loses would be hidden by another one that delivers the same event."""
    diamond = ControlWiring("a->x a->y x->join y->join")
    run = [(">emit", "a", None, A1), *line("a->x", A1), *line("a->y", A1), *line("x->join", A1)]
    end = [("forward", "head", "data", TERMINAL), *ended("a", "x", "y", "join")]
    journal: list[ControlEntry] = [(n, *entry) for n, entry in enumerate([*run, *end])]
    reasons = [str(v) for v in judge(journal, diamond).violations if v.invariant == "NOLOSS"]
    assert reasons == ["NOLOSS: a1 only 1 of 2 times reached join"]
    assert not any("NOLOSS" in str(v) for v in judge(journal, diamond, discards=("y",)).violations)


def test_an_event_of_many_stands_for_each() -> None:
    """A batch would count as the loss of all that is in it."""
    batch = Event("x", 1, (A1, Event("y", 1, (Event("b", 4), Event("b", 5)))))
    assert list(rows_of(batch)) == [("a", 1), ("b", 4), ("b", 5)]
    assert list(rows_of(Event("w", 1, (3, 4)))) == [("w", 1)]


def test_a_run_that_is_cut_off_is_undecided() -> None:
    """Anything that a longer run would show would be called broken, or be passed over."""
    journal: list[ControlEntry] = [(n, *entry) for n, entry in enumerate(line("a=>join", K1))]
    cut = judge(journal, WIRING, cut_off=True)
    assert (cut.verdict, cut.violations) == ("undecided", ())
    assert cut.undecided == ("LIVE: SyncTest 1 of a=>join waits at join for ever",)
    assert judge([*journal, (9, "complete", "join", "control", K1)], WIRING, cut_off=True).verdict == "broken"


def test_a_verdict_spells_out_twenty_and_counts_the_rest() -> None:
    """A long run that is broken would fill the screen."""
    events = [Event("a", n) for n in range(1, 31)]
    found = judge([(n, "take", "join", "a->join", event) for n, event in enumerate(events)], WIRING)
    assert len(found.violations) == 20
    assert found.more == {"FIFO": 10}
    assert found.violations[3].at_ns == 3


def test_every_verb_is_explained() -> None:
    """A reader of a journal would meet a word that nothing explains; or an explanation of what there is not."""
    world = ControlWorld(
        ControlBounds(
            WIRING,
            ((SYNC, CONTROL), (GRACEFUL, DATA)),
            may_fail=("b",),
            may_lose=("a=>join",),
            may_repeat=("a=>join",),
        )
    )
    seen: set[str] = set()
    states, queue = {world.start()}, [world.start()]
    while queue and seen != {*MOVES, *EFFECTS}:
        state = queue.pop()
        for move in world.moves(state):
            seen |= {verb for _, verb, *_ in world.entries(state, move)}
            after = world.after(state, move)
            if after not in states:
                states.add(after)
                queue.append(after)
    assert seen == {*MOVES, *EFFECTS}


def test_explorer_and_journal_say_the_same() -> None:
    """Anything that the explorer finds would be another thing than what a journal is judged by."""
    bounds = ControlBounds(WIRING, ((SYNC, CONTROL), (SYNC, CONTROL)), events=0, may_lose=("b=>join",))
    world = ControlWorld(bounds)
    found = explore(world)
    monitor = ControlMonitor(WIRING)
    for entry in world.journal(found.moves):
        monitor.see(entry)
    assert tuple(monitor.violations) == found.violations
    assert {violation.invariant for violation in found.violations} <= set(NAMES)
