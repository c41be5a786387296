"""The inputs of a task as a value: a step gives the next gate, and what its driver is to do, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.errors import ClosedInputError, InputIndexError, UnknownMessageError
from barrierlab.impl.messages import (
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
    size_of,
)
from barrierlab.model.checkpoint.tables.stimuli import (
    ARRIVALS,
    Arrival,
    Failed,
    Forwarded,
    OutputPassed,
    Overtaking,
    Stimulus,
    Taken,
)
from barrierlab.model.explore.table import Table, TableError

if TYPE_CHECKING:
    from barrierlab.model.checkpoint.tables.stimuli import Effect

KINDS = (Event, Watermark, CheckpointBarrier, CancelBarrier, EndOfInput)
_ANSWERS = (Taken, Failed, Forwarded, OutputPassed)


@dataclass(frozen=True, slots=True)
class GateRules:
    """The settings of a gate.

    Attributes
    ----------
    num_inputs, max_buffer_per_input, max_buffer_memory_bytes, alignment_timeout_ns : int
        As in `impl.checkpoint.alignment.BarrierAlignerConfig`.
    may_overtake : bool
        Whether this task goes unaligned at all: enabled, and no sink.
    flag_matters : bool
        Whether barriers of one id contradict each other if only one is flagged: to who cannot go unaligned.
    force_unaligned, alignment_timeout_threshold_ns, max_inflight_buffer_bytes
        As in `impl.checkpoint.unaligned.UnalignedCheckpointConfig`.
    size_of : callable
        What a message counts in bytes.
    blocks : bool
        Whether an input waits behind its barrier.
    """

    num_inputs: int = 2
    max_buffer_per_input: int = 100_000
    max_buffer_memory_bytes: int = 256 * 1024 * 1024
    alignment_timeout_ns: int = 60_000_000_000
    may_overtake: bool = False
    flag_matters: bool = True
    force_unaligned: bool = False
    alignment_timeout_threshold_ns: int = 30_000_000_000
    max_inflight_buffer_bytes: int = 512 * 1024 * 1024
    size_of: Callable[[StreamMessage], int] = size_of
    blocks: bool = True

    @classmethod
    def of(
        cls,
        config: BarrierAlignerConfig,
        unaligned: UnalignedCheckpointConfig | None = None,
        is_sink: bool = False,
        blocks: bool = True,
    ) -> GateRules:
        """The rules that the configurations of `impl` mean."""
        buffered = (config.max_buffer_per_input, config.max_buffer_memory_bytes, config.alignment_timeout_ns)
        if unaligned is None:
            return cls(config.num_inputs, *buffered, blocks=blocks)
        return cls(
            config.num_inputs,
            *buffered,
            may_overtake=unaligned.enabled and not is_sink,
            flag_matters=False,
            force_unaligned=unaligned.force_unaligned,
            alignment_timeout_threshold_ns=unaligned.alignment_timeout_threshold_ns,
            max_inflight_buffer_bytes=unaligned.max_inflight_buffer_bytes,
            blocks=blocks,
        )


@dataclass(frozen=True, slots=True)
class GateState:
    """All inputs of a task.

    Attributes
    ----------
    table : Table
        The protocol. It and `rules` never change, and are no part of the value.
    rules : GateRules
    buffered : tuple of tuple of StreamMessage
        What each input holds, oldest first.
    pending : CheckpointBarrier or None
        The checkpoint under way, as its barrier will be forwarded; None between checkpoints.
    arrived : frozenset of int
        The inputs whose barrier of it is in.
    ended : frozenset of int
        The inputs whose end has taken effect.
    line : tuple of int
        Whose turn it is to drain: inputs that hold something and do not wait.
    last_terminated_id : int
        The highest id completed or aborted here; 0 at first.
    first_ns : int
        When the first barrier of the pending checkpoint came.
    triggers : tuple of (int, int)
        When checkpoints that are not done with were triggered, as far as that is known, by id.
    taking : bool
        Whether the image has been asked for, and the barrier has not left.
    unaligned, switched : bool
        Whether the part is unaligned, and whether it began aligned.
    record : tuple of tuple of Event
        What is recorded of each input.
    in_flight_bytes : int
        How much that is, with what the barrier passed on the way out.
    """

    table: Table[GateState, Stimulus] = field(compare=False, repr=False)
    rules: GateRules = field(compare=False, repr=False)
    buffered: tuple[tuple[StreamMessage, ...], ...]
    pending: CheckpointBarrier | None = None
    arrived: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    line: tuple[int, ...] = ()
    last_terminated_id: int = 0
    first_ns: int = 0
    triggers: tuple[tuple[int, int], ...] = ()
    taking: bool = False
    unaligned: bool = False
    switched: bool = False
    record: tuple[tuple[Event, ...], ...] = ()
    in_flight_bytes: int = 0

    @classmethod
    def new(cls, table: Table[GateState, Stimulus], rules: GateRules) -> GateState:
        """Return a gate at which nothing has happened yet."""
        return cls(table, rules, ((),) * rules.num_inputs, record=((),) * rules.num_inputs)

    def step(self, stimulus: Stimulus) -> tuple[GateState, tuple[Effect, ...]]:
        """The gate after `stimulus`, and what its driver is to do.

        After ``snapshot``, which is always the last effect, nothing may happen but `Taken` or `Failed`; when `Taken`
        leaves a gate that is still `taking`, nothing but `OutputPassed`, as often as need be, and then `Forwarded`.

        Parameters
        ----------
        stimulus : Stimulus

        Returns
        -------
        tuple of (Gate, tuple of Effect)
            This gate is unchanged.

        Raises
        ------
        InputIndexError, ClosedInputError, UnknownMessageError
            As `impl.checkpoint.gate.Gate.offer`.
        TableError
            If not exactly one row applies, or it is not the time for `stimulus`.

        Examples
        --------
        >>> from barrierlab.impl import CheckpointBarrier, Event
        >>> from barrierlab.model.checkpoint.tables.aligned import ALIGNED
        >>> from barrierlab.model.checkpoint.tables.stimuli import Arrival
        >>> gate = GateState.new(ALIGNED, GateRules())
        >>> gate, effects = gate.step(Arrival(0, CheckpointBarrier(1, 1)))
        >>> gate, effects = gate.step(Arrival(0, Event("a", 1)))
        >>> print(*effects)
        buffer 0 a1
        """
        answers = isinstance(stimulus, _ANSWERS)
        if self.taking and not answers:
            raise TableError(f"{stimulus} while the image is taken; allowed: the answer to that; answer first")
        if isinstance(stimulus, ARRIVALS):
            self._check(stimulus)
        gate: GateState = self
        effects: tuple[Effect, ...] = ()
        for action in self.table.row_for(self, stimulus).then:
            gate, more = action(gate, stimulus)
            effects += more
        return gate, effects

    def _check(self, stimulus: Arrival | Overtaking) -> None:
        input_id, message = stimulus.input_id, stimulus.message
        if not 0 <= input_id < self.rules.num_inputs:
            raise InputIndexError(input_id, self.rules.num_inputs)
        if not self.is_open(input_id):
            raise ClosedInputError(input_id, message)
        if type(message) not in KINDS[2:3] if isinstance(stimulus, Overtaking) else type(message) not in KINDS:
            raise UnknownMessageError(message)

    @property
    def state(self) -> str:
        """The situation of the inputs as a word: see `model.suites.states`."""
        if self.taking:
            return "snapshotting"
        if self.pending is None:
            return "draining" if self.line else "idle"
        if self.unaligned:
            return "recording"
        return "aligning" if self.rules.blocks else "tracking"

    # What rows ask.

    @property
    def aligning(self) -> bool:
        """Return whether inputs wait for each other."""
        return self.pending is not None and not self.unaligned

    @property
    def recording(self) -> bool:
        """Return whether the snapshot is taken and the barrier gone, but barriers are missing."""
        return self.unaligned and not self.taking

    def is_open(self, input_id: int) -> bool:
        """Return whether the end of this input has not come, buffered or not."""
        buffered = self.buffered[input_id]
        return input_id not in self.ended and not (buffered and type(buffered[-1]) is EndOfInput)

    def is_blocked(self, input_id: int) -> bool:
        """Return whether this input waits: for the others, or with a newer barrier for the pending part."""
        in_and_aligning = (
            self.rules.blocks and self.aligning and input_id in self.arrived and input_id not in self.ended
        )
        return in_and_aligning or (bool(self.buffered[input_id]) and input_id not in self.line)

    def is_missing(self, input_id: int) -> bool:
        """Return whether the barrier of the pending checkpoint has still to come on this input."""
        return self.pending is not None and input_id not in self.arrived and input_id not in self.ended

    def missing(self) -> frozenset[int]:
        """Return the inputs on which the barrier of the pending checkpoint has still to come."""
        return frozenset(filter(self.is_missing, range(self.rules.num_inputs)))

    def buffered_bytes(self) -> int:
        """Return how many bytes all inputs hold."""
        return sum(self.rules.size_of(message) for messages in self.buffered for message in messages)

    def triggered_ns(self) -> int | None:
        """Return when the pending checkpoint was triggered, or its first barrier came if nobody said so."""
        if self.pending is None:
            return None
        return dict(self.triggers).get(self.pending.checkpoint_id, self.first_ns)

    def expires_ns(self) -> int | None:
        """Return when the pending checkpoint is aborted."""
        triggered_ns = self.triggered_ns()
        return None if triggered_ns is None else triggered_ns + self.rules.alignment_timeout_ns

    def switches_ns(self) -> int | None:
        """Return when the pending checkpoint goes unaligned."""
        triggered_ns = self.triggered_ns()
        if triggered_ns is None or self.unaligned or not self.rules.may_overtake:
            return None
        return triggered_ns + self.rules.alignment_timeout_threshold_ns

    # What drivers ask.

    def next_deadline_ns(self) -> int | None:
        """Return when the clock will next do something."""
        deadlines = [ns for ns in (self.expires_ns(), self.switches_ns()) if ns is not None]
        return min(deadlines, default=None)

    def can_take(self, input_id: int) -> bool:
        """Return whether this input may be read."""
        return self.is_open(input_id) and len(self.buffered[input_id]) < self.rules.max_buffer_per_input

    def wants_overtaking(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        """Return whether this barrier is to go to the front of its channel now:
        `UnalignedCheckpointer.wants_overtaking`."""
        checkpoint_id, pending = barrier.checkpoint_id, self.pending
        if not self.rules.may_overtake or not self.is_open(input_id) or checkpoint_id <= self.last_terminated_id:
            return False
        if pending is not None and (checkpoint_id < pending.checkpoint_id or input_id in self.arrived):
            return False
        if any(type(buffered) is CheckpointBarrier for buffered in self.buffered[input_id]):
            return False
        if barrier.is_unaligned or self.rules.force_unaligned:
            return True
        if self.recording and pending is not None and checkpoint_id == pending.checkpoint_id:
            return True
        triggered_ns = dict(self.triggers).get(checkpoint_id)
        return triggered_ns is not None and now_ns >= triggered_ns + self.rules.alignment_timeout_threshold_ns
