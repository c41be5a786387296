"""A reader for the notation in which the barrier handler's test vectors are written down.

``D(c)`` or ``Dc`` an event on channel c, ``B(n,c)`` an aligned barrier, ``X(n,c)`` a cancel marker, ``E(c)`` or ``Ec``
the end of input. With one channel ``Bn`` and ``Xn`` name the checkpoint, ``D`` and ``E`` nothing. ``|`` is for the eye.
"""

from __future__ import annotations

import re
from itertools import count
from typing import NamedTuple

from barrierlab.impl import EndOfInput, Event, Gate, StreamMessage
from tests.impl.support import Recorder, barrier, cancel, gate

_TOKEN = re.compile(r"(?P<kind>[DBXE])(?:\((?P<first>\d+)(?:,(?P<second>\d+))?\)|(?P<bare>\d+))?")


class Arrival(NamedTuple):
    """A message and the channel that it arrives on."""

    channel: int
    message: StreamMessage


def read(text: str, channels: int) -> list[Arrival]:
    """The arrivals that `text` writes down; the n-th event is ``d<n>``."""
    arrivals = []
    numbers = count(1)
    for token in text.replace("|", " ").split():
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise ValueError(f"{token!r}; allowed: D(c) Dc B(n,c) Bn X(n,c) Xn E(c) Ec; correct the vector")
        kind, first, second, bare = match.group("kind", "first", "second", "bare")
        if kind in "BX":
            checkpoint_id, channel = int(first or bare), int(second or 0)
            arrivals.append(Arrival(channel, (barrier if kind == "B" else cancel)(checkpoint_id)))
        else:
            message = Event("d", next(numbers)) if kind == "D" else EndOfInput()
            arrivals.append(Arrival(int(first or bare or 0), message))
        if arrivals[-1].channel >= channels:
            raise ValueError(f"{token!r}; allowed: channels 0 to {channels - 1}; correct the vector")
    return arrivals


class Handler:
    """A gate that is fed vectors, and what Flink's tests ask of theirs."""

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.gate: Gate
        self.port: Recorder
        self.gate, self.port = gate(channels)
        self.clock = 0

    def feed(self, text: str) -> Handler:
        """Every arrival, one tick of the clock each; what may be drained goes at once."""
        for channel, message in read(text, self.channels):
            self.clock += 1
            assert self.gate.offer(channel, message, self.clock)
            self.gate.drain_all(self.clock)
        return self

    @property
    def triggered(self) -> list[int]:
        """The checkpoints whose snapshot was taken."""
        return [int(text) for text in self.port.of("snapshot")]

    @property
    def aborted(self) -> list[int]:
        """The checkpoints aborted: each cancels once."""
        return [int(text) for text in self.port.of("cancel")]

    @property
    def declined(self) -> list[str]:
        """Return the reports to the coordinator, with reasons."""
        return self.port.of("decline")

    @property
    def blocked(self) -> set[int]:
        """The channels that wait."""
        return {channel for channel in range(self.channels) if self.gate.is_blocked(channel)}

    @property
    def current(self) -> int:
        """The checkpoint under way, or else the newest one done with."""
        machine = self.gate.aligner
        return machine.barrier.checkpoint_id if machine.barrier else machine.last_terminated_id
