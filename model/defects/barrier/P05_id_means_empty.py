"""A command with the id 0 is taken for none, or for one, by its epoch.

Source
    F-DCKP-001, `PackedBarrierCmd`: "checkpoint_id == 0 means no pending barrier", while `is_empty` looks at the whole
    word. Entry P-05.
What goes wrong
    Id 0 with epoch 0 is dropped without a word. Id 0 with epoch 1 is emitted, though the comment calls it empty.
Repair
    Ids begin with 1, and 0 is refused where it comes in (protocol rule 2).
"""

from __future__ import annotations

from barrierlab.impl import BarrierInjectorConfig, CheckpointBarrierInjector, CheckpointIdError, InjectBarrierCommand
from barrierlab.model.defects.kinds.documented_injector import DocumentedInjector
from barrierlab.model.defects.kinds.witness import Witness

COMMANDS = (InjectBarrierCommand(0, 0), InjectBarrierCommand(0, 1))


def documented() -> tuple[str, ...]:
    """Return what is polled."""
    injector = DocumentedInjector(BarrierInjectorConfig(None))
    lines = []
    for command in COMMANDS:
        injector.coordinator_handle().inject(command)
        polled = injector.polled(0)
        lines.append("nothing" if polled is None else f"barrier {polled[0]} of epoch {polled[1]}")
    return tuple(lines)


def sound() -> tuple[str, ...]:
    """Return what the handle says."""
    handle = CheckpointBarrierInjector(BarrierInjectorConfig(None)).coordinator_handle()
    lines = []
    for command in COMMANDS:
        try:
            lines.append(str(handle.inject(command)))
        except CheckpointIdError as error:
            lines.append("refused: " + str(error).partition(";")[0])
    return tuple(lines)


DEFECT = Witness(
    kind="value",
    broken=documented,
    right=sound,
    right_lines=("refused: checkpoint id 0",) * 2,
)
