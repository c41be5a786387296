"""An external aligner in the place of `impl.checkpoint.gate.Gate`: what it must have, and what it must not do.

It is any class with the methods of `Aligner`, or of `UnalignedAligner` if it goes unaligned: messages come in by
``offer``, effects go out by the calls of `impl.checkpoint.gate.GatePort`. It inherits nothing. Or the reading loop is
its own: it has the methods of `PullAligner`. What it does not take part in, it declares
(`model.checkpoint.capabilities`). A subclass of
`impl.checkpoint.alignment.BarrierAligner` will do as well: the gate of `impl` is put around it.

`parts_of` looks at a class before anything is explored, so that one that cannot stand in is refused in a line, and not
by a counterexample that leads nowhere.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import Any, Protocol, cast, get_args

from barrierlab.impl.checkpoint.alignment import BarrierAligner, BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import GatePort
from barrierlab.impl.checkpoint.recorder import InFlightChannelData, channel_data
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig, UnalignedCheckpointer
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark, size_of
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.model.checkpoint.components import Components, MakeGate, with_aligner
from barrierlab.model.checkpoint.gate_scopes import FAILED, SCOPES, TAKEN, gate_of, within
from barrierlab.model.checkpoint.hosting import (
    ExternalError,
    being_made,
    brief,
    captured,
    check_plain,
    declared_by,
    methods_of,
    said,
)
from barrierlab.model.checkpoint.protocols import EXACT, protocol_of
from barrierlab.model.checkpoint.refinement import Effects, GateMachine, GateMove, listed
from barrierlab.model.checkpoint.tables.stimuli import (
    Abort,
    Arrival,
    ClockReading,
    DrainOne,
    Overtaking,
    SnapshotComplete,
    Stimulus,
    TriggerNoted,
)
from barrierlab.model.errors import RAISED
from barrierlab.model.renamed import OLDER_NAMES

PROTOCOLS = EXACT
"""The protocols that an aligner can be asked for, if it is capable of what they need."""

_FLOORS = ("impl", "model", "sim")
_EXAMPLE = "--impl my_package.my_module:MyAligner"
_END = EndOfInput()


class Driven(Protocol):
    """The interface asked of every aligner, whoever reads the channels."""

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> object:
        """Abort a checkpoint, as the coordinator does, and with it every older one (rule 10).

        No news, and nothing done, if that id is done with, a newer one is under way, or every input has ended. After
        a crash, a new aligner gets the last id that is done by this. What it answers is not looked at.
        """

    def on_time(self, now_ns: int) -> object:
        """Abort the current checkpoint if its deadline has passed at this time. The answer is ignored."""

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> object:
        """Count the deadline of this checkpoint from there (rule 11); if never called, from its first barrier.

        Of a checkpoint that is done with, it is no news. What it answers is not looked at.
        """

    def next_deadline_ns(self) -> int | None:
        """Return when `on_time` will next have something to do; None if nothing is under way."""

    def capture(self) -> Hashable:
        """Return all that makes a difference as an immutable value, without mere counters."""

    def restore(self, value: Any) -> object:
        """Restore what `capture` returned. The answer is ignored."""


class Aligner(Driven, Protocol):
    """The interface asked of an aligner: a machine without clock, thread and I/O, made as ``Class(port, config)``.

    `config` is an `impl.checkpoint.alignment.BarrierAlignerConfig`; inputs are numbered from 0, and times are
    nanoseconds, of which only differences count. Every call may tell the port things (`impl.checkpoint.gate.GatePort`),
    each at the moment at which it takes place, and in this order. The rules are those of the protocol.

    ==========================================  =================================================================
    when                                        what the port gets
    ==========================================  =================================================================
    an event or a watermark takes effect        ``deliver(input, message)``
    the end of an input does                    ``end_input(input)``; it counts as a barrier from here on (rule 13)
    a message waits behind its barrier          ``buffer(input, message)`` (rule 7); when it goes, what it then does
    a barrier or cancel marker adds nothing     ``ignore(input, message)`` (rules 6 and 10)
    a barrier counts                            ``block(input, id)``: what follows on this input waits (rule 7)
    the last open input has delivered           ``snapshot(barrier)``, ``forward(barrier)``, ``complete(barrier)``,
                                                ``resume(id)``; only then may buffered messages go (rule 8)
    ``snapshot`` raises `SnapshotFailedError`   ``decline(id, error.reason)``, ``cancel(id)``, ``resume(id)`` (rule 9)
    a checkpoint is aborted here               ``decline(id, reason)``, ``cancel(id)``, ``resume(id)``: SUBSUMED by
                                                the barrier of a newer one, BARRIER_MISMATCH with ``ignore`` of the
                                                barrier behind (rule 6), BUFFER_LIMIT (rule 7), EXPIRED (rule 11)
    it is cancelled, or aborted                 ``cancel(id)``, ``resume(id)``: the id that waited, if one did; the
                                                one that is aborted, if none did (rule 10)
    ==========================================  =================================================================
    """

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        """Take the next message of an input, or leave it.

        An input that waits, or that holds something, holds what comes, too; but a barrier of the current checkpoint
        or an older one, and a cancel marker of the current one, take effect at once on an input that waits (rule 6).

        Returns
        -------
        bool
            False if a limit forbids to take it (rule 7): it stays in its channel. One message more than an input may
            buffer does that and no more; bytes over the limit also cost the checkpoint under way, unless there is
            something to drain. (One that goes unaligned does that instead.)
        """

    @property
    def can_drain(self) -> bool:
        """Return whether `drain_next` has something to do. An attribute will do."""

    def drain_next(self, now_ns: int) -> object:
        """Process one buffered message that may drain: round robin over the inputs, the lowest first (rule 8).

        It takes the effect that it would have if it came now; a barrier makes its input wait again, with all that is
        behind it. Called when there is nothing to drain, it does nothing. What it answers is not looked at.
        """

    def can_take(self, input_id: int) -> bool:
        """Return whether this input may be read: its end has not come, and it holds less than
        `max_buffer_per_input`."""


class PullAligner(Driven, Protocol):
    """The interface asked of an aligner that reads the channels itself, made and fed as `Aligner`.

    Its loop is driven by one call: the world says which inputs have something in their channels, in every combination
    and order that channels allow, and the aligner chooses. One that goes unaligned has the methods of
    `UnalignedAligner` beside, but for those of `Aligner`: barriers that overtake are announced to it by these.
    """

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        """Choose the input to read next.

        The port may be called on the way, such as a barrier that waited until this round of the loop. Called
        without anything that is readable, too, so that nothing waits for the next message.

        Parameters
        ----------
        readable : sequence of int
            The inputs with something in their channels, those first that were seen first.
        now_ns : int

        Returns
        -------
        int or None
            One of `readable`; or none, if it reads none of them now. It is asked again until it comes round to a state
            in which it has said so before: to leave for ever what is readable, while it waits for no barrier, is LIVE.
        """

    def take(self, input_id: int, message: StreamMessage, now_ns: int) -> object:
        """Take the next message of the input that was chosen. What it answers is not looked at."""


class UnalignedAligner(Aligner, Protocol):
    """The interface asked of one that goes unaligned, made as ``Class(port, config, unaligned, is_sink)``.

    `unaligned` is an `impl.checkpoint.unaligned.UnalignedCheckpointConfig`, or None where all is aligned. What the port
    gets besides (rules 14 to 18):

    ==========================================  =================================================================
    when                                        what the port gets
    ==========================================  =================================================================
    it goes unaligned                           ``block`` if a barrier does it, ``snapshot``, ``forward`` of the
                                                flagged barrier, ``record(input, event, id)`` of what the barrier
                                                passed, ``resume``
    an event comes that is in flight            ``record(input, event, id)``, and then it takes its effect
    a later barrier comes                       ``block``, ``record`` of what it passed, ``resume``
    the last one comes                          the same, with ``complete`` before the ``resume``
    the end of the last input comes             ``end_input``, ``complete``
    ==========================================  =================================================================
    """

    @property
    def is_unaligned(self) -> bool:
        """Return whether the part in hand is unaligned: from before its ``snapshot`` until behind its ``complete``."""

    @property
    def was_threshold_triggered(self) -> bool:
        """Return whether that part began aligned and switched."""

    def offer_overtaking(
        self, input_id: int, barrier: CheckpointBarrier, ahead: Sequence[StreamMessage], now_ns: int
    ) -> bool:
        """Take a barrier ahead of its place: it has passed `ahead`, which comes later, and what its input still holds.

        Returns
        -------
        bool
            False if it may not overtake here: it stays in its place, and is offered in its turn (rule 14).
        """

    def wants_overtaking(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        """Return whether this barrier, somewhere in the input's channel, is to go to its front now (rules 15 and
        16)."""

    def note_output(self, size_bytes: int) -> object:
        """Count what the barrier has passed on the way out against the limit of what is recorded (rule 18).

        This may come during ``forward``. What it answers is not looked at.
        """


def load(spec: str, folder: str = "") -> type:
    """The class that ``module:Class`` names; modules are looked for in `folder`, too.

    Raises
    ------
    ExternalError
        If there is none.
    """
    module_name, colon, name = spec.partition(":")
    if not colon or not module_name or not name:
        raise ExternalError(f"--impl {spec!r}: allowed: MODULE:CLASS, such as {_EXAMPLE}")
    if "/" in module_name or module_name.endswith(".py"):
        meant = module_name.removesuffix(".py").removeprefix("./").strip("/").replace("/", ".")
        raise ExternalError(
            f"--impl {spec!r}: {module_name} is a file; allowed: a module that can be imported, such as {meant}:{name}"
        )
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = import_module(module_name)
    except RAISED as error:  # whatever importing another's code comes to
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise ExternalError(
                f"--impl {spec}: there is no module {error.name!r}; allowed: what is installed, or can be imported "
                "from the working directory"
            ) from error
        lacks = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        hint = f"; barrierlab's own packages are imported as barrierlab.{lacks}" if lacks in _FLOORS else ""
        raise ExternalError(f"--impl {spec}: importing {module_name} failed: {said(error)}{hint}") from error
    found = getattr(module, name, None)
    if not isinstance(found, type):
        own = [
            key for key, value in vars(module).items() if isinstance(value, type) and value.__module__ == module_name
        ]
        raise ExternalError(
            f"--impl {spec}: {module_name} has no class {name!r}; its classes: {', '.join(own) or 'none'}"
        )
    return found


def capabilities_of(kind: type) -> Capabilities:
    """The declaration of a class, as far as it has the methods for it.

    Raises
    ------
    ExternalError
        If its attribute `capabilities` is no `Capabilities`.
    """
    declared = declared_by(kind)
    if issubclass(kind, BarrierAligner):  # in a gate of `impl`, whose driver drains first
        able, reads_on = issubclass(kind, UnalignedCheckpointer), False
    else:
        able, reads_on = not _missing(kind, True, declared), declared.reads_on
    return replace(declared, unaligned=declared.unaligned and able, reads_on=reads_on)


def goes_unaligned(kind: type) -> bool:
    """Return whether a class can be asked for unaligned checkpoints."""
    return capabilities_of(kind).unaligned


def drains_first(kind: type) -> bool:
    """Return whether what is checked is a loop that drains before it reads on, because the class declares that."""
    its_own = not issubclass(kind, BarrierAligner) and not pulls(kind)
    return its_own and _has(kind, "drain_next") and not capabilities_of(kind).reads_on


def parts_of(kind: type, protocol: str) -> Components:
    """The sound components, with `kind` at the inputs of every task.

    Raises
    ------
    ExternalError
        If it lacks something, answers with something else than asked for, raises an exception at once, or does not
        restore what it captured.
    """
    components = unexamined(kind, protocol)
    _examine(kind, components, protocol)
    return components


def unexamined(kind: type, protocol: str) -> Components:
    """Return the same without a first look at what the class does, which takes a tenth of a second.

    Raises
    ------
    ExternalError
        If it lacks something.
    """
    capabilities = capabilities_of(kind)
    goes_ahead = protocol_of(protocol).goes_unaligned
    if goes_ahead and issubclass(kind, BarrierAligner) and not goes_unaligned(kind):
        raise ExternalError(f"{kind.__name__} goes not unaligned; allowed: a subclass of UnalignedCheckpointer")
    if issubclass(kind, BarrierAligner):
        components = with_aligner(kind)
    else:
        for old, new in OLDER_NAMES.items():
            if new in _methods(kind, goes_ahead) and _has(kind, old) and not _has(kind, new):
                raise ExternalError(f"{kind.__name__} has {old!r}, which is called {new!r} now; rename it")
        missing = _missing(kind, goes_ahead, capabilities)
        if missing:
            needed = ", ".join(_methods(kind, goes_ahead))
            undeclared = next((name for name, methods in _OPTIONAL.items() if missing[0] in methods), "")
            or_declare = undeclared and f"; or declare capabilities = Capabilities({undeclared})"
            raise ExternalError(
                f"{kind.__name__} has no method {missing[0]!r}; {protocol} checkpoints need {needed}{or_declare}"
            )
        check_plain(kind, _methods(kind, goes_ahead))
        components = Components(gate=cast(MakeGate, partial(PullGate if pulls(kind) else ExternalGate, kind)))
    return replace(components, capabilities=capabilities)


_OPTIONAL = {
    "aborts=False": ("abort",),
    "timeout=False": ("note_trigger", "next_deadline_ns", "on_time", "was_threshold_triggered"),
    "leaves_in_channel=True": ("can_drain", "drain_next"),
    "limits=False": ("note_output",),
}
"""The methods and attributes that a class may lack, by what it declares."""


def _optional(capabilities: Capabilities) -> tuple[str, ...]:
    declared = (text.partition("=") for text in _OPTIONAL)
    found = [f"{name}={value}" for name, _, value in declared if str(getattr(capabilities, name)) == value]
    return tuple(name for text in found for name in _OPTIONAL[text])


def _missing(kind: type, is_unaligned: bool, capabilities: Capabilities) -> list[str]:
    """The methods that a class lacks and needs."""
    optional = _optional(capabilities)
    return [name for name in _methods(kind, is_unaligned) if name not in optional and not _has(kind, name)]


def _methods(kind: type, is_unaligned: bool) -> list[str]:
    """Return what a class must have for others to call."""
    shapes = [PullAligner if pulls(kind) else Aligner, Driven, *([UnalignedAligner] if is_unaligned else [])]
    return [name for shape in shapes for name in methods_of(shape)]


def pulls(kind: type) -> bool:
    """Return whether a class reads the channels itself."""
    return _has(kind, "poll")


def _has(kind: type, name: str) -> bool:
    """Return whether it is there, and not only said to be."""
    found = getattr(kind, name, None)
    said = [getattr(shape, name, None) for shape in (Aligner, PullAligner, UnalignedAligner)]
    return callable(found) and found not in said


class ExternalGate:
    """Adapts an external aligner to a gate: checks its answers, and keeps what a task asks besides.

    Whatever it captures is restored into a second one at once: one that cannot do that is found where it happens, and
    not by what comes of it later.

    Parameters
    ----------
    kind : type
    port : GatePort
    config : BarrierAlignerConfig
    unaligned : UnalignedCheckpointConfig or None
    is_sink : bool
    """

    __slots__ = (
        *("_lacks", "_listening", "_name", "_restored", "_silence", "_twin"),
        *("capabilities", "config", "inner", "last_terminated_id", "port", "recorded", "unaligned"),
    )

    def __init__(
        self,
        kind: type,
        port: GatePort,
        config: BarrierAlignerConfig,
        unaligned: UnalignedCheckpointConfig | None,
        is_sink: bool,
    ) -> None:
        self._name, self.capabilities, self.config = kind.__name__, capabilities_of(kind), config
        self.last_terminated_id = 0  # the last checkpoint that was completed or aborted here
        self.recorded: tuple[tuple[Event, ...], ...] = ((),) * config.num_inputs  # of the part in hand
        self.port: GatePort | _Silence = port
        self.unaligned = None if unaligned is None else self  # it answers for the part in hand
        make = _maker(kind, config, unaligned, is_sink)
        self._listening, self._silence = _Listening(self), _Silence()
        self.inner, self._twin = make(cast(GatePort, self._listening)), make(cast(GatePort, self._silence))
        self._restored: set[Hashable] = set()
        self._lacks = {name for name in _optional(self.capabilities) if not hasattr(self.inner, name)}
        shapes = [*([] if pulls(kind) else [Aligner]), *([] if unaligned is None else [UnalignedAligner])]
        for name, value in (each for shape in shapes for each in vars(shape).items()):
            if isinstance(value, property) and name not in self._lacks and not hasattr(self.inner, name):
                raise ExternalError(f"{self._name} has no attribute {name!r}; allowed: a bool, attribute or property")

    @property
    def aligner(self) -> ExternalGate:
        """The gate itself: it answers what an aligner is asked."""
        return self

    def _looked_at(self, what: str, answer: object, *kinds: type) -> Any:
        if type(answer) not in kinds:
            allowed = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
            raise ExternalError(f"{self._name}.{what} answered {brief(answer)}; allowed: {allowed}")
        return answer

    # What every aligner is asked.

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        """`Aligner.offer`."""
        return cast(bool, self._looked_at("offer", self.inner.offer(input_id, message, now_ns), bool))

    @property
    def can_drain(self) -> bool:
        """`Aligner.can_drain`."""
        if "can_drain" in self._lacks:
            return False
        return cast(bool, self._looked_at("can_drain", self.inner.can_drain, bool))

    def drain_next(self, now_ns: int) -> bool:
        """`Aligner.drain_next`, and whether there was something to drain."""
        drained = self.can_drain
        if "drain_next" not in self._lacks:
            self.inner.drain_next(now_ns)
        return drained

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> bool:
        """`Aligner.abort`, and whether it was news."""
        done = self.last_terminated_id
        if self.capabilities.aborts:
            self.inner.abort(checkpoint_id, reason, now_ns)
        return self.last_terminated_id > done

    def on_time(self, now_ns: int) -> bool:
        """`Aligner.on_time`, and whether there was something to do."""
        deadline_ns = self.next_deadline_ns()
        if self.capabilities.timeout:
            self.inner.on_time(now_ns)
        return deadline_ns is not None and deadline_ns <= now_ns

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        """`Aligner.note_trigger`."""
        if self.capabilities.timeout:
            self.inner.note_trigger(checkpoint_id, triggered_ns)

    def next_deadline_ns(self) -> int | None:
        """`Aligner.next_deadline_ns`."""
        if not self.capabilities.timeout:
            return None
        return cast("int | None", self._looked_at("next_deadline_ns", self.inner.next_deadline_ns(), int, type(None)))

    def can_take(self, input_id: int) -> bool:
        """`Aligner.can_take`."""
        return cast(bool, self._looked_at("can_take", self.inner.can_take(input_id), bool))

    # What one is asked that goes unaligned.

    @property
    def is_unaligned(self) -> bool:
        """`UnalignedAligner.is_unaligned`."""
        return cast(bool, self._looked_at("is_unaligned", self.inner.is_unaligned, bool))

    @property
    def was_threshold_triggered(self) -> bool:
        """`UnalignedAligner.was_threshold_triggered`."""
        if "was_threshold_triggered" in self._lacks:
            return False
        return cast(bool, self._looked_at("was_threshold_triggered", self.inner.was_threshold_triggered, bool))

    def inflight_data(self) -> tuple[InFlightChannelData, ...]:
        """Return what the port was to record of the part in hand."""
        return channel_data(dict(enumerate(self.recorded)), size_of)

    def offer_overtaking(
        self, input_id: int, barrier: CheckpointBarrier, ahead: Sequence[StreamMessage], now_ns: int
    ) -> bool:
        """`UnalignedAligner.offer_overtaking`."""
        if self.unaligned is None:
            return False
        answer = self.inner.offer_overtaking(input_id, barrier, ahead, now_ns)
        return cast(bool, self._looked_at("offer_overtaking", answer, bool))

    def wants_overtaking(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        """`UnalignedAligner.wants_overtaking`."""
        if self.unaligned is None:
            return False
        answer = self.inner.wants_overtaking(input_id, barrier, now_ns)
        return cast(bool, self._looked_at("wants_overtaking", answer, bool))

    def note_output(self, size_bytes: int) -> None:
        """`UnalignedAligner.note_output`."""
        if self.unaligned is not None and self.capabilities.limits:
            self.inner.note_output(size_bytes)

    # Capture, restore, and a new beginning.

    def capture(self) -> Hashable:
        """`Aligner.capture`, and what is kept here."""
        value = captured(self._name, self.inner, self._twin, self._restored)
        return self.last_terminated_id, self.recorded, value

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self.last_terminated_id, self.recorded, inner = value  # type: ignore[misc]
        self.inner.restore(inner)  # type: ignore[has-type]

    def recover(self, last_terminated_id: int, ended: Iterable[int]) -> None:
        """Continue from a cut, as a new gate: what the aligner gets in this call has no effect outside."""
        port, self.port = self.port, _Silence()
        if last_terminated_id:
            self.abort(last_terminated_id, Reason.JOB_FAILED, 0)
        for input_id in ended:
            self.offer(input_id, _END, 0)
        self.port, self.last_terminated_id = port, last_terminated_id


class PullGate(ExternalGate):
    """Adapts an external aligner that reads the channels itself to a gate.

    Where a driver offers messages to gates one by one, it is asked as if nothing else were readable.
    """

    __slots__ = ("_answers",)

    def __init__(self, kind: type, *arguments: Any) -> None:
        super().__init__(kind, *arguments)
        self._answers: dict[tuple[Hashable, tuple[int, ...]], tuple[int | None, bool]] = {}

    def poll(self, readable: tuple[int, ...], now_ns: int) -> int | None:
        """`PullAligner.poll`, until it has chosen, has called the port, or has nothing else to say."""
        return self._polled(self.inner, self._listening, readable, now_ns)

    def take(self, input_id: int, message: StreamMessage, now_ns: int) -> None:
        """`PullAligner.take`."""
        self.inner.take(input_id, message, now_ns)

    def _polled(self, aligner: Any, port: _Listening | _Silence, readable: tuple[int, ...], now_ns: int) -> int | None:
        port.was_called = False
        seen: set[Hashable] = set()
        while True:
            answer = self._looked_at("poll", aligner.poll(readable, now_ns), int, type(None))
            if answer is not None and answer not in readable:
                allowed = " or ".join(map(str, (*readable, None)))
                raise ExternalError(f"{self._name}.poll answered {answer} for {readable}; allowed: {allowed}")
            if answer is not None or port.was_called:
                return cast("int | None", answer)
            value = aligner.capture()
            if value in seen:
                return None
            seen.add(value)

    def _would(self, readable: tuple[int, ...]) -> tuple[int | None, bool]:
        """Return what it would choose, and whether it would tell anything."""
        *_, value = cast("tuple[Hashable, ...]", self.capture())
        found = self._answers.get((value, readable))
        if found is None:
            self._twin.restore(value)
            answer = self._polled(self._twin, self._silence, readable, 0)
            found = self._answers[value, readable] = answer, self._silence.was_called
        return found

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        """Return whether it takes the message, if nothing else is readable."""
        if self.poll((input_id,), now_ns) is None:
            return False
        self.take(input_id, message, now_ns)
        return True

    @property
    def can_drain(self) -> bool:
        """Return whether its loop does anything when nothing is readable."""
        return self._would(())[1]

    def drain_next(self, now_ns: int) -> bool:
        """Run one round of its loop while nothing is readable."""
        drained = self.can_drain
        if drained:
            self.poll((), now_ns)
        return drained

    def can_take(self, input_id: int) -> bool:
        """Return whether it would read this input, if nothing else is readable."""
        return self._would((input_id,))[0] is not None


class _Listening:
    """The port of another's aligner: passes everything on, and keeps what the gate around it has to know."""

    __slots__ = ("_gate", "was_called")

    def __init__(self, gate: ExternalGate) -> None:
        self._gate, self.was_called = gate, False

    def __getattr__(self, name: str) -> Any:
        check_call(name)
        self.was_called = True
        return getattr(self._gate.port, name)

    def record(self, input_id: int, message: Event, checkpoint_id: int) -> None:
        gate, self.was_called = self._gate, True
        gate.recorded = tuple(
            (*events, message) if each == input_id else events for each, events in enumerate(gate.recorded)
        )
        gate.port.record(input_id, message, checkpoint_id)

    def complete(self, barrier: CheckpointBarrier) -> None:
        self.was_called = True
        self._gate.port.complete(barrier)
        self._end(barrier.checkpoint_id)

    def cancel(self, checkpoint_id: int) -> None:
        self.was_called = True
        self._end(checkpoint_id)
        self._gate.port.cancel(checkpoint_id)

    def _end(self, checkpoint_id: int) -> None:
        gate = self._gate
        gate.last_terminated_id, gate.recorded = (
            max(gate.last_terminated_id, checkpoint_id),
            ((),) * gate.config.num_inputs,
        )


