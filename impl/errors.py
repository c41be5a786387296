"""The errors that can be raised: for what only the caller can cause, or what a store's medium did.

What a peer or the network can cause - a duplicate, a stale barrier, a full buffer - is an answer, never an exception.
A contract error leaves the machine as it was. A store error says that stored bytes are not what was written, or that
the medium refused. Every message has three parts: what came, what is allowed, what to do; they are attributes too. It
is one line, whatever the caller gave.
"""

from __future__ import annotations

from barrierlab.impl.reasons import Reason

_MOST_SHOWN = 100  # characters of a value: a line of a terminal, about


class BarrierError(Exception):
    """Base of every error raised here.

    Attributes
    ----------
    actual : str
        What was given.
    expected : str
        What would have been possible.
    hint : str
        What to do. What is the same in every error of a class stands in the class.
    """

    expected: str = ""
    hint: str = ""

    def __init__(self, actual: str, expected: str | None = None, hint: str | None = None) -> None:
        self.actual = " ".join(actual.splitlines())
        self.expected = " ".join((self.expected if expected is None else expected).splitlines())
        self.hint = self.hint if hint is None else hint
        super().__init__(self.actual, self.expected, self.hint)

    def __str__(self) -> str:
        return f"{self.actual}; allowed: {self.expected}; {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild from the three parts: a subclass may be made from others."""
        return _rebuilt, (type(self), self.actual, self.expected, self.hint), self.__dict__


def shown(value: object) -> str:
    """A value as a message names it: cut off where it is long, and by its type where it cannot be written."""
    try:
        text = repr(value)
    except Exception:  # a number of more digits than Python writes, or an object of the caller's
        return f"a {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


def _rebuilt(kind: type[BarrierError], actual: str, expected: str, hint: str) -> BarrierError:
    error = kind.__new__(kind)
    BarrierError.__init__(error, actual, expected, hint)
    return error


class ContractError(BarrierError):
    """The driver gave the machine something that cannot happen: a bug in the driver."""


class InputIndexError(ContractError):
    """A message for an input that does not exist (protocol rule 12)."""

    hint = "number the inputs from 0, or configure more of them"

    def __init__(self, input_id: object, num_inputs: int) -> None:
        super().__init__(f"input {shown(input_id)}", f"0 to {num_inputs - 1}")


class InputCountError(ContractError):
    """A number of inputs that no aligner can have (protocol rule 12)."""

    hint = "split the operator, or give it an input"

    def __init__(self, num_inputs: object, most: int) -> None:
        super().__init__(f"{shown(num_inputs)} inputs", f"1 to {most}")


class ClosedInputError(ContractError):
    """A message behind the end of its input."""

    expected = "nothing after the end"
    hint = "let the end be the last message"

    def __init__(self, input_id: int, message: object) -> None:
        super().__init__(f"'{message}' on input {input_id}, which has ended")


class UnknownMessageError(ContractError):
    """An object on a channel that is no message."""

    expected = "Event, Watermark, CheckpointBarrier, CancelBarrier, EndOfInput"
    hint = "wrap the payload in an Event"

    def __init__(self, message: object) -> None:
        super().__init__(f"a {type(message).__name__}")


class CheckpointIdError(ContractError):
    """A checkpoint id that is 0 or does not fit 64 bits (protocol rule 2)."""

    expected = f"1 to {2**64 - 1}"
    hint = "take ids from the coordinator; 0 is no checkpoint"

    def __init__(self, checkpoint_id: object) -> None:
        super().__init__(f"checkpoint id {shown(checkpoint_id)}")


class EpochError(ContractError):
    """An epoch out of range, or one that does not increase with the id (protocol rule 2)."""

    hint = "take epochs from the coordinator, which never reuses one"

    def __init__(self, epoch: object, expected: str) -> None:
        super().__init__(f"epoch {shown(epoch)}", expected)


