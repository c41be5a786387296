"""The stored parts, and what a job begins with that goes on from them: every small checkpoint of a join.

`RecoveryReference` is written from protocol rule 22: in a channel comes what its receiver had recorded, then what its
sender had, then the end, if the sender had finished and that had not taken effect at the receiver.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from barrierlab.impl.checkpoint.recorder import InFlightChannelData
from barrierlab.impl.checkpoint.recovery import Restore, Wiring, from_the_beginning, snapshot_of
from barrierlab.impl.checkpoint.report import Acknowledge, digest
from barrierlab.impl.errors import DamagedError, LimitError, RestoreError
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, Event, StreamMessage
from barrierlab.impl.storage.encoding import encode
from barrierlab.impl.storage.snapshot import Checkpoint, InFlight, Manifest, TaskSnapshot
from barrierlab.model.checkpoint.component import CallStimulus, ComponentScope, Reference, Under, stimulus
from barrierlab.model.checkpoint.components import Components

TASKS = {"a": ("source-a", 0), "b": ("source-b", 0), "j": ("join", 1), "s": ("sink", 0)}
INPUTS: Mapping[str, Sequence[str]] = {"a": (), "b": (), "j": ("a->j", "b->j"), "s": ("j->s",)}
OUTPUTS: Mapping[str, Sequence[str]] = {"a": ("a->j",), "b": ("b->j",), "j": ("j->s",), "s": ()}
WIRING = Wiring(TASKS, INPUTS, OUTPUTS)

Events = tuple[Event, ...]


def _of(source: str, *sequences: int) -> Events:
    return tuple(Event(source, n, 1, "k", n * 10, n, 3) for n in sequences)


def _data(*events: Events) -> tuple[InFlightChannelData, ...]:
    return tuple(InFlightChannelData(i, each, len(each)) for i, each in enumerate(events) if each)


def _parts() -> list[tuple[Acknowledge, ...]]:
    """Checkpoints of the join: each combination of what ended, finished, and was recorded on either side."""
    sources = [
        [
            Acknowledge(name, 7, "", 3, 3, inflight_output=_data(_of(name, *out)), watermark_ms=wm, finished=over)
            for out, wm, over in ((((), None, False)), ((2, 1), 5, False), ((2,), 5, True), ((), 0, True))
        ]
        for name in "ab"
    ]
    joins = [
        Acknowledge(
            *("j", 7, "", None, (1, "x", (None,))),
            inflight=_data(_of("a", *one), _of("b", *other)),
            inflight_output=_data(_of("b", *out)),
            watermark_ms=wm,
            ended=ended,
            finished=over,
        )
        for one, other, out, wm, ended, over in (
            ((), (), (), None, (), False),
            ((1,), (), (4,), 3, (), False),
            ((1, 2), (1,), (), 0, (1,), False),
            ((), (1, 3), (4, 5), 2, (0,), False),
            ((), (), (5,), 9, (1, 0), True),
        )
    ]
    sinks = [
        Acknowledge(
            "s", 7, "", None, (), inflight=_data(_of("a", *into)), ended=ended, prepared=prepared, finished=over
        )
        for into, ended, prepared, over in (
            ((), (), (), False),
            ((3,), (), ("s-1", "s-2"), False),
            ((), (0,), ("s-final-1",), True),
        )
    ]
    return list(product(*sources, joins, sinks))


CHECKPOINTS = _parts()
_EVENT, _BARRIER = _of("a", 1), CheckpointBarrier(1, 1)
_ODD_STATES: tuple[object, ...] = ("no state", (1, 2, (), False), ((), "5", (), False, ()), ((), None, "0", False, ()))
_ODD_STATES += (
    ((), None, (0, 0), False, ()),
    ((), None, (-1,), False, ()),
    ((), None, (), 1, ()),
    ((), 1, (), True, (1,)),
    ((), 1, (), True, "transactions"),
    ((), None, (True,), False, ()),
    ((), None, (1.0,), False, ()),
)


def _stored(task: str, position: int | None = None, state: object = ((), None, (), False, ())) -> TaskSnapshot:
    return TaskSnapshot(*TASKS[task], encode(state), position)


ODD: dict[str, Callable[[], Sequence[TaskSnapshot]]] = {
    "a part is missing": lambda: (_stored("a", 1), _stored("b", 1), _stored("j")),
    "a part too many": lambda: (*_with(_stored("j")), replace(_stored("s"), subtask=1)),
    "another subtask": lambda: _with(replace(_stored("j"), subtask=0)),
    "a source without position": lambda: (_stored("a"), *_with(_stored("j"))[1:]),
    "an operator with a position": lambda: _with(_stored("j", 1)),
    "an end of no input": lambda: _with(_stored("j", None, ((), None, (2,), False, ()))),
    "a record of no input": lambda: _with(_stored("j"), InFlight(2, (encode(_EVENT[0]),))),
    "a record of no output": lambda: _with(replace(_stored("j"), outputs=(InFlight(1, (encode(_EVENT[0]),)),))),
    "a barrier in flight": lambda: _with(_stored("j"), InFlight(0, (encode(_BARRIER),))),
    "an end in flight": lambda: _with(_stored("j"), InFlight(0, (encode(_EVENT[0]), encode(EndOfInput())))),
    "no encoding": lambda: _with(replace(_stored("j"), state=b"odd")),
    **{f"state {state}": lambda state=state: _with(_stored("j", None, state)) for state in _ODD_STATES},  # type: ignore[misc]
}
"""Checkpoints that are none of the join's, by what is wrong."""


