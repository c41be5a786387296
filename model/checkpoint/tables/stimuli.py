"""The stimuli of a gate, and what a gate asks for: values, each of which reads as a line.

Time comes in with what happens; nothing here has a clock. What a gate asks for bears the verbs of a journal
(`model.spec.history.EFFECTS`), and two more: ``refuse``, which leaves a message in its channel, and ``record``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from barrierlab.impl.messages import CheckpointBarrier, Event, StreamMessage
from barrierlab.impl.reasons import Reason

NO_INPUT = -1


def _at(at_ns: int) -> str:
    """Return the time in words, if that may matter; else nothing."""
    return f" @ {at_ns}" if at_ns else ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """The next message of an input is offered."""

    input_id: int
    message: StreamMessage
    at_ns: int = 0

    def __str__(self) -> str:
        return f"arrive {self.input_id} {self.message}{_at(self.at_ns)}"


@dataclass(frozen=True, slots=True)
class Overtaking:
    """A barrier is offered ahead of its place: it has passed `ahead`, which stays in the channel."""

    input_id: int
    message: CheckpointBarrier
    ahead: tuple[StreamMessage, ...] = ()
    at_ns: int = 0

    def __str__(self) -> str:
        past = f" past {', '.join(map(str, self.ahead))}" if self.ahead else ""
        return f"overtake {self.input_id} {self.message}{past}{_at(self.at_ns)}"


@dataclass(frozen=True, slots=True)
class DrainOne:
    """There is time for one message that is buffered and may go."""

    at_ns: int = 0

    def __str__(self) -> str:
        return f"drain{_at(self.at_ns)}"


@dataclass(frozen=True, slots=True)
class Drained:
    """That message: it is looked up like one that arrives."""

    input_id: int
    message: StreamMessage
    at_ns: int = 0

    def __str__(self) -> str:
        return f"drained {self.input_id} {self.message}{_at(self.at_ns)}"


@dataclass(frozen=True, slots=True)
class Taken:
    """The image that ``snapshot`` asked for is taken."""

    def __str__(self) -> str:
        return "taken"


@dataclass(frozen=True, slots=True)
class Failed:
    """The image could not be taken."""

    reason: Reason = Reason.SNAPSHOT_FAILED

    def __str__(self) -> str:
        return f"not taken: {self.reason}"


@dataclass(frozen=True, slots=True)
class Forwarded:
    """An unaligned barrier has left, ahead of everything: it is known by now what it passed in the outputs."""

    def __str__(self) -> str:
        return "forwarded"


@dataclass(frozen=True, slots=True)
class OutputPassed:
    """An unaligned barrier has passed events of this size on the way out."""

    size_bytes: int

    def __str__(self) -> str:
        return f"pass {self.size_bytes} bytes on the way out"


@dataclass(frozen=True, slots=True)
class Abort:
    """The coordinator aborts a checkpoint."""

    checkpoint_id: int

    def __str__(self) -> str:
        return f"abort {self.checkpoint_id}"


@dataclass(frozen=True, slots=True)
class TriggerNoted:
    """The coordinator says when it began a checkpoint."""

    checkpoint_id: int
    at_ns: int

    def __str__(self) -> str:
        return f"triggered {self.checkpoint_id} @ {self.at_ns}"


@dataclass(frozen=True, slots=True)
class ClockReading:
    """It is so late now."""

    at_ns: int

    def __str__(self) -> str:
        return f"clock @ {self.at_ns}"


ARRIVALS = (Arrival, Overtaking)
"""As a tuple: a union that is written into a question is made anew each time that it is asked."""
Offered = Arrival | Overtaking | Drained
Stimulus = Offered | DrainOne | Taken | Failed | Forwarded | OutputPassed | Abort | TriggerNoted | ClockReading


class SnapshotComplete(NamedTuple):
    """A task's part of a checkpoint, when it is whole (protocol rule 19)."""

    barrier: CheckpointBarrier
    is_unaligned: bool
    was_threshold_triggered: bool
    record: tuple[tuple[Event, ...], ...]  # by input


class Effect(NamedTuple):
    """One thing that a gate asks of its driver.

    Attributes
    ----------
    verb : str
    input_id : int
        The input that it is about, or `NO_INPUT`.
    subject : object
        A message; of ``block``, ``resume`` and ``cancel`` an id; of ``decline`` an id and a reason; of ``record`` an
        id and an event; of ``complete`` a `SnapshotComplete`.
    """

    verb: str
    input_id: int
    subject: object

    def __str__(self) -> str:
        """Return the effect as in a trace, with the number of the input for its name."""
        where = () if self.input_id == NO_INPUT else (str(self.input_id),)
        match self.subject:
            case SnapshotComplete(barrier):
                what = str(barrier.checkpoint_id)
            case (what_id, what):
                what = f"{what_id} {what}"
            case _:
                what = str(self.subject)
        return " ".join((self.verb, *where, what))
