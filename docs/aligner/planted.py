"""The aligner before its repair: it remembers which checkpoints were completed, and not which were aborted.

It uses messages, reasons and one error of `impl`, and nothing else of it.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from barrierlab.impl.errors import SnapshotFailedError
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, Watermark, size_of
from barrierlab.impl.reasons import Reason


class Phase(Enum):
    """The fate of the next message of an input."""

    FLOWING = "it takes its effect"
    WAITING = "it is queued until the other barriers are in"
    DRAINING = "it is queued behind what is drained one by one"
    OVER = "there is none"


class PhasedAligner:
    """All inputs of a task."""

    def __init__(self, port, config):
        self.port, self.config = port, config
        self.phase = dict.fromkeys(range(config.num_inputs), Phase.FLOWING)
        self.queue = {i: deque() for i in self.phase}
        self.turns = deque()  # the inputs that drain, whose turn it is first
        self.current = None  # the barrier of the checkpoint under way
        self.began_ns = 0
        self.triggers = {}  # of checkpoints to come, as far as that is known
        self.done = 0  # the highest id that is completed or aborted

    # Messages.

    def offer(self, input_id, message, now_ns):
        if self.phase[input_id] is Phase.FLOWING or self._is_urgent(input_id, message):
            self._apply(input_id, message, now_ns)
            return True
        return self._buffer(input_id, message)

    def _buffer(self, input_id, message):
        if not self.can_take(input_id):
            return False
        buffered = sum(size_of(each) for queue in self.queue.values() for each in queue)
        if buffered + size_of(message) > self.config.max_buffer_memory_bytes:
            if self._waits_for() and not self.turns:
                self._make_room()
            return False
        self.queue[input_id].append(message)
        self.port.buffer(input_id, message)
        return True

    def _make_room(self):
        self._decline(Reason.BUFFER_LIMIT)

    def _waits_for(self):
        """The checkpoint that inputs wait for; 0 is none."""
        return 0 if self.current is None else self.current.checkpoint_id

    def _is_urgent(self, input_id, message):
        """News of the checkpoint that this input waits for."""
        if self.phase[input_id] is not Phase.WAITING:
            return False
        if type(message) is CheckpointBarrier:
            return message.checkpoint_id <= self.current.checkpoint_id
        return type(message) is CancelBarrier and message.checkpoint_id == self.current.checkpoint_id

    def _apply(self, input_id, message, now_ns):
        if type(message) in (Event, Watermark):
            self.port.deliver(input_id, message)
        elif type(message) is EndOfInput:
            self.phase[input_id] = Phase.OVER
            self.port.end_input(input_id)
            self._cut_if_all_are_in()
        elif self._is_over(message.checkpoint_id):
            self.port.ignore(input_id, message)
        elif type(message) is CancelBarrier:
            self._abort(message.checkpoint_id)
        else:
            self._on_barrier(input_id, message, now_ns)

    def _on_barrier(self, input_id, barrier, now_ns):
        if self.current is not None and barrier.checkpoint_id > self.current.checkpoint_id:
            self._decline(Reason.SUBSUMED)
        if self.current is not None and barrier != self.current:
            self._decline(Reason.BARRIER_MISMATCH)
            self.port.ignore(input_id, barrier)
        elif self.phase[input_id] is Phase.WAITING:
            self.port.ignore(input_id, barrier)
        else:
            if self.current is None:
                self.current, self.began_ns = barrier, now_ns
            if self.phase[input_id] is Phase.DRAINING:
                self.turns.remove(input_id)
            self.phase[input_id] = Phase.WAITING
            self.port.block(input_id, barrier.checkpoint_id)
            self._cut_if_all_are_in()

    # How a checkpoint ends.

    def _cut_if_all_are_in(self):
        barrier = self.current
        if barrier is None or not {Phase.FLOWING, Phase.DRAINING}.isdisjoint(self.phase.values()):
            return
        try:
            self.port.snapshot(barrier)
        except SnapshotFailedError as error:
            self._decline(error.reason)
            return
        self.port.forward(barrier)
        self.port.complete(barrier)
        self.port.resume(barrier.checkpoint_id)
        self.done = barrier.checkpoint_id
        self._let_go()

    def _decline(self, reason):
        self.port.decline(self.current.checkpoint_id, reason)
        self._abort(self.current.checkpoint_id)

    def _abort(self, checkpoint_id):
        self.port.cancel(checkpoint_id)
        self.port.resume(self._waits_for() or checkpoint_id)
        self._let_go()

    def _let_go(self):
        self.current = None
        self.triggers = {each: ns for each, ns in self.triggers.items() if each > self.done}
        for input_id, phase in self.phase.items():
            if phase is Phase.WAITING:
                self._go_on(input_id)

    def _go_on(self, input_id):
        self.phase[input_id] = Phase.DRAINING if self.queue[input_id] else Phase.FLOWING
        if self.queue[input_id]:
            self.turns.append(input_id)

    def _is_over(self, checkpoint_id):
        return checkpoint_id <= self.done or (self.current is not None and checkpoint_id < self.current.checkpoint_id)

    def abort(self, checkpoint_id, reason, now_ns):
        if not self._is_over(checkpoint_id) and set(self.phase.values()) != {Phase.OVER}:
            self._abort(checkpoint_id)

    # What was buffered.

    @property
    def can_drain(self):
        return bool(self.turns)

    def drain_next(self, now_ns):
        if self.turns:
            input_id = self.turns.popleft()
            message = self.queue[input_id].popleft()
            self._go_on(input_id)
            self._apply(input_id, message, now_ns)

    def can_take(self, input_id):
        return not self._has_ended(input_id) and len(self.queue[input_id]) < self.config.max_buffer_per_input

    def _has_ended(self, input_id):
        queue = self.queue[input_id]
        return self.phase[input_id] is Phase.OVER or bool(queue and type(queue[-1]) is EndOfInput)

    # Time.

    def note_trigger(self, checkpoint_id, triggered_ns):
        if checkpoint_id > self.done:
            self.triggers[checkpoint_id] = triggered_ns

    def next_deadline_ns(self):
        if self.current is None:
            return None
        return self.triggers.get(self.current.checkpoint_id, self.began_ns) + self.config.alignment_timeout_ns

    def on_time(self, now_ns):
        deadline_ns = self.next_deadline_ns()
        if deadline_ns is not None and now_ns >= deadline_ns:
            self._decline(Reason.EXPIRED)

    # As a value, and back.

    def capture(self):
        return (
            tuple(self.phase.values()),
            tuple(tuple(queue) for queue in self.queue.values()),
            tuple(self.turns),
            self.current,
            self.began_ns if self.current is not None else 0,
            tuple(sorted(self.triggers.items())),
            self.done,
        )

    def restore(self, value):
        phases, queues, turns, self.current, self.began_ns, triggers, self.done = value
        self.phase, self.queue = dict(enumerate(phases)), dict(enumerate(map(deque, queues)))
        self.turns, self.triggers = deque(turns), dict(triggers)
