"""Measures of control signals, read off the journal: waits, skew, and how long an end takes.

Times are in ms. alignment wait: at one processor and channel, from the first copy of a barrier to its completion. skew:
from the first processor at which a barrier is complete to the last. drain: from when a terminal signal is sent to when
the last processor has ended. fence wait: at one processor, from when a terminal barrier is complete to its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barrierlab.model.control.invariants import ControlEntry, SignalKey, key_of, text_of
from barrierlab.model.control.topology import HEAD, ControlWiring
from barrierlab.sim.checkpoint.metrics import NS_PER_MS, ms_between


@dataclass(slots=True)
class BarrierRecord:
    """One barrier: when it was sent, when its first copy came to each processor, and when it was complete there."""

    carrier: str
    sent_ns: int
    first_ns: dict[str, int] = field(default_factory=dict)
    complete_ns: dict[str, int] = field(default_factory=dict)

    def wait_ms(self, node: str) -> float:
        """Return the alignment wait at a processor where the barrier is complete."""
        return (self.complete_ns[node] - self.first_ns[node]) / NS_PER_MS


class ControlMetrics:
    """Reads the journal entry by entry.

    Attributes
    ----------
    barriers : dict of SignalKey to BarrierRecord
    end : tuple of (str, int) or None
        The terminal signal that was sent, and when.
    ended_ns : dict of str to int
        When each processor ended.
    """

    def __init__(self, wiring: ControlWiring) -> None:
        self._wiring = wiring
        self.barriers: dict[SignalKey, BarrierRecord] = {}
        self.end: tuple[str, int] | None = None
        self.ended_ns: dict[str, int] = {}

    def see(self, entry: ControlEntry) -> None:
        """Read the next entry."""
        at_ns, verb, node, where, subject = entry
        signal: Any = subject
        if node == HEAD and verb == "forward":
            if type(signal).__name__ == "BarrierControlSignal":
                self.barriers[key_of(signal)] = BarrierRecord(str(where), at_ns)
            if signal.is_terminal:
                self.end = (str(signal), at_ns)
        elif verb == "arrive":
            self.barriers[key_of(signal)].first_ns.setdefault(node, at_ns)
        elif verb == "complete":
            record = self.barriers[key_of(signal)]
            record.first_ns.setdefault(node, at_ns)
            record.complete_ns[node] = at_ns
        elif verb == "end" and node != HEAD:
            self.ended_ns[node] = at_ns

    def barrier_rows(self) -> list[dict[str, Any]]:
        """One row for each barrier; times from when it was sent."""
        rows = []
        for (barrier_id, kind), record in self.barriers.items():
            times = record.complete_ns
            worst = max(times, key=record.wait_ms, default=None)
            first, last = min(times.values(), default=None), max(times.values(), default=None)
            rows.append(
                {
                    "id": barrier_id,
                    "kind": kind,
                    "channel": record.carrier,
                    "sent_ms": record.sent_ns / NS_PER_MS,
                    "first_ms": ms_between(record.sent_ns, first),
                    "last_ms": ms_between(record.sent_ns, last),
                    "skew_ms": ms_between(first, last),
                    "wait_max_ms": None if worst is None else record.wait_ms(worst),
                    "wait_max_at": worst,
                    "complete_ms": {name: (at - record.sent_ns) / NS_PER_MS for name, at in times.items()},
                }
            )
        return rows

    def alignment_rows(self) -> list[dict[str, Any]]:
        """Return one row for each processor and channel on which a barrier was complete."""
        rows = []
        for node in self._wiring.processors:
            for carrier in ("data", "control"):
                waits = [
                    record.wait_ms(node)
                    for record in self.barriers.values()
                    if record.carrier == carrier and node in record.complete_ns
                ]
                if waits:
                    rows.append(
                        {
                            "processor": node,
                            "channel": carrier,
                            "barriers": len(waits),
                            "wait_mean_ms": sum(waits) / len(waits),
                            "wait_max_ms": max(waits),
                        }
                    )
        return rows

    def end_row(self) -> dict[str, Any] | None:
        """Return how the pipeline ended; None if no terminal signal was sent."""
        if self.end is None:
            return None
        signal, sent_ns = self.end
        barrier = next((record for key, record in self.barriers.items() if text_of(key) == signal), None)
        complete_ns = {} if barrier is None else barrier.complete_ns
        fence_waits = [at_ns - complete_ns[name] for name, at_ns in self.ended_ns.items() if name in complete_ns]
        last = max(self.ended_ns, key=lambda name: self.ended_ns[name], default=None)
        return {
            "signal": signal,
            "sent_ms": sent_ns / NS_PER_MS,
            "drain_ms": ms_between(sent_ns, max(self.ended_ns.values(), default=None)),
            "last": last,
            "fence_wait_max_ms": max(fence_waits, default=0) / NS_PER_MS,
            "ended_ms": {name: (at_ns - sent_ns) / NS_PER_MS for name, at_ns in self.ended_ns.items()},
        }