class _Silence:
    """A port that takes note of nothing but that it was called."""

    def __init__(self) -> None:
        self.was_called = False

    def __getattr__(self, name: str) -> Callable[..., None]:
        check_call(name)
        self.was_called = True
        return lambda *_: None


_CALLS = dict.fromkeys(methods_of(GatePort))


def check_call(name: str) -> None:
    """Raise an AttributeError, with what a port has, if it has no such call."""
    if name not in _CALLS:
        new = OLDER_NAMES.get(name)
        raise AttributeError(
            f"a port has no {name!r}" + (f", but {new!r}" if new in _CALLS else f"; it has {', '.join(_CALLS)}")
        )


def _maker(
    kind: type, config: BarrierAlignerConfig, unaligned: UnalignedCheckpointConfig | None, is_sink: bool
) -> Callable[[GatePort], Any]:
    """Return a function that makes aligners, with four arguments only if need be."""
    is_short = unaligned is None and not _takes_four(kind)  # else one that goes unaligned, and is not asked to
    behind: tuple[object, ...] = (config,) if is_short else (config, unaligned, is_sink)
    return lambda port: kind(port, *behind)


@cache
def _takes_four(kind: type) -> bool:
    try:
        inspect.signature(kind).bind("port", "config", "unaligned", "is_sink")
    except (TypeError, ValueError):  # it takes others, or nobody knows which
        return False
    return True


