"""A lookout for times in which a job gives nothing out, or can move no more, though its sources have events due."""

from __future__ import annotations

from collections.abc import Callable

from barrierlab.model.spec.history import Entry
from barrierlab.model.spec.messages import kind_of
from barrierlab.sim.checkpoint.failover import Recovery
from barrierlab.sim.checkpoint.tasks import Job, SourceNode
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.scenario.settings import Scenario, ns

MEAN_GAPS = 10
"""So many mean inter-arrivals must a source be behind: ten in a row are late by chance alone in no shipped scenario."""
MOST_LOOKS = 1000
"""A run is looked at so often at most: a look reads the journal up to the next move of an event, which is at hand."""

INTERVALS = 2
"""So many checkpoint intervals without a record at a sink are a standstill: a checkpoint may hold records for one."""

_MOVED = frozenset((">emit", "send", "take", "pass", "push"))


def overdue_ns_of(scenario: Scenario, source: str) -> int:
    """Return how long an event of the source task `source` must be overdue until the source counts as held up."""
    return round(MEAN_GAPS * 1e9 / scenario.sources[scenario.topology.operator_of(source)].rate_per_s)


class Standstill:
    """Looks at a run at equal intervals, and notes in its journal when nothing can move any more (LIVE).

    It keeps, too, since when the job stands still: no sink has taken a record for so long, while events were overdue
    and no task was at work. One that is over before the next look is not seen.

    An interval holds ten arrivals of the busiest source and two flushes of every output, so what waits for a timer has
    moved within it. Stuck is a job of which no task serves, stalls, is down or waits for a deadline, with nothing on a
    link or on its way from or to the coordinator, while an event is overdue. It may move again when the next barrier
    ends a buffer: that is no progress.
    """

    def __init__(
        self,
        scenario: Scenario,
        clock: Clock,
        entries: list[Entry],
        job: Job,
        is_busy: Callable[[], bool],
        recovery: Recovery,
    ) -> None:
        self._scenario, self._until_ns = scenario, ns(scenario.until_s)
        self._clock, self._entries, self._job, self._is_busy = clock, entries, job, is_busy
        self._recovery = recovery
        flush_s = [c.flush_timeout_s + c.flush_late_s.mean for c in scenario.channels.values() if c.form == "network"]
        gap_s = 1 / max(source.rate_per_s for source in scenario.sources.values())
        self._every_ns = max(ns(MEAN_GAPS * gap_s), ns(2 * max(flush_s, default=0.0)), self._until_ns // MOST_LOOKS, 1)
        self._seen = 0  # entries of the journal
        self._attempt = -1  # the last one of which it has been said
        self._sinks = frozenset(scenario.topology.sinks)
        self._taken_ns = self._searched = 0  # the last record at a sink, among so many entries
        self._stood: dict[int, int] = {}  # since when, and how long the journal was when that was last seen
        self._ended: dict[int, int] = {}  # of those of whose end the journal tells no more, when that was
        self._before = 0  # rows that are no more in the journal
        self._moved = False  # whether a message has moved in one of them since the last look

    def start(self) -> None:
        """Look for the first time after one interval."""
        self._await()

    def since_ns(self) -> int | None:
        """Return when a sink last took a record, or the job began, if it stands still now; else None."""
        scenario = self._scenario
        held_up = [source for source in self._job.source_nodes if source.overdue_ns()]
        is_at_work = any(node.serving and not node.stalled for node in self._job.nodes.values())
        if not held_up or is_at_work or self._recovery.under_way:
            return None
        gap_ns = max(overdue_ns_of(scenario, source.name) for source in held_up)
        longest_ns = max(gap_ns, INTERVALS * ns(scenario.checkpoint.interval_s or 0.0))
        if max(source.overdue_ns() for source in held_up) <= longest_ns:
            return None
        self._search()
        since_ns = max(self._taken_ns, self._recovery.restored_ns)
        return since_ns if self._clock.now - since_ns > longest_ns else None

    def _search(self) -> None:
        """Find the last record at a sink."""
        entries = self._entries
        for place in range(len(entries) - 1, self._searched - self._before - 1, -1):
            if self._is_taken(entries[place]):
                self._taken_ns = entries[place][0]
                break
        self._searched = self._before + len(entries)

    def forget(self) -> None:
        """Keep what is asked of the rows of the journal: they go now."""
        entries = self._entries
        self._search()
        seen = max(0, self._seen - self._before)
        self._moved = self._moved or any(entries[place][1] in _MOVED for place in range(seen, len(entries)))
        for since_ns, place in self._stood.items():
            if since_ns not in self._ended:
                ends_ns = self._next_taken(place)
                if ends_ns is not None:
                    self._ended[since_ns] = ends_ns
        self._before += len(entries)

    def _next_taken(self, place: int) -> int | None:
        """Return when a sink took a record at this place of the journal, or behind it; None if none did."""
        entries = self._entries
        later = range(max(0, place - self._before), len(entries))
        return next((entries[at][0] for at in later if self._is_taken(entries[at])), None)

    def longest_ns(self) -> tuple[int, int] | None:
        """Return from when to when the job stood still longest in the run so far: to the next record, or a failure."""
        now_ns, open_ns = self._clock.now, self.since_ns()
        found = [] if open_ns is None else [(open_ns, now_ns)]
        for since_ns, place in self._stood.items():
            end_ns = self._ended.get(since_ns)
            if end_ns is None:
                end_ns = self._next_taken(place)
            failures = (each.failed_ns for each in self._recovery.records if each.failed_ns > since_ns)
            found.append((since_ns, min(now_ns if end_ns is None else end_ns, next(failures, now_ns))))
        return max(found, key=lambda each: (each[1] - each[0], -each[0]), default=None)

    def _is_taken(self, entry: Entry) -> bool:
        _, verb, node, _, subject = entry
        return (verb == "pass" or verb == "deliver") and node in self._sinks and kind_of(subject) == "Event"

    def _await(self) -> None:
        if self._clock.now + self._every_ns < self._until_ns:
            self._clock.schedule(self._every_ns, self._look)

    def _look(self) -> None:
        entries, attempt = self._entries, self._clock.attempt
        self._await()
        since_ns = self.since_ns()
        if since_ns is not None:
            self._stood[since_ns] = self._before + len(entries)
            self._ended.pop(since_ns, None)
        seen, moved = max(0, self._seen - self._before), self._moved
        self._seen, self._moved = self._before + len(entries), False
        if moved or any(entries[place][1] in _MOVED for place in range(seen, len(entries))):
            return
        if attempt != self._attempt and not self._may_move():
            source = next(filter(self._is_held_up, self._job.source_nodes), None)
            if source is not None:
                self._attempt = attempt
                entries.append((self._clock.now, ">stuck", source.name, None, None))

    def _is_held_up(self, source: SourceNode) -> bool:
        return source.overdue_ns() >= overdue_ns_of(self._scenario, source.name)

    def _may_move(self) -> bool:
        job = self._job
        return (
            self._is_busy()
            or any(node.serving or node.stalled or node.dead for node in job.nodes.values())
            or any(node.task.gate.next_deadline_ns() is not None for node in job.operator_nodes)
            or any(channel.in_transit() for channel in job.channels.values())
        )
