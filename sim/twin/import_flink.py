"""A scenario from the answers of a Flink REST server: the job as it runs, and a mark where the answers do not say.

What is known is written with where it is from; what is taken because the answers are silent says "assumed"; what must
not be guessed is a comment with the line to fill in, and stands in `fill_in`, without which the scenario does not load.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, product
from string import ascii_lowercase
from typing import Any
from zlib import crc32

from barrierlab.model.errors import InputError
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.scenario.file import ScenarioFile
from barrierlab.sim.scenario.load import ScenarioBuilder
from barrierlab.sim.sweep.plan import toml_text
from barrierlab.sim.twin.answers import DEBLOATED, LISTING, METRICS, FlinkAnswers, TwinError, at, items, number, text

SHIPS = {
    "FORWARD": "forward",
    "REBALANCE": "rebalance",
    "HASH": "hash",
    "BROADCAST": "broadcast",
    "SHUFFLE": "rebalance",
}
"""Flink's ship strategies, and the exchange that is simulated; SHUFFLE is at random, and about as even as in turn."""
ALIGNED_SHIPS = ("FORWARD", "BROADCAST", "RESCALE")
"""Those on which no barrier overtakes, whatever the mode (FLINK-21945, FLINK-22815)."""
OLD_ENOUGH_S = 120.0  # from here on Flink's rates, means over the last minute, are of a minute that has passed
PRESSED = 0.05  # a source that is back-pressured for more of the time may emit less than it would
HELD = 0.5  # one that is so for more of the time than not is saturated: it emits what the job can take
BEYOND = 1.5  # its rate in the scenario, by what it emits: any rate above gives the same queues
RESIZED = 0.1  # of a record's bytes: so much a header or a field makes
SAME = 0.02  # of records in and out, as counters that are read one after the other differ
ID = "[0-9a-f]{32}"  # of a job
OLDEST, NEXT = (1, 20), (3, 0)  # versions of Flink from the one on, before the other
LATEST = 10  # checkpoints that are asked for; Flink keeps as many (web.checkpoints.history)
EVEN = 0.016  # of the variance that drawn keys give: of two subtasks less is one chance in ten, of more hardly any
MANY_KEYS = 4096  # hashed to subtasks they are even within some per cent; with few, one subtask has the most of them
FEW_RECORDS, UNEVEN = 1000, 1.1  # of fewer, or closer to the mean than that, chance may have made the difference
MOST_SKEW = 10  # of a scenario; one key has all
NEVER_MS = 1e12  # an interval above it, thirty years, is none: Flink says Long.MAX_VALUE


def busiest_share(skew: float, parallelism: int) -> float:
    """Return the share of records that the busiest of so many subtasks takes behind a hash of `MANY_KEYS` keys, which
    are drawn as by `KeyChooser` and hashed as by an output of `impl`.

    >>> [round(busiest_share(skew, 2), 2) for skew in (0.0, 1.0, 10.0)]
    [0.5, 0.6, 1.0]
    """
    shares = [0.0] * parallelism
    for key in range(MANY_KEYS):
        shares[crc32(str(key).encode()) % parallelism] += (key + 1) ** -skew
    return max(shares) / sum(shares)


@dataclass(frozen=True, slots=True)
class Vertex:
    """One vertex of the job graph, its rates for each of its subtasks; None is not in the answers.

    `inputs` are senders, each once, with the first of their ship strategies; `ships` has all of a sender's.
    """

    id: str
    operator: str
    full_name: str
    parallelism: int
    inputs: tuple[tuple[str, str], ...]
    ships: Mapping[str, list[str]]
    managers: tuple[str, ...]
    in_per_s: float | None
    out_per_s: float | None
    out_bytes: float | None
    busy: float | None
    pressed: float | None
    debloated_bytes: float | None
    taken: tuple[float, ...]

    @property
    def is_dealt_evenly(self) -> bool:
        """Return whether its subtasks took more even numbers of records than keys drawn by chance would give them."""
        if len(self.taken) < max(2, self.parallelism):
            return False
        mean = sum(self.taken) / len(self.taken)
        return mean > 0 and sum((each - mean) ** 2 for each in self.taken) <= EVEN * mean * (len(self.taken) - 1)

    @property
    def unevenness(self) -> float:
        """The records that its busiest subtask took, by the mean of all of them."""
        return max(self.taken) * len(self.taken) / sum(self.taken)

    @property
    def service_s(self) -> float | None:
        """The time that it is busy for a record: of those that it takes, of a source those that it gives."""
        rate = self.in_per_s if self.inputs else self.out_per_s
        return None if self.busy is None or not rate else self.busy / rate


