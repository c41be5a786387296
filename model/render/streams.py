"""A trace of a join in space and time: a frame is an arrow from its stream to the join, where it waits for others."""

from __future__ import annotations

import re
from collections.abc import Mapping

from barrierlab.model.render.spacetime import Arrow, Mark, SpaceTime

JOIN = "join"
SIGNS = (("bar across", "an output"), ("broad", "waits for frames of the other streams"))
_LINE = re.compile(r"(?P<at>\d+)\.(?P<part>\d{9}) (?P<verb>\w+) (?P<stream>\d+) (?P<what>.*)")
_FRAME = re.compile(r"FrameFacts\(epoch=(\d+), seq=(\d+)")
_OF_OUTPUT = re.compile(r"\((\d+), FrameFacts\(epoch=(\d+), seq=(\d+)")
_SKIPPED = re.compile(r"\((\d+), (\d+), '?([^',)]*)")
_MARKS = {"announce": "a map", "invalid": "no map", "epoch": "epoch {}", "again": "tries again: {}"}

FrameKey = tuple[int, int, int]
"""Stream, epoch and number."""


def lay_out_join(text: str, names: Mapping[int, str] | None = None) -> SpaceTime:
    """The text of such a trace, laid out; `names` are those of the streams."""
    lines = [found for line in text.splitlines() if (found := _LINE.fullmatch(line))]
    streams = sorted({int(each["stream"]) for each in lines if each["verb"] in ("publish", "observe")})
    called = {stream: (names or {}).get(stream, f"stream {stream}") for stream in streams}
    drawn = SpaceTime((*called.values(), JOIN), signs=SIGNS)
    frames: dict[FrameKey, Arrow] = {}
    waiting: dict[int, list[tuple[FrameKey, Arrow]]] = {stream: [] for stream in streams}
    for line in lines:
        verb, what = line["verb"], line["what"]
        if verb in ("ask", "process", "clock"):
            continue
        drawn.times_ns.append(int(line["at"] + line["part"]))
        step = len(drawn.times_ns) - 1
        frame = _FRAME.match(what)
        if frame is not None and verb in ("publish", "observe"):
            stream = int(line["stream"])
            key = (stream, int(frame[1]), int(frame[2]))
            arrow = frames.get(key)
            if arrow is None:
                sent = step if verb == "publish" else None
                arrow = Arrow(called[stream], called[stream], JOIN, f"{frame[2]}", "Event", sent)
                frames[key] = arrow
                drawn.arrows.append(arrow)
            if verb == "observe":
                arrow.taken = step
                waiting[stream].append((key, arrow))
        elif verb == "emit":
            _emitted(waiting, what, step)
            drawn.marks.append(Mark(JOIN, step, "snapshot", f"out {what[1:].partition(',')[0]}"))
        elif verb == "skip":
            skipped = _SKIPPED.match(what)
            assert skipped is not None, f"of a skip the journal has {what}"
            first, last, reason = skipped.groups()
            drawn.focus = drawn.focus or step
            which = first if first == last else f"{first} to {last}"
            drawn.marks.append(Mark(JOIN, step, "aborted", f"skips {which}: {reason}"))
        elif verb in _MARKS:
            drawn.marks.append(Mark(JOIN, step, verb, _MARKS[verb].format(what)))
    return drawn


def _emitted(waiting: dict[int, list[tuple[FrameKey, Arrow]]], what: str, step: int) -> None:
    """Show that the frames of an output take effect, and older ones of their streams will not any more."""
    for found in _OF_OUTPUT.findall(what):
        used = tuple(map(int, found))
        left = []
        for key, arrow in waiting.get(used[0], []):
            if key == used:
                arrow.applied = step
            elif key < used:
                arrow.gone = step
            else:
                left.append((key, arrow))
        waiting[used[0]] = left
