"""A scenario that cannot be run is one line that names file, key, what is allowed; nothing else ever happens."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barrierlab.sim import Scenario, ScenarioError, load
from tests.breadth import examples
from tests.sim.support import SKEWED, barrierlab, toml, with_changes
from tests.sim.test_determinism import BUSY

ROOT = Path(__file__).parents[2]
NETWORK = {"channel": {"default": {"form": "network", "segment_bytes": 1000}}}
PARAMETERS = {
    "level": {
        "default": "low",
        "choices": {"low": {"source.a.rate_per_s": 10.0}, "high": {"source.a.rate_per_s": 20.0}},
    },
    "buffers": {"default": 8, "sets": ["channel.default.capacity"]},
}

# what is changed, and what the line must say
WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown key on top": ({"untill_s": 3.0}, ["has no key 'untill_s'", "did you mean 'until_s'?"]),
    "unknown key of a source": (
        {"source": {"a": {"rte_per_s": 3.0}}},
        ["[source.a]", "has no key 'rte_per_s'", "allowed: parallelism, rate_per_s", "did you mean 'rate_per_s'?"],
    ),
    "unknown key of an operator": ({"operator": {"join": {"selectivity": 0.5}}}, ["[operator.join]", "'selectivity'"]),
    "unknown key of a channel": (
        {"channel": {"default": {"capacty": 4}}},
        ["[channel.default]", "did you mean 'capacity'?"],
    ),
    "unknown key of checkpoint": ({"checkpoint": {"intervall_s": 4}}, ["[checkpoint]", "did you mean 'interval_s'?"]),
    "wrong unit": (
        {"checkpoint": {"interval_ms": 500}},
        ["[checkpoint]", "'interval_ms'", "its unit is wrong", "did you mean 'interval_s'?"],
    ),
    "unit in another rate": ({"source": {"a": {"rate_per_min": 9}}}, ["its unit is wrong", "'rate_per_s'"]),
    "cycle": ({"topology": "a->join b->join join->sink sink->join"}, ["topology:", "cycle", "take one of its edges"]),
    "self loop": ({"topology": "a->join b->join join->join join->sink"}, ["topology:", "'join' sends to itself"]),
    "source without table": (
        {"topology": "a->join b->join join->sink monitor->sink", "operator": {"monitor": {"kind": "map"}}},
        ["topology:", "operator 'monitor' has no inputs and is no source; the sources are a, b: declare it"],
    ),
    "source with inputs": ({"topology": "a->join b->join join->sink a->b"}, ["topology:", "source 'b' has inputs"]),
    "source without edge": ({"source": {"c": {}}}, ["topology:", "source 'c' has no edge"]),
    "operator without table": (
        {"topology": "a->join b->join join->more more->sink"},
        ["[operator.more]", "give its kind: map, flat_map"],
    ),
    "operator without edge": (
        {"operator": {"lost": {"kind": "map"}}},
        ["[operator.lost] is a table for 'lost'"],
    ),
    "both source and operator": ({"operator": {"a": {"kind": "map"}}}, ["[source.a]", "one or the other"]),
    "edge written twice": ({"topology": "a->join a->join b->join join->sink"}, ["edge 'a->join' is written 2 times"]),
    "no edge": ({"topology": "a-join"}, ["'a-join' is no edge", "'sender->receiver'"]),
    "no topology": ({"topology": None}, ["has no key 'topology'", "give the graph"]),
    "empty topology": ({"topology": ""}, ["the topology is empty"]),
    "operator with a slip of the pen": ({"operator": {"jion": {"kind": "map"}}}, ["did you mean 'join'?"]),
    "name with a digit in front": ({"topology": "1a->sink"}, ["begin with a letter"]),
    "negative rate": ({"source": {"a": {"rate_per_s": -1}}}, ["[source.a] rate_per_s is -1", "a number of at least"]),
    "zero rate": ({"source": {"a": {"rate_per_s": 0}}}, ["[source.a] rate_per_s is 0", "a number of at least"]),
    "rate faster than the clock": ({"source": {"a": {"rate_per_s": 1e10}}}, ["at most 1e+09"]),
    "rate is infinite": ({"source": {"a": {"rate_per_s": float("inf")}}}, ["[source.a] rate_per_s is inf"]),
    "rate is nan": ({"source": {"a": {"rate_per_s": float("nan")}}}, ["[source.a] rate_per_s is nan"]),
    "rate is true": ({"source": {"a": {"rate_per_s": True}}}, ["[source.a] rate_per_s is True", "a number"]),
    "rate is text": ({"source": {"a": {"rate_per_s": "100"}}}, ["[source.a] rate_per_s is '100'", "a number"]),
    "until is beyond all clocks": ({"until_s": 1e300}, ["until_s is 1e+300", "at most 1e+12"]),
    "until is nothing": ({"until_s": 0}, ["until_s is 0", "a number of at least"]),
    "timeout too long to count": ({"checkpoint": {"alignment_timeout_s": 1e300}}, ["at most 1e+12"]),
    "watermarks at every moment": ({"source": {"a": {"watermark_interval_s": 1e-30}}}, ["at least 1e-09"]),
    "flush timer without a period": ({"channel": {"default": {"flush_timeout_s": 1e-300}}}, ["at least 1e-09"]),
    "capacity 0": ({"channel": {"default": {"capacity": 0}}}, ["[channel.default] capacity is 0", "at least 1"]),
    "capacity is true": ({"channel": {"default": {"capacity": True}}}, ["capacity is True", "a whole number"]),
    "capacity is a fraction": ({"channel": {"default": {"capacity": 2.5}}}, ["capacity is 2.5", "a whole number"]),
    "parallelism 0": ({"operator": {"join": {"parallelism": 0}}}, ["[operator.join] parallelism is 0", "at least 1"]),
    "129 input channels": (
        {"source": {"a": {"parallelism": 128}}},
        ["topology:", "'join' would have 129 inputs", "at most 128", "lower the parallelism"],
    ),
    "record larger than a segment": (
        {**NETWORK, "source": {"a": {"record_bytes": 1001}}},
        ['[channel."a->join"] segment_bytes is 1000', "at least a record, 1001 bytes"],
    ),
    "some records larger than a segment": (
        {**NETWORK, "source": {"a": {"record_bytes": {"dist": "uniform", "low": 10, "high": 1500}}}},
        ['[channel."a->join"] segment_bytes is 1000', "1500 bytes"],
    ),
    "join with one input": (
        {
            "topology": "a->join join->sink",
            "source": {"b": None},
            "channel": {"b->join": None},
            "operator": {"join": {"kind": "join"}},
        },
        ["[operator.join]", "a join with 1 inputs", "exactly two"],
    ),
    "sink with outputs": ({"operator": {"join": {"kind": "sink"}}}, ["[operator.join]", "a sink with outputs"]),
    "an operator that aligns": ({"operator": {"join": {"aligns": False}}}, ["[operator.join]", "has no key 'aligns'"]),
    "a sink that aligns now and then": ({"operator": {"sink": {"aligns": 1}}}, ["aligns is 1", "true or false"]),
    "end that is no sink": ({"operator": {"sink": {"kind": "map"}}}, ["[operator.sink]", 'write kind = "sink"']),
    "unknown kind": ({"operator": {"join": {"kind": "unoin"}}}, ["[operator.join] kind", "did you mean 'union'?"]),
    "unknown dist": (
        {"source": {"a": {"service_s": {"dist": "exponentail", "mean": 1}}}},
        ["[source.a] service_s", "a dist among constant, uniform", "did you mean 'exponential'?"],
    ),
    "dist of no name": (
        {"source": {"a": {"service_s": {"dist": ["gamma"]}}}},
        ["[source.a] service_s", "a dist among"],
    ),
    "an older name": (
        {"source": {"a": {"service_s": {"law": "constant", "value": 1}}}},
        ["[source.a] service_s", "dist in place of law"],
    ),
    "dist with too few parameters": (
        {"source": {"a": {"service_s": {"dist": "gamma", "mean": 1}}}},
        ["[source.a] service_s", "a dist 'gamma' with exactly mean, cv"],
    ),
    "dist with a parameter too many": (
        {"source": {"a": {"service_s": {"dist": "constant", "value": 1, "cv": 2}}}},
        ["a dist 'constant' with exactly value"],
    ),
    "dist with low above high": (
        {"source": {"a": {"service_s": {"dist": "uniform", "low": 2, "high": 1}}}},
        ["[source.a] service_s", "low of at most high"],
    ),
    "dist with no values": (
        {"source": {"a": {"service_s": {"dist": "empirical", "values": []}}}},
        ["[source.a] service_s", "at least one number"],
    ),
    "dist with a negative value": (
        {"source": {"a": {"service_s": {"dist": "empirical", "values": [1, -1]}}}},
        ["[source.a] service_s", "a number of at least 0"],
    ),
    "dist without spread": (
        {"source": {"a": {"service_s": {"dist": "gamma", "mean": 1, "cv": 1e-200}}}},
        ["[source.a] service_s", "at least 0.001"],
    ),
    "unknown arrivals": ({"source": {"a": {"arrivals": "poison"}}}, ["[source.a] arrivals", "did you mean 'poisson'?"]),
    "unknown exchange": ({"channel": {"default": {"exchange": "hsah"}}}, ["[channel.default]", "did you mean 'hash'?"]),
    "unknown exchange of an edge": (
        {"channel": {"a->join": {"exchange": "hsah"}}},
        ["'a->join'", "did you mean 'hash'?"],
    ),
    "exchange of no edge": ({"channel": {"a->sink": {"capacity": 3}}}, ['[channel."a->sink"]', "there are a->join"]),
    "forward between unequals": (
        {"source": {"a": {"parallelism": 2}}, "channel": {"a->join": {"exchange": "forward"}}},
        ["topology:", "'forward', but parallelism is 2 and 1"],
    ),
    "stall of an unknown task": (
        {"fault": [{"kind": "stall", "task": "joim", "at_s": 1.0, "for_s": 1.0}]},
        ["[[fault]] task is 'joim'", "allowed: all, a, join, b, sink", "did you mean 'join'?"],
    ),
    "stall without an end": (
        {"fault": [{"kind": "stall", "task": "join", "at_s": 1.0}]},
        ["[[fault]] of kind 'stall' has no key 'for_s'", "it needs task, for_s"],
    ),
    "the old table of stalls": ({"stall": [{"task": "join"}]}, ["has no key 'stall'", "fault"]),
    "fault that is a table": ({"fault": {"kind": "crash"}}, ["'fault'", "a list of tables"]),
    "fault that is a number": ({"fault": [3]}, ["'fault'", "a list of tables"]),
    "fault of no kind": ({"fault": [{"at_s": 1.0}]}, ["[[fault]] has no kind", "allowed: crash, coordinator_crash"]),
    "fault of an unknown kind": (
        {"fault": [{"kind": "crsh", "at_s": 1.0}]},
        ["[[fault]] kind is 'crsh'", "did you mean 'crash'?"],
    ),
    "fault with a key of another kind": (
        {"fault": [{"kind": "crash", "task": "join", "at_s": 1.0, "for_s": 1.0}]},
        ["[[fault]] has no key 'for_s'", "allowed: task, at_s, every_s, first_s, rate_per_s"],
    ),
    "fault with a key in the wrong unit": (
        {"fault": [{"kind": "crash", "task": "join", "at_ms": 1.0}]},
        ["[[fault]] has no key 'at_ms'", "its unit is wrong", "did you mean 'at_s'?"],
    ),
    "fault that never happens": (
        {"fault": [{"kind": "crash", "task": "join"}]},
        ["[[fault]] of kind 'crash' takes exactly one of at_s, every_s and rate_per_s"],
    ),
    "fault that happens in two ways": (
        {"fault": [{"kind": "crash", "task": "join", "at_s": 1.0, "rate_per_s": 0.1}]},
        ["exactly one of at_s, every_s and rate_per_s"],
    ),
    "fault with a first time only": (
        {"fault": [{"kind": "crash", "task": "join", "rate_per_s": 1.0, "first_s": 0.1}]},
        ["takes first_s with every_s only", "use at_s for one time"],
    ),
    "fault in the past": (
        {"fault": [{"kind": "crash", "task": "join", "at_s": -1.0}]},
        ["[[fault]] at_s is -1.0", "a number of at least 0"],
    ),
    "fault without a pause": (
        {"fault": [{"kind": "crash", "task": "join", "every_s": 0}]},
        ["[[fault]] every_s is 0", "at least 1e-09"],
    ),
    "fault that is no slower": (
        {"fault": [{"kind": "slow_store", "at_s": 1.0, "for_s": 1.0}]},
        ["[[fault]] of kind 'slow_store' takes factor, added_s or both"],
    ),
    "fault that makes faster": (
        {"fault": [{"kind": "slow_store", "at_s": 1.0, "for_s": 1.0, "factor": 0.5}]},
        ["[[fault]] factor is 0.5", "a number of at least 1"],
    ),
    "fault of no link": (
        {"fault": [{"kind": "slow_link", "channel": "a->b", "at_s": 1.0, "for_s": 1.0, "factor": 2}]},
        ["[[fault]] channel is 'a->b'", "allowed: a->join, b->join, join->sink"],
    ),
    "fault of a local channel": (
        {
            "fault": [{"kind": "slow_link", "channel": "a->join", "at_s": 1.0, "for_s": 1.0, "factor": 2}],
            "channel": {"default": {"form": "network", "local": True}},
        },
        ["[[fault]] channel is 'a->join'", "which is local"],
    ),
    "store that keeps nothing": ({"store": {"retained": 0}}, ["[store] retained is 0", "at least 1"]),
    "unknown key of the store": ({"store": {"retain": 2}}, ["[store] has no key 'retain'", "did you mean 'retained'?"]),
    "unknown key of the recovery": ({"recovery": {"restart": 2}}, ["[recovery]", "did you mean 'restart_s'?"]),
    "unknown guarantee": (
        {"operator": {"sink": {"guarantee": "exactly once"}}},
        ["[operator.sink] guarantee", "did you mean 'exactly_once'?"],
    ),
    "guarantee of what is no sink": (
        {"operator": {"join": {"guarantee": "exactly_once"}}},
        ["[operator.join]", "has no key 'guarantee'"],
    ),
    "failures that nobody tolerates": (
        {"checkpoint": {"tolerable_failures": -1}},
        ["[checkpoint] tolerable_failures is -1", "at least 0"],
    ),
    "source that is a number": ({"source": 3}, ["'source'", "must be a table"]),
    "source without a name": ({"source": {"rate_per_s": 3}}, ["[source]", "holds tables", "[source.rate_per_s]"]),
    "name with a line break": ({"source": {"a\nb": {}}}, ["topology:", "has no edge"]),
    "protocol that is not there": ({"protocol": "unalinged"}, ["protocol is 'unalinged'", "'aligned' or 'unaligned'"]),
    "title that is no text": ({"title": 3}, ["title is 3", "a text in quotes"]),
    "local that is no flag": ({"channel": {"default": {"local": 1}}}, ["local is 1", "true or false"]),
    "parameters that are no table": ({"parameters": 3}, ["'parameters'", "must be tables"]),
    "parameter without default": ({"parameters": {"x": {"sets": []}}}, ["[parameters.x]", "takes the keys default"]),
    "choices that are a list": (
        {"parameters": {"x": {"default": "a", "choices": ["a"]}}},
        ["[parameters.x] choices", "must be tables"],
    ),
    "sets that is no list": (
        {"parameters": {"x": {"default": 1, "sets": 5}}},
        ["[parameters.x] sets", "must be a list"],
    ),
    "choice that sets no key": ({"parameters": {"x": {"default": "a", "choices": {"a": {"": 1}}}}}, ["is no key"]),
    "default that is no choice": (
        {"parameters": {"x": {"default": "b", "choices": {"a": {}}}}},
        ["parameter 'x' is 'b'", "allowed: a"],
    ),
}


def _one_line(error: object, *texts: str) -> None:
    line = str(error)
    assert "\n" not in line
    assert len(line) < 500
    for text in texts:
        assert text in line


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_scenario_is_one_line(name: str, tmp_path: Path) -> None:
    """A user with a slip in a file would get a traceback, a run of something else, or no hint."""
    changes, texts = WRONG[name]
    path = tmp_path / "wrong.toml"
    path.write_text(toml(with_changes(SKEWED, changes)), encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load(path)
    _one_line(caught.value, "wrong.toml: ", *texts)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"topology = ", "wrong.toml: not TOML: "),
        (b"\xff\xfe\x00binary", "cannot be read: not UTF-8 text"),
        (b"until_s = 1" + b"0" * 5000, "wrong.toml: not TOML: "),
    ],
    ids=["no TOML", "binary", "endless number"],
)
def test_a_file_that_is_no_scenario_is_one_line(content: bytes, text: str, tmp_path: Path) -> None:
    """The wrong file on the command line would end in a traceback."""
    path = tmp_path / "wrong.toml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        load(path)
    _one_line(caught.value, text)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    """A wrong path or name would end in a traceback."""
    for name, texts in {
        tmp_path / "missing.toml": ["missing.toml: cannot be read: No such file", "shipped scenarios"],
        tmp_path: ["cannot be read: Is a directory"],
        "diamnod": ["no scenario of this name", "flink_chain", "did you mean 'diamond'?"],
        "": ["no scenario of this name"],
    }.items():
        with pytest.raises(ScenarioError) as caught:
            load(name)
        _one_line(caught.value, *texts)


@pytest.mark.parametrize(
    ("key", "value", "texts"),
    [
        ("levl", "high", ["setting 'levl'", "neither a parameter (level, buffers)", "did you mean 'level'?"]),
        ("level", "hihg", ["parameter 'level' is 'hihg'", "allowed: low, high", "did you mean 'high'?"]),
        ("buffers", "many", ["[channel.default] capacity is 'many'", "a whole number"]),
        ("source.a.rate", 3, ["[source.a] has no key 'rate'", "'rate_per_s'"]),
        ("source.z.rate_per_s", 3, ["source 'z' has no edge"]),
        ("source.a.rate_per_s.x", 3, ["goes through 'rate_per_s', which is not a table"]),
        ("until_s", "soon", ["until_s is 'soon'", "a number"]),
        ("source", 3, ["'source'", "must be a table"]),
    ],
)
def test_a_wrong_setting_is_one_line(key: str, value: Any, texts: list[str], tmp_path: Path) -> None:
    """`--set` with a slip would run something else than what was asked."""
    path = tmp_path / "good.toml"
    path.write_text(toml(with_changes(SKEWED, {"parameters": PARAMETERS})), encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load(path, {key: value})
    _one_line(caught.value, "good.toml: ", *texts)


def test_settings_and_parameters_are_applied(tmp_path: Path) -> None:
    """`--set` would be read and then ignored."""
    path = tmp_path / "good.toml"
    path.write_text(toml(with_changes(SKEWED, {"parameters": PARAMETERS})), encoding="utf-8")
    usual = load(path)
    assert (usual.sources["a"].rate_per_s, usual.channels["a->join"].capacity) == (10.0, 8)
    other = load(path, {"level": "high", "buffers": 3, 'channel."b->join".capacity': 5, "seed": 9})
    assert (other.sources["a"].rate_per_s, other.seed) == (20.0, 9)
    assert [other.channels[edge].capacity for edge in other.topology.edges] == [3, 5, 3]
    again = load(path)  # the text is parsed once, and what is set is of one loading
    assert (again.sources, again.channels) == (usual.sources, usual.channels)


# Through the command line.


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "diamnod"], "did you mean 'diamond'?"),
        (["run", "no/such.toml"], "no/such.toml: cannot be read"),
        (["run", "flink_chain", "--set", "levle=sat"], "did you mean 'level'?"),
        (["run", "flink_chain", "--set", "level"], "--set 'level': allowed: KEY=VALUE"),
        (["run", "flink_chain", "--set", "=3"], "--set '=3': allowed: KEY=VALUE"),
        (["run", "flink_chain", "--set", " =3"], "setting ''"),
        (["run", "flink_chain", "--set", "parallelism=0"], "parallelism is 0; allowed: a whole number"),
        (["run", "flink_chain", "--set", "parallelism=two"], "parallelism is 'two'; allowed: a whole number"),
        (["run", "flink_chain", "--set", "record_bytes=40000"], "segment_bytes is 32768"),
        (["run", "diamond", "--seed", "-1"], "--seed"),
        (["run", "diamond", "--seed", "many"], "--seed"),
        (["run", "diamond", "--trace", "no/such/folder/x.trace"], "--trace no/such/folder/x.trace: cannot be written"),
        (["run", "diamond", "--trase", "x"], "--trase"),
        (["run"], "SCENARIO"),
        (["rnu"], "rnu"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_is_one_line_and_status_2(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A script that pipes the output would take an error for a result."""
    monkeypatch.chdir(tmp_path)
    status, out, err = barrierlab(capsys, *arguments)
    assert (status, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [["run", "diamnod"], ["run", "wrong.toml", "--json"]], ids=" ".join)