@dataclass(frozen=True, slots=True)
class FlinkJob:
    """A job as the answers give it. `options` are the cluster's, as texts; `checkpointing` is as Flink gives it."""

    id: str
    name: str
    version: str | None
    vertices: tuple[Vertex, ...]
    options: Mapping[str, str]
    checkpointing: Mapping[str, Any]

    def vertex(self, number_of_it: str) -> Vertex:
        """Return the vertex of this id."""
        return next(each for each in self.vertices if each.id == number_of_it)


@dataclass
class Imported:
    """A scenario as text; the keys that must be filled in; a line for each thing that is assumed or left out."""

    text: str
    fill_in: dict[str, Any] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)


def job_of(answers: FlinkAnswers, job_id: str | None) -> FlinkJob:
    """Return one job as the answers give it; without an id, the only one there is.

    Raises
    ------
    TwinError
        If there is no such job, or no graph of it; one line.
    """
    job_id = _job_named(answers, job_id) if job_id else _only_job(answers)
    found = answers.get(f"/jobs/{job_id}")
    if not isinstance(found, dict):
        raise TwinError(f"{answers.where}: has no job {job_id!r}; {_there_are(answers)}")
    plan = items(answers.get(f"/jobs/{job_id}/plan"), "plan", "nodes") or items(found, "plan", "nodes")
    if not plan or not all(text(node, "id") for node in plan):
        raise TwinError(f"{answers.where}: job {job_id}: no graph in /jobs/{job_id}/plan; ask a job that has started")
    vertices = {text(each, "id"): each for each in items(found, "vertices")}
    names: dict[str, str] = {}
    for node in reversed(plan):  # sources first
        shown = text(vertices.get(text(node, "id")), "name") or _described(node) or "vertex"
        names[str(text(node, "id"))] = _unique(_word(shown), set(names.values()))
    return FlinkJob(
        job_id,
        text(found, "name") or job_id,
        text(answers.get("/config"), "flink-version"),
        tuple(_vertex(answers, job_id, node, vertices, names) for node in reversed(plan)),
        {
            str(each["key"]): str(each.get("value", ""))
            for each in items(answers.get("/jobmanager/config"))
            if "key" in each
        },
        answers.get(f"/jobs/{job_id}/checkpoints/config") or {},
    )


def _job_named(answers: FlinkAnswers, beginning: str) -> str:
    """Return the id of the only job that begins so; `beginning` itself if there is none, or more than one.

    A server refuses to be asked for a part of an id.
    """
    if re.fullmatch(ID, beginning):
        return beginning
    found = [each for each in _jobs(answers) if each.startswith(beginning)]
    return found[0] if len(found) == 1 else beginning


def _only_job(answers: FlinkAnswers) -> str:
    listed, jobs = items(answers.get(LISTING), "jobs"), _jobs(answers)
    running = {text(each, "jid") for each in listed if text(each, "state") == "RUNNING"}
    names = [each for each in jobs if each in running] or jobs
    if len(names) != 1:
        raise TwinError(f"{answers.where}: give --job ID; {_there_are(answers)}")
    return names[0]


def _jobs(answers: FlinkAnswers) -> list[str]:
    """Return the ids of the jobs that can be asked for: a file lists others, too, of which it has nothing."""
    listed = [str(text(each, "jid")) for each in items(answers.get(LISTING), "jobs") if text(each, "jid")]
    return [name.split("/")[2] for name in answers.saved if re.fullmatch(f"/jobs/{ID}", name)] or listed


def _there_are(answers: FlinkAnswers) -> str:
    return f"there are: {', '.join(_jobs(answers)[:20]) or 'none'}"


def _described(node: Mapping[str, Any]) -> str | None:
    return text(re.sub(r"<[^>]*>", " ", text(node, "description") or ""))


def _word(shown: str) -> str:
    """Return a name of operators as scenarios have them, from `Source: orders -> Filter (2)`."""
    words = re.findall(r"[A-Za-z_]+", shown.replace("Source:", "").replace("Writer", ""))
    return "_".join(words)[:40].strip("_") or "vertex"


