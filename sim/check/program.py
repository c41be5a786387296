"""An aligner in any language: a program that answers each line of JSON with a line, seen as an external aligner.

`docs/engines/protocol.md` says what a line is. Each line names the state to begin from and each answer the state that
was come to, so that a step is asked for once: what it gave is remembered by state and line. That rests on a program
which gives the same answer to the same line, and whose state says all that it goes by. So every step is taken once
more, the last first, by a second process; every state is restored and read again; and walks are taken by an aligner
that is never restored. A program that fails any of that has no verdict, and neither has one that dies, hangs or writes
what no answer is.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import GatePort
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.errors import SnapshotFailedError
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.impl.messages import size_of as size_of_message
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.model.errors import InputError
from barrierlab.model.explore.intern import exact
from barrierlab.sim.check.process import FailedError, Process

VERSION = 1
KIND = "aligner"
LIMIT_S = 1.0
"""For an answer: a thousand times what a step takes in a slow language, and short enough to wait for."""
_START = 10
"""So many limits for the first answer: a virtual machine starts and compiles in it."""
_WALK_STEPS = 12
_LEAST_WALKS, _STEPS_A_WALK = 5, 100
"""The longest walk without a restore; the least number of walks, and the new steps that add one more."""
_READS = ("offer", "poll")
_MOST_SHOWN = 300


class ProgramFault(BaseException):
    """The program gave no answer, or one that counts for nothing.

    Not an Exception: what explores takes whatever a machine raises for a violation, and of this there is no verdict.
    """


class ProgramError(InputError):
    """The program cannot be checked: one line, with the step at which that was seen."""


@contextmanager
def faults_reported() -> Iterator[None]:
    """Raise what a program does wrong as an error of input, and end it."""
    try:
        yield
    except ProgramFault as fault:
        end_programs()
        raise ProgramError(str(fault)) from None


PortCall = tuple[str, tuple[Any, ...], tuple[bool, bool]]
"""A call of the port, its arguments, and whether the part in hand is then unaligned, and began aligned."""


class After(NamedTuple):
    """A state's answers to a driver."""

    can_drain: bool
    deadline_ns: int | None
    can_take: tuple[bool, ...]
    is_unaligned: bool
    was_threshold_triggered: bool


class Reached:
    """A state of an aligner of one configuration.

    Attributes
    ----------
    made : Made
    state : str
    after : After
    back : Reached or None
        Where it was first reached from, by the line `line`; None of a new aligner.
    line : str
    steps : dict of str to Answered
        By line, what is known of the steps from here.
    """

    __slots__ = ("after", "back", "line", "made", "state", "steps")

    def __init__(self, made: Made, state: str, after: After, back: Reached | None, line: str) -> None:
        self.made, self.state, self.after, self.back, self.line = made, state, after, back, line
        self.steps: dict[str, Answered] = {}


class Answered(NamedTuple):
    """The answer to a line."""

    effects: tuple[PortCall, ...]
    answer: object
    place: Reached


@dataclass(slots=True)
class Made:
    """The aligners of one configuration.

    Attributes
    ----------
    text : str
        The configuration, as JSON.
    inputs : int
    is_unaligned : bool
        Whether it has a configuration of unaligned checkpoints.
    places : dict of str to Reached
        By state.
    start : Reached
    """

    text: str
    inputs: int
    is_unaligned: bool
    places: dict[str, Reached] = field(default_factory=dict)
    start: Reached = field(init=False)


class Request(NamedTuple):
    """A line, from which state it goes; None if it goes on from wherever the aligner is."""

    made: Made
    line: str
    state: Reached | None
    path: Reached | None


