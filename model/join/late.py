"""The owner of maps and who asks for them, beside their reference: in every order, with every loss and delay.

What the authority says may be lost or come late: the joiner hears whatever a script lets it hear, whenever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from barrierlab.impl.errors import ContractError
from barrierlab.impl.join import (
    ClockDomain,
    MergeMap,
    MergeMapAuthority,
    MergeMapJoiner,
    MergeMapRequest,
    SequenceMergeMapAnnounce,
    SequenceMergeMapRequest,
    SequenceMergeRule,
    TimestampMergeMapAnnounce,
    TimestampMergeMapRequest,
    TimestampMergeRule,
)
from barrierlab.model.checkpoint.check import Outcome, outcome_of
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.explore.checker import Always, explore
from barrierlab.model.join.lockstep import Answers, JoinDifference
from barrierlab.model.join.reference import REFUSED, AuthorityReference, JoinerReference

INTERVAL_NS, MOST_REQUESTS, OUT = 2, 3, 9


class Talk:
    """An authority and a joiner, each beside its reference, and the time for all."""

    def __init__(self) -> None:
        self.authority, self.owner = MergeMapAuthority(INTERVAL_NS), AuthorityReference(INTERVAL_NS)
        self.joiner = MergeMapJoiner(SequenceMergeMapRequest, OUT, INTERVAL_NS, MOST_REQUESTS)
        self.asker = JoinerReference("sequence", OUT, INTERVAL_NS, MOST_REQUESTS)
        self.now_ns = 0


@dataclass(frozen=True, slots=True)
class Said:
    """Something that happens: its line of text, the script that it is of, and how it is made."""

    text: str
    make: Callable[[Talk], Answers]
    script: int | None = None

    def __str__(self) -> str:
        return self.text


def _kind(merge_map: MergeMap) -> str:
    return "sequence" if isinstance(merge_map, SequenceMergeMapAnnounce) else "timestamp"


def _text(merge_map: MergeMap) -> str:
    return f"the {_kind(merge_map)} map of {merge_map.out_stream_id}, epoch {merge_map.epoch}"


def publishes(merge_map: MergeMap) -> Said:
    """The owner has a map."""

    def make(talk: Talk) -> Answers:
        kind, out, epoch = _kind(merge_map), merge_map.out_stream_id, merge_map.epoch
        meant = talk.owner.publish(kind, out, epoch, merge_map, talk.now_ns)
        try:
            return talk.authority.publish(merge_map, talk.now_ns), meant
        except ContractError:
            return REFUSED, meant

    return Said(f"publishes {_text(merge_map)}", make)


def requests(request: MergeMapRequest) -> Said:
    """A request comes to the authority."""
    kind = "sequence" if isinstance(request, SequenceMergeMapRequest) else "timestamp"

    def make(talk: Talk) -> Answers:
        return talk.authority.on_request(request), talk.owner.on_request(kind, request.out_stream_id)

    return Said(f"requests {request}", make)


def needs(epoch: int) -> Said:
    """The joiner needs a map of this epoch, or a newer one."""

    def make(talk: Talk) -> Answers:
        request = talk.joiner.start(epoch, talk.now_ns)
        return request, SequenceMergeMapRequest(OUT, talk.asker.start(epoch, talk.now_ns))

    return Said(f"needs epoch {epoch}", make)


def hears(merge_map: MergeMap) -> Said:
    """An announce comes to the joiner."""

    def make(talk: Talk) -> Answers:
        heard = talk.asker.heard(_kind(merge_map), merge_map.out_stream_id, merge_map.epoch)
        return talk.joiner.heard(merge_map), heard

    return Said(f"hears {_text(merge_map)}", make)


def time(now_ns: int) -> Said:
    """The clock is there."""

    def make(talk: Talk) -> Answers:
        talk.now_ns = now_ns
        return None, None

    return Said(f"time {now_ns}", make)


def _authority_on_time(talk: Talk) -> Answers:
    return talk.authority.on_time(talk.now_ns), talk.owner.on_time(talk.now_ns)


def _joiner_on_time(talk: Talk) -> Answers:
    epoch = talk.asker.on_time(talk.now_ns)
    return talk.joiner.on_time(talk.now_ns), None if epoch is None else SequenceMergeMapRequest(OUT, epoch)


_ON_TIME = (Said("the authority looks at the clock", _authority_on_time), Said("the joiner does", _joiner_on_time))
LatePosition = tuple[tuple[int, ...], int, Any, Any] | JoinDifference


class LateJoin:
    """The scripts in every order, and both looking at the clock between any two moves."""

    def __init__(self, scripts: Sequence[Sequence[Said]]) -> None:
        self._scripts = [[Said(each.text, each.make, n) for each in script] for n, script in enumerate(scripts)]
        self._talk = Talk()

    def start(self) -> LatePosition:
        """Return the initial state: nobody has a map, and nobody needs one."""
        self._talk = Talk()
        return self._captured((0,) * len(self._scripts))

    def moves(self, state: LatePosition) -> Sequence[Said]:
        """The next of each script, and the clock."""
        if isinstance(state, JoinDifference):
            return ()
        scripts = zip(self._scripts, state[0], strict=True)
        return (*(script[place] for script, place in scripts if place < len(script)), *_ON_TIME)

    def after(self, state: LatePosition, move: Said) -> LatePosition:
        """Return all states after the move, or how they differ."""
        assert not isinstance(state, JoinDifference)
        talk = self._talk
        places, talk.now_ns, (authority, joiner), (talk.owner.maps, talk.asker.asked, talk.asker.sent) = state
        talk.authority.restore(authority)
        talk.joiner.restore(joiner)
        try:
            found, meant = move.make(talk)
            if found == meant:
                found, meant = self._answers()
        except Exception as error:  # whatever the code under test raises is what is wrong with it
            return JoinDifference(f"{move}: raises {type(error).__name__}: {error}")
        if found != meant:
            return JoinDifference(f"{move}: the code answers {found}, the document {meant}")
        return self._captured(tuple(place + (number == move.script) for number, place in enumerate(places)))

    def _answers(self) -> Answers:
        """The answers to all that can be asked for nothing."""
        talk = self._talk
        joiner, asker = talk.joiner, talk.asker
        found = talk.authority.next_deadline_ns(), joiner.next_deadline_ns(), joiner.is_waiting, joiner.requests
        return found, (talk.owner.next_deadline_ns(), asker.next_deadline_ns(), asker.asked is not None, asker.sent)

    def _captured(self, places: tuple[int, ...]) -> LatePosition:
        talk = self._talk
        code = talk.authority.capture(), talk.joiner.capture()
        return places, talk.now_ns, code, (talk.owner.maps, talk.asker.asked, talk.asker.sent)


@dataclass(frozen=True, slots=True)
class LateJoinScope:
    """An authority and a joiner, and what is said.

    Attributes
    ----------
    of : str
        What happens in it.
    scripts : sequence of sequence of Said
        What keeps its order.
    """

    of: str
    scripts: Sequence[Sequence[Said]]
    protocol: str = "join"

    @property
    def name(self) -> str:
        """The name that a report gives it."""
        return f"late join: {self.of}"

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Explore it; `components` are of no concern to joins."""
        parted: Always[LatePosition] = Always("lockstep", lambda s: s.reason if isinstance(s, JoinDifference) else None)
        return outcome_of(self.name, self.protocol, explore(LateJoin(self.scripts), (parted,)))


def _map(epoch: int, out: int = OUT, offset: int = 0) -> SequenceMergeMapAnnounce:
    return SequenceMergeMapAnnounce(out, epoch, (SequenceMergeRule.at_offset(1, offset),))


_TIMED = TimestampMergeMapAnnounce(OUT, 1, ClockDomain.MONOTONIC, (TimestampMergeRule.at_offset(1),))
SCOPES = (
    LateJoinScope(
        "an authority",
        (
            (
                publishes(_map(2)),
                publishes(_map(2)),
                publishes(_map(2, offset=1)),
                publishes(_map(1)),
                publishes(_map(3)),
            ),
            (publishes(_TIMED), publishes(_map(1, OUT + 1))),
            (requests(SequenceMergeMapRequest(OUT, 7)), requests(TimestampMergeMapRequest(OUT, 0))),
            (time(1), time(2), time(3), time(5)),
        ),
    ),
    LateJoinScope(
        "a joiner",
        (
            (needs(0), needs(2)),
            tuple(hears(each) for each in (_map(1, OUT + 1), _TIMED, _map(1), _map(2), _map(3))),
            tuple(map(time, range(1, 8))),
        ),
    ),
)