def _unique(name: str, taken: set[str]) -> str:
    """Return `name`, or `name_b`, `name_c` and so on: a digit at its end would be a subtask's."""
    ends = ("".join(letters) for length in count(1) for letters in product(ascii_lowercase, repeat=length))
    others = (f"{name}_{end}" for end in ends if end != "a")
    return name if name not in taken else next(each for each in others if each not in taken)


def _vertex(
    answers: FlinkAnswers,
    job_id: str,
    node: Mapping[str, Any],
    vertices: Mapping[str | None, Mapping[str, Any]],
    names: Mapping[str, str],
) -> Vertex:
    number_of_it = str(text(node, "id"))
    seen = vertices.get(number_of_it, {})
    parallelism = number(node, "parallelism", low=1, high=1e6) or number(seen, "parallelism", low=1, high=1e6)
    if parallelism is None or parallelism % 1:
        given = at(node, "parallelism") or at(seen, "parallelism")
        raise TwinError(
            f"{answers.where}: vertex {names[number_of_it]}: its parallelism is {given!r}; allowed: a whole number "
            "from 1 on"
        )
    ships: dict[str, list[str]] = {}
    for each in items(node, "inputs"):
        ships.setdefault(str(text(each, "id")), []).append(text(each, "ship_strategy") or "")
    unknown = [each for each in ships if each not in names]
    if unknown:
        raise TwinError(f"{answers.where}: vertex {names[number_of_it]}: its input {unknown[0]!r} is no vertex")
    place = f"/jobs/{job_id}/vertices/{number_of_it}"
    detail = answers.get(place)
    subtasks = items(detail, "subtasks")
    running_s = [
        ms / 1000 for each in subtasks if (ms := number(each, "status-duration", "RUNNING", low=1.0)) is not None
    ]
    metrics = {
        text(each, "id"): each for each in items(answers.get(f"{place}/subtasks/metrics", f"?get={','.join(METRICS)}"))
    }
    is_young = not running_s or min(running_s) < OLD_ENOUGH_S

    def per_s(counter: str, gauge: str, unit: float = 1.0) -> float | None:
        """Return a rate: of a young job its counter over its life, of an older one Flink's over the last minute."""
        counted = number(seen, "metrics", counter)
        if is_young and counted is not None and running_s:
            return counted / sum(running_s) / unit
        said = number(metrics.get(gauge), "avg")
        return None if said is None or is_young else said / unit

    written, records = (number(seen, "metrics", name) for name in ("write-bytes", "write-records"))
    return Vertex(
        number_of_it,
        names[number_of_it],
        text(seen, "name") or _described(node) or number_of_it,
        int(parallelism),
        tuple((each, of_it[0]) for each, of_it in ships.items()),
        ships,
        tuple(text(each, "taskmanager-id") or text(each, "endpoint") or text(each, "host") or "" for each in subtasks),
        per_s("read-records", "numRecordsInPerSecond"),
        per_s("write-records", "numRecordsOutPerSecond"),
        written / records if written and records else None,
        per_s("accumulated-busy-time", "busyTimeMsPerSecond", 1000.0),
        per_s("accumulated-backpressured-time", "backPressuredTimeMsPerSecond", 1000.0),
        next((size for name in DEBLOATED if (size := number(metrics.get(name), "avg", low=1.0)) is not None), None),
        tuple(n for s in subtasks if (n := number(s, "metrics", "read-records")) is not None),
    )


# The scenario.


def scenario_of(job: FlinkJob, where: str) -> Imported:
    """Return the job as a scenario.

    Raises
    ------
    TwinError
        If it is none that can be simulated: one line with what `load` says of it.
    """
    made = _Writer(job, where).write()
    try:
        ScenarioBuilder(
            ScenarioFile("the imported job", made.text, tomllib.loads(made.text), dict(made.fill_in))
        ).build()
    except InputError as refused:
        raise TwinError(f"{where}: job {job.id}: it cannot be simulated: {refused}") from refused
    return made