# A first look, before anything is explored.


def _examine(kind: type, components: Components, protocol: str) -> None:
    """Examine what it answers to a few messages, whether it raises, and whether it restores what it captured."""
    rules = next(scope.rules for scope in SCOPES if scope.protocol == protocol)
    if not components.capabilities.several_inputs:
        rules = replace(rules, num_inputs=1)

    def make() -> GateMachine:
        return GateMachine(rules, partial(gate_of, components))

    with being_made(
        kind, "port, config, unaligned, is_sink" if protocol_of(protocol).goes_unaligned else "port, config"
    ):
        machine = make()
    done: list[str] = []
    script = (*_SCRIPT, *_UNALIGNED_SCRIPT) if protocol_of(protocol).goes_unaligned else _SCRIPT
    for stimulus in _within(script, components.capabilities):
        done.append(str(stimulus))
        try:
            if _may_happen(machine, stimulus):
                _checked_calls(kind.__name__, machine, GateMove(stimulus))
            _questions(machine)
            machine.gate.capture()
        except ExternalError:
            raise
        except RAISED as error:  # as above
            raise ExternalError(
                f"{kind.__name__} raised {said(error)} at the end of '{'; '.join(done)}'; "
                "allowed: no exception for what a peer may send"
            ) from error
    stimuli = [each for scope in SCOPES if scope.protocol == protocol for each in scope.stimuli]
    forgotten = _forgotten(kind, make, list(_within(stimuli, components.capabilities)), protocol)
    if forgotten is not None:
        raise ExternalError(f"{kind.__name__} does not restore what it captured: {forgotten}")


