"""A trace of control signals in space and time: events and signals are arrows, a bar is where a signal is complete."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from barrierlab.model.control.topology import HEAD
from barrierlab.model.render.spacetime import Arrow, Mark, SpaceTime

_CHANNEL = re.compile(r"([\w-]+)[-=]>([\w-]+)")
_MOVE = re.compile(r"> (?P<verb>\w+) (?P<where>\S+)(?: (?P<what>.*?))?(?: @ (?P<at>\d+)\.(?P<part>\d{9}))?")
_EFFECT = re.compile(r" {4}(?P<node>\S+) (?P<verb>\w+)(?: (?P<rest>.*))?")
SIGNS = (("bar across", "a signal is complete"), ("broad", "waits for others"))


def lay_out_signals(text: str) -> SpaceTime:
    """The text of such a trace, laid out; a line that is none of a trace shows nothing."""
    layout = _SignalLayout(text)
    for line in text.splitlines():
        if move := _MOVE.fullmatch(line):
            layout.move(move)
        elif effect := _EFFECT.fullmatch(line):
            layout.effect(effect["node"], effect["verb"], effect["rest"] or "")
    return layout.drawn


class _SignalLayout:
    def __init__(self, text: str) -> None:
        self.drawn = SpaceTime((HEAD, *_processors(text)), signs=SIGNS)
        self.on_way: dict[str, deque[Arrow]] = {}
        self.waiting: dict[str, list[Arrow]] = {}
        self.at_ns = 0

    def move(self, move: re.Match[str]) -> None:
        self.at_ns = int(f"{move['at']}{move['part']}") if move["at"] else self.at_ns + 1
        verb, where, what = move["verb"], move["where"], move["what"] or ""
        if verb == "emit":
            self._mark(where, ">emit", what)
        elif verb == "signal":
            if not self.drawn.focus:
                self.drawn.focus = len(self.drawn.times_ns)
            self._mark(where, "signal", what)
        elif verb == "fail":
            self._mark(where, ">crash", "breaks down")

    def effect(self, node: str, verb: str, rest: str) -> None:
        channel, _, subject = rest.partition(" ")
        ends = _CHANNEL.fullmatch(channel)
        if verb == "complete":
            self._mark(node, "snapshot", subject)
        elif verb == "end":
            self._mark(node, "ends", f"ends: {rest}")
        elif verb == "fail":
            self._mark(node, ">crash", f"fails: {rest}")
        elif ends is not None and verb in ("send", "repeated"):
            arrow = Arrow(channel, ends[1], ends[2], subject, _kind(subject), self._step())
            self.drawn.arrows.append(arrow)
            self.on_way.setdefault(channel, deque()).append(arrow)
        elif ends is not None and verb in ("take", "lost"):
            self._leaves(channel, subject, is_lost=verb == "lost")
        elif ends is not None and verb in ("deliver", "drop", "arrive", "close", "abort"):
            for arrow in self.waiting.get(channel, []):
                if arrow.message == subject or verb == "close":
                    arrow.applied, arrow.ignored = self._step(), verb in ("drop", "abort")
                    self.waiting[channel].remove(arrow)
                    break

    def _leaves(self, channel: str, subject: str, is_lost: bool) -> None:
        way = self.on_way.setdefault(channel, deque())
        arrow = next((each for each in way if each.message == subject), None)
        if arrow is None:
            return
        way.remove(arrow)
        if is_lost:
            arrow.gone = self._step()
        else:
            arrow.taken = self._step()
            self.waiting.setdefault(channel, []).append(arrow)

    def _step(self) -> int:
        self.drawn.times_ns.append(self.at_ns)
        return len(self.drawn.times_ns) - 1

    def _mark(self, node: str, kind: str, text: str) -> None:
        self.drawn.marks.append(Mark(node, self._step(), kind, text))


def _processors(text: str) -> Iterator[str]:
    """Yield the processors, in the order in which the trace names them; senders of its topology first."""
    found = dict.fromkeys(end for ends in _CHANNEL.findall(text) for end in ends)
    found.pop(HEAD, None)
    yield from found


def _kind(message: str) -> str:
    if message == "end":
        return "EndOfInput"
    return "ControlSignal" if message[:1].isupper() else "Event"