def _with(join: TaskSnapshot, *in_flight: InFlight) -> tuple[TaskSnapshot, ...]:
    return _stored("a", 1), _stored("b", 1), replace(join, inputs=in_flight), _stored("s")


_NOT_STORED: dict[str, dict[str, Any]] = {
    "a watermark that is none": {"watermark_ms": "5"},
    "an input that ended twice": {"ended": (0, 0)},
    "a barrier in flight": {"inflight": (InFlightChannelData(0, (_BARRIER,), 1),)},  # type: ignore[arg-type]
}
_ODD_WIRINGS: dict[str, tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]] = {
    "a channel that nobody reads": ({**INPUTS, "s": ()}, OUTPUTS),
    "a channel that nobody writes": (INPUTS, {**OUTPUTS, "a": ()}),
    "a channel that two read": ({**INPUTS, "s": ("j->s", "a->j")}, OUTPUTS),
}


class RecoveryReference(Reference):
    """The recovery that the rules ask for. It has one state: nothing is kept from one recovery to the next."""

    def stimuli(self) -> Sequence[CallStimulus]:
        """Return every checkpoint, every id that is none, and the beginning."""
        return [
            *(stimulus("recover", n) for n in range(len(CHECKPOINTS))),
            *(stimulus("recover_odd", what) for what in ODD),
            *(stimulus("store_odd", what) for what in _NOT_STORED),
            *(stimulus("wire_odd", what) for what in _ODD_WIRINGS),
            stimulus("begin"),
        ]

    def recover(self, n: int) -> tuple[str, ...]:
        """Restore a complete checkpoint."""
        parts = {part.task: part for part in CHECKPOINTS[n]}
        lines = [
            f"{task}: {part.image!r}, at {part.position}, watermark {part.watermark_ms}, ended {part.ended}, "
            f"{'finished' if part.finished else 'goes on'}, prepared {part.prepared}, state {digest(part.image)}"
            for task, part in parts.items()
        ]
        for task, receiver in parts.items():
            for index, channel in enumerate(INPUTS[task]):
                sender = parts[channel[0]]
                messages: list[StreamMessage] = []
                for record, at in ((receiver.inflight, index), (sender.inflight_output, 0)):
                    messages += [event for data in record if data.input_id == at for event in data.events]
                if sender.finished and index not in receiver.ended:
                    messages.append(EndOfInput())
                lines.append(f"{channel}: {messages!r}")
        return "checkpoint 7", *lines

    def recover_odd(self, what: str) -> tuple[str, ...]:
        """Refuse to restore what is no checkpoint of this job."""
        return ("DamagedError" if what == "no encoding" else "RestoreError",)

    def store_odd(self, what: str) -> tuple[str, ...]:
        """Refuse to store what could not be restored."""
        return ("LimitError",)

    def wire_odd(self, what: str) -> tuple[str, ...]:
        """Refuse a channel that has not two ends."""
        return ("LimitError",)

    def begin(self) -> tuple[str, ...]:
        """Start without a checkpoint: sources at their first event, nothing in flight."""
        lines = [
            f"{task}: None, at {1 if task in 'ab' else None}, watermark None, ended (), goes on, prepared (), state "
            for task in TASKS
        ]
        return "checkpoint 0", *lines, *(f"{channel}: []" for task in TASKS for channel in INPUTS[task])


class RecoveryMachine(Under):
    """`snapshot_of` and `plan`, with the verbs of `RecoveryReference`."""

    machines: Sequence[object] = ()

    def __init__(self, components: Components) -> None:
        self.plan = components.plan

    def capture(self) -> Hashable:
        """Return nothing: there is no state."""
        return ()

    def restore(self, value: Any) -> None:
        """Restore nothing: there is no state."""

    def recover(self, n: int) -> tuple[str, ...]:
        return self._planned([snapshot_of(part, *TASKS[part.task]) for part in CHECKPOINTS[n]])

    def recover_odd(self, what: str) -> tuple[str, ...]:
        try:
            return self._planned(ODD[what]())
        except (DamagedError, RestoreError) as error:
            return (type(error).__name__,)

    def store_odd(self, what: str) -> tuple[str, ...]:
        try:
            return (str(snapshot_of(replace(CHECKPOINTS[0][2], **_NOT_STORED[what]), "join", 1)),)
        except LimitError as error:
            return (type(error).__name__,)

    def wire_odd(self, what: str) -> tuple[str, ...]:
        try:
            return (str(Wiring(TASKS, *_ODD_WIRINGS[what])),)
        except LimitError as error:
            return (type(error).__name__,)

    def begin(self) -> tuple[str, ...]:
        return _lines(from_the_beginning(WIRING))

    def _planned(self, snapshots: Sequence[TaskSnapshot]) -> tuple[str, ...]:
        return _lines(self.plan(Checkpoint(Manifest(7, 7, True, ()), tuple(snapshots)), WIRING))


def _lines(restored: Restore) -> tuple[str, ...]:
    tasks = [
        f"{task}: {its.image!r}, at {its.position}, watermark {its.watermark_ms}, ended {its.ended}, "
        f"{'finished' if its.finished else 'goes on'}, prepared {its.prepared}, state {its.digest}"
        for task, its in restored.tasks.items()
    ]
    channels = [f"{name}: {list(restored.channels[name])!r}" for task in TASKS for name in INPUTS[task]]
    return f"checkpoint {restored.checkpoint_id}", *tasks, *channels


SCOPES = (ComponentScope("recovery: every small checkpoint of a join", 1, RecoveryMachine, RecoveryReference),)
