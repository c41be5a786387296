"""The common part of the three join barriers: the map in force, a cursor for each input, and when one is absent.

A barrier answers one question: may an output be attempted? It never waits for a slot, keeps none from being
overwritten, and says nothing about what the attempt finds (sections 5, 7.2, 8.3). Where the document leaves a choice,
protocol rules 27 to 33 make it:

* What was not observed is minus infinity. Numbers are checked, and a requirement out of range is not met (27).
* A map is applied, ignored or replaced by (output, epoch) alone. The same one again changes nothing (28).
* Outputs are monotonic over those accepted; asking is free (30).
* An input has an epoch of its own, and a new one resets it. A new epoch of the output asks for a new map, and for new
  observations: an older one says nothing about outputs that count from the start again (31).
* An input is absent where it lacks what it owes, and nothing of it came for longer than the timeout, counted from the
  map at first. One input at least must have what it owes (32).

The state is a few numbers for each input, whatever was observed; updates and questions allocate nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from barrierlab.impl.errors import LimitError, NoMapError, OutputOrderError
from barrierlab.impl.join.inputs import NEVER, UNOBSERVED, JoinInput, JoinInputs, Read
from barrierlab.impl.join.merge_map import (
    MAX_U64,
    NULL_U64,
    ClockDomain,
    InvalidMergeMap,
    MergeMap,
    TimestampMergeMapAnnounce,
    check_range,
    check_stream,
)

_NO_OUTPUT = -1


class Readiness(Enum):
    """The answer to "may this output be attempted?".

    READY and DEGRADED allow an attempt. DEGRADED says that inputs are absent: `absent` names them.
    """

    READY = "ready"
    DEGRADED = "degraded"
    WAITING = "waiting"
    NO_LIVE_INPUT = "no live input"
    NO_MAP = "no map"
    PASSED = "passed"
    CLOCKS_DIFFER = "clocks differ"

    may_attempt: bool

    def __init__(self, text: str) -> None:
        self.may_attempt = text in ("ready", "degraded")


class MapChange(Enum):
    """The outcome of an announce."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    INVALIDATED = "invalidated"
    OLDER_EPOCH = "older epoch"
    OTHER_OUTPUT = "other output"
    OTHER_KIND = "other kind"
    NOT_IN_FORCE = "not in force"


class Observed(Enum):
    """The outcome of an observation."""

    TAKEN = "taken"
    BEHIND = "behind"
    OLDER_EPOCH = "older epoch"
    NOT_AN_INPUT = "not an input"
    NULL = "null"
    REJECTED = "rejected"


class LatenessScope(Enum):
    """The rules to which the lateness applies: two readings of the document (defect J-06).

    MAP is normative: every rule (section 8.1). WINDOWS is that of example A.4.2, where only the window rule has it.
    """

    MAP = "map"
    WINDOWS = "windows"


_READY, _WAITING = Readiness.READY, Readiness.WAITING


@dataclass(frozen=True, slots=True)
class JoinConfig:
    """The settings of a barrier, given once.

    Attributes
    ----------
    out_stream_id : int
    epoch : int or None
        Of the output stream, if it is known; else the first map says it.
    use_processed : bool
        Whether the processed cursors gate as well. They are those of a stage *before* the join: one that waited for
        its own would wait for ever (defect J-04).
    lateness_scope : LatenessScope
    clock_domain : ClockDomain or None
        Of the output's times, if it is known: a map in another one is no use.

    Raises
    ------
    StreamIdError, LimitError
        If the output stream cannot be one, or the epoch is out of range.
    """

    out_stream_id: int
    epoch: int | None = None
    use_processed: bool = False
    lateness_scope: LatenessScope = LatenessScope.MAP
    clock_domain: ClockDomain | None = None

    def __post_init__(self) -> None:
        check_stream("output stream", self.out_stream_id)
        if self.epoch is not None:
            check_range("epoch", self.epoch, 0, NULL_U64 - 1)


InputsOf = Callable[[MergeMap, JoinConfig, int], Iterable[JoinInput]]
"""From a map, the settings and the time at which the map is applied, an input for each rule."""