class RegressingIdError(ContractError):
    """A checkpoint id below one that was accepted already (protocol rule 2)."""

    hint = "drop the older command: a failed attempt burns its id"

    def __init__(self, checkpoint_id: int, newest: int) -> None:
        super().__init__(f"checkpoint id {checkpoint_id} after {newest}", f"more than {newest}")


class LimitError(ContractError):
    """A limit, an interval or a size that makes no sense."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name} = {shown(value)}", expected, f"set {name} within that")


class NotTriggeredError(ContractError):
    """`complete_alignment` or `fail_alignment` without a snapshot to end."""

    expected = "once, after TRIGGER_SNAPSHOT"
    hint = "call it when process_message or drain_next has answered TRIGGER_SNAPSHOT"


class NotRecordingError(ContractError):
    """Overtaken events are handed in after their acknowledgement was taken."""

    expected = "as long as the part is being recorded or its acknowledgement is in the reports"
    hint = "let the outbox go, and hand in what is overtaken, before the reports are taken"

    def __init__(self, checkpoint_id: int, output: int) -> None:
        super().__init__(
            f"what barrier {checkpoint_id} overtook on output {output}, after its acknowledgement was taken"
        )


class SequenceError(ContractError):
    """A source's event out of sequence: its position would not be what the acknowledgement says."""

    hint = "emit the events of a source in order, from 1"

    def __init__(self, event: object, position: int) -> None:
        super().__init__(f"event '{event}'", f"sequence {position}")


class UnknownTaskError(ContractError):
    """A report of a task that the coordinator does not have."""

    hint = "name a task of this job"

    def __init__(self, task: str, tasks: tuple[str, ...]) -> None:
        super().__init__(f"task {shown(task)}", ", ".join(tasks))


class NotPublishingError(ContractError):
    """The end of a manifest's write that was not asked for, or has ended (protocol rule 20)."""

    hint = "call it once for each Publish, when the write has ended"

    def __init__(self, call: str, publishing: tuple[int, ...]) -> None:
        super().__init__(call, ", ".join(map(str, publishing)) or "none: no manifest is being written")


class UnsettledError(ContractError):
    """A job is resumed while checkpoints are under way: one that lands later would be newer than what was restored."""

    expected = "none under way"
    hint = "suspend, and read the store and resume once `settled` is true"

    def __init__(self, pending: tuple[int, ...]) -> None:
        super().__init__(f"resume() with checkpoint {', '.join(map(str, pending))} under way")


class NotFinishedError(ContractError):
    """The final snapshot of a task that goes on."""

    expected = "a task that has finished"
    hint = "ask when it has"

    def __init__(self, task: str) -> None:
        super().__init__(f"the final snapshot of {task}, which goes on")


class TransactionError(ContractError):
    """A call that the state of a transaction forbids."""

    hint = "give each transaction a name of its own, and roll back at recovery only, once the store is settled"

    def __init__(self, call: str, transaction: str, state: str, expected: str) -> None:
        super().__init__(f"{call} of transaction {transaction}, which {state}", expected)


class RestoreError(ContractError):
    """A checkpoint that is not one of this job: it cannot be restored (no rescaling).

    The message names the first tasks or channels that do not fit.
    """

    hint = "restore it into the job that it was taken of, with the same operators and parallelism"

    def __init__(self, checkpoint_id: int, actual: str, expected: str) -> None:
        super().__init__(f"checkpoint {checkpoint_id} with {actual}", expected)


class SnapshotFailedError(BarrierError):
    """The image of a task's state could not be taken: the checkpoint is declined (protocol rule 9)."""

    def __init__(
        self,
        cause: str,
        reason: Reason = Reason.SNAPSHOT_FAILED,
        hint: str = "the checkpoint is declined and the next one tried",
    ) -> None:
        super().__init__(cause, "an immutable image of the state", hint)
        self.reason = reason


