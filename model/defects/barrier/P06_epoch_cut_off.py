"""An epoch of more than 48 bits begins again at 0.

Source
    F-DCKP-001, `PackedBarrierCmd::new`: ``epoch & 0xFFFF_FFFF_FFFF``, while the field of the command has 64 bits; the
    planned test ends at 2**48 - 1. Entry P-06.
What goes wrong
    Epoch 2**48 is 0 on the wire, without an error, and an epoch that has gone back is accepted (entry P-04).
Repair
    What does not fit is refused where it comes in, and never cut off (protocol rule 2).
"""

from __future__ import annotations

from barrierlab.impl import BarrierInjectorConfig, CheckpointBarrierInjector, EpochError, InjectBarrierCommand
from barrierlab.model.defects.kinds.documented_injector import DocumentedInjector
from barrierlab.model.defects.kinds.witness import Witness

COMMANDS = (InjectBarrierCommand(1, 2**48 - 1), InjectBarrierCommand(2, 2**48))


def run(injector: CheckpointBarrierInjector) -> tuple[str, ...]:
    """Both commands, one after the other."""
    lines = []
    for command in COMMANDS:
        try:
            injector.coordinator_handle().inject(command)
        except EpochError as error:
            lines.append("refused: " + str(error).partition(";")[0])
        barrier = injector.poll_barrier(0)
        lines += [f"barrier {barrier.checkpoint_id} of epoch {barrier.epoch}"] if barrier else []
    return tuple(lines)


DEFECT = Witness(
    kind="value",
    broken=lambda: run(DocumentedInjector(BarrierInjectorConfig(None))),
    right=lambda: run(CheckpointBarrierInjector(BarrierInjectorConfig(None))),
    right_lines=("barrier 1 of epoch 281474976710655", "refused: epoch 281474976710656"),
)