_B1, _B2 = CheckpointBarrier(1, 1), CheckpointBarrier(2, 2)
_SCRIPT: tuple[Stimulus, ...] = (
    *(Arrival(0, Event("a", 1)), Arrival(0, _B1), Arrival(0, Event("a", 2)), Arrival(1, Event("b", 1))),
    *(Arrival(1, _B1), DrainOne(), TriggerNoted(2, 0), Arrival(1, _B2), ClockReading(1), Abort(2), Arrival(0, _END)),
)
"""Two inputs, a checkpoint that completes, one that is aborted, an end."""
_UNALIGNED_SCRIPT: tuple[Stimulus, ...] = (Overtaking(1, CheckpointBarrier(3, 3, 1), (Event("b", 2),)),)


def _within(stimuli: Iterable[Stimulus], capabilities: Capabilities) -> Iterator[Stimulus]:
    """Yield what can happen at two inputs, or at one, within the part of the protocol that is declared."""
    inputs = 2 if capabilities.several_inputs else 1
    return (each for each in within(stimuli, capabilities) if getattr(each, "input_id", 0) < inputs)


def _may_happen(machine: GateMachine, stimulus: Stimulus) -> bool:
    """Return whether a driver would do that: it offers nothing on an input that may not be read."""
    return not isinstance(stimulus, Arrival) or machine.gate.can_take(stimulus.input_id)