def test_the_command_itself_exits_with_2(arguments: list[str], tmp_path: Path) -> None:
    """A promise of the function would not hold for the program that people start."""
    (tmp_path / "wrong.toml").write_text("topology = 3\n")
    done = subprocess.run(
        [sys.executable, "-m", "barrierlab", *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("barrierlab: ")


# Anything at all.

_ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**6, 2**70, -(2**70), 0.0, -0.5, 1e-300, 1e300, float("inf"), float("nan"), 3.7]),
    st.sampled_from(["", "a", "sink", "a->join", "hash", "map", "join", "exponential", "a\nb", "é", "0", "a.b", "->"]),
    st.lists(st.integers(-2, 5), max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "dist": st.sampled_from(["constant", "uniform", "gamma", "empirical", "x", 3]),
            "mean": st.floats(),
            "cv": st.floats(),
            "values": st.lists(st.floats(), max_size=2),
        },
    ),
)


def _places(table: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of something in a tree of tables."""
    found = [path] if path else []
    items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, value in items:
        found += _places(value, (*path, key))
    return found


@given(chance=st.integers(0, 2**32), values=st.lists(_ODD, min_size=1, max_size=4), rename=st.booleans())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything_is_a_scenario_or_one_line(chance: int, values: list[Any], rename: bool, tmp_path: Path) -> None:
    """Some slip that nobody thought of would end in a traceback."""
    choose = random.Random(chance)
    base = choose.choice([SKEWED, BUSY, with_changes(SKEWED, {"parameters": PARAMETERS})])
    data = with_changes(base, {"fault": [{"kind": "stall", "task": "sink", "at_s": 1.0, "for_s": 1.0}]})
    for value in values:
        place = choose.choice(_places(data))
        table: Any = data
        for part in place[:-1]:
            table = table[part]
        if value is None:
            del table[place[-1]]
        elif rename and isinstance(table, dict):
            table[choose.choice(["", "rate_per_s", "default", "a", "x y", "kind", "law"])] = table.pop(place[-1])
        else:
            table[place[-1]] = value
        if not data:
            break
    path = tmp_path / "odd.toml"
    path.write_text(toml(data), encoding="utf-8")
    try:
        assert isinstance(load(path), Scenario)
    except ScenarioError as error:
        _one_line(error, "odd.toml: ")


def test_a_scenario_of_another_kind_than_asked_for_is_refused() -> None:
    """A type checker would take a join for a scenario of checkpoints, and the program fail at an attribute."""
    assert load("diamond", kind=Scenario).protocol == "aligned"
    with pytest.raises(ScenarioError) as refused:
        load("lockstep_cameras", kind=Scenario)
    assert str(refused.value) == "lockstep_cameras.toml: is a JoinScenario; allowed: a Scenario"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'topology = "a->b"\n[operator.b]\nkind = "sink"\n[[signal]]\nkind = "SyncTest"\nchannel = "data"',
            "it needs kind, channel and at_s",
        ),
        ("[input.a]\nrate_per_s = 10.0", "has no key 'drive'"),
    ],
)
def test_a_table_that_only_one_kind_has_says_the_kind(text: str, line: str, tmp_path: Path) -> None:
    """An empty table [control] could not be left out: the line said that a scenario of checkpoints has no signals."""
    (path := tmp_path / "one.toml").write_text(text)
    with pytest.raises(ScenarioError, match=line):
        load(path)