class Program:
    """A program, all that it has answered, and the processes that run it.

    Parameters
    ----------
    text : str
        The command.
    folder : str
    limit_s : float

    Attributes
    ----------
    capabilities : Capabilities
    name : str
    polls, restores : bool
        Whether it reads the channels itself, and whether it can be put into a state.
    """

    def __init__(self, text: str, folder: str, limit_s: float) -> None:
        self.text, self._folder, self._limit_s = text, folder, limit_s
        try:
            self._command = shlex.split(text)
        except ValueError as error:
            raise ProgramFault(f"--exec {text!r}: {error}; allowed: a command, such as './my_aligner --fast'") from None
        if not self._command:
            raise ProgramFault(f"--exec {text!r}: allowed: a command, such as './my_aligner --fast'")
        self._processes: dict[int, tuple[Process, list[int]]] = {}
        self._hello: dict[str, object] = {}
        self._messages: list[StreamMessage] = []
        self._numbers: dict[object, str] = {}
        self._made: dict[str, Made] = {}
        self._new: list[tuple[Reached, str, int, bytes]] = []
        self._last = 0, b""  # the number and the answer of the last step
        self._new_places: list[Reached] = []
        self._at: Reached | None = None  # where the first process is, as far as that is known
        try:
            self._process(0)
        except BaseException:
            self.end()
            raise
        hello = self._hello
        self.name = str(hello.get("name") or os.path.basename(self._command[0]))
        self.polls, self.restores = hello["reads"] == "poll", bool(hello["restores"])
        self.capabilities = replace(Capabilities(unaligned=False), **hello.get("capabilities", {}))  # type: ignore[arg-type]

    # Processes.

    def _process(self, number: int) -> Process:
        if number not in self._processes:
            try:
                process = Process(self._command, self._folder, self._limit_s)
            except FailedError as error:
                raise ProgramFault(f"--exec {self.text!r} {error}") from None
            self._processes[number] = process, [0]
            line = _line(0, f'"do":"hello","version":{VERSION},"kind":"{KIND}"')
            try:
                (answer,) = process.answers([line], _START)
            except FailedError as error:
                raise self._fault(str(error), 0, "hello") from None
            hello = _hello_of(self._object(answer, 0, "hello"))
            if isinstance(hello, str):
                raise self._fault(hello, 0, "hello")
            if self._hello and hello != self._hello:
                raise self._fault(f"says {_brief(self._hello)} once, and {_brief(hello)} then", 0, "hello")
            self._hello = hello
        return self._processes[number][0]

    def end(self) -> None:
        """End its processes; they start again when there is something to ask."""
        processes, self._processes, self._at = self._processes, {}, None
        for process, _ in processes.values():
            process.end()

    # Steps.

    def start(
        self, config: BarrierAlignerConfig, unaligned: UnalignedCheckpointConfig | None, is_sink: bool
    ) -> Reached:
        """Return the state of a new aligner."""
        text = json.dumps(
            {
                **{each.name: getattr(config, each.name) for each in fields(config)},
                "unaligned": unaligned and {each.name: getattr(unaligned, each.name) for each in fields(unaligned)},
                "is_sink": is_sink,
            },
            separators=(",", ":"),
        )
        if text not in self._made:
            made = Made(text, config.num_inputs, unaligned is not None)
            line = f'"do":"make","aligner":{text}'
            (step,) = self._asked(0, [Request(made, line, None, None)])
            made.start = step.place
            self._made[text], self._at = made, step.place
        return self._made[text].start

    def step(self, place: Reached, line: str) -> Answered:
        """Return the result of a line in a state."""
        try:
            return place.steps[line]
        except KeyError:
            step = self._first(place, line)
            place.steps[line] = step
            self._new.append((place, line, *self._last))
            return step

    def _first(self, place: Reached, line: str) -> Answered:
        if self.restores:
            (step,) = self._asked(0, [Request(place.made, line, place, place)])
            return step
        if self._at is place:
            (step,) = self._asked(0, [Request(place.made, line, None, place)])
        else:
            requests = self._along(place, line)
            *before, step = self._asked(0, requests)
            self._compare(before, self._known_along(place), requests[:-1])
        self._at = step.place
        return step

    def _along(self, place: Reached, line: str) -> list[Request]:
        """Return the lines from a new aligner to `place`, and `line`."""
        requests = [Request(place.made, line, None, place)]
        while place.back is not None:
            requests.append(Request(place.made, place.line, None, place.back))
            place = place.back
        requests.append(Request(place.made, f'"do":"make","aligner":{place.made.text}', None, None))
        return requests[::-1]

    def _known_along(self, place: Reached) -> list[Answered]:
        steps = []
        while place.back is not None:
            steps.append(place.back.steps[place.line])
            place = place.back
        return [Answered((), None, place), *reversed(steps)]

    def _asked(self, number: int, requests: Sequence[Request]) -> list[Answered]:
        """Return the steps that a process answers to `requests`."""
        process = self._process(number)
        count = self._processes[number][1]
        at = range(count[0] + 1, count[0] + 1 + len(requests))
        count[0] += len(requests)
        lines = [_line_of(*each) for each in zip(at, requests, strict=True)]
        steps, answers = list[Answered](), process.answers(lines)
        for step, request, line in zip(at, requests, lines, strict=True):
            try:
                answer = next(answers)
            except FailedError as error:
                raise self._fault(str(error), step, request.line, request.path, line) from None
            self._last = step, answer
            steps.append(self._read(answer, step, request, line))
        return steps

    def _read(self, answer: bytes, number: int, request: Request, line: bytes) -> Answered:
        found = self._object(answer, number, request.line, request.path, line)
        step = self._step_of(found, request)
        if isinstance(step, str):
            raise self._fault(step, number, request.line, request.path, line)
        return step

    def take_again(self) -> None:
        """Take what is new a second time, in another process: the steps, the last first, the states, and walks.

        Raises
        ------
        ProgramFault
            If anything comes out otherwise.
        """
        new, self._new = self._new[::-1], []
        places, self._new_places = self._new_places, []
        if not new:
            return
        if not self.restores:
            for place, line, *_ in new:
                requests = self._along(place, line)
                self._compare(self._asked(1, requests), [*self._known_along(place), place.steps[line]], requests)
            return
        self._same_lines(new)
        looks = [Request(place.made, '"do":"look"', place, place) for place in places]
        self._compare(self._asked(1, looks), [Answered((), None, place) for place in places], looks)
        chance = random.Random(len(new))
        starts = list(dict.fromkeys(place.made.start for place, *_ in new))
        for walk in range(_LEAST_WALKS + len(new) // _STEPS_A_WALK):
            place = starts[walk % len(starts)]
            walked = [Request(place.made, f'"do":"make","aligner":{place.made.text}', None, None)]
            known = [Answered((), None, place)]
            while place.steps and len(walked) <= _WALK_STEPS:
                line = chance.choice(list(place.steps))
                walked.append(Request(place.made, line, None, place))
                known.append(place.steps[line])
                place = place.steps[line].place
            self._compare(self._asked(1, walked), known, walked)

    def _same_lines(self, new: Sequence[tuple[Reached, str, int, bytes]]) -> None:
        """Give another process the very lines that were answered: mostly, the answers are the same bytes."""
        requests = [Request(place.made, line, place, place) for place, line, *_ in new]
        lines = [_line_of(number, request) for (*_, number, _), request in zip(new, requests, strict=True)]
        answers = self._process(1).answers(lines)
        for (place, line, number, first), request, asked in zip(new, requests, lines, strict=True):
            try:
                second = next(answers)
            except FailedError as error:
                raise self._fault(str(error), number, line, place, asked) from None
            if second != first:
                self._compare([self._read(second, number, request, asked)], [place.steps[line]], [request])

    def _compare(self, now: Sequence[Answered], known: Sequence[Answered], requests: Sequence[Request]) -> None:
        for first, second, request in zip(known, now, requests, strict=True):
            if first != second:
                how = _difference(first, second)
                if request.state is None:
                    how += "; an aligner that was never restored answers otherwise than one that was" * self.restores
                raise self._fault(f"does not answer the same twice: {how}", 0, request.line, request.path)

    # Lines.

    def message(self, message: StreamMessage) -> str:
        """Return a message as JSON; its number says which it is in an answer, as events are equal by their names."""
        key = exact(message)
        text = self._numbers.get(key)
        if text is None:
            text = json.dumps({"number": len(self._messages), **_fields_of(message)}, separators=(",", ":"))
            self._numbers[key] = text
            self._messages.append(message)
        return text

    def _object(
        self, answer: bytes, number: int, line: str, path: Reached | None = None, asked: bytes = b""
    ) -> dict[str, Any]:
        try:
            found = json.loads(answer)
        except ValueError:
            raise self._fault(f"answers {_brief(answer)}, which is no JSON", number, line, path, asked) from None
        if type(found) is not dict or type(found.get("step")) is not int:
            why = f"answers {_brief(answer)}; allowed: an object with the number of the step as 'step'"
            raise self._fault(why, number, line, path, asked)
        if found.pop("step") != number:
            raise self._fault(f"answers {_brief(answer)}; allowed: 'step': {number}", number, line, path, asked)
        return found

    def _step_of(self, found: dict[str, Any], request: Request) -> Answered | str:
        """Return an answer that is one, and else what is wrong with it."""
        does = request.line[6 : request.line.index('"', 6)]
        wrong = self._wrong_keys(found, does, request.made)
        if wrong:
            return wrong
        made = request.made
        effects: list[PortCall] = []
        for each in found["effects"]:
            effect = self._effect(each, made)
            if isinstance(effect, str):
                return f"answers the effect {_brief(each)}; {effect}"
            effects.append(effect)
        if effects and does in ("make", "look"):
            return f"answers effects to {does!r}; allowed: []"
        after = After(
            found.get("can_drain", False),
            found.get("next_deadline_ns"),
            tuple(found.get("can_take", ())),
            found.get("is_unaligned", False),
            found.get("was_threshold_triggered", False),
        )
        state = found["state"]
        place = made.places.get(state)
        if place is None:
            place = made.places[state] = Reached(made, state, after, request.path, request.line)
            self._new_places.append(place)
        elif place.after != after:
            before = self._path(place)
            return f"gives the state {_brief(state)} with {after}, and gave it with {place.after} ({before})"
        return Answered(tuple(effects), found.get("answer"), place)

    def _wrong_keys(self, found: dict[str, Any], does: str, made: Made) -> str:
        asked, declared = _ANSWERS.get(does, ()), self.capabilities
        needed = ["state", "effects"]
        if asked:
            needed.append("answer")
        if not self.polls:
            needed += ["can_take", *([] if declared.leaves_in_channel else ["can_drain"])]
        if declared.timeout:
            needed.append("next_deadline_ns")
        if made.is_unaligned:
            needed += ["is_unaligned", *(["was_threshold_triggered"] if declared.timeout else [])]
        for name in needed:
            if name not in found:
                return f"answers without {name!r}; needed here: step, {', '.join(needed)}"
        kinds = {**_KINDS, "answer": asked or _ANY}
        for name, value in found.items():
            if name not in kinds:
                return f"answers with {name!r}; allowed: step, {', '.join(kinds)}"
            if type(value) not in kinds[name]:
                allowed = " or ".join(_JSON[each] for each in kinds[name])
                return f"answers {name!r}: {_brief(value)}; allowed: {allowed}"
        takes = found.get("can_take")
        if takes is not None and (len(takes) != made.inputs or any(type(each) is not bool for each in takes)):
            return f"answers 'can_take': {_brief(takes)}; allowed: true or false for each of {made.inputs} inputs"
        return ""

    def _effect(self, found: object, made: Made) -> PortCall | str:
        """Return a call of the port; else what is allowed."""
        if type(found) is not list or not found or type(found[0]) is not str or found[0] not in _EFFECTS:
            return f"allowed: a list of the name and its arguments; the names: {', '.join(_EFFECTS)}"
        name, *arguments = found
        shape = _EFFECTS[name]
        mode = (False, False)
        if made.is_unaligned and shape == ("barrier",):
            if len(arguments) != 3 or type(arguments[1]) is not bool or type(arguments[2]) is not bool:
                return f"allowed: [{name!r}, barrier, is_unaligned, was_threshold_triggered]"
            mode = arguments[1], arguments[2]
            del arguments[1:]
        if len(arguments) != len(shape):
            return f"allowed: [{', '.join((repr(name), *shape))}]"
        read: list[Any] = []
        for part, argument in zip(shape, arguments, strict=True):
            value = self._argument(part, argument, name, made)
            if value is None:
                return f"{_brief(argument)} is no {part}; allowed: {_PARTS[part]}"
            read.append(value)
        return name, tuple(read), mode

    def _argument(self, part: str, value: Any, name: str, made: Made) -> Any:
        """Return an argument of an effect; None if it is not allowed."""
        if part == "input":
            return value if type(value) is int and 0 <= value < made.inputs else None
        if part == "checkpoint_id":
            return value if type(value) is int and value > 0 else None
        if part == "message":
            message = self._messages[value] if type(value) is int and 0 <= value < len(self._messages) else None
            return message if message is None or type(message) in _CARRIES.get(name, _ALL_KINDS) else None
        if part == "reason":
            return Reason(value) if value in _REASONS else None
        if type(value) is not dict or set(value) != {"checkpoint_id", "epoch", "flags"}:
            return None
        try:
            return CheckpointBarrier(**value)
        except ValueError:
            return None

    # What went wrong.

    def _fault(self, why: str, number: int, line: str, path: Reached | None = None, asked: bytes = b"") -> ProgramFault:
        what = _words(line)
        before = "" if path is None else f", after {self._path(path)}"
        at = f"at step {number}, {what}" if number or line == "hello" else f"in {what}"
        shown = f"; the line: {asked.decode().strip()}" if asked else ""
        return ProgramFault(f"--exec {self.text!r} {why}; {at}{before}{shown}")

    def _path(self, place: Reached) -> str:
        words: list[str] = []
        while place.back is not None:
            words.append(_words(place.line))
            place = place.back
        return "; ".join([f"make {place.made.inputs} inputs", *reversed(words)])


_ANY: tuple[type, ...] = (bool, int, str, float, list, dict, type(None))
_JSON = {
    bool: "true or false",
    int: "a whole number",
    str: "a string",
    list: "a list",
    type(None): "null",
    float: "a number",
    dict: "an object",
}
_KINDS: dict[str, tuple[type, ...]] = {
    "state": (str,),
    "effects": (list,),
    "answer": _ANY,
    "can_drain": (bool,),
    "next_deadline_ns": (int, type(None)),
    "can_take": (list,),
    "is_unaligned": (bool,),
    "was_threshold_triggered": (bool,),
}
_ANSWERS: dict[str, tuple[type, ...]] = {
    "offer": (bool,),
    "offer_overtaking": (bool,),
    "wants_overtaking": (bool,),
    "poll": (int, type(None)),
}
_ALL_KINDS = (Event, Watermark, CheckpointBarrier, CancelBarrier, EndOfInput)
_CARRIES = {"deliver": (Event, Watermark), "record": (Event,)}
_EFFECTS = {
    "deliver": ("input", "message"),
    "end_input": ("input",),
    "buffer": ("input", "message"),
    "ignore": ("input", "message"),
    "block": ("input", "checkpoint_id"),
    "resume": ("checkpoint_id",),
    "snapshot": ("barrier",),
    "forward": ("barrier",),
    "complete": ("barrier",),
    "decline": ("checkpoint_id", "reason"),
    "cancel": ("checkpoint_id",),
    "record": ("input", "message", "checkpoint_id"),
}
"""The calls of `impl.checkpoint.gate.GatePort`, with their arguments."""
_REASONS = frozenset(each.value for each in Reason)
_PARTS = {
    "input": "the number of an input of this aligner",
    "checkpoint_id": "a whole number from 1",
    "message": "the number of a message that has come, of a kind that this effect may have",
    "reason": ", ".join(sorted(_REASONS)),
    "barrier": "an object with checkpoint_id, epoch and flags",
}


def _line(number: int, line: str, rest: str = "") -> bytes:
    return f'{{"step":{number},{line}{rest}}}\n'.encode()


def _line_of(number: int, request: Request) -> bytes:
    if request.state is None:
        return _line(number, request.line)
    return _line(number, request.line, f',"aligner":{request.made.text},"state":{json.dumps(request.state.state)}')


def _fields_of(message: StreamMessage) -> Mapping[str, object]:
    size = {"size_bytes": size_of_message(message)}
    match message:
        case Event():
            names = ("source", "sequence", "part", "key", "timestamp_ms")
            return {"kind": "event", **{name: getattr(message, name) for name in names}, **size}
        case Watermark():
            return {"kind": "watermark", "timestamp_ms": message.timestamp_ms, **size}
        case CheckpointBarrier():
            return {"kind": "barrier", **_barrier(message), **size}
        case CancelBarrier():
            return {"kind": "cancel", "checkpoint_id": message.checkpoint_id, **size}
    return {"kind": "end", **size}


def _barrier(barrier: CheckpointBarrier) -> dict[str, int]:
    return {"checkpoint_id": barrier.checkpoint_id, "epoch": barrier.epoch, "flags": barrier.flags}


def _hello_of(found: dict[str, Any]) -> dict[str, Any] | str:
    """Return the answer to the first line; else what is wrong with it."""
    keys = ("version", "kind", "reads", "restores")
    for name in keys:
        if name not in found:
            return f"answers without {name!r}; needed: step, {', '.join(keys)}"
    for name in found:
        if name not in (*keys, "name", "capabilities"):
            return f"answers with {name!r}; allowed: step, {', '.join(keys)}, name, capabilities"
    if (found["version"], found["kind"]) != (VERSION, KIND) or type(found["version"]) is not int:
        given = f"version {_brief(found['version'])} of kind {_brief(found['kind'])}"
        return f"answers {given}; allowed: version {VERSION}, kind {KIND!r}"
    if found["reads"] not in _READS:
        return f"answers 'reads': {_brief(found['reads'])}; allowed: {' or '.join(map(repr, _READS))}"
    if type(found["restores"]) is not bool:
        return f"answers 'restores': {_brief(found['restores'])}; allowed: true or false"
    if type(found.get("name", "")) is not str:
        return f"answers 'name': {_brief(found['name'])}; allowed: a string"
    declared, names = found.get("capabilities", {}), [each.name for each in fields(Capabilities)]
    if type(declared) is not dict or any(type(value) is not bool for value in declared.values()):
        return f"answers 'capabilities': {_brief(declared)}; allowed: an object of names with true or false"
    for name in declared:
        if name not in names:
            return f"declares {name!r}; allowed: {', '.join(names)}"
    return found


def _words(line: str) -> str:
    """Return a line in a few words."""
    if not line.startswith('"do"'):
        return line
    found = json.loads(f"{{{line}}}")
    does = found.pop("do")
    if does == "make":
        return f"make {found['aligner']['num_inputs']} inputs"
    ahead = found.pop("ahead", None)
    words = [does, *(_subject(value) if type(value) is dict else str(value) for value in found.values())]
    return " ".join([*words, *(["ahead of", *map(_subject, ahead)] if ahead else [])])


def _subject(message: Mapping[str, Any]) -> str:
    if message["kind"] == "event":
        return f"{message['source']}{message['sequence']}"
    return " ".join(str(message[name]) for name in ("kind", "checkpoint_id", "timestamp_ms") if name in message)


def _difference(first: Answered, second: Answered) -> str:
    if first.effects != second.effects:
        return f"the effects {_effects(first)}, and then {_effects(second)}"
    if first.answer != second.answer:
        return f"the answer {_brief(first.answer)}, and then {_brief(second.answer)}"
    return f"the state {_brief(first.place.state)}, and then {_brief(second.place.state)}"


def _effects(step: Answered) -> str:
    return _brief([" ".join(map(str, (name, *arguments))) for name, arguments, _ in step.effects])


def _brief(value: object) -> str:
    text = repr(value.decode(errors="replace").strip() if isinstance(value, bytes) else value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} ..."


# The program as a class.


class ProgramAligner:
    """An aligner of a program: each call of it is a line."""

    program: Program
    capabilities: Capabilities

    def __init__(
        self,
        port: GatePort,
        config: BarrierAlignerConfig,
        unaligned: UnalignedCheckpointConfig | None = None,
        is_sink: bool = False,
    ) -> None:
        self._port, self._passed, self._carries = port, list[int](), False
        self._place = self.program.start(config, unaligned, is_sink)
        self._mode = self._place.after.is_unaligned, self._place.after.was_threshold_triggered

    def _do(self, line: str) -> Any:
        """Take a step, and carry its effects out.

        What a snapshot comes to, and what a barrier passes on the way out, is known only then: the step is asked for
        once more with that, and goes on behind what has been carried out.
        """
        place, fails, self._passed, done = self._place, "", [], 0
        carried: tuple[PortCall, ...] = ()
        while True:
            more = f',"fails":{json.dumps(fails)}' if fails else ""
            more += f',"passes":{json.dumps(self._passed)}' if self._passed else ""
            step = self.program.step(place, line + more)
            if step.effects[:done] != carried:
                raise self.program._fault(
                    f"changes what it did before it got {more[1:]}: {_effects(step)}", 0, line, place
                )
            passed = len(self._passed)
            for effect in step.effects[done:]:
                name, arguments, self._mode = effect
                done += 1
                try:
                    self._carries = True
                    getattr(self._port, name)(*arguments)
                except SnapshotFailedError as error:
                    if not fails:
                        fails = str(error.reason)
                        break
                finally:
                    self._carries = False
                if len(self._passed) > passed:
                    break
            else:
                break
            carried = step.effects[:done]
        self._place = step.place
        self._mode = step.place.after.is_unaligned, step.place.after.was_threshold_triggered
        return step.answer

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> None:
        self._do(f'"do":"abort","checkpoint_id":{checkpoint_id},"reason":"{reason}","now_ns":{now_ns}')

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        self._do(f'"do":"note_trigger","checkpoint_id":{checkpoint_id},"triggered_ns":{triggered_ns}')

    def next_deadline_ns(self) -> int | None:
        return self._place.after.deadline_ns

    def on_time(self, now_ns: int) -> None:
        self._do(f'"do":"on_time","now_ns":{now_ns}')

    def capture(self) -> str:
        return self._place.state

    def restore(self, value: str) -> None:
        self._place = self._place.made.places[value]
        self._mode = self._place.after.is_unaligned, self._place.after.was_threshold_triggered


class _Offers(ProgramAligner):
    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        sent = self.program.message(message)
        return bool(self._do(f'"do":"offer","input":{input_id},"message":{sent},"now_ns":{now_ns}'))

    def can_take(self, input_id: int) -> bool:
        return self._place.after.can_take[input_id]


class _Releases(ProgramAligner):
    @property
    def can_drain(self) -> bool:
        return self._place.after.can_drain

    def drain_next(self, now_ns: int) -> None:
        self._do(f'"do":"drain_next","now_ns":{now_ns}')


class _Polls(ProgramAligner):
    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        answer: int | None = self._do(f'"do":"poll","readable":{json.dumps(readable)},"now_ns":{now_ns}')
        return answer

    def take(self, input_id: int, message: StreamMessage, now_ns: int) -> None:
        sent = self.program.message(message)
        self._do(f'"do":"take","input":{input_id},"message":{sent},"now_ns":{now_ns}')


class _Overtakes(ProgramAligner):
    @property
    def is_unaligned(self) -> bool:
        return self._mode[0]

    @property
    def was_threshold_triggered(self) -> bool:
        return self._mode[1]

    def offer_overtaking(
        self, input_id: int, barrier: CheckpointBarrier, ahead: Sequence[StreamMessage], now_ns: int
    ) -> bool:
        sent, passed = self.program.message(barrier), ",".join(map(self.program.message, ahead))
        line = f'"do":"offer_overtaking","input":{input_id},"message":{sent},"ahead":[{passed}],"now_ns":{now_ns}'
        return bool(self._do(line))

    def wants_overtaking(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        sent = self.program.message(barrier)
        return bool(self._do(f'"do":"wants_overtaking","input":{input_id},"message":{sent},"now_ns":{now_ns}'))

    def note_output(self, size_bytes: int) -> None:
        if self._carries:
            self._passed.append(size_bytes)
        else:
            self._do(f'"do":"note_output","size_bytes":{size_bytes}')


_known: dict[tuple[str, str, float], type[ProgramAligner]] = {}


def aligner_of(text: str, folder: str, limit_s: float) -> type[ProgramAligner]:
    """Return the class whose aligners are those of the program that `text` starts, in `folder`.

    Raises
    ------
    ProgramFault
        If it does not start, or its first answer is none.
    """
    key = text, folder, limit_s
    if key not in _known:
        program = Program(text, folder, limit_s)
        declared = program.capabilities
        bases: list[type[ProgramAligner]] = [_Polls if program.polls else _Offers]
        bases += [] if program.polls or declared.leaves_in_channel else [_Releases]
        bases += [_Overtakes] if declared.unaligned else []
        _known[key] = type(program.name, tuple(bases), {"program": program, "capabilities": program.capabilities})
    return _known[key]


@atexit.register
def end_programs() -> None:
    """End all that this process has started for programs, and forget what they answered."""
    kinds = list(_known.values())
    _known.clear()
    for kind in kinds:
        kind.program.end()
