"""The state of one task that FWD, ID and WM are judged from, kept up to date an effect at a time.

One object for both judges. `model.checkpoint.monitor` keeps one in each state of an exploration, and captures and
restores it; `model.spec.invariants` steps one along the journal of an attempt. What must hold of the values is in
`model.spec.equations`.

Like `model.spec.history`, this imports nothing of the code under test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from barrierlab.model.spec import equations
from barrierlab.model.spec.history import MessageView

Breach = tuple[str, str]
"""An invariant, and why it does not hold."""

V = TypeVar("V")


class TaskWatch:
    """The barriers and watermarks of one task. Its state is in immutable values.

    Parameters
    ----------
    name : str
    inputs, outputs : sequence of str
        Its channels. All that follows is by the place of a channel there.
    permits_orphans : bool
        Whether checkpoints promise at least once.

    Attributes
    ----------
    broken : list of (str, str)
        What was seen since it was last emptied.
    promised : tuple of (int or None)
        By input, the last watermark that took effect.
    open : tuple of bool
        By input, whether its end has not taken effect.
    watermark_ms : int or None
        What the task has to announce.
    marks : tuple of (int or None)
        By output, the last watermark sent.
    inside, outside : tuple of int
        The last barrier that took effect, by input; and that was sent, by output.
    newest, epoch : int
        The highest id and epoch of a barrier that took effect.
    cause : int or None
        The barrier behind which the message came that took effect last, while that matters.
    unaligned : frozenset of int
        The checkpoints whose barrier was forwarded flagged.
    """

    KEPT: tuple[str, ...] = (
        *("promised", "open", "watermark_ms", "marks", "inside", "outside"),
        *("newest", "epoch", "cause", "unaligned"),
    )
    __slots__ = (*KEPT, "_permits_orphans", "broken", "inputs", "name", "outputs")

    def __init__(self, name: str, inputs: Sequence[str], outputs: Sequence[str], permits_orphans: bool) -> None:
        self.name, self.inputs, self.outputs, self._permits_orphans = name, inputs, outputs, permits_orphans
        self.broken: list[Breach] = []
        self.promised: tuple[int | None, ...] = (None,) * len(inputs)
        self.open = (True,) * len(inputs)
        self.watermark_ms: int | None = None
        self.marks: tuple[int | None, ...] = (None,) * len(outputs)
        self.inside, self.outside = (0,) * len(inputs), (0,) * len(outputs)
        self.newest, self.epoch = 0, -1
        self.cause: int | None = None
        self.unaligned: frozenset[int] = frozenset()

    def breaks(self, invariant: str, reason: str) -> None:
        """Note that an invariant does not hold."""
        self.broken.append((invariant, reason))

    # What takes effect.

    def bars(self, index: int, checkpoint_id: int, epoch: int | None) -> None:
        """The barrier of a checkpoint; its epoch, if it is known."""
        epoch = self.epoch if epoch is None else epoch
        newest, inside = (self.newest, self.epoch), self.inside[index]
        back = equations.barrier_goes_back(self.name, self.inputs[index], (checkpoint_id, epoch), newest, inside)
        if back is not None:
            self.breaks("ID", back)
        self.newest, self.epoch = max(self.newest, checkpoint_id), max(self.epoch, epoch)
        self.inside = put(self.inside, index, max(inside, checkpoint_id))

    def promises(self, index: int, timestamp_ms: int) -> None:
        """A watermark; `advance` is next."""
        self.promised = put(self.promised, index, later(self.promised[index], timestamp_ms))

    def ends(self, index: int) -> None:
        """The end of an input; `advance` is next."""
        self.open = put(self.open, index, False)

    def advance(self) -> int | None:
        """The task has come to what all its open inputs have promised; the watermark, if it is a new one."""
        least = self.least_promise()
        if least is None or (self.watermark_ms is not None and least <= self.watermark_ms):
            return None
        self.watermark_ms = least
        return least

    def least_promise(self) -> int | None:
        """Return what all open inputs have promised."""
        return equations.least_promise([p for p, is_open in zip(self.promised, self.open, strict=True) if is_open])

    # What is sent.

    def separators(self, output: int) -> Sequence[int]:
        """The checkpoints of which the barrier separates wrongly what is sent now from its cause, if they complete."""
        side, cause = self.outside[output], self.cause
        if cause is None or side == cause:
            return ()
        ids, permits_orphans = self.between(min(side, cause), max(side, cause)), self._permits_orphans
        return [n for n in ids if equations.separates(n, side, cause, n in self.unaligned, permits_orphans)]

    def between(self, low: int, high: int) -> Sequence[int]:
        return range(low + 1, high + 1)

    def marks_output(self, output: int, mark: object) -> None:
        """A watermark is sent."""
        last, timestamp_ms = self.marks[output], cast(MessageView, mark).timestamp_ms
        if last is not None and timestamp_ms < last:
            self.breaks("WM", f"{mark} was sent on {self.outputs[output]} after watermark {last}")
        self.marks = put(self.marks, output, timestamp_ms)
        promises = [
            (channel, promise)
            for channel, promise, is_open in zip(self.inputs, self.promised, self.open, strict=True)
            if is_open
        ]
        for reason in equations.promised_too_much(self.name, self.outputs[output], mark, promises):
            self.breaks("WM", reason)

    def bars_output(self, output: int, checkpoint_id: int) -> None:
        """A barrier is sent. An older one may come later: a newer one, unaligned, overtook it."""
        self.outside = put(self.outside, output, max(self.outside[output], checkpoint_id))


def put(values: tuple[V, ...], index: int, value: V) -> tuple[V, ...]:
    """`values` with another one at `index`."""
    return (*values[:index], value, *values[index + 1 :])


def later(before_ms: int | None, now_ms: int) -> int:
    """The later of two watermarks: one never goes back."""
    return now_ms if before_ms is None else max(before_ms, now_ms)
