"""A deadline counts from the first barrier that a task sees, and is looked at when data comes.

Source
    F-DCKP-002, `started_at` and "Timeout Handling": "The operator's event loop periodically calls check_timeout()".
    Entry A-10.
What goes wrong
    A loop that waits for data never asks, so a checkpoint whose barriers stay away holds its inputs for ever; and a
    task that comes later in a chain begins to count later, so that all of them together wait much longer than one.
Repair
    The deadline counts from the trigger, the same on every task, and the driver knows when it is (rule 11).
"""

from barrierlab.impl import BarrierAligner, BarrierAlignerConfig, CheckpointBarrier
from barrierlab.model.defects.kinds.witness import Witness


class CountsFromTheFirstBarrier(BarrierAligner):
    """Nobody tells it of the trigger, and it tells nobody when to call."""

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        pass

    def next_deadline_ns(self) -> int | None:
        return None


def _run(kind: type[BarrierAligner]) -> tuple[str, ...]:
    """The timeout is 10; the checkpoint was triggered at 0, and one barrier comes 8 later at each of two tasks."""
    lines = []
    for task, came_ns, now_ns in (("first", 8, 17), ("second", 17, 26)):
        aligner = kind(BarrierAlignerConfig(alignment_timeout_ns=10))
        aligner.note_trigger(1, 0)
        aligner.process_message(0, CheckpointBarrier(1, 1), came_ns)
        lines.append(f"the {task} is to be called at {aligner.next_deadline_ns() or 'no time'}")
        lines.append(f"the {task}, asked at {now_ns}, {'aborts' if aligner.on_time(now_ns) else 'waits'}")
    return tuple(lines)


DEFECT = Witness(
    kind="timing",
    broken=lambda: _run(CountsFromTheFirstBarrier),
    right=lambda: _run(BarrierAligner),
    right_lines=(
        "the first is to be called at 10",
        "the first, asked at 17, aborts",
        "the second is to be called at 10",
        "the second, asked at 26, aborts",
    ),
)
