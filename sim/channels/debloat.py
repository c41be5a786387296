"""Buffer debloating: a gate chooses the size of its channels' next buffers, so that what is queued lasts a target time.

Every period, the throughput since the last time gives the bytes that the target asks for; shared out among the buffers
in use, they are the size that is wanted. A moving average of it is announced to the senders, unless it is near the size
that they have. The number of buffers stays.

Source: Apache Flink, FLIP-183, `BufferDebloater`, `BufferSizeEMA`, `ThroughputCalculator`, `SingleInputGate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Protocol

from barrierlab.sim.core.clock import Clock
from barrierlab.sim.core.distributions import NS_PER_S
from barrierlab.sim.scenario.settings import BufferDebloatSettings


class ThroughputMeter:
    """Bytes read in the time in which there was something to read."""

    __slots__ = ("_bytes", "_clock", "_last", "_measured_ns", "_since_ns")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bytes = self._measured_ns = 0
        self._since_ns: int | None = None  # None: it is paused
        self._last = 0.0

    def read(self, size: int) -> None:
        """Note that a buffer of so many bytes was opened."""
        if self._since_ns is None:
            self._since_ns = self._clock.now
        self._bytes += size

    def pause(self) -> None:
        """Note that there is nothing to read."""
        if self._since_ns is not None:
            self._measured_ns += self._clock.now - self._since_ns
            self._since_ns = None

    def per_s(self) -> float:
        """Return the bytes a second since the last time this was asked; the last answer, if nothing was read since.

        What takes no time to read is read at any rate. (A clock of milliseconds, as Flink's, does not see that.)
        """
        now = self._clock.now
        if self._since_ns is not None:
            self._measured_ns += now - self._since_ns
            self._since_ns = now
        if self._measured_ns:
            self._last = self._bytes * NS_PER_S / self._measured_ns
        elif self._bytes:
            self._last = inf
        self._bytes = self._measured_ns = 0
        return self._last


class Resizable(Protocol):
    """A channel whose buffers may change their size."""

    def buffers_in_use(self) -> int:
        """Return how many buffers wait to be read."""

    def resize(self, buffer_bytes: int) -> None:
        """Ask for buffers of this size from now on."""

    def starts_with(self, buffer_bytes: int) -> None:
        """Set the size that buffers have until the receiver asks for another."""


class BufferDebloater:
    """The buffer size of one gate.

    Attributes
    ----------
    buffer_bytes : int
        The size that was announced last (`debloatedBufferSize`).
    estimated_s : float
        The time that what is queued lasts (`estimatedTimeToConsumeBuffersMs`).
    """

    __slots__ = ("_average", "_channels", "_largest", "_meter", "_settings", "_smallest", "buffer_bytes", "estimated_s")

    def __init__(
        self,
        settings: BufferDebloatSettings,
        segment_bytes: int,
        channels: Sequence[Resizable],
        meter: ThroughputMeter,
    ) -> None:
        self._settings, self._channels, self._meter = settings, channels, meter
        self._largest = segment_bytes
        self._smallest = min(settings.min_segment_bytes, segment_bytes)
        self.buffer_bytes = min(settings.starting_segment_bytes, segment_bytes)
        self._average = float(self.buffer_bytes)
        self.estimated_s = 0.0
        for channel in channels:
            channel.starts_with(self.buffer_bytes)

    def adjust(self) -> None:
        """Adjust the size of the buffers, as a period is over."""
        settings = self._settings
        throughput = self._meter.per_s()
        in_use = max(1, sum(channel.buffers_in_use() for channel in self._channels))
        wanted = min(throughput * settings.target_s / in_use, 2 * self._average)  # as fast up as down
        self._average += 2 / (settings.samples + 1) * (wanted - self._average)
        self._average = max(self._smallest, min(self._average, self._largest))
        size = round(self._average)
        self.estimated_s = size * in_use / max(1.0, throughput)
        if self._is_near(size):
            return
        self.buffer_bytes = size
        for channel in self._channels:
            channel.resize(size)

    def _is_near(self, size: int) -> bool:
        """Return whether a size is not worth to be announced."""
        if size == self.buffer_bytes:
            return True
        if size <= self._smallest or size >= self._largest:
            return False
        return abs(size - self.buffer_bytes) < int(self.buffer_bytes * self._settings.threshold_percentages / 100)
