"""The state of one task that is judged while things happen, kept up to date an effect at a time.

One object for both judges: `model.checkpoint.monitor` keeps one in each state of an exploration, captures and restores
it; `model.spec.history` steps one along the journal that it reads. What must hold of the values is in
`model.spec.equations`: ID and WM are asked as it goes, FWD when a checkpoint is known to be complete.

Like `model.spec.history`, this imports nothing of the code under test.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import ClassVar, TypeVar, cast

from barrierlab.model.spec import equations
from barrierlab.model.spec.messages import UNALIGNED_FLAG, MessageView

Breach = tuple[str, str]
"""An invariant, and why it does not hold."""

V = TypeVar("V")


class TaskWatch:
    """The barriers and watermarks of one task.

    Its state is in values that do not change, but for the sets of ids: whoever keeps all of a journal may put sets in
    their place that grow.

    Parameters
    ----------
    name : str
    inputs, outputs : sequence of str
        Its channels. What follows is by the place of a channel there.

    Attributes
    ----------
    promised : tuple of (int or None)
        By input, the last watermark that took effect.
    open : tuple of bool
        By input, whether its end has not taken effect.
    watermark_ms : int or None
        What the task has to announce.
    marks : tuple of (int or None)
        By output, the last watermark sent.
    last_in, last_out : tuple of int
        The last barrier that took effect, by input; and that was sent, by output.
    blocked : tuple of int
        By input, the checkpoint for which it waits; 0 if for none.
    newest, epoch, last_cut : int
        The highest id and epoch of a barrier that took effect, and the highest id of a snapshot.
    cause : int or None
        The barrier behind which the message came that took effect last, while that matters.
    begun : set of int
        The checkpoints of which a barrier took effect, or was forwarded.
    unaligned : set of int
        The checkpoints whose barrier it forwarded flagged: those may have gone ahead of their place.
    aborted : set of int
        The checkpoints that it declined, or cancelled at its outputs.
    """

    KEPT: ClassVar[tuple[str, ...]] = (
        *("promised", "open", "watermark_ms", "marks", "last_in", "last_out", "blocked"),
        *("newest", "epoch", "last_cut", "cause", "begun", "unaligned", "aborted"),
    )
    __slots__ = (*KEPT, "inputs", "name", "outputs")

    def __init__(self, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self.promised: tuple[int | None, ...] = (None,) * len(inputs)
        self.open = (True,) * len(inputs)
        self.watermark_ms: int | None = None
        self.marks: tuple[int | None, ...] = (None,) * len(outputs)
        self.last_in, self.last_out = (0,) * len(inputs), (0,) * len(outputs)
        self.blocked = (0,) * len(inputs)
        self.newest, self.epoch, self.last_cut = 0, -1, 0
        self.cause: int | None = None
        self.begun: Set[int] = frozenset()
        self.unaligned: Set[int] = frozenset()
        self.aborted: Set[int] = frozenset()

    def breaks(self, invariant: str, reason: str) -> None:
        """Note that an invariant does not hold."""
        raise NotImplementedError

    # Checkpoints.

    def bars(self, index: int, checkpoint_id: int, epoch: int | None) -> None:
        """Take a barrier that blocks its input, with its epoch if that is known."""
        newest, inside = (self.newest, self.epoch), self.last_in[index]
        back = equations.barrier_goes_back(self.name, self.inputs[index], (checkpoint_id, epoch), newest, inside)
        if back is not None:
            self.breaks("ID", back)
        self.newest, self.epoch = max(self.newest, checkpoint_id), max(self.epoch, -1 if epoch is None else epoch)
        self.last_in = put(self.last_in, index, max(inside, checkpoint_id))
        self.blocked = put(self.blocked, index, checkpoint_id)
        self.begins(checkpoint_id)

    def frees(self, checkpoint_id: int) -> None:
        """Unblock the inputs of a checkpoint."""
        self.blocked = tuple(0 if each == checkpoint_id else each for each in self.blocked)

    def snaps(self, checkpoint_id: int) -> None:
        """Take the task's snapshot for a checkpoint."""
        for reason in equations.cut_goes_back(self.name, checkpoint_id, self.last_cut):
            self.breaks("ID", reason)
        self.last_cut = max(self.last_cut, checkpoint_id)

    def forwards(self, barrier: object) -> None:
        """Take a barrier that goes to every output."""
        view = cast(MessageView, barrier)
        self.begins(view.checkpoint_id)
        if view.flags & UNALIGNED_FLAG:
            self.unaligned |= {view.checkpoint_id}

    def begins(self, checkpoint_id: int) -> None:
        """Take the arrival of a checkpoint at the task."""
        self.begun |= {checkpoint_id}

    def aborts(self, checkpoint_id: int) -> None:
        """Take the task's decline of a checkpoint, or its cancel at the outputs."""
        self.aborted |= {checkpoint_id}

    def bars_output(self, output: int, checkpoint_id: int) -> None:
        """Take a barrier that is sent. An older one may come later: a newer one, unaligned, overtook it."""
        self.last_out = put(self.last_out, output, max(self.last_out[output], checkpoint_id))

    # Watermarks.

    def promises(self, index: int, timestamp_ms: int) -> None:
        """Take a watermark; `advance` is next."""
        self.promised = put(self.promised, index, later(self.promised[index], timestamp_ms))

    def ends(self, index: int) -> None:
        """Take the end of an input; `advance` is next."""
        self.open = put(self.open, index, False)

    def advance(self) -> int | None:
        """Advance to the least watermark of the open inputs; return it if it is new."""
        least = self.least_promise()
        if least is None or (self.watermark_ms is not None and least <= self.watermark_ms):
            return None
        self.watermark_ms = least
        return least

    def least_promise(self) -> int | None:
        """Return the least watermark of the open inputs."""
        return equations.least_promise([p for p, is_open in zip(self.promised, self.open, strict=True) if is_open])

    def marks_output(self, output: int, mark: object) -> None:
        """Take a watermark that is sent."""
        last, timestamp_ms = self.marks[output], cast(MessageView, mark).timestamp_ms
        if last is not None and timestamp_ms < last:
            self.breaks("WM", f"{mark} was sent on {self.outputs[output]} after watermark {last}")
        self.marks = put(self.marks, output, timestamp_ms)
        inputs = zip(self.inputs, self.promised, self.open, strict=True)
        promises = [(channel, promise) for channel, promise, is_open in inputs if is_open]
        for reason in equations.promised_too_much(self.name, self.outputs[output], mark, promises):
            self.breaks("WM", reason)


def put(values: tuple[V, ...], index: int, value: V) -> tuple[V, ...]:
    """Return `values` with another value at `index`."""
    return (*values[:index], value, *values[index + 1 :])


def later(before_ms: int | None, now_ms: int) -> int:
    """Return the later of two watermarks: one never goes back."""
    return now_ms if before_ms is None else max(before_ms, now_ms)