def _questions(machine: GateMachine) -> tuple[object, ...]:
    """Return all that a driver may ask at any time."""
    gate = machine.gate
    takes = tuple(gate.can_take(input_id) for input_id in range(gate.aligner.config.num_inputs))
    return gate.can_drain, gate.next_deadline_ns(), takes


_WALKS, _MOST_MOVES = 60, 9


def _forgotten(kind: type, make: Callable[[], GateMachine], stimuli: Sequence[Stimulus], protocol: str) -> str | None:
    """Return how one that is restored goes on otherwise than the one that was captured; None if it does not.

    A capture that lacks something looks complete: it is the same when it is captured again. So walks are taken twice
    from where they have come to, by who went there, and by another that has been elsewhere before. Short ones first,
    and always the same ones.
    """
    chance = random.Random(protocol)
    other = make()
    for length in (each for each in range(2, _MOST_MOVES + 1) for _ in range(_WALKS)):
        there, closed, gone = make(), set[int](), list[GateMove]()
        try:
            for at in range(length):
                if at == length // 2:
                    captured, before = there.gate.capture(), list(gone)
                gone.append(_any_move(chance, stimuli, closed, there))
                first = _made(kind.__name__, there, gone[-1], closed)
                if at == length // 2:
                    other.gate.restore(captured)
                if at >= length // 2:
                    again = _made(kind.__name__, other, gone[-1], set())
                    if again != first and _in_words(again) != _in_words(first):
                        where = "; ".join(map(str, before)) or "nothing"
                        then = "; ".join(map(str, gone[len(before) :]))
                        says = f"it says '{_in_words(again)}' for '{_in_words(first)}'"
                        return f"restored after '{where}', at the end of '{then}' {says}"
            if pulls(kind):
                other.gate.restore(there.gate.capture())
                readable = tuple(each for each in range(there.gate.aligner.config.num_inputs) if each not in closed)
                first_read, read = (cast(PullGate, each.gate).poll(readable, 0) for each in (there, other))
                if read != first_read:
                    where = "; ".join(map(str, gone))
                    return f"restored after '{where}', it reads {read} of {readable}, and not {first_read}"
        except ExternalError:
            raise
        except RAISED:  # it has been restored nowhere: the exploration finds the shortest way there
            other = make()
            continue
        other = there
    return None


