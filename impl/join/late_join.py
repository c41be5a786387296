"""The way of a map to a barrier: an authority that announces and answers, and a joiner that asks until it hears.

Merge maps are soft state: an authority says them again and again, and answers requests (sections 10.1, 10.3 to 10.5).
Nobody else keeps them. Where the document is silent (defects J-05, J-13, J-23):

* An authority asked for an epoch that it does not have answers with the map it has, which says its epoch: so a joiner
  that cannot know the epoch learns it. Asked for an output that it does not have, it says nothing.
* A changed map takes a new epoch. Within an epoch the wire has no revision, so a delayed old map could come back.
* A joiner asks at intervals, so often at most; then it waits for the next announce of its own.
"""

from __future__ import annotations

from collections.abc import Hashable

from barrierlab.impl.errors import MergeMapError
from barrierlab.impl.join.merge_map import (
    MergeMap,
    MergeMapRequest,
    SequenceMergeMapAnnounce,
    SequenceMergeMapRequest,
    TimestampMergeMapAnnounce,
    TimestampMergeMapRequest,
    check_range,
)

_MOST_NS = 2**63 - 1
_ANSWERS: dict[type[MergeMapRequest], type[MergeMap]] = {
    SequenceMergeMapRequest: SequenceMergeMapAnnounce,
    TimestampMergeMapRequest: TimestampMergeMapAnnounce,
}


class MergeMapAuthority:
    """The owner of output streams, which announces their maps: a producer or supervisor.

    A sequence map and a timestamp map of one output live side by side (protocol rule 33).

    Parameters
    ----------
    interval_ns : int
        From one announce of a map to the next, unasked.

    Examples
    --------
    >>> from barrierlab.impl.join import SequenceMergeMapRequest, SequenceMergeRule
    >>> authority = MergeMapAuthority(interval_ns=1_000_000_000)
    >>> rules = (SequenceMergeRule.at_offset(1),)
    >>> [said.epoch for said in authority.publish(SequenceMergeMapAnnounce(9, 3, rules), 0)]
    [3]
    >>> [said.epoch for said in authority.on_request(SequenceMergeMapRequest(9, 1))], authority.next_deadline_ns()
    ([3], 1000000000)
    """

    __slots__ = ("_maps", "interval_ns")

    def __init__(self, interval_ns: int = 1_000_000_000) -> None:
        check_range("interval_ns", interval_ns, 1, _MOST_NS)
        self.interval_ns = interval_ns
        self._maps: dict[tuple[type[MergeMap], int], tuple[MergeMap, int]] = {}

    def publish(self, merge_map: MergeMap, now_ns: int) -> tuple[MergeMap, ...]:
        """Set the map of its output from now on; return what to announce.

        Raises
        ------
        MergeMapError
            If it is of an older epoch than the one before, or differs from it in the same epoch.
        """
        key = type(merge_map), merge_map.out_stream_id
        before = self._maps.get(key)
        if before is not None and merge_map != before[0] and merge_map.epoch <= before[0].epoch:
            raise MergeMapError(
                f"another map of output {merge_map.out_stream_id} for epoch {merge_map.epoch}",
                f"an epoch above {before[0].epoch}",
                "take a new epoch for a changed map: a delayed old one could not be distinguished from it",
            )
        self._maps[key] = merge_map, now_ns + self.interval_ns
        return (merge_map,)

    def on_request(self, request: MergeMapRequest) -> tuple[MergeMap, ...]:
        """Return what to announce in answer; nothing if there is no such output here."""
        found = self._maps.get((_ANSWERS[type(request)], request.out_stream_id))
        return () if found is None else (found[0],)

    def on_time(self, now_ns: int) -> tuple[MergeMap, ...]:
        """Return what is due to be announced again."""
        due = [key for key, (_, at_ns) in self._maps.items() if at_ns <= now_ns]
        said = []
        for key in due:
            merge_map, _ = self._maps[key]
            self._maps[key] = merge_map, now_ns + self.interval_ns
            said.append(merge_map)
        return tuple(said)

    def next_deadline_ns(self) -> int | None:
        """Return when `on_time` will next have something to say; None if there are no maps."""
        return min((at_ns for _, at_ns in self._maps.values()), default=None)

    def capture(self) -> Hashable:
        """Return the state for `restore`, but the interval."""
        return tuple(self._maps.values())

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self._maps = {(type(m), m.out_stream_id): (m, at_ns) for m, at_ns in value}  # type: ignore[attr-defined]


class MergeMapJoiner:
    """The party that needs a map and asks for it.

    Parameters
    ----------
    kind : type
        Of the request: `SequenceMergeMapRequest` or `TimestampMergeMapRequest`.
    out_stream_id : int
    interval_ns : int
        From one request to the next.
    most_requests : int
        After so many it only waits for an announce.

    Attributes
    ----------
    requests : int
        How many it has sent for the map that it waits for.

    Examples
    --------
    >>> joiner = MergeMapJoiner(SequenceMergeMapRequest, 9, interval_ns=1000, most_requests=2)
    >>> joiner.start(0, 0), joiner.on_time(999), joiner.on_time(1000) == joiner.start(0, 1000)
    (SequenceMergeMapRequest(out_stream_id=9, epoch=0), None, True)
    """

    __slots__ = ("_due_ns", "_request", "interval_ns", "kind", "most_requests", "out_stream_id", "requests")

    def __init__(
        self, kind: type[MergeMapRequest], out_stream_id: int, interval_ns: int = 100_000_000, most_requests: int = 50
    ) -> None:
        check_range("interval_ns", interval_ns, 1, _MOST_NS)
        check_range("most_requests", most_requests, 1, 2**31)
        kind(out_stream_id, 0)  # whether it can be asked for at all
        self.kind = kind
        self.out_stream_id = out_stream_id
        self.interval_ns = interval_ns
        self.most_requests = most_requests
        self.requests = 0
        self._request: MergeMapRequest | None = None
        self._due_ns = 0

    def start(self, epoch: int, now_ns: int) -> MergeMapRequest:
        """Begin to ask for a map; return the first request. (Epoch 0 if it is unknown.)"""
        self._request = self.kind(self.out_stream_id, epoch)
        self.requests = 1
        self._due_ns = now_ns + self.interval_ns
        return self._request

    def on_time(self, now_ns: int) -> MergeMapRequest | None:
        """Return the request if it is due again."""
        due_ns = self.next_deadline_ns()
        if due_ns is None or now_ns < due_ns:
            return None
        self.requests += 1
        self._due_ns = now_ns + self.interval_ns
        return self._request

    def heard(self, merge_map: MergeMap) -> bool:
        """Take an announce; return whether it was waited for."""
        request = self._request
        if request is None or type(merge_map) is not _ANSWERS[self.kind]:
            return False
        if merge_map.out_stream_id != self.out_stream_id or merge_map.epoch < request.epoch:
            return False
        self._request = None
        return True

    @property
    def is_waiting(self) -> bool:
        """Return whether a map is needed and has not come."""
        return self._request is not None

    def next_deadline_ns(self) -> int | None:
        """Return when the next request is due; None if none will be sent."""
        return self._due_ns if self._request is not None and self.requests < self.most_requests else None

    def capture(self) -> Hashable:
        """Return the state for `restore`, but the configuration."""
        return self._request, self.requests, self._due_ns

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self._request, self.requests, self._due_ns = value  # type: ignore[misc]
