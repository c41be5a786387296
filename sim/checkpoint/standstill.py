"""A lookout for the state in which a job can move no more though its sources have events to give off."""

from __future__ import annotations

from collections.abc import Callable

from barrierlab.model.spec.history import Entry
from barrierlab.sim.checkpoint.tasks import Job, SourceNode
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.scenario.settings import Scenario, ns

MEAN_GAPS = 10
"""So many mean inter-arrivals must a source be behind: ten in a row are late by chance alone in no shipped scenario."""
MOST_LOOKS = 1000
"""A run is looked at so often at most: a look reads the journal up to the next move of an event, which is at hand."""

_MOVED = frozenset((">emit", "send", "take"))


def overdue_ns_of(scenario: Scenario, source: str) -> int:
    """Return how long an event of the source task `source` must be overdue until the source counts as held up."""
    return round(MEAN_GAPS * 1e9 / scenario.sources[scenario.topology.operator_of(source)].rate_per_s)


class Standstill:
    """Looks at a run at equal intervals, and notes in its journal when nothing can move any more (LIVE).

    An interval holds ten arrivals of the busiest source and two flushes of every output, so what waits for a timer has
    moved within it. Stuck is a job of which no task serves, stalls, is down or waits for a deadline, with nothing on a
    link or on its way from or to the coordinator, while an event is overdue. It may move again when the next barrier
    ends a buffer: that is no progress.
    """

    def __init__(
        self, scenario: Scenario, clock: Clock, entries: list[Entry], job: Job, is_busy: Callable[[], bool]
    ) -> None:
        self._scenario, self._until_ns = scenario, ns(scenario.until_s)
        self._clock, self._entries, self._job, self._is_busy = clock, entries, job, is_busy
        flush_s = [c.flush_timeout_s + c.flush_late_s.mean for c in scenario.channels.values() if c.form == "network"]
        gap_s = 1 / max(source.rate_per_s for source in scenario.sources.values())
        self._every_ns = max(ns(MEAN_GAPS * gap_s), ns(2 * max(flush_s, default=0.0)), self._until_ns // MOST_LOOKS, 1)
        self._seen = 0  # entries of the journal
        self._attempt = -1  # the last one of which it has been said

    def start(self) -> None:
        """Look for the first time after one interval."""
        self._await()

    def _await(self) -> None:
        if self._clock.now + self._every_ns < self._until_ns:
            self._clock.schedule(self._every_ns, self._look)

    def _look(self) -> None:
        entries, attempt = self._entries, self._clock.attempt
        self._await()
        seen, self._seen = self._seen, len(entries)
        if any(entries[place][1] in _MOVED for place in range(seen, self._seen)):
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