class PlainValueError(ContractError):
    """A value that has no encoding: an image must be made of immutable plain values (defect P-12)."""

    expected = "None, bool, int, float, str, bytes, a message, and tuples of these"
    hint = "give an immutable image made of them"

    def __init__(self, kind: type) -> None:
        super().__init__(f"a value of type {kind.__name__}")


class CompletedError(ContractError):
    """A change to a completed checkpoint, which is immutable (protocol rule 20)."""

    expected = "to load it"
    hint = "take the next checkpoint id"

    def __init__(self, call: str, checkpoint_id: int) -> None:
        super().__init__(f"{call} of checkpoint {checkpoint_id}, which is complete")


class AttemptError(ContractError):
    """A part or a manifest that does not belong to an attempt under way (protocol rule 20)."""

    hint = "begin a checkpoint, write each task's part once, complete it with those parts"


class MergeMapError(ContractError):
    """A merge map, or a rule of one, that says nothing that a join could go by (protocol rule 28)."""


class StreamIdError(ContractError):
    """A stream id that no stream has."""

    expected = f"1 to {2**32 - 2}"
    hint = "give the id that the stream is published by"

    def __init__(self, name: str, stream_id: object) -> None:
        super().__init__(f"{name} {shown(stream_id)}")


class OutputOrderError(ContractError):
    """An output that does not come after the last accepted one (protocol rule 30)."""

    hint = "accept outputs in order; asking for an older one is free"

    def __init__(self, out: int, last: int, strict: bool) -> None:
        super().__init__(f"output {out} accepted after {last}", f"more than {last}" if strict else f"{last} or more")


class NoMapError(ContractError):
    """An output accepted, or an attempt ended, where none can be: no map is in force, or nothing is being tried."""

    hint = "ask first, and try what the answer allows"


class StoreError(BarrierError):
    """A store cannot give or keep something: its medium did it, not the caller."""


class DamagedError(StoreError):
    """Stored bytes are not those that were written (protocol rules 21 and 22).

    Attributes
    ----------
    path : str
        What was read.
    """

    hint = "its checkpoint is unusable: go back to an older one"

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(f"{path}: {found}", expected)
        self.path = path


class StoreFailedError(StoreError):
    """The medium refused: it is full, or read-only, or broken.

    Attributes
    ----------
    call : str
        What was being done.
    cause : OSError
    definite : bool
        Whether the checkpoint has surely not completed. If not, complete it again or abandon it: either settles it.
    """

    def __init__(self, call: str, cause: OSError, definite: bool = True, hint: str = "") -> None:
        doubt = "complete the checkpoint again, or abandon it: either settles it"
        super().__init__(
            f"{call}: {cause}",
            "a medium that keeps and gives what it is given",
            (hint or "decline the checkpoint") if definite else doubt,
        )
        self.call = call
        self.cause = cause
        self.definite = definite


class NotCompleteError(StoreError):
    """A checkpoint that is not, or no longer, among the complete ones."""

    hint = "take the latest usable one"

    def __init__(self, checkpoint_id: int, completed: tuple[int, ...]) -> None:
        super().__init__(
            f"checkpoint {checkpoint_id}, which is not complete",
            ", ".join(map(str, completed)) or "none: no checkpoint is complete",
        )


class NoUsableCheckpointError(StoreError):
    """No complete checkpoint can be read whole (protocol rule 22).

    Attributes
    ----------
    passed_over : tuple of (int, str)
        Each complete checkpoint with the reason why it is unusable, newest first.
    """

    expected = "one complete checkpoint of which every byte is as written"
    hint = "put the named files back from a copy, or start the job from the beginning"

    def __init__(self, passed_over: tuple[tuple[int, str], ...]) -> None:
        reasons = "; ".join(f"checkpoint {checkpoint_id} is unusable ({why})" for checkpoint_id, why in passed_over)
        super().__init__(reasons or "no checkpoint is complete")
        self.passed_over = passed_over
