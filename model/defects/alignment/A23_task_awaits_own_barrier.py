"""A task that feeds itself waits for a barrier that it would have to send.

Source
    F-DCKP-002, "Non-Goals": of edges that lead back there is no word, nor that processing what is drained makes no
    barrier for the task itself. Entry A-23.
What goes wrong
    The barrier of the loop is the task's own: it leaves after the snapshot, and the snapshot waits for it.
Repair
    A dataflow is a graph without cycles, and one with a cycle is refused. (Two inputs that come from one producer by
    different ways are fine: each brings the barrier once.)
"""

from barrierlab.impl import BarrierAligner, CheckpointBarrier, Event, OperatorTask, OutputExchange
from barrierlab.model.checkpoint.scope import Tally
from barrierlab.model.defects.kinds.witness import Witness
from barrierlab.model.spec.topology import Topology, TopologyError


def _looped() -> tuple[str, ...]:
    """Input 1 of the task is its output 0."""
    lines: list[str] = []
    task = OperatorTask(
        "join",
        Tally(2),
        BarrierAligner(),
        [OutputExchange("forward", [0])],
        lambda verb, input_id, subject: lines.append(f"{verb} {subject}"),
    )
    for message in (CheckpointBarrier(1, 1), Event("a", 1)):
        task.offer(0, message, 0)
        while task.outbox:
            task.offer(1, task.outbox.popleft()[1], 0)
    return tuple(lines)


def _refused() -> tuple[str, ...]:
    try:
        Topology.parse("a->join join->back back->join")
    except TopologyError as error:
        return (str(error).partition(";")[0],)
    return ("taken",)


DEFECT = Witness(
    kind="liveness",
    broken=_looped,
    right=_refused,
    right_lines=("the topology has a cycle, join->back->join",),
)
