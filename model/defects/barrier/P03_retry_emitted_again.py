"""A command that is said twice becomes two barriers.

Source
    F-DCKP-001, "Error Handling": "DuplicateBarrier: ignore duplicate (idempotent)"; but `poll_barrier` remembers no id.
    Entry P-03.
What goes wrong
    A retry of the coordinator comes when the first command is claimed: the source cuts twice in the same checkpoint,
    and a second barrier with its id follows, which behind a join opens an alignment that nobody ends (entry A-11).
Repair
    A command not newer than the last one is a duplicate (protocol rule 3), and a source remembers what it has emitted.
"""

from barrierlab.impl import CheckpointBarrier, CheckpointCoordinator, Inject, SourceTask
from barrierlab.impl.checkpoint.actions import Actions
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components
from barrierlab.model.defects.kinds.documented_injector import DocumentedInjector


class Retries(CheckpointCoordinator):
    """Says every command twice: the answer to the first was lost."""

    def trigger(self, now_ns: int) -> Actions:
        actions = super().trigger(now_ns)
        return (*actions, *(each for each in actions if type(each) is Inject))


class EmitsRetries(SourceTask):
    """Remembers no id."""

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        self.last_terminated_id = 0
        return super().poll(now_ns)


DEFECT = BarrierDefect(
    breaks="ONCE",
    bounds=Bounds("a->s", events=1),
    components=Components(coordinator=Retries, injector=DocumentedInjector, source=EmitsRetries),
    title="The coordinator says twice that a is to begin checkpoint 1, and a does so twice.",
    sound_components=Components(coordinator=Retries),
)
