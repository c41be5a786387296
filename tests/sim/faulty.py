"""The small aligner of `docs/engines/python` as a program that does one thing wrong: `faulty.py FAULT [FILE]`.

It is sound in the small gates that a program is looked at with, and goes wrong in a dataflow.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "engines" / "python"))
import aligner as sound

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""  # nothing is wrong where this is imported alone
IN_A_DATAFLOW = '"alignment_timeout_ns":1000000,'
HELLOS: dict[str, dict[str, Any]] = {
    "another version": {"version": 2},
    "another kind": {"kind": "coordinator"},
    "reads nothing": {"reads": "nothing"},
    "no flag": {"restores": 1},
    "no capability": {"capabilities": {"flies": True}},
    "no declaration": {"capabilities": ["aborts"]},
    "a name too many": {"colour": "red"},
    "no name": {"name": 7},
}
ANSWERS: dict[str, dict[str, Any]] = {
    "no effects": {"effects": None},
    "an answer too many": {"colour": "red"},
    "no call": {"effects": [["fly", 1]]},
    "no list": {"effects": ["block"]},
    "no input": {"effects": [["block", 7, 1]]},
    "no id": {"effects": [["resume", 0]]},
    "no message": {"effects": [["deliver", 0, 999]]},
    "no barrier": {"effects": [["snapshot", {"checkpoint_id": 1}]]},
    "no reason": {"effects": [["decline", 1, "bored"]]},
    "too few arguments": {"effects": [["block", 0]]},
    "two inputs too few": {"can_take": []},
    "numbers for flags": {"can_take": [1, 1]},
    "state is a list": {"state": []},
    "one state for all": {"state": "[[false, false], [false, false], null, 0]"},
}
LINES = {
    "prints": lambda line: f"debug: here\n{line}",
    "answers a list": lambda _: "[]",
    "answers no JSON": lambda _: "{'step': 1}",
    "answers bytes": lambda _: "\udcff",
    "answers another step": lambda line: line.replace('"step": ', '"step": 1'),
    "closes": lambda _: "",
}


class Forgets(sound.Aligner):
    """Its state lacks what is done."""

    def capture(self) -> str:
        return json.dumps([self.waits, self.ended, self.current, 0])


def main() -> None:
    """Answer until it goes wrong."""
    if FAULT == "exits":
        sys.exit("wrong licence")
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    if FAULT == "forgets":
        sound.Aligner = Forgets  # type: ignore[misc]
    aligner, late, ended = None, 0, False
    for line in sys.stdin:
        asked = json.loads(line)
        aligner, found = sound.answer(asked, aligner)
        found = {**found, **(HELLOS.get(FAULT, {}) if asked["do"] == "hello" else {})}
        is_late = False
        if IN_A_DATAFLOW in line and asked["do"] == "offer":
            late += 1
            is_late = late >= 4
            ended = ended or asked["message"]["kind"] == "end"
        if is_late:
            found |= ANSWERS.get(FAULT, {})
            if FAULT == "no effects":
                del found["effects"]
            elif FAULT == "counts its calls":
                found["state"] = found["state"] + " " * late
            elif FAULT == "is moody" and ended and "state" in asked and asked["message"]["kind"] == "event":
                found["effects"] = []
            elif FAULT in ("dies", "is killed", "loops", "waits"):
                breaks_down()
        if FAULT == "restores another" and asked["do"] == "look":
            found["state"] += " "
        text = json.dumps({"step": asked["step"], **found})
        if is_late and FAULT in LINES:
            text = LINES[FAULT](text)
        if not text:
            os.close(1)
            sys.stdin.read()
        print(text, flush=True)


def breaks_down() -> None:
    """Give no answer any more."""
    if len(sys.argv) > 2:  # whoever reads this pipe sees its end when this process ends
        pipe = os.open(sys.argv[2], os.O_WRONLY)
        os.write(pipe, b"here\n")
    if FAULT == "dies":
        print("first\n\nthe heap is full", file=sys.stderr)
        sys.exit(3)
    if FAULT == "is killed":
        os.kill(os.getpid(), 9)
    while FAULT == "loops":
        pass
    sys.stdin.read()


if __name__ == "__main__":
    main()
