"""An injector alone: commands in and out of range, repeated, replaced and late; and the clock of a periodic one.

`InjectorReference` is written from protocol rules 2 to 4 and F-DCKP-001: it keeps the newest command ever accepted, and
the one that nobody has claimed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any

from barrierlab.impl.checkpoint.injector import BarrierInjectorConfig, CheckpointBarrierInjector, InjectBarrierCommand
from barrierlab.impl.errors import CheckpointIdError, EpochError, RegressingIdError
from barrierlab.model.checkpoint.component import CallStimulus, ComponentScope, Reference, Under, stimulus
from barrierlab.model.checkpoint.components import Components

Command = tuple[int, int, bool]
"""Id, epoch, and whether it is flagged."""

HIGHEST_ID, HIGHEST_EPOCH = 2**64 - 1, 2**48 - 1
COMMANDS: tuple[Command, ...] = (
    *((1, 1, False), (1, 1, True), (1, 2, False), (2, 1, False), (2, 2, True), (3, 2, False)),
    *((0, 1, False), (HIGHEST_ID, HIGHEST_EPOCH, True), (HIGHEST_ID + 1, 3, False), (3, HIGHEST_EPOCH + 1, False)),
    (1, -1, False),
)
"""In and out of range, in every order."""
INTERVAL_NS = 2


class InjectorReference(Reference):
    """The injector as the rules have it."""

    fixed = ("last_ns",)

    def __init__(self, last_ns: int) -> None:
        self.last_ns = last_ns
        self.now_ns = self.since_ns = self.emitted = 0
        self.newest: Command | None = None
        self.waiting: Command | None = None

    def stimuli(self) -> Sequence[CallStimulus]:
        """Return what a coordinator, a source and a clock may do."""
        return list(self._stimuli())

    def _stimuli(self) -> Iterator[CallStimulus]:
        yield from (stimulus("inject", *command) for command in COMMANDS)
        yield from (stimulus("poll"), stimulus("ask"))
        if self.now_ns < self.last_ns:
            yield stimulus("wait")

    def stands(self) -> tuple[str, ...]:
        at_ns = self.since_ns + INTERVAL_NS if self.last_ns else None
        return (f"{self.emitted} emitted, next request at {at_ns}",)

    def inject(self, n: int, epoch: int, is_flagged: bool) -> tuple[str, ...]:
        """Leave a command; ids and epochs strictly increase, and the very same once more is a duplicate."""
        command, newest = (n, epoch, is_flagged), self.newest
        if not 1 <= n <= HIGHEST_ID:
            return ("CheckpointIdError",)
        if not 0 <= epoch <= HIGHEST_EPOCH:
            return ("EpochError",)
        if newest is not None:
            if command == newest:
                return ("duplicate ()",)
            if n < newest[0]:
                return ("RegressingIdError",)
            if epoch <= newest[1]:
                return ("EpochError",)
            if n == newest[0]:
                return ("RegressingIdError",)
        replaced, self.newest, self.waiting = self.waiting, command, command
        return ("accepted ()" if replaced is None else f"replaced {(replaced[0],)}",)

    def poll(self) -> tuple[str, ...]:
        """Claim the command that waits, once; the interval counts from then."""
        command, self.waiting = self.waiting, None
        if command is None:
            return ("no barrier",)
        self.since_ns = self.now_ns
        self.emitted += 1
        return (f"barrier {command[0]} of epoch {command[1]}, flags {int(command[2])}",)

    def ask(self) -> tuple[str, ...]:
        """Ask for a checkpoint, once an interval."""
        if not self.last_ns or self.now_ns - self.since_ns < INTERVAL_NS:
            return ("no request",)
        self.since_ns = self.now_ns
        return (f"request of a at {self.now_ns}",)

    def wait(self) -> tuple[str, ...]:
        """Let the clock go on."""
        self.now_ns += 1
        return (str(self.now_ns),)


class InjectorMachine(Under):
    """A `CheckpointBarrierInjector` with the verbs of `InjectorReference`."""

    def __init__(self, last_ns: int, components: Components) -> None:
        self.now_ns = 0
        config = BarrierInjectorConfig(INTERVAL_NS if last_ns else None, "a")
        self.injector: CheckpointBarrierInjector = components.injector(config)

    @property
    def machines(self) -> Sequence[object]:
        """The one."""
        return (self.injector,)

    def capture(self) -> Hashable:
        """The time, and what it gives of itself."""
        return self.now_ns, self.injector.capture()

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        self.now_ns, captured = value
        self.injector.restore(captured)

    def stands(self) -> tuple[str, ...]:
        its = self.injector
        return (f"{its.barriers_injected} emitted, next request at {its.next_deadline_ns()}",)

    def inject(self, n: int, epoch: int, is_flagged: bool) -> tuple[str, ...]:
        try:
            outcome = self.injector.coordinator_handle().inject(InjectBarrierCommand(n, epoch, is_flagged))
        except (CheckpointIdError, EpochError, RegressingIdError) as error:
            return (type(error).__name__,)
        return (f"{outcome.status.value} {outcome.replaced}",)

    def poll(self) -> tuple[str, ...]:
        barrier = self.injector.poll_barrier(self.now_ns)
        if barrier is None:
            return ("no barrier",)
        return (f"barrier {barrier.checkpoint_id} of epoch {barrier.epoch}, flags {barrier.flags}",)

    def ask(self) -> tuple[str, ...]:
        request = self.injector.due_request(self.now_ns)
        if request is None:
            return ("no request",)
        return (f"request of {request.source_id} at {request.requested_ns}",)

    def wait(self) -> tuple[str, ...]:
        self.now_ns += 1
        return (str(self.now_ns),)


def _scope(name: str, states: int, last_ns: int) -> ComponentScope:
    make, model = partial(InjectorMachine, last_ns), partial(InjectorReference, last_ns)
    return ComponentScope(f"injector: {name}", states, make, model)


SCOPES = (
    _scope("commands repeated, replaced and out of range", 23, 0),
    _scope("its clock", 443, 5),
)
