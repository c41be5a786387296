"""The same aligner, going unaligned as well: it adds what is in flight, and which barriers are missing."""

from __future__ import annotations

from barrierlab.impl.errors import SnapshotFailedError
from barrierlab.impl.messages import UNALIGNED_FLAG, CancelBarrier, CheckpointBarrier, EndOfInput, Event, size_of
from barrierlab.impl.reasons import Reason
from docs.aligner.aligner import Phase, PhasedAligner

NOT_YET = (Phase.FLOWING, Phase.DRAINING)


def flagged(barrier):
    """The barrier that asks for an unaligned part."""
    return CheckpointBarrier(barrier.checkpoint_id, barrier.epoch, barrier.flags | UNALIGNED_FLAG)


class RecordingAligner(PhasedAligner):
    """All inputs of a task. While it records, an input waits only with a barrier of a newer checkpoint."""

    def __init__(self, port, config, unaligned, is_sink):
        super().__init__(port, config)
        self.unaligned = unaligned
        self.may_overtake = unaligned is not None and unaligned.enabled and not is_sink
        self.is_unaligned = self.was_threshold_triggered = self.recording = False
        self.missing = set()  # the inputs whose barrier is still to come, while it records
        self.recorded_bytes = 0
        self.passed = None  # the events that the barrier in hand has overtaken; None if it came in its turn

    # Messages.

    def offer(self, input_id, message, now_ns):
        if not self._is_for_later(input_id, message):
            return super().offer(input_id, message, now_ns)
        took = self._buffer(input_id, message)
        if took and self.phase[input_id] is Phase.FLOWING:
            self.phase[input_id] = Phase.WAITING
        return took

    def _is_for_later(self, input_id, message):
        if not self.recording or input_id in self.missing or type(message) not in (CheckpointBarrier, CancelBarrier):
            return False
        return message.checkpoint_id > self.current.checkpoint_id

    def offer_overtaking(self, input_id, barrier, ahead, now_ns):
        newer = self.current is not None and barrier.checkpoint_id > self.current.checkpoint_id
        if not self.may_overtake or (newer and self._is_in(input_id)):
            return False
        passed = [each for each in (*self.queue[input_id], *ahead) if type(each) is Event]
        recorded_bytes = 0 if newer else self.recorded_bytes
        too_much = recorded_bytes + sum(map(size_of, passed)) > self.unaligned.max_inflight_buffer_bytes
        if too_much and not self._is_over(barrier.checkpoint_id) and not self._is_in(input_id):
            self.port.decline(barrier.checkpoint_id, Reason.IN_FLIGHT_LIMIT)
            self._abort(barrier.checkpoint_id)
            self.port.ignore(input_id, barrier)
            return True
        self.passed = passed
        self._apply(input_id, barrier, now_ns)
        self.passed = None
        return True

    def wants_overtaking(self, input_id, barrier, now_ns):
        checkpoint_id = barrier.checkpoint_id
        if not self.may_overtake or self._has_ended(input_id) or self._is_over(checkpoint_id) or self._is_in(input_id):
            return False
        if any(type(each) is CheckpointBarrier for each in self.queue[input_id]):
            return False
        if barrier.is_unaligned or self.unaligned.force_unaligned:
            return True
        if self.recording and checkpoint_id == self.current.checkpoint_id:
            return True
        triggered_ns = self.triggers.get(checkpoint_id)
        return triggered_ns is not None and now_ns >= triggered_ns + self.unaligned.alignment_timeout_threshold_ns

    def _is_in(self, input_id):
        """True if this input has delivered the current checkpoint's barrier."""
        if self.recording:
            return input_id not in self.missing
        return self.phase[input_id] is Phase.WAITING

    def _apply(self, input_id, message, now_ns):
        in_flight = self.recording and input_id in self.missing
        if type(message) is Event and in_flight:
            if self.recorded_bytes + size_of(message) > self.unaligned.max_inflight_buffer_bytes:
                self._decline(Reason.IN_FLIGHT_LIMIT)
            else:
                self._record(input_id, [message])
        if type(message) is not EndOfInput:
            super()._apply(input_id, message, now_ns)
            return
        self.phase[input_id] = Phase.OVER
        self.port.end_input(input_id)
        if in_flight:
            self.missing.discard(input_id)
            if not self.missing:
                self.port.complete(self.current)
                self._done()
        elif not self.recording and self.current is not None:
            self._go_on_aligning(now_ns)

    def _on_barrier(self, input_id, barrier, now_ns):
        if self.current is not None and barrier.checkpoint_id > self.current.checkpoint_id:
            self._decline(Reason.SUBSUMED)
        if self.current is None:
            self.current, self.began_ns = barrier, now_ns
        elif not self._agrees(barrier):
            self._decline(Reason.BARRIER_MISMATCH)
            self.port.ignore(input_id, barrier)
            return
        elif self._is_in(input_id):
            self.port.ignore(input_id, barrier)
            return
        if self.recording:
            self._on_late_barrier(input_id)
            return
        if self.phase[input_id] is Phase.DRAINING:
            self.turns.remove(input_id)
        self.phase[input_id] = Phase.WAITING
        asks = self.passed is not None or barrier.is_unaligned
        if asks and self.unaligned is not None:
            self.current = flagged(self.current)  # if nothing may overtake here, that is passed on
        self.port.block(input_id, barrier.checkpoint_id)
        if self.may_overtake and (asks or self.unaligned.force_unaligned):
            self._go_unaligned(input_id)
        else:
            self._go_on_aligning(now_ns)

    def _agrees(self, barrier):
        if self.unaligned is None:
            return barrier == self.current
        return flagged(barrier) == flagged(self.current)

    def _on_late_barrier(self, input_id):
        self.missing.discard(input_id)
        self._wait_with_what_is_newer()
        self.port.block(input_id, self.current.checkpoint_id)
        self._record(input_id, self.passed or ())
        self._resume_or_complete()

    # From aligning to recording, and to the end.

    def _go_on_aligning(self, now_ns):
        to_come = any(phase in NOT_YET for phase in self.phase.values())
        if to_come and self.may_overtake and now_ns > self._switches_ns():
            self._go_unaligned(switched=True)
        else:
            self._cut_if_all_are_in()

    def _make_room(self):
        if self.may_overtake:
            self._go_unaligned(switched=True)
        else:
            super()._make_room()

    def _go_unaligned(self, input_id=None, switched=False):
        self.current = flagged(self.current)
        self.is_unaligned, self.was_threshold_triggered = True, switched
        passed = self.passed or ()
        try:
            self.port.snapshot(self.current)
        except SnapshotFailedError as error:
            self._decline(error.reason)
            return
        self.port.forward(self.current)
        self._record(input_id, passed)
        self.recording = True
        self.missing = {each for each, phase in self.phase.items() if phase in NOT_YET}
        for each, phase in self.phase.items():
            if phase is Phase.WAITING:
                self._go_on(each)
        self._wait_with_what_is_newer()
        if self.recorded_bytes > self.unaligned.max_inflight_buffer_bytes:
            self._decline(Reason.IN_FLIGHT_LIMIT)
        else:
            self._resume_or_complete()

    def _record(self, input_id, events):
        for event in events:
            self.recorded_bytes += size_of(event)
            self.port.record(input_id, event, self.current.checkpoint_id)

    def _wait_with_what_is_newer(self):
        for input_id in list(self.turns):
            if self._is_for_later(input_id, self.queue[input_id][0]):
                self.turns.remove(input_id)
                self.phase[input_id] = Phase.WAITING

    def _resume_or_complete(self):
        barrier = self.current
        if not self.missing:
            self.port.complete(barrier)
        self.port.resume(barrier.checkpoint_id)
        if not self.missing:
            self._done()

    def _done(self):
        self.done = self.current.checkpoint_id
        self._let_go()

    def _let_go(self):
        self.is_unaligned = self.was_threshold_triggered = self.recording = False
        self.missing, self.recorded_bytes = set(), 0
        super()._let_go()

    def _waits_for(self):
        return 0 if self.recording else super()._waits_for()

    def note_output(self, size_bytes):
        if self.is_unaligned:
            self.recorded_bytes += size_bytes
            if self.recording and self.recorded_bytes > self.unaligned.max_inflight_buffer_bytes:
                self._decline(Reason.IN_FLIGHT_LIMIT)

    def drain_next(self, now_ns):
        super().drain_next(now_ns)
        self._wait_with_what_is_newer()

    # Time.

    def _switches_ns(self):
        triggered_ns = self.triggers.get(self.current.checkpoint_id, self.began_ns)
        return triggered_ns + self.unaligned.alignment_timeout_threshold_ns

    def _may_switch(self):
        return self.may_overtake and self.current is not None and not self.is_unaligned

    def next_deadline_ns(self):
        expires_ns = super().next_deadline_ns()
        return min(expires_ns, self._switches_ns()) if self._may_switch() else expires_ns

    def on_time(self, now_ns):
        expires_ns = super().next_deadline_ns()
        if expires_ns is not None and now_ns >= expires_ns:
            self._decline(Reason.EXPIRED)
        elif self._may_switch() and now_ns >= self._switches_ns():
            self._go_unaligned(switched=True)

    # As a value, and back.

    def capture(self):
        part = (self.is_unaligned, self.was_threshold_triggered, self.recording)
        return super().capture(), part, tuple(sorted(self.missing)), self.recorded_bytes

    def restore(self, value):
        aligner, part, missing, self.recorded_bytes = value
        super().restore(aligner)
        self.is_unaligned, self.was_threshold_triggered, self.recording = part
        self.missing = set(missing)
