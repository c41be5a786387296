"""A snapshot in a ring of three processes: a system whose counts other checkers agree on.

Each process has some tokens, and a first-in-first-out channel of bounded length to the next. Whoever has not recorded
may do so and send a marker; it then records the tokens that come in until a marker does (Chandy and Lamport 1985).
When every channel is closed, what is recorded must be every token there is.

A process and the channel to it are one part of the state; a state is three numbers of such parts.
"""

from __future__ import annotations

from typing import NamedTuple

from barrierlab.model.explore.checker import Always
from barrierlab.model.explore.growth import GROWTH

PROCESSES = 3
TOKEN, MARKER = "t", "m"

State = tuple[int, int, int]


class Process(NamedTuple):
    """A process, and what is in the channel to it."""

    tokens: int
    channel: str
    recorded: int | None = None  # how many tokens it had when it recorded
    in_channel: int = 0  # and how many came in later, ahead of the marker
    closed: bool = False


class Move(NamedTuple):
    """A step of a process."""

    verb: str
    process: int

    def __str__(self) -> str:
        """As a trace has it."""
        return f"{self.verb} {self.process}"


class Ring:
    """The ring as a system; with `forgets`, tokens that come in after recording are not recorded."""

    def __init__(self, tokens: int, capacity: int, forgets: bool = False) -> None:
        self.tokens = tokens
        self.capacity = capacity
        self.forgets = forgets
        self.parts: list[Process] = []
        self._numbers: dict[Process, int] = {}
        self._is_full: list[bool] = []
        self._moves: list[list[tuple[tuple[Move, ...], tuple[Move, ...]]]] = []
        self._steps: list[dict[str, tuple[int, str]]] = []
        self._pushed: list[dict[str, int]] = []

    def start(self) -> State:
        """Every channel is empty, and nobody has recorded."""
        first = self._number(Process(self.tokens, ""))
        return first, first, first

    def moves(self, state: State) -> tuple[Move, ...]:
        """The moves of each process depend on itself, and on whether there is room in the channel from it."""
        a, b, c = state
        moves, is_full = self._moves, self._is_full
        return moves[a][0][is_full[b]] + moves[b][1][is_full[c]] + moves[c][2][is_full[a]]

    def after(self, state: State, move: Move) -> State:
        """The process takes its step; what it sends goes to the next."""
        verb, place = move
        a, b, c = state
        acting = state[place]
        now, sent = self._steps[acting].get(verb) or self._step(acting, verb)
        if place == 0:
            return now, self._push(b, sent) if sent else b, c
        if place == 1:
            return a, now, self._push(c, sent) if sent else c
        return self._push(a, sent) if sent else a, b, now

    def _number(self, process: Process) -> int:
        number = self._numbers.get(process)
        if number is None:
            GROWTH.check()
            number = self._numbers[process] = len(self.parts)
            self.parts.append(process)
            self._is_full.append(len(process.channel) >= self.capacity)
            full = [verb for verb in ("recv", "mark") if can(verb, process, False)]
            room = [verb for verb in ("send", "recv", "start", "mark") if can(verb, process, True)]
            self._moves.append(
                [(tuple(Move(v, i) for v in room), tuple(Move(v, i) for v in full)) for i in range(PROCESSES)]
            )
            self._steps.append({})
            self._pushed.append({})
        return number

    def _step(self, number: int, verb: str) -> tuple[int, str]:
        """Return what the process does by itself, and what it sends."""
        process, sent = self.parts[number], ""
        if verb == "send":
            process, sent = process._replace(tokens=process.tokens - 1), TOKEN
        elif verb == "recv":
            notes = process.recorded is not None and not process.closed and not self.forgets
            process = process._replace(
                tokens=process.tokens + 1, channel=process.channel[1:], in_channel=process.in_channel + notes
            )
        else:
            if process.recorded is None:
                process, sent = process._replace(recorded=process.tokens), MARKER
            if verb == "mark":
                process = process._replace(channel=process.channel[1:], closed=True)
        step = self._steps[number][verb] = self._number(process), sent
        return step

    def _push(self, number: int, sent: str) -> int:
        pushed = self._pushed[number].get(sent)
        if pushed is None:
            process = self.parts[number]
            pushed = self._pushed[number][sent] = self._number(process._replace(channel=process.channel + sent))
        return pushed

    def all_tokens(self, state: State) -> str | None:
        """Recorded in processes and in channels are all the tokens, once every channel is closed."""
        parts = self.parts
        a = parts[state[0]]
        if not a.closed:
            return None
        b, c = parts[state[1]], parts[state[2]]
        if not b.closed or not c.closed:
            return None
        recorded = sum((each.recorded or 0) + each.in_channel for each in (a, b, c))
        return None if recorded == PROCESSES * self.tokens else f"{recorded} tokens are recorded"

    @property
    def invariant(self) -> Always[State]:
        """The snapshot is consistent."""
        return Always("consistent snapshot", self.all_tokens)


def can(verb: str, process: Process, room: bool) -> bool:
    """Return whether the process can do that, with or without room in the channel from it."""
    head = process.channel[:1]
    if verb == "send":
        return room and process.tokens > 0
    if verb == "recv":
        return head == TOKEN
    if verb == "start":
        return room and process.recorded is None
    return head == MARKER and (room or process.recorded is not None)


def least_rotation(state: State) -> State:
    """The ring looks the same from each process, so one of three states stands for them."""
    a, b, c = state
    return min(state, (b, c, a), (c, a, b))