class _Writer:
    """Writes a scenario line by line."""

    def __init__(self, job: FlinkJob, where: str) -> None:
        self.job, self.where = job, where
        self.lines: list[str] = []
        self.made = Imported("")
        self.names = {each.id: each.operator for each in job.vertices}

    def write(self) -> Imported:
        job = self.job
        edges = [(each, sender, ship) for each in job.vertices for sender, ship in each.inputs]
        if not edges:
            raise TwinError(f"{self.where}: job {job.id}: its only vertex sends nothing: no barrier crosses a channel")
        self._note(
            f"Job {_plain(job.name)} ({job.id}) on Apache Flink {job.version or 'of a version not in the answers'}."
        )
        self._note("What the answers of its REST server say; where they do not, a line says assumed, or fill in.")
        self._put("title", f"Flink: {_plain(job.name)}")
        self._put("topology", " ".join(f"{self.names[sender]}->{each.operator}" for each, sender, _ in edges))
        interval_s = self._interval()
        period_s = interval_s or 10.0
        self._put("warmup_s", 4 * period_s, "assumed: four checkpoints until the queues are as full as they get")
        self._put("until_s", 16 * period_s, "assumed: twelve checkpoints from then on")
        self.lines.append("FILL_IN")
        self._mode()
        self._checkpoint(interval_s)
        self._channels()
        for each in job.vertices:
            self._source(each) if not each.inputs else self._operator(each)
        listed = ", ".join(map(toml_text, self.made.fill_in))
        place = self.lines.index("FILL_IN")
        self.lines[place : place + 1] = [f"fill_in = [{listed}]"] if listed else []
        self.made.text = "\n".join(self.lines) + "\n"
        return self.made

    # Lines.

    def _note(self, words: str) -> None:
        self.lines.append(f"# {words}")

    def _table(self, name: str) -> None:
        self.lines += ["", f"[{name}]"]
        self.table = name

    def _put(self, key: str, value: Any, why: str = "") -> None:
        self.lines.append(f"{key} = {toml_text(value)}" + (f"  # {why}" if why else ""))
        if why.startswith("assumed"):
            self.made.assumed.append(f"{key} = {toml_text(value)}: {why.removeprefix('assumed: ')}")

    def _ask(self, key: str, example: Any, why: str) -> None:
        """Add a line to fill in. `example` is a value of its kind, with which the rest is seen to be a scenario."""
        self.lines.append(f"# {key} = {toml_text(example)}  # {why}: fill in")
        self.made.fill_in[f"{self.table}.{key}"] = example

    # Checkpoints.

    def _milliseconds(self, key: str) -> float | None:
        return number(self.job.checkpointing, key, high=NEVER_MS)

    def _interval(self) -> float | None:
        found = self._milliseconds("interval")
        return found / 1000 if found else None

    def _mode(self) -> None:
        mode, unaligned = text(self.job.checkpointing, "mode"), at(self.job.checkpointing, "unaligned_checkpoints")
        timeout_s = (self._milliseconds("aligned_checkpoint_timeout") or 0.0) / 1000
        kinds: dict[str, dict[str, Any]] = {
            "aligned": {"protocol": "aligned"},
            "unaligned": {"protocol": "unaligned", "checkpoint.aligned_checkpoint_timeout_s": 0.0},
            "aligned_with_timeout": {
                "protocol": "unaligned",
                "checkpoint.aligned_checkpoint_timeout_s": timeout_s or 0.3,
            },
            "at_least_once": {"protocol": "tracked"},
        }
        if mode == "at_least_once":
            default = "at_least_once"
        else:
            default = "aligned" if unaligned is not True else "aligned_with_timeout" if timeout_s else "unaligned"
        self._table("parameters.mode")
        self._put("help", "how barriers are aligned")
        known = mode in ("exactly_once", "at_least_once") and isinstance(unaligned, bool)
        self._put("default", default, "" if known else "assumed: the answers say neither mode nor unaligned")
        self._table("parameters.mode.choices")
        for name, keys in kinds.items():
            self.lines.append(
                f"{name} = {{ {', '.join(f'{toml_text(key)} = {toml_text(value)}' for key, value in keys.items())} }}"
            )

    def _checkpoint(self, interval_s: float | None) -> None:
        given = self.job.checkpointing
        self._table("checkpoint")
        if interval_s is None:
            self._ask("interval_s", 10.0, "no interval in the answers, or none is set")
        else:
            self._put("interval_s", interval_s)
        for key, name in (("min_pause_s", "min_pause"), ("timeout_s", "timeout")):
            found = self._milliseconds(name)
            if found is not None and (found or key == "min_pause_s"):
                self._put(key, found / 1000)
        concurrent = number(given, "max_concurrent", low=1, high=1000)
        if concurrent is None or at(given, "unaligned_checkpoints") is True:
            self._put("max_concurrent", 1, "" if concurrent == 1 else "assumed: one, as with unaligned checkpoints")
        else:
            self._put("max_concurrent", int(concurrent))
        tolerable = number(given, "tolerable_failed_checkpoints", high=1e6)
        if tolerable is not None:
            self._put("tolerable_failures", int(tolerable))
        self._put("hold", "channel", "behind a barrier nothing leaves its channel until the others' are in")

    # Channels.

    def _channels(self) -> None:
        job, version = self.job, self._version()
        self._table("channel.default")
        self._say_version()
        self._put("form", "network")
        segment = _bytes(job.options.get("taskmanager.memory.segment-size"))
        self._put("segment_bytes", segment or 32_768, "" if segment else "assumed: Flink's default, no option is set")
        constants = "a constant of this version" if version >= (2, 0) else "assumed: this version's default"
        for key, option, default in (
            ("exclusive_buffers", "buffers-per-channel", 2),
            ("floating_buffers", "floating-buffers-per-gate", 8),
            ("most_buffers", "max-buffers-per-channel", 10),
            ("overdraft_buffers", "max-overdraft-buffers-per-gate", 20 if version >= (2, 0) else 5),
        ):
            found = job.options.get(f"taskmanager.network.memory.{option}", "")
            use = version < (2, 0) and found.isdecimal() and int(found) <= 1_000_000
            self._put(key, int(found) if use else default, "" if use else constants)
        self._put("spanning_records", True, "a record goes on in the next buffer")
        flush = _milliseconds(job.options.get("execution.buffer-timeout.interval"))
        why = "assumed: Flink's default, no option of the cluster; a job's own is not in the answers"
        self._put("flush_timeout_s", (flush or 100.0) / 1000, "" if flush else why)
        for each in job.vertices:
            for sender, ship in each.inputs:
                self._edge(job.vertex(sender), each, ship)
        if job.options.get("taskmanager.network.memory.buffer-debloat.enabled", "").lower() == "true":
            self._debloating(segment or 32_768)

    def _debloating(self, segment: int) -> None:
        """Write Flink's own defaults, too, where the options do not give a value: the version decides one of them."""
        options = self.job.options
        sizes = [f"{v.operator} {v.debloated_bytes:,.0f} bytes" for v in self.job.vertices if v.debloated_bytes]
        self._table("buffer_debloat")
        self._put("enabled", True, f"debloated on average: {', '.join(sizes)}" if sizes else "")
        for key, default in (("period", 0.2), ("target", 1.0)):
            found = _milliseconds(options.get(f"taskmanager.network.memory.buffer-debloat.{key}"))
            self._put(f"{key}_s", found / 1000 if found else default)
        for key, option, usual in (
            ("samples", "samples", 20),
            ("threshold_percentages", "threshold-percentages", 25),
        ):
            given = options.get(f"taskmanager.network.memory.buffer-debloat.{option}", "")
            self._put(key, int(given) if given.isdecimal() and 0 < int(given) <= 100 else usual)
        smallest = _bytes(options.get("taskmanager.memory.min-segment-size")) or 256
        self._put("min_segment_bytes", smallest)
        begin = _bytes(options.get("taskmanager.memory.starting-segment-size"))
        usual = 1024 if self._version() >= (2, 1) else segment
        self._put("starting_segment_bytes", max(smallest, begin or usual), "" if begin else "this version's default")

    def _edge(self, sender: Vertex, receiver: Vertex, ship: str) -> None:
        self._table(f'channel."{sender.operator}->{receiver.operator}"')
        exchange = SHIPS.get(ship.upper())
        if exchange == "forward" and sender.parallelism != receiver.parallelism:
            exchange = None
        why = (
            ""
            if exchange and ship.upper() != "SHUFFLE"
            else f"assumed: {_plain(ship) or 'no ship strategy'} is simulated so"
        )
        if exchange == "hash" and receiver.is_dealt_evenly and len(receiver.inputs) == 1:
            took = " and ".join(f"{each:,.0f}" for each in receiver.taken[:2])
            exchange = "rebalance"
            why = f"assumed: in turn, though by hash: subtasks took {took} records, more even than by chance"
        if len(ships := receiver.ships[sender.id]) > 1:
            why = f"{why or 'assumed'}: one exchange of the {len(ships)} between them ({_plain(', '.join(ships))})"
        self._put("exchange", exchange or "rebalance", why)
        if not all(sender.managers) or not all(receiver.managers) or not sender.managers or not receiver.managers:
            self._put("local", False, "assumed: on the network, the answers do not say where subtasks run")
            return
        pairs = [
            (a, b)
            for i, a in enumerate(sender.managers)
            for j, b in enumerate(receiver.managers)
            if exchange != "forward" or i == j
        ]
        local = sum(a == b for a, b in pairs)
        mixed = f"assumed: alike, but {local} of {len(pairs)} channels are local"
        self._put("local", 2 * local > len(pairs), "" if local in (0, len(pairs)) else mixed)

    def _version(self) -> tuple[int, int]:
        found = re.match(r"(\d{1,4})\.(\d{1,4})", self.job.version or "")
        return (int(found[1]), int(found[2])) if found else (2, 0)

    def _say_version(self) -> None:
        """Say as which version a job is simulated that runs on another, or on an unknown one."""
        version = self.job.version
        if not re.match(r"\d{1,4}\.\d{1,4}", version or ""):
            self._say("assumed: the numbers of buffers of Flink 2.x, the version is not in the answers")
        elif not OLDEST <= self._version() < NEXT:
            alike = "1.20" if self._version() < OLDEST else "2.x"
            self._say(f"assumed: as Flink {alike}; of {_plain(version or '')} nothing was measured")

    def _say(self, words: str) -> None:
        self._note(words)
        self.made.assumed.append(words.removeprefix("assumed: "))

    # Operators.

    def _head(self, kind: str, each: Vertex) -> None:
        self._table(f"{kind}.{each.operator}")
        self._note(f"{_plain(each.full_name)}: {'; '.join(_seen(each)) or 'no rates in the answers'}")

    def _source(self, each: Vertex) -> None:
        self._head("source", each)
        self._put("parallelism", each.parallelism)
        rate, pressed = each.out_per_s, each.pressed
        if rate is None or not rate:
            self._ask("rate_per_s", 100.0, "records a second of each subtask, not in the answers")
        elif pressed is None:
            why = "at least; how much of the time it is back-pressured, and so its own rate, is not in the answers"
            self._ask("rate_per_s", _short(rate), why)
        elif pressed <= PRESSED:
            self._put("rate_per_s", _short(rate))
        elif pressed <= HELD:
            why = f"assumed: it catches up; back-pressured {percent(pressed)} of the time"
            self._put("rate_per_s", _short(rate), why)
        else:
            above = f"assumed: any rate above the {_short(rate):g} that it emits"
            why = f"{above}, back-pressured {percent(pressed)} of the time"
            self._put("rate_per_s", _short(BEYOND * rate), why)
        self._put("arrivals", "deterministic", "assumed: evenly; the answers have no times of arrivals")
        self._put("catch_up_s", 1.0, "assumed: a second of what was held up comes in a burst")
        if each.out_bytes is None:
            self._ask("record_bytes", 100, "bytes of a record on the wire, not in the answers")
        else:
            self._put("record_bytes", int(each.out_bytes), "written bytes by written records")
        if any(
            ship.upper() == "HASH" and not (other.is_dealt_evenly and len(other.inputs) == 1)
            for other in self.job.vertices
            for _, ship in other.inputs
        ):
            self._keys()
        if each.service_s:
            self._put("service_s", _short(each.service_s), "busy time by records")

    def _keys(self) -> None:
        """Put how many keys there are, and the skew with which the busiest subtask behind a hash takes what it took."""
        uneven = [
            each
            for each in self.job.vertices
            if 1 < each.parallelism == len(each.taken)
            and sum(each.taken) >= FEW_RECORDS
            and any(ship.upper() == "HASH" for _, ship in each.inputs)
            and each.unevenness > UNEVEN
        ]
        if not uneven:
            self._put("keys", MANY_KEYS, "assumed: many, used evenly; neither number nor skew is in the answers")
            return
        busiest = max(uneven, key=lambda each: each.unevenness)
        share, subtasks = busiest.unevenness / busiest.parallelism, busiest.parallelism
        hundredths = bisect_left(range(100 * MOST_SKEW), share, key=lambda each: busiest_share(each / 100, subtasks))
        self._put("keys", MANY_KEYS, "assumed: many; how many is not in the answers")
        why = f"assumed: the busiest subtask of {busiest.operator} took {percent(share)} of its records"
        self._put("key_skew", hundredths / 100, why)

    def _operator(self, each: Vertex) -> None:
        self._head("operator", each)
        is_sink = not any(each.id == sender for other in self.job.vertices for sender, _ in other.inputs)
        ratio = each.out_per_s / each.in_per_s if each.out_per_s is not None and each.in_per_s else 1.0
        resized = self._resized(each)
        if is_sink:
            self._put("kind", "sink")
            self._put("aligns", False, "barriers may overtake into its inputs too, as in Flink")
        elif len(each.inputs) > 1:
            passes = "" if abs(ratio - 1) <= SAME else f"assumed: every record passes, not {ratio:.2f}"
            self._put("kind", "union", "; ".join(filter(None, (passes, resized))))
            self._note('inputs = "by_message"  # if its two inputs are typed (connect, join): not in the answers')
        elif ratio < 1 - SAME:
            self._put("kind", "filter", resized)
            self._put("selectivity", _short(ratio), "records out by records in")
        elif ratio > 1 + SAME:
            self._put("kind", "flat_map", resized)
            self._put(
                "fanout",
                round(min(ratio, 1000.0)),
                f"assumed: a whole number, records out by records in is {ratio:.2f}",
            )
        else:
            self._put("kind", "map", resized)
        self._put("parallelism", each.parallelism)
        if each.service_s is None:
            self._ask("service_s", 0.001, "seconds for a record: no records or no busy time in the answers")
        else:
            self._put("service_s", _short(each.service_s), "busy time by records; its spread is not in the answers")

    def _resized(self, each: Vertex) -> str:
        """Return that records leave a vertex smaller or larger than they come, which is not simulated; else nothing."""
        sizes = [self.job.vertex(sender).out_bytes for sender, _ in each.inputs]
        came, left = max(filter(None, sizes), default=0.0), each.out_bytes
        if not came or not left or abs(left / came - 1) <= RESIZED:
            return ""
        return f"assumed: a record leaves it with the {came:,.0f} bytes with which it came, not {left:,.0f}"