def _any_move(chance: random.Random, stimuli: Sequence[Stimulus], closed: set[int], at: GateMachine) -> GateMove:
    while True:
        stimulus = chance.choice(stimuli)
        is_closed = isinstance(stimulus, Arrival | Overtaking) and stimulus.input_id in closed
        if not is_closed and _may_happen(at, stimulus):
            return GateMove(stimulus, chance.choice((TAKEN, TAKEN, FAILED)))


def _made(name: str, machine: GateMachine, move: GateMove, closed: set[int]) -> tuple[Effects, tuple[object, ...]]:
    """Return what it does and answers; an input whose end it has taken is closed."""
    effects = _checked_calls(name, machine, move)
    stimulus = move.stimulus
    refused = bool(effects) and effects[0].verb == "refuse"
    if isinstance(stimulus, Arrival) and type(stimulus.message) is EndOfInput and not refused:
        closed.add(stimulus.input_id)
    return effects, _questions(machine)


_OF_A_BARRIER, _OF_AN_ID = ("a barrier", CheckpointBarrier), ("the id of a checkpoint", int)
_OF_A_MESSAGE = ("a message", *get_args(StreamMessage))
_SUBJECTS: dict[str, tuple[Any, ...]] = {
    "deliver": ("an event or a watermark", Event, Watermark),
    "decline": ("an id and a barrierlab.impl.Reason", Reason),
    **dict.fromkeys(("snapshot", "forward", "complete"), _OF_A_BARRIER),
    **dict.fromkeys(("buffer", "ignore"), _OF_A_MESSAGE),
    **dict.fromkeys(("cancel", "block", "resume"), _OF_AN_ID),
}
"""By call of the port, what it is about, in words and as types."""
_OF_INPUTS = ("deliver", "end", "buffer", "ignore", "block", "record")


