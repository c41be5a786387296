"""A small aligner as a program: `python aligner.py` is sound, `python aligner.py bug` forgets what was aborted.

It answers each line of JSON with a line. What is behind a barrier stays in its channel.
"""

import json
import sys

BUG, REPLAY = "bug" in sys.argv, "replay" in sys.argv
HELLO = {
    "version": 1,
    "kind": "aligner",
    "name": "small aligner",
    "reads": "offer",
    "restores": not REPLAY,
    "capabilities": {"timeout": False, "leaves_in_channel": True},
}


class Aligner:
    """All inputs of a task."""

    def __init__(self, inputs):
        self.waits, self.ended = [False] * inputs, [False] * inputs
        self.current = None  # the barrier of the checkpoint under way
        self.done = 0  # the highest id that is completed or aborted
        self.effects, self.fails = [], None

    def can_take(self):
        return [not waits and not ended for waits, ended in zip(self.waits, self.ended, strict=True)]

    def offer(self, at, message):
        if not self.can_take()[at]:
            return False
        kind = message["kind"]
        if kind in ("event", "watermark"):
            self.effects.append(["deliver", at, message["number"]])
        elif kind == "end":
            self.ended[at] = True
            self.effects.append(["end_input", at])
            self.cut_if_all_are_in()
        elif message["checkpoint_id"] <= self.done:
            self.effects.append(["ignore", at, message["number"]])
        elif kind == "cancel":
            self.abort_checkpoint(message["checkpoint_id"])
        else:
            self.on_barrier(at, {name: message[name] for name in ("checkpoint_id", "epoch", "flags")})
        return True

    def on_barrier(self, at, barrier):
        if self.current and barrier["checkpoint_id"] > self.current["checkpoint_id"]:
            self.abort_checkpoint(self.current["checkpoint_id"])
        self.effects.append(["block", at, barrier["checkpoint_id"]])
        self.waits[at], self.current = True, self.current or barrier
        self.cut_if_all_are_in()

    def cut_if_all_are_in(self):
        if not self.current or any(self.can_take()):
            return
        checkpoint_id = self.current["checkpoint_id"]
        self.effects.append(["snapshot", self.current])
        if self.fails:
            self.effects += [["decline", checkpoint_id, self.fails], ["cancel", checkpoint_id]]
        else:
            self.effects += [["forward", self.current], ["complete", self.current]]
        self.done = checkpoint_id
        self.go_on(checkpoint_id)

    def go_on(self, checkpoint_id):
        self.effects.append(["resume", self.current["checkpoint_id"] if self.current else checkpoint_id])
        self.current, self.waits = None, [False] * len(self.waits)

    def abort_checkpoint(self, checkpoint_id):
        self.effects.append(["cancel", checkpoint_id])
        self.go_on(checkpoint_id)
        if not BUG:
            self.done = checkpoint_id

    def abort(self, checkpoint_id):
        is_older = self.current is not None and checkpoint_id < self.current["checkpoint_id"]
        if checkpoint_id > self.done and not is_older and not all(self.ended):
            self.abort_checkpoint(checkpoint_id)

    def capture(self):
        return json.dumps([self.waits, self.ended, self.current, self.done])

    def restore(self, state):
        self.waits, self.ended, self.current, self.done = json.loads(state)


def answer(asked, aligner):
    """Return the aligner that is there then, and what it answers."""
    if asked["do"] == "hello":
        return aligner, HELLO
    if "aligner" in asked:
        aligner = Aligner(asked["aligner"]["num_inputs"])
    if "state" in asked:
        aligner.restore(asked["state"])
    aligner.effects, aligner.fails = [], asked.get("fails")
    found = {}
    if asked["do"] == "offer":
        found["answer"] = aligner.offer(asked["input"], asked["message"])
    elif asked["do"] == "abort":
        aligner.abort(asked["checkpoint_id"])
    return aligner, {**found, "effects": aligner.effects, "can_take": aligner.can_take(), "state": aligner.capture()}


def main():
    """Answer until there are no more lines."""
    aligner = None
    for line in sys.stdin:
        asked = json.loads(line)
        aligner, found = answer(asked, aligner)
        print(json.dumps({"step": asked["step"], **found}), flush=True)


if __name__ == "__main__":
    main()