def _seen(each: Vertex) -> Iterator[str]:
    """The rates of one vertex in words."""
    if each.inputs and each.in_per_s is not None:
        yield f"{each.in_per_s:,.1f} records/s in"
    if each.out_per_s:
        yield f"{each.out_per_s:,.1f} out, of each subtask"
    for share, words in ((each.busy, "busy"), (each.pressed, "back-pressured")):
        if share is not None:
            yield f"{words} {percent(share, 1)}"


def _plain(words: str) -> str:
    """A text from outside as part of a comment or a name: printable, in one line, not too long."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(words.split()))[:200]


def _short(value: float) -> float:
    """Four digits, which is more than a busy time has."""
    return float(f"{value:.4g}")


_UNITS_OF_BYTES = {"": 0, "b": 0, "bytes": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30}
_UNITS_OF_TIME = {"": 1.0, "ms": 1.0, "s": 1000.0, "sec": 1000.0, "min": 60_000.0, "m": 60_000.0, "h": 3_600_000.0}


def _parts(words: str | None) -> tuple[int, str]:
    found = re.fullmatch(r"(\d{1,15})\s*([a-z]*)", (words or "").strip().lower())
    return (int(found[1]), found[2]) if found else (0, "?")


def _bytes(words: str | None) -> int | None:
    """Return a size as Flink writes it (`32 kb`) in bytes, None if it is none."""
    count, unit = _parts(words)
    return (count << _UNITS_OF_BYTES[unit]) or None if unit in _UNITS_OF_BYTES else None


def _milliseconds(words: str | None) -> float | None:
    """Return a time as Flink writes it (`100 ms`) in milliseconds, None if it is none."""
    count, unit = _parts(words)
    return (count * _UNITS_OF_TIME[unit]) or None if unit in _UNITS_OF_TIME else None