class JoinBarrier:
    """The part of a barrier that does not depend on the kind of its map.

    `SequenceJoinBarrier`, `TimestampJoinBarrier` and `LatestValueJoinBarrier` say which map is theirs, what its inputs
    are, and what they observe.

    Parameters
    ----------
    config : JoinConfig
    map_kind : type
        Of the maps that are its own; another is of another kind, and no change.
    inputs_of : callable
        The inputs of such a map.

    Attributes
    ----------
    active : SequenceMergeMapAnnounce or TimestampMergeMapAnnounce or None
        The map in force. None blocks (section 7.3).
    inputs : JoinInputs
        Of the map in force, or of the one before.
    epoch : int or None
        Of the output stream.
    last_out : int
        The last accepted output of this epoch; -1 before the first.
    least_out, most_out : int
        Between these outputs nothing but the inputs decides: a map is in force, and the output has not passed.
    """

    __slots__ = (
        "_clocks",
        "_epochs",
        "active",
        "config",
        "epoch",
        "inputs",
        "inputs_of",
        "last_out",
        "least_out",
        "map_kind",
        "most_out",
    )

    strict: ClassVar[bool] = True
    """True if an output must be more than the last one, false if it may equal it."""

    def __init__(self, config: JoinConfig, map_kind: type[MergeMap], inputs_of: InputsOf) -> None:
        self.config = config
        self.map_kind = map_kind
        self.inputs_of = inputs_of
        self.active: MergeMap | None = None
        self.epoch = config.epoch
        self.last_out = _NO_OUTPUT
        self.inputs = JoinInputs()
        self._clocks: dict[int, ClockDomain] = {}
        self._epochs: dict[int, int] = {}  # of streams that were inputs of a map before (rule 31)
        self.least_out, self.most_out = NEVER, MAX_U64

    # The map.

    def announce(self, merge_map: MergeMap, now_ns: int) -> MapChange:
        """Take a map; a different one of the epoch in force replaces the active one.

        Cursors of inputs that stay are kept within an epoch. Clocks of staleness start for what was not observed yet.
        (That a delayed older map of the same epoch comes back cannot be seen on this wire, which has no revision; the
        next re-announce puts it right. An authority of ours takes a new epoch for each change: `impl.join.late_join`.)
        """
        if type(merge_map) is not self.map_kind:
            return MapChange.OTHER_KIND
        if merge_map.out_stream_id != self.config.out_stream_id:
            return MapChange.OTHER_OUTPUT
        if self.epoch is not None and merge_map.epoch < self.epoch:
            return MapChange.OLDER_EPOCH
        if merge_map == self.active:
            return MapChange.UNCHANGED
        self.begin_epoch(merge_map.epoch)
        before = {(each.stream_id, each.source): each for each in self.inputs}
        self._epochs.update((each.stream_id, each.epoch) for each in self.inputs if each.epoch is not None)
        self.active = merge_map
        self.inputs.use(self.inputs_of(merge_map, self.config, now_ns))
        for each in self.inputs:
            old = before.get((each.stream_id, each.source))
            each.epoch = self._epochs.get(each.stream_id)
            if old is not None:
                each.restore(old.capture())
                if old.observed == UNOBSERVED:
                    each.fresh_ns = now_ns
        self._set_bounds()
        return MapChange.APPLIED

    def announce_invalid(self, invalid: InvalidMergeMap) -> MapChange:
        """Take an announce that is no map: the one it was to replace, and no other, is invalid until replaced (rule
        28).
        """
        if invalid.kind is not self.map_kind:
            return MapChange.OTHER_KIND
        if invalid.out_stream_id != self.config.out_stream_id:
            return MapChange.OTHER_OUTPUT
        if invalid.epoch != self.epoch or self.active is None:
            return MapChange.NOT_IN_FORCE
        self.active = None
        self._set_bounds()
        return MapChange.INVALIDATED

    def begin_epoch(self, epoch: int) -> bool:
        """Enter this epoch of the output stream: a newer one needs a new map (section 6.4).

        Returns
        -------
        bool
            Whether it is newer.
        """
        check_range("epoch", epoch, 0, NULL_U64 - 1)
        if self.epoch is not None and epoch <= self.epoch:
            return False
        self.epoch, self.active, self.last_out = epoch, None, _NO_OUTPUT
        for each in self.inputs:
            each.forget()  # but not its epoch: an older frame is an older frame
        self._set_bounds()
        return True

    def declare_clock(self, stream_id: int, domain: ClockDomain) -> None:
        """Set the clock of a stream's timestamps from its own announce: rules do not name it (defect J-16)."""
        check_stream("stream", stream_id)
        self._clocks[stream_id] = domain
        self._set_bounds()

    @property
    def clocks_differ(self) -> bool:
        """Return whether an input, or the output, is known to have another clock than the map: the join is rejected
        (8.2)."""
        active = self.active
        if not isinstance(active, TimestampMergeMapAnnounce):
            return False
        domain = active.clock_domain
        mine = self.config.clock_domain
        known = [self._clocks.get(each.stream_id, domain) for each in self.inputs]
        return (mine is not None and mine is not domain) or any(each is not domain for each in known)

    # Questions.

    def ready(self, out: int, now_ns: int) -> Readiness:
        """Return whether `out` may be attempted (sections 7.1 and 8.1).

        Parameters
        ----------
        out : int
            A sequence number, or a time in nanoseconds. Asking is free: it commits to nothing.
        now_ns : int
            Local monotonic time; only staleness looks at it.

        Raises
        ------
        LimitError
            If `out` is out of the range of 64 bits.
        """
        if self.least_out <= out <= self.most_out:
            for each in self.inputs.all:
                if each.reached < out + each.shift:
                    return _WAITING if each.timeout_ns == NEVER else self.in_full(out, now_ns)
            return _READY
        return self.in_full(out, now_ns)

    def in_full(self, out: int, now_ns: int) -> Readiness:
        """Return the answer of `ready` where it is not READY."""
        check_range("output", out, 0, MAX_U64)
        if self.active is None:
            return Readiness.NO_MAP
        if self.clocks_differ:
            return Readiness.CLOCKS_DIFFER
        if out < self.last_out + self.strict:
            return Readiness.PASSED
        some = False
        for each in self.inputs:
            if each.has(out, now_ns):
                some = True
            elif not each.is_stale(now_ns):
                return Readiness.WAITING
        return Readiness.DEGRADED if some else Readiness.NO_LIVE_INPUT

    def is_possible(self, out: int) -> bool:
        """Return whether `out` can be ready with all inputs, whatever will be observed (sections 6.2, 6.3; rule 27)."""
        return all(each.first_output <= out <= each.most_output for each in self.inputs)

    def missing(self, out: int, now_ns: int) -> tuple[int, ...]:
        """Return the streams that `out` waits for."""
        return self._streams(out, now_ns, stale=False)

    def absent(self, out: int, now_ns: int) -> tuple[int, ...]:
        """Return the streams that `out` would do without, each once (section 7.4)."""
        return self._streams(out, now_ns, stale=True)

    def reads(self, out: int, now_ns: int) -> tuple[Read, ...]:
        """Return what an attempt at `out` is to look for, at each input that is not absent, in the order of the
        rules."""
        return tuple(each.read_for(out) for each in self.inputs if each.has(out, now_ns))

    def note_processed(self, each: JoinInput | None, epoch: int, value: int) -> Observed:
        """Note that a stage before the join has processed an input up to a value."""
        if each is None:
            return Observed.NOT_AN_INPUT
        if epoch != each.epoch and not self.inputs.enter_epoch(each.stream_id, epoch):
            return Observed.OLDER_EPOCH
        if value <= each.processed:
            return Observed.BEHIND
        each.processed = value
        if each.observed == NEVER:
            return Observed.REJECTED
        if self.config.use_processed:
            each.reached = min(each.observed, value)
        return Observed.TAKEN

    def epoch_of(self, stream_id: int) -> int | None:
        """Return the epoch of an input; None if it is unknown, or no input."""
        return self.inputs.epoch_of(stream_id)

    def next_deadline_ns(self, out: int, now_ns: int) -> int | None:
        """Return when an input that `out` waits for will be stale; None if that never happens, or nothing is waited
        for."""
        if self.active is None or self.active.stale_timeout_ns is None:
            return None
        waiting = (each for each in self.inputs if not each.has(out, now_ns) and not each.is_stale(now_ns))
        return min((each.fresh_ns + each.timeout_ns + 1 for each in waiting), default=None)

    def accept(self, out: int) -> None:
        """Accept `out` as emitted, or skipped for good; outputs only increase from here (rule 30).

        Raises
        ------
        NoMapError
            If no map is in force.
        OutputOrderError
            If it does not come after the last one.
        """
        if self.active is None:
            raise NoMapError(f"output {out} accepted without a map", "outputs of the map in force")
        if out < self.last_out + self.strict or out < 0:
            raise OutputOrderError(out, self.last_out, self.strict)
        if out > MAX_U64:
            raise LimitError("output", out, f"0 to {MAX_U64}")
        self.last_out = out
        self._set_bounds()

    def capture(self) -> Hashable:
        """Return the state for `restore`, but the configuration."""
        clocks, epochs = tuple(sorted(self._clocks.items())), tuple(sorted(self._epochs.items()))
        return self.active, self.epoch, self.last_out, self.inputs.capture(), clocks, epochs

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self.active, self.epoch, self.last_out, inputs, clocks, epochs = value  # type: ignore[misc]
        self.inputs.restore(inputs)  # type: ignore[has-type]
        self._clocks, self._epochs = dict(clocks), dict(epochs)  # type: ignore[has-type]
        self._set_bounds()

    # Inside.

    def _set_bounds(self) -> None:
        """Set the bounds between which a question costs one comparison an input."""
        if self.active is None or self.clocks_differ:
            self.least_out = NEVER
            return
        self.least_out = max(0, self.last_out + self.strict, *(each.first_output for each in self.inputs))
        self.most_out = min((each.most_output for each in self.inputs), default=MAX_U64)

    def _streams(self, out: int, now_ns: int, stale: bool) -> tuple[int, ...]:
        found = (each for each in self.inputs if not each.has(out, now_ns) and each.is_stale(now_ns) is stale)
        return tuple(dict.fromkeys(each.stream_id for each in found))
