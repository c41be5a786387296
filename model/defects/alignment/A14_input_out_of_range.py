"""A barrier on an input that does not exist sets a bit, which may be that of another input.

Source
    F-DCKP-002, `mark_aligned` and "Error Handling", `InputIdOutOfRange`: "Debug assert; panic in debug, ignore in
    release". Entry A-14.
What goes wrong
    In release the shift of 128 bits goes round: 130 is 2. With a bit too many the set never equals the mask of all
    inputs, and with one of two inputs it equals it too early.
Repair
    Such an index is an error in every mode, and changes nothing (protocol rule 12).
"""

from collections.abc import Callable

from barrierlab.impl import BarrierAligner, CheckpointBarrier, InputIndexError
from barrierlab.model.defects.kinds.witness import Witness


class Bits:
    """The part of `AlignmentState` that is asked here, in a release build."""

    def __init__(self, num_inputs: int) -> None:
        self.inputs_aligned, self.mask = 0, (1 << num_inputs) - 1

    def take(self, input_id: int) -> str:
        """Mark the input."""
        self.inputs_aligned |= 1 << input_id % 128
        return "all in" if self.inputs_aligned == self.mask else f"waits with bits {self.inputs_aligned:b}"


def _aligner() -> Callable[[int], str]:
    aligner = BarrierAligner()

    def take(input_id: int) -> str:
        try:
            return aligner.process_message(input_id, CheckpointBarrier(1, 1)).name
        except InputIndexError as error:
            return f"{error.actual} is none"

    return take


def _run(take: Callable[[int], str]) -> tuple[str, ...]:
    return tuple(f"{input_id}: {take(input_id)}" for input_id in (130, 0, 1))


DEFECT = Witness(
    kind="safety",
    broken=lambda: _run(Bits(2).take),
    right=lambda: _run(_aligner()),
    right_lines=("130: input 130 is none", "0: BLOCKED", "1: TRIGGER_SNAPSHOT"),
)
