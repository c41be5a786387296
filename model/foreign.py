"""An aligner of one's own in the place of `impl.gate.Gate`: what it must have, and what it must not do.

It is any class that is made as ``Class(port, config)``, or for protocols that go unaligned as
``Class(port, config, unaligned, is_sink)``, and has the methods of `impl.gate.Gate` that `NEEDED` and
`NEEDED_UNALIGNED` name: messages come in by ``offer``, effects go out by the calls of `impl.gate.GatePort`, at the
moment they take place. ``capture`` gives a hashable value of all that makes a difference (no counters), and
``restore`` makes any object of the class behave like the one that gave it. A subclass of
`impl.alignment.BarrierAligner` will do as well: the gate of `impl` is put around it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from impl.alignment import BarrierAligner, BarrierAlignerConfig
from impl.gate import Gate, GatePort
from impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from impl.reasons import Reason
from impl.unaligned import UnalignedCheckpointConfig, UnalignedCheckpointer
from model.parts import Parts, with_aligner

NEEDED = (
    "offer",
    "release_next",
    "abort",
    "on_time",
    "next_deadline_ns",
    "can_take",
    "is_blocked",
    "capture",
    "restore",
)
"""What every aligner has; and the attribute or property ``has_released``."""

NEEDED_UNALIGNED = ("offer_overtaking", "wants_overtaking", "note_trigger", "note_output", "inflight_data")
"""What one has that goes unaligned; and ``is_unaligned`` and ``was_threshold_triggered``, of the part in hand."""

_EXAMPLE = "--impl my_package.my_module:MyAligner"
_DEADLINE_NS = 1_000_000


class ForeignError(ValueError):
    """A class that cannot stand in for `impl.gate.Gate`: one line, with what it did and what is asked for."""


def load(spec: str) -> type:
    """The class that ``module:Class`` names; modules are looked for in the working directory, too.

    Raises
    ------
    ForeignError
        If there is none.
    """
    module_name, colon, name = spec.partition(":")
    if not colon or not module_name or not name:
        raise ForeignError(f"--impl {spec!r}: allowed: MODULE:CLASS, such as {_EXAMPLE}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(module_name)
    except Exception as error:  # whatever importing another's code comes to
        raise ForeignError(f"--impl {spec}: importing {module_name} failed: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not isinstance(found, type):
        classes = ", ".join(key for key, value in vars(module).items() if isinstance(value, type)) or "none"
        raise ForeignError(f"--impl {spec}: {module_name} has no class {name!r}; its classes: {classes}")
    return found


def parts_of(kind: type, protocol: str) -> Parts:
    """The sound parts, with `kind` at the inputs of every task.

    Raises
    ------
    ForeignError
        If it lacks something, answers with something else than asked for, or does not restore what it captured.
    """
    if issubclass(kind, BarrierAligner):
        return with_aligner(kind)
    _has_all(kind, protocol)
    make = _maker(kind)
    _try_out(kind, make, protocol)
    return Parts(gate=make)


def goes_unaligned(kind: type) -> bool:
    """Whether a class can be asked for unaligned checkpoints."""
    if issubclass(kind, BarrierAligner):
        return issubclass(kind, UnalignedCheckpointer)
    return all(callable(getattr(kind, name, None)) for name in NEEDED_UNALIGNED)


def _has_all(kind: type, protocol: str) -> None:
    needed = NEEDED if protocol == "aligned" else (*NEEDED, *NEEDED_UNALIGNED)
    missing = [name for name in needed if not callable(getattr(kind, name, None))]
    if missing:
        raise ForeignError(
            f"{kind.__name__} has no method {missing[0]!r}; for {protocol} checkpoints it needs {', '.join(needed)}"
        )


def _maker(kind: type) -> Callable[[Any, BarrierAlignerConfig, UnalignedCheckpointConfig | None, bool], Gate]:
    takes = len(inspect.signature(kind).parameters)

    def make(
        port: GatePort, config: BarrierAlignerConfig, unaligned: UnalignedCheckpointConfig | None, is_sink: bool
    ) -> Gate:
        arguments = (config,) if unaligned is None and takes < 4 else (config, unaligned, is_sink)
        return cast(Gate, ForeignGate(kind, port, config, arguments))

    return make


class ForeignGate:
    """Another's aligner, seen as a gate: what it answers is looked at, and what a task asks beside is kept here.

    Parameters
    ----------
    kind : type
    port : GatePort
    config : BarrierAlignerConfig
    arguments : tuple
        What `kind` is made with, behind the port.
    """

    __slots__ = ("config", "inner", "last_done", "name", "port", "unaligned")

    def __init__(self, kind: type, port: GatePort, config: BarrierAlignerConfig, arguments: tuple[object, ...]) -> None:
        self.name = kind.__name__
        self.port, self.config = port, config
        self.last_done = 0  # the last checkpoint that was completed or given up here
        self.inner: Any = kind(_Listening(self), *arguments)
        self.unaligned = self.inner if len(arguments) == 3 and arguments[1] is not None else None

    @property
    def aligner(self) -> ForeignGate:
        """What is asked of an aligner is asked here."""
        return self

    def _answered(self, method: str, answer: object, *kinds: type) -> Any:
        if type(answer) not in kinds:
            allowed = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
            raise ForeignError(f"{self.name}.{method} answered {answer!r}; allowed: {allowed}")
        return answer

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        """`impl.gate.Gate.offer`."""
        return cast(bool, self._answered("offer", self.inner.offer(input_id, message, now_ns), bool))

    def offer_overtaking(
        self, input_id: int, barrier: CheckpointBarrier, ahead: Sequence[StreamMessage], now_ns: int
    ) -> bool:
        """`impl.gate.Gate.offer_overtaking`."""
        if self.unaligned is None:
            return False
        answer = self.inner.offer_overtaking(input_id, barrier, ahead, now_ns)
        return cast(bool, self._answered("offer_overtaking", answer, bool))

    @property
    def may_overtake(self) -> bool:
        """`impl.gate.Gate.may_overtake`."""
        return self.unaligned is not None and bool(getattr(self.inner, "may_overtake", True))

    def wants_overtaking(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        """`impl.gate.Gate.wants_overtaking`."""
        if self.unaligned is None:
            return False
        answer = self.inner.wants_overtaking(input_id, barrier, now_ns)
        return cast(bool, self._answered("wants_overtaking", answer, bool))

    def note_output(self, size_bytes: int) -> None:
        """`impl.gate.Gate.note_output`."""
        if self.unaligned is not None:
            self.inner.note_output(size_bytes)

    def release_next(self, now_ns: int) -> bool:
        """`impl.gate.Gate.release_next`."""
        return cast(bool, self._answered("release_next", self.inner.release_next(now_ns), bool))

    def release_all(self, now_ns: int) -> int:
        """`impl.gate.Gate.release_all`."""
        count = 0
        while self.release_next(now_ns):
            count += 1
        return count

    @property
    def has_released(self) -> bool:
        """`impl.gate.Gate.has_released`."""
        return cast(bool, self._answered("has_released", self.inner.has_released, bool))

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> bool:
        """`impl.gate.Gate.abort`."""
        return cast(bool, self._answered("abort", self.inner.abort(checkpoint_id, reason, now_ns), bool))

    def on_time(self, now_ns: int) -> bool:
        """`impl.gate.Gate.on_time`."""
        return cast(bool, self._answered("on_time", self.inner.on_time(now_ns), bool))

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        """`impl.gate.Gate.note_trigger`."""
        if hasattr(self.inner, "note_trigger"):
            self.inner.note_trigger(checkpoint_id, triggered_ns)

    def next_deadline_ns(self) -> int | None:
        """`impl.gate.Gate.next_deadline_ns`."""
        answer = self.inner.next_deadline_ns()
        return cast("int | None", self._answered("next_deadline_ns", answer, int, type(None)))

    def can_take(self, input_id: int) -> bool:
        """`impl.gate.Gate.can_take`."""
        return cast(bool, self._answered("can_take", self.inner.can_take(input_id), bool))

    def is_blocked(self, input_id: int) -> bool:
        """`impl.gate.Gate.is_blocked`."""
        return cast(bool, self._answered("is_blocked", self.inner.is_blocked(input_id), bool))

    def recover(self, last_done: int, ended: Iterable[int]) -> None:
        """Go on, as a new gate, from a cut: to one that has no word for it, by what it knows already."""
        self.last_done = last_done
        if hasattr(self.inner, "recover"):
            self.inner.recover(last_done, ended)
        elif last_done or tuple(ended):
            raise ForeignError(
                f"{self.name} has no method 'recover'; to be put back it needs recover(last_done, ended)"
            )

    def capture(self) -> Hashable:
        """`impl.gate.Gate.capture`."""
        value = self.inner.capture()
        try:
            hash(value)
        except TypeError as error:
            raise ForeignError(
                f"{self.name}.capture answered {value!r}: {error}; allowed: a hashable value, such as a tuple"
            ) from error
        return self.last_done, value

    def restore(self, value: Hashable) -> None:
        """`impl.gate.Gate.restore`."""
        self.last_done, inner = value  # type: ignore[misc]
        self.inner.restore(inner)  # type: ignore[has-type]


class _Listening:
    """The port of a foreign gate's gate: passes everything on, and notes what has ended."""

    __slots__ = ("_gate", "_port")

    def __init__(self, gate: ForeignGate) -> None:
        self._gate, self._port = gate, gate.port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def complete(self, barrier: CheckpointBarrier) -> None:
        self._gate.last_done = max(self._gate.last_done, barrier.checkpoint_id)
        self._port.complete(barrier)

    def cancel(self, checkpoint_id: int) -> None:
        self._gate.last_done = max(self._gate.last_done, checkpoint_id)
        self._port.cancel(checkpoint_id)


