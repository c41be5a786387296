"""A program in Python: serves any aligner class, line by line. `python serve.py MODULE:CLASS`."""

import json
import sys
from dataclasses import asdict, fields
from enum import Enum

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.errors import SnapshotFailedError
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.external import capabilities_of, load, pulls
from barrierlab.model.defects.engines.aligners import LeavesInChannel

SENT, MESSAGES = {}, {}  # what this line and its state name, by the message as text; what has ever come, by number


def message_of(sent):
    """Return the message; there is one object of each number."""
    number = sent["number"]
    if number not in MESSAGES:
        kinds = {"event": event_of, "watermark": lambda sent: Watermark(sent["timestamp_ms"])}
        kinds |= {"cancel": lambda sent: CancelBarrier(sent["checkpoint_id"]), "end": lambda sent: EndOfInput()}
        kinds["barrier"] = lambda sent: CheckpointBarrier(sent["checkpoint_id"], sent["epoch"], sent["flags"])
        MESSAGES[number] = kinds[sent["kind"]](sent)
    SENT[repr(MESSAGES[number])] = sent
    return MESSAGES[number]


def event_of(sent):
    """Return an event whose payload is its number, as that tells it apart."""
    names = ("source", "sequence", "part", "key")
    return Event(*(sent[name] for name in names), sent["number"], sent["timestamp_ms"], sent["size_bytes"])


def written(value):
    """Return a captured value as JSON: another process of this program must be able to go on from it."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return {"enum": [f"{type(value).__module__}:{type(value).__qualname__}", value.name]}
    if type(value) is tuple:
        return [written(each) for each in value]
    return {"message": SENT.get(repr(value)) or asdict(value)}  # one that has come, or a barrier made of one


def read(value):
    """Return what `written` was given."""
    if isinstance(value, list):
        return tuple(map(read, value))
    if not isinstance(value, dict):
        return value
    if "enum" in value:
        kind, name = value["enum"]
        return load(kind, ".")[name]
    sent = value["message"]
    return message_of(sent) if "number" in sent else CheckpointBarrier(**sent)


class FirstSeen(LeavesInChannel):
    """A loop of its own, which reads first what was seen first."""

    def poll(self, readable, now_ns):
        return next((each for each in readable if self.can_take(each)), None)

    def take(self, input_id, message, now_ns):
        self.offer(input_id, message, now_ns)


class Port:
    """Writes down what the aligner calls."""

    def __init__(self):
        self.effects, self.fails, self.passes, self.aligner, self.is_unaligned = [], "", [], None, False

    def __getattr__(self, name):
        return lambda *arguments: self.effects.append([name, *map(self.sent, arguments)])

    def sent(self, value):
        return value if isinstance(value, int | str) else SENT[repr(value)]["number"]

    def on_part(self, name, barrier):
        mode = [self.aligner.is_unaligned, self.aligner.was_threshold_triggered] if self.is_unaligned else []
        self.effects.append([name, asdict(barrier), *mode])

    def snapshot(self, barrier):
        self.on_part("snapshot", barrier)
        if self.fails:
            raise SnapshotFailedError("no image", Reason(self.fails))

    def forward(self, barrier):
        self.on_part("forward", barrier)
        for size_bytes in self.passes:
            self.aligner.note_output(size_bytes)

    def complete(self, barrier):
        self.on_part("complete", barrier)


class Server:
    """An aligner, or none yet."""

    def __init__(self, kind):
        self.kind, self.capabilities, self.pulls = kind, capabilities_of(kind), pulls(kind)
        self.port = self.aligner = self.config = None

    def answer(self, asked):
        """Return the answer to a line, without its step."""
        does = asked.pop("do")
        if does == "hello":
            reads = "poll" if self.pulls else "offer"
            name, capabilities = self.kind.__name__, asdict(self.capabilities)
            return {
                **asked,
                "name": name,
                "reads": reads,
                "restores": "replay" not in sys.argv,
                "capabilities": capabilities,
            }
        if "aligner" in asked:
            self.make(asked.pop("aligner"))
        if "state" in asked:
            SENT.clear()
            self.aligner.restore(read(json.loads(asked.pop("state"))))
        self.port.effects = []
        self.port.fails, self.port.passes = asked.pop("fails", ""), asked.pop("passes", [])
        answer = {}
        if does not in ("make", "look"):
            arguments = [message_of(value) if name == "message" else value for name, value in asked.items()]
            if "ahead" in asked:
                arguments[2] = tuple(map(message_of, asked["ahead"]))
            if "reason" in asked:
                arguments[1] = Reason(asked["reason"])
            if does == "poll":
                arguments[0] = tuple(arguments[0])
            said = getattr(self.aligner, does)(*arguments)
            if does in ("offer", "poll", "offer_overtaking", "wants_overtaking"):
                answer["answer"] = said
        return {**answer, "effects": self.port.effects, **self.state()}

    def make(self, config):
        self.port, limits = Port(), {each.name: config[each.name] for each in fields(BarrierAlignerConfig)}
        self.port.is_unaligned = config["unaligned"] is not None
        arguments = [self.port, BarrierAlignerConfig(**limits)]
        if self.port.is_unaligned:
            arguments += [UnalignedCheckpointConfig(**config["unaligned"]), config["is_sink"]]
        elif self.capabilities.unaligned:
            arguments += [None, config["is_sink"]]
        self.aligner = self.port.aligner = self.kind(*arguments)
        self.config = config

    def state(self):
        aligner, declared = self.aligner, self.capabilities
        value = written(aligner.capture())
        found = {"state": json.dumps(value)}
        SENT.clear()
        read(value)  # an aligner that goes on knows no more than one that is restored
        if not self.pulls:
            found["can_take"] = [aligner.can_take(each) for each in range(self.config["num_inputs"])]
            found["can_drain"] = getattr(aligner, "can_drain", False)
        if declared.timeout:
            found["next_deadline_ns"] = aligner.next_deadline_ns()
        if self.port.is_unaligned:
            found |= {"is_unaligned": aligner.is_unaligned, "was_threshold_triggered": aligner.was_threshold_triggered}
        return found


if __name__ == "__main__":
    server = Server(load(sys.argv[1], "."))
    for line in sys.stdin:
        asked = json.loads(line)
        step = asked.pop("step")
        print(json.dumps({"step": step, **server.answer(asked)}), flush=True)
