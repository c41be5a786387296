"""The owner of maps and who asks for them, beside their reference: in every order, with every loss and delay.

What the authority says may be lost or come late: the joiner hears whatever a script lets it hear, whenever. Source:
merge-map-join-barrier, sections 10.1 and 10.3; defects J-13 and J-23.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from barrierlab.impl.errors import MergeMapError
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
from barrierlab.model.checkpoint.component import CallStimulus, ComponentScope, Reference, RefusedError, Under, stimulus
from barrierlab.model.checkpoint.components import Components

INTERVAL_NS, MOST_REQUESTS, OUT = 2, 3, 9
ON_TIME = stimulus("announce_again"), stimulus("ask_again")
"""The authority looks at the clock, or the joiner does."""
CallScript = Sequence[CallStimulus]


def _kind(said: MergeMap | MergeMapRequest) -> str:
    return "sequence" if isinstance(said, SequenceMergeMapAnnounce | SequenceMergeMapRequest) else "timestamp"


class LateJoinReference(Reference):
    """An authority and a joiner as the document has them, and what may still happen of some scripts.

    The authority announces each map at intervals, and answers requests. The joiner asks at intervals, so often at
    most, until it hears of a map that is no older than it needs.
    """

    fixed = ("scripts",)

    def __init__(self, scripts: Sequence[CallScript]) -> None:
        self.scripts = scripts
        self.places = (0,) * len(scripts)
        self.now_ns = 0
        self.maps: dict[tuple[str, int], tuple[MergeMap, int]] = {}  # each with when it was last announced unasked
        self.asked: tuple[int, int] | None = None  # epoch, and when it last was; None while nothing is needed
        self.sent = 0

    def stimuli(self) -> CallScript:
        """The next of each script, and a look at the clock."""
        scripts = zip(self.scripts, self.places, strict=True)
        return *(script[place] for script, place in scripts if place < len(script)), *ON_TIME

    def call(self, move: CallStimulus) -> tuple[str, ...]:
        """Return in lines what a call comes to; its script has gone on."""
        scripts = zip(self.scripts, self.places, strict=True)
        self.places = tuple(place + (script[place : place + 1] == (move,)) for script, place in scripts)
        return super().call(move)

    def stands(self) -> tuple[str, ...]:
        due_ns = min((at_ns + INTERVAL_NS for _, at_ns in self.maps.values()), default=None)
        return (f"announces at {due_ns}, asks at {self._asks_ns()}: {self.asked is not None}, {self.sent}",)

    def _asks_ns(self) -> int | None:
        return None if self.asked is None or self.sent >= MOST_REQUESTS else self.asked[1] + INTERVAL_NS

    def time(self, now_ns: int) -> None:
        """Set the clock to `now_ns`."""
        self.now_ns = now_ns

    def publish(self, said: MergeMap) -> tuple[str, ...]:
        """Publish a map of the owner, unless the epoch of the map before says that it is no newer one."""
        key = _kind(said), said.out_stream_id
        if key in self.maps and said != self.maps[key][0] and said.epoch <= self.maps[key][0].epoch:
            raise RefusedError("MergeMapError")
        self.maps[key] = said, self.now_ns
        return (str(said),)

    def request(self, asks: MergeMapRequest) -> tuple[str, ...]:
        """Answer a request to the authority, whatever its epoch."""
        return tuple(str(said) for key, (said, _) in self.maps.items() if key == (_kind(asks), asks.out_stream_id))

    def announce_again(self) -> tuple[str, ...]:
        """Return what is announced again by now."""
        due = [key for key, (_, at_ns) in self.maps.items() if self.now_ns >= at_ns + INTERVAL_NS]
        self.maps |= {key: (self.maps[key][0], self.now_ns) for key in due}
        return tuple(str(self.maps[key][0]) for key in due)

    def need(self, epoch: int) -> tuple[str, ...]:
        """Ask for a map of this epoch, or a newer one, as the joiner needs one."""
        self.asked, self.sent = (epoch, self.now_ns), 1
        return (f"asks for epoch {epoch} of {OUT}",)

    def ask_again(self) -> tuple[str, ...]:
        """Send the request that is due, if one is."""
        due_ns = self._asks_ns()
        if self.asked is None or due_ns is None or self.now_ns < due_ns:
            return ()
        self.sent += 1
        self.asked = self.asked[0], self.now_ns
        return (f"asks for epoch {self.asked[0]} of {OUT}",)

    def hear(self, said: MergeMap) -> tuple[str, ...]:
        """Hear an announce; answer whether it ends the asking."""
        is_awaited = self.asked is not None and (_kind(said), said.out_stream_id) == ("sequence", OUT)
        if self.asked is None or not is_awaited or said.epoch < self.asked[0]:
            return ("False",)
        self.asked = None
        return ("True",)


class LateJoinMachine(Under):
    """A `MergeMapAuthority` and a `MergeMapJoiner`, with the verbs of `LateJoinReference`."""

    refusals = (MergeMapError,)

    def __init__(self, components: Components) -> None:
        self.now_ns = 0
        self.authority = MergeMapAuthority(INTERVAL_NS)
        self.joiner = MergeMapJoiner(SequenceMergeMapRequest, OUT, INTERVAL_NS, MOST_REQUESTS)

    @property
    def machines(self) -> Sequence[object]:
        """Both."""
        return self.authority, self.joiner

    def capture(self) -> Hashable:
        """The time, and what they give of themselves."""
        return self.now_ns, self.authority.capture(), self.joiner.capture()

    def restore(self, value: Any) -> None:
        """Be as the machine was that gave `value`."""
        self.now_ns, authority, joiner = value
        self.authority.restore(authority)
        self.joiner.restore(joiner)

    def stands(self) -> tuple[str, ...]:
        authority, joiner = self.authority, self.joiner
        asks = f"asks at {joiner.next_deadline_ns()}: {joiner.is_waiting}, {joiner.requests}"
        return (f"announces at {authority.next_deadline_ns()}, {asks}",)

    def time(self, now_ns: int) -> None:
        self.now_ns = now_ns

    def publish(self, said: MergeMap) -> Iterable[str]:
        return map(str, self.authority.publish(said, self.now_ns))

    def request(self, asks: MergeMapRequest) -> Iterable[str]:
        return map(str, self.authority.on_request(asks))

    def announce_again(self) -> Iterable[str]:
        return map(str, self.authority.on_time(self.now_ns))

    def need(self, epoch: int) -> tuple[str, ...]:
        return _asks(self.joiner.start(epoch, self.now_ns))

    def ask_again(self) -> tuple[str, ...]:
        return _asks(self.joiner.on_time(self.now_ns))

    def hear(self, said: MergeMap) -> tuple[str, ...]:
        return (str(self.joiner.heard(said)),)


def _asks(request: MergeMapRequest | None) -> tuple[str, ...]:
    if request is None:
        return ()
    kind = "" if type(request) is SequenceMergeMapRequest else f"{_kind(request)} map, "
    return (f"asks for {kind}epoch {request.epoch} of {request.out_stream_id}",)


def _map(epoch: int, out: int = OUT, offset: int = 0) -> SequenceMergeMapAnnounce:
    return SequenceMergeMapAnnounce(out, epoch, (SequenceMergeRule.at_offset(1, offset),))


def _each(verb: str, *arguments: object) -> CallScript:
    return tuple(stimulus(verb, each) for each in arguments)


def _scope(name: str, states: int, *scripts: CallScript) -> ComponentScope:
    """Make a scope of scripts, each of which keeps its order."""
    return ComponentScope(f"late join: {name}", states, LateJoinMachine, partial(LateJoinReference, scripts), "join")


_TIMED = TimestampMergeMapAnnounce(OUT, 1, ClockDomain.MONOTONIC, (TimestampMergeRule.at_offset(1),))
SCOPES = (
    _scope(
        "an authority",
        7_080,
        _each("publish", _map(2), _map(2), _map(2, offset=1), _map(1), _map(3)),
        _each("publish", _TIMED, _map(1, OUT + 1)),
        _each("request", SequenceMergeMapRequest(OUT, 7), TimestampMergeMapRequest(OUT, 0)),
        _each("time", 1, 2, 3, 5),
    ),
    _scope(
        "a joiner",
        1_187,
        _each("need", 0, 2),
        _each("hear", _map(1, OUT + 1), _TIMED, _map(1), _map(2), _map(3)),
        _each("time", *range(1, 8)),
    ),
)