# A first look, before anything is explored.


class _Sink:
    """A port that takes note of nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def _try_out(kind: type, make: Callable[..., Gate], protocol: str) -> None:
    """Two inputs, a checkpoint that completes, one that is given up, an end: what it answers, and what it captures."""
    config = BarrierAlignerConfig(2, 100, 10_000, _DEADLINE_NS)
    unaligned = (
        None
        if protocol == "aligned"
        else UnalignedCheckpointConfig(True, 0 if protocol == "unaligned" else 1000, 10_000)
    )
    gate = _made(kind, make, config, unaligned)
    for input_id, message in _SCRIPT:
        try:
            _step(gate, input_id, message)
            other = make(_Sink(), config, unaligned, False)
            other.restore(gate.capture())
            told, expected = other.capture(), gate.capture()
        except ForeignError:
            raise
        except Exception as error:  # whatever another's code raises
            raise ForeignError(
                f"{kind.__name__} raised {type(error).__name__}: {error} when {message} came on input {input_id}; "
                "allowed: no exception for what a peer can send"
            ) from error
        if told != expected:
            raise ForeignError(
                f"{kind.__name__} does not restore what it captured, after {message} on input {input_id}: "
                f"captured {expected!r}, restored {told!r}"
            )


def _made(
    kind: type, make: Callable[..., Gate], config: BarrierAlignerConfig, unaligned: UnalignedCheckpointConfig | None
) -> Gate:
    try:
        return make(_Sink(), config, unaligned, False)
    except Exception as error:  # as above
        raise ForeignError(
            f"{kind.__name__} cannot be made: {type(error).__name__}: {error}; allowed: {kind.__name__}(port, config), "
            f"or {kind.__name__}(port, config, unaligned, is_sink)"
        ) from error


_SCRIPT: tuple[tuple[int, StreamMessage], ...] = (
    (0, Event("a", 1)),
    (0, CheckpointBarrier(1, 1)),
    (0, Event("a", 2)),
    (0, Watermark(5)),
    (1, Event("b", 1)),
    (1, CheckpointBarrier(1, 1)),
    (1, CheckpointBarrier(2, 2)),
    (1, Event("b", 2)),
    (0, CancelBarrier(2)),
    (0, EndOfInput()),
    (1, Event("b", 3)),
)


def _step(gate: Gate, input_id: int, message: StreamMessage) -> None:
    gate.note_trigger(1, 0)
    if gate.can_take(input_id):
        gate.offer(input_id, message, 0)
    gate.is_blocked(input_id)
    while gate.has_released:
        gate.release_next(0)
    gate.next_deadline_ns()
    gate.on_time(0)
