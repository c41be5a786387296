"""From parts to stored snapshots, and from a complete checkpoint to what each task and each channel begin with.

Invariant: what is restored is the cut, with what was in flight across it, and nothing else.

Protocol rule 22. A driver whose job has failed does, in this order: suspend the coordinator, or make a new one above
every id that was ever begun; wait until no manifest is being written (`CheckpointCoordinator.settled`); read the newest
usable checkpoint, or restart from the initial state if there is none; `plan`; make new tasks and channels; put every
state and every channel back (`Task.recover`, `Restore.channels`); resume the coordinator with the final snapshots of
what had finished; and only then let anything run. Barriers are not restored: the cut has been made (defect U-13).

F-DCKP-006, "Recovery Procedure for Unaligned Checkpoints". Unlike there, channels are restored for the whole job before
a task or a source starts (U-14), and what cannot be read makes the checkpoint unusable (U-11; the store sees to it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from barrierlab.impl.checkpoint.recorder import InFlightChannelData
from barrierlab.impl.checkpoint.report import Acknowledge, digest
from barrierlab.impl.errors import LimitError, RestoreError
from barrierlab.impl.messages import EndOfInput, Event, StreamMessage
from barrierlab.impl.storage.encoding import decode, encode
from barrierlab.impl.storage.snapshot import Checkpoint, InFlight, TaskSnapshot

_MOST_NAMED = 4  # tasks that one message names
_State = tuple[object, "int | None", tuple[int, ...], bool, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Wiring:
    """The tasks of a job, and the channel of each of their inputs and outputs.

    Attributes
    ----------
    tasks : mapping of str to (str, int)
        Each task's name to operator id and subtask: what its part is stored under.
    inputs, outputs : mapping of str to sequence of str
        The channels of each task, by input and by output index. A task without inputs is a source.

    Raises
    ------
    LimitError
        If a channel is not exactly one output and one input.
    """

    tasks: Mapping[str, tuple[str, int]]
    inputs: Mapping[str, Sequence[str]]
    outputs: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        ends = [sorted(name for task in self.tasks for name in side[task]) for side in (self.inputs, self.outputs)]
        if ends[0] != ends[1] or len(set(ends[0])) != len(ends[0]):
            odd = next(n for n in (*ends[0], *ends[1]) if (ends[0].count(n), ends[1].count(n)) != (1, 1))
            raise LimitError("channel", odd, "one output of a task and one input of a task")


@dataclass(frozen=True, slots=True)
class TaskRestore:
    """The start of one task: the fields of its `Acknowledge`.

    Attributes
    ----------
    digest : str
        Of the image, as it was read.
    """

    task: str
    image: object
    position: int | None = None
    watermark_ms: int | None = None
    ended: tuple[int, ...] = ()
    finished: bool = False
    prepared: tuple[str, ...] = ()
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Restore:
    """The start of a job.

    Attributes
    ----------
    checkpoint_id : int
        0 is the beginning.
    tasks : dict of str to TaskRestore
    channels : dict of str to tuple of StreamMessage
        What is in each channel, oldest first; no room is asked for it.
    """

    checkpoint_id: int
    tasks: dict[str, TaskRestore]
    channels: dict[str, tuple[StreamMessage, ...]]


def snapshot_of(report: Acknowledge, operator_id: str, subtask: int) -> TaskSnapshot:
    """Return the stored part of a task.

    Raises
    ------
    PlainValueError
        If the image, or the value of an event in flight, has no encoding.
    LimitError
        If the operator cannot name a folder, a number is out of range, or `plan` would not take what is reported.
    """
    state = (report.image, report.watermark_ms, report.ended, report.finished, report.prepared)
    if not _is_state(state):
        expected = "watermark_ms: int or None; ended: inputs, each once; finished: bool; prepared: texts"
        raise LimitError("watermark_ms, ended, finished, prepared", state[1:], expected)
    return TaskSnapshot(
        operator_id,
        subtask,
        encode(state),
        report.position,
        tuple(map(_stored, report.inflight)),
        tuple(map(_stored, report.inflight_output)),
    )


def _stored(data: InFlightChannelData) -> InFlight:
    odd = next((message for message in data.events if type(message) is not Event), None)
    if odd is not None:
        raise LimitError("a message in flight", odd, "events: nothing else is restored")
    return InFlight(data.input_id, tuple(map(encode, data.events)))


def from_the_beginning(wiring: Wiring) -> Restore:
    """Return the start of a job without a complete checkpoint: sources at their first event, nothing in flight."""
    tasks = {task: TaskRestore(task, None, None if wiring.inputs[task] else 1) for task in wiring.tasks}
    return Restore(0, tasks, {channel: () for task in wiring.tasks for channel in wiring.outputs[task]})


def plan(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """Return the start of a job that is restored from a checkpoint.

    In a channel comes what its receiver had recorded, then what its sender had, then, if the sender had finished and
    that had not taken effect at the receiver, the end.

    Raises
    ------
    RestoreError
        If its tasks or channels are not those of `wiring`, or a state or a message is none that `snapshot_of` stored.
    DamagedError
        If something is no encoding at all.
    """
    checkpoint_id = checkpoint.manifest.checkpoint_id
    snapshots = {(each.operator_id, each.subtask): each for each in checkpoint.snapshots}
    _check_tasks(checkpoint_id, set(snapshots), wiring)
    parts = {task: snapshots[stored_as] for task, stored_as in wiring.tasks.items()}
    tasks = {task: _restored(checkpoint_id, task, part, wiring) for task, part in parts.items()}
    channels: dict[str, list[StreamMessage]] = {channel: [] for task in tasks for channel in wiring.outputs[task]}
    for task, part in parts.items():
        _put(checkpoint_id, f"an input of {task}", part.inputs, wiring.inputs[task], channels)
    for task, part in parts.items():
        _put(checkpoint_id, f"an output of {task}", part.outputs, wiring.outputs[task], channels)
    over = {channel for task, part in tasks.items() if part.finished for channel in wiring.outputs[task]}
    for task, restored in tasks.items():
        for index, channel in enumerate(wiring.inputs[task]):
            if channel in over and index not in restored.ended:
                channels[channel].append(EndOfInput())
    return Restore(checkpoint_id, tasks, {channel: tuple(messages) for channel, messages in channels.items()})


def _check_tasks(checkpoint_id: int, stored: set[tuple[str, int]], wiring: Wiring) -> None:
    wanted = set(wiring.tasks.values())
    if stored != wanted:
        differs = [f"no part of {_named(each)}" for each in sorted(wanted - stored)]
        differs += [f"a part of {_named(each)}" for each in sorted(stored - wanted)]
        expected = ", ".join(map(_named, sorted(wanted)))
        raise RestoreError(checkpoint_id, " and ".join(differs[:_MOST_NAMED]), f"a part each of {expected}")


def _named(stored_as: tuple[str, int]) -> str:
    return f"{stored_as[0]}[{stored_as[1]}]"


def _restored(checkpoint_id: int, task: str, part: TaskSnapshot, wiring: Wiring) -> TaskRestore:
    state = decode(part.state, f"the state of {task}")
    if not _is_state(state):
        raise RestoreError(checkpoint_id, f"a state of {task} in another form", "what `snapshot_of` stores")
    image, watermark_ms, ended, finished, prepared = cast("_State", state)
    inputs = len(wiring.inputs[task])
    if not all(index < inputs for index in ended):
        raise RestoreError(checkpoint_id, f"the end of input {max(ended)} of {task}", f"its {inputs} inputs, from 0")
    if (part.position is None) != (inputs > 0):
        found = "without a position" if part.position is None else f"at position {part.position}"
        raise RestoreError(checkpoint_id, f"a part of {task} {found}", "a position of each source, and of nothing else")
    return TaskRestore(task, image, part.position, watermark_ms, ended, finished, prepared, digest(image))


def _is_state(state: object) -> bool:
    if type(state) is not tuple or len(state) != 5:
        return False
    _, watermark_ms, ended, finished, prepared = state
    return (
        type(watermark_ms) in (int, type(None))
        and type(finished) is bool
        and type(ended) is tuple
        and all(type(index) is int and index >= 0 for index in ended)
        and len(set(ended)) == len(ended)
        and type(prepared) is tuple
        and all(type(transaction) is str for transaction in prepared)
    )


def _put(
    checkpoint_id: int,
    whose: str,
    records: Iterable[InFlight],
    names: Sequence[str],
    channels: dict[str, list[StreamMessage]],
) -> None:
    """Append the records of some of a task's channels to what these hold already."""
    for record in records:
        if record.channel >= len(names):
            actual = f"something in flight on {record.channel}, as {whose}"
            raise RestoreError(checkpoint_id, actual, f"the {len(names)} that there are, from 0")
        name = f"what was in flight on {names[record.channel]}"
        messages = [decode(data, name) for data in record.events]
        if any(type(message) is not Event for message in messages):
            actual = f"something else than events in flight on {names[record.channel]}"
            raise RestoreError(checkpoint_id, actual, "events: no barrier is restored")
        channels[names[record.channel]].extend(cast("list[Event]", messages))