def _checked_calls(name: str, machine: GateMachine, move: GateMove) -> Effects:
    """Make a move, and return what the port was called for.

    Raises
    ------
    ExternalError
        If that names no input, or what such a call cannot be about.
    """
    effects = machine.made(move)
    inputs = range(machine.gate.aligner.config.num_inputs)
    for verb, input_id, subject in effects:
        about = subject.barrier if isinstance(subject, SnapshotComplete) else subject
        about = about[1] if verb == "decline" and isinstance(about, tuple) else about
        allowed, *types = _SUBJECTS.get(verb, ("", type(about)))
        call = "end_input" if verb == "end" else verb
        if type(about) not in types:
            raise ExternalError(f"{name} calls port.{call} with {brief(about)} at '{move}'; allowed: {allowed}")
        if verb in _OF_INPUTS and (type(input_id) is not int or input_id not in inputs):
            raise ExternalError(
                f"{name} calls port.{call} for input {brief(input_id)} at '{move}'; allowed: "
                f"{' or '.join(map(str, inputs))}"
            )
    return effects


def _in_words(made: tuple[Effects, tuple[object, ...]]) -> str:
    effects, (drained, deadline_ns, takes) = made
    return f"{listed(effects)}, {drained=}, {deadline_ns=}, {takes=}"
