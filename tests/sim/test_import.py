"""Jobs imported from the answers of a real cluster: what `make flink` saved of Apache Flink 1.20.3 and 2.3.0.

The jobs are those of tests/flink/Bench.java; their settings are known, so that what is imported can be compared.
"""

from __future__ import annotations

import copy
import io
import json
import tomllib
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from barrierlab.sim import load, run
from barrierlab.sim.scenario.file import ScenarioError
from barrierlab.sim.twin.answers import MOST_BYTES, FlinkAnswers, TwinError, answers_of
from barrierlab.sim.twin.import_flink import busiest_share, job_of, scenario_of
from barrierlab.sim.twin.observed import observed_in, saved_text
from tests.sim.support import barrierlab

FLINK = Path(__file__).parent / "flink"
VERSIONS = {"1.20": "1.20.3", "2.x": "2.3.0"}
CHAINED, UNION = "chained_local_saturated_aligned.json", "union_local_saturated_timeout.json"
HINT = "give the address of a Flink REST server, such as the one of its web page, or saved answers"


def _imported(file: Path, folder: Path, **settings: Any) -> Any:
    """The scenario of the only running job of a file, with its unknowns as `settings`."""
    answers = answers_of([str(file)])
    made = scenario_of(job_of(answers, None), str(file))
    path = folder / "job.toml"
    path.write_text(made.text, encoding="utf-8")
    return load(path, settings)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_chained_job_is_as_it_ran(version: str, tmp_path: Path) -> None:
    """A vertex of two chained operators would be two tasks, or a hash exchange another one."""
    rate = {"source.source_fast.rate_per_s": 375.0}
    job = _imported(FLINK / version / CHAINED, tmp_path, **rate)
    assert job.topology.edges == ("source_fast->slow_sink",)
    channel = job.channels["source_fast->slow_sink"]
    # By hash, of keys that come in turn: the subtasks took 4,393 and 4,399 records, and 4,537 and 4,541.
    assert (channel.exchange, channel.form, channel.local) == ("rebalance", "network", True)
    assert channel.overdraft_buffers == (5 if version == "1.20" else 20)
    assert (channel.segment_bytes, channel.exclusive_buffers, channel.floating_buffers) == (32_768, 2, 8)
    checkpoint = job.checkpoint
    assert (checkpoint.interval_s, checkpoint.min_pause_s, checkpoint.timeout_s) == (2.0, 0.5, 120.0)
    assert (job.mode.name, checkpoint.tolerable_failures, checkpoint.max_concurrent) == ("aligned", 0, 1)
    source, sink = job.sources["source_fast"], job.operators["slow_sink"]
    assert (source.parallelism, sink.parallelism) == (2, 2)
    assert sink.service_s.mean == pytest.approx(0.004, rel=0.02)
    assert source.record_bytes.mean == pytest.approx(4096, rel=0.01)
    assert f"on Apache Flink {VERSIONS[version]}." in job.text.splitlines()[0]
    assert run(load(tmp_path / "job.toml", {**rate, "until_s": 5.0}), 1).verdict == "holds"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_union_is_as_it_ran(version: str, tmp_path: Path) -> None:
    """Each input's exchange, the timeout and the rate of the input that was not held up would be somebody's guess."""
    job = _imported(FLINK / version / UNION, tmp_path, **{"source.sourceA.rate_per_s": 312.5})
    assert set(job.topology.edges) == {
        "sourceA->fastA",
        "sourceB->slowB",
        "fastA->merge",
        "slowB->merge",
        "merge->sink",
    }
    assert {channel.exchange for channel in job.channels.values()} == {"rebalance"}
    assert (job.mode.name, job.checkpoint.aligned_checkpoint_timeout_s) == ("aligned_with_timeout", 0.3)
    assert job.sources["sourceB"].rate_per_s == pytest.approx(30.0, rel=0.03)
    assert (job.operators["merge"].kind, job.operators["sink"].kind) == ("union", "sink")
    assert job.operators["merge"].service_s.mean == pytest.approx(0.004, rel=0.02)


@pytest.mark.parametrize("version", VERSIONS)
def test_checkpoints_come_with_their_subtasks(version: str) -> None:
    """There would be nothing to calibrate on, or to lay a prediction beside."""
    answers = answers_of([str(FLINK / version / UNION)])
    observed = observed_in(answers, job_of(answers, None))
    assert (observed.mode, observed.is_local, len(observed.checkpoints)) == ("aligned_with_timeout", True, 10)
    assert observed.senders["merge"] == ("fastA", "slowB")
    for checkpoint in observed.steady:
        assert len(checkpoint.subtasks) == 12
        assert checkpoint.persisted_bytes == sum(each.persisted_bytes or 0 for each in checkpoint.subtasks)
        ends = [each.end_to_end_ms for each in checkpoint.subtasks]
        assert max(ends) == pytest.approx(checkpoint.end_to_end_ms, abs=1)
    assert min(each.end_to_end_ms for each in observed.steady) > 300  # the timeout: it was saturated


def test_a_saturated_source_needs_no_line(tmp_path: Path) -> None:
    """Whoever imports a saturated job would have to find a rate that changes nothing."""
    job = _imported(FLINK / "2.x" / CHAINED, tmp_path)
    assert job.sources["source_fast"].rate_per_s == pytest.approx(1.5 * 246, rel=0.01)
    text = (tmp_path / "job.toml").read_text(encoding="utf-8")
    assert "assumed: any rate above the 246 that it emits, back-pressured 93 % of the time" in text
    assert "in turn, though by hash: subtasks took 4,393 and 4,399 records" in text


def test_an_unknown_is_a_line_to_fill_in(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The default of a rate would be simulated as if it were the job's."""
    answers, job = tmp_path / "answers.json", tmp_path / "job.toml"
    text = (FLINK / "2.x" / CHAINED).read_text().replace("accumulated-backpressured-time", "x")
    answers.write_text(text, encoding="utf-8")
    status, out, err = barrierlab(capsys, "import", "flink", str(answers), "-o", str(job))
    assert (status, err) == (0, "")
    assert out.endswith("; fill in: source.source_fast.rate_per_s\n")
    line = next(each for each in job.read_text().splitlines() if each.startswith("# rate_per_s = "))
    assert line.endswith("and so its own rate, is not in the answers: fill in")
    quick = ("run", str(job), "--set", "until_s=4.5")
    status, out, err = barrierlab(capsys, *quick)
    assert (status, out) == (2, "")
    assert err.startswith(
        "barrierlab: job.toml: has no source.source_fast.rate_per_s: give it in the file, or with --set"
    )
    assert barrierlab(capsys, *quick, "--set", "source.source_fast.rate_per_s=375.0")[0] == 0
    job.write_text(job.read_text().replace(line, "rate_per_s = 375.0"))
    status, out, _ = barrierlab(capsys, *quick)
    assert (status, "verdict: holds" in out) == (0, True)


def test_a_list_to_fill_in_is_a_list_of_keys(tmp_path: Path) -> None:
    """A slip in it would be a traceback."""
    path = tmp_path / "job.toml"
    path.write_text('topology = "a->s"\nfill_in = "source.a.rate_per_s"\n', encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"^job.toml: fill_in is 'source.a.rate_per_s'; allowed: a list of texts"):
        load(path)


def test_json_has_the_history_and_what_is_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    """A script would have to read comments."""
    status, out, err = barrierlab(capsys, "import", "flink", str(FLINK / "2.x" / CHAINED), "--json")
    found = json.loads(out)
    assert (status, err, found["mode"], found["version"]) == (0, "", "aligned", "2.3.0")
    assert found["fill_in"] == []
    assert any(line.startswith("flush_timeout_s = 0.1: ") for line in found["assumed"])
    assert len(found["checkpoints"]) == 9
    assert set(found["checkpoints"][0]["subtasks"][0]) >= {"operator", "index", "start_delay_ms", "persisted_bytes"}
    assert tomllib.loads(found["toml"])["topology"] == "source_fast->slow_sink"


def test_what_is_saved_is_imported_alike_and_names_no_host(tmp_path: Path) -> None:
    """Answers that are handed on would tell where a cluster is, or lack what was read of them."""
    path = FLINK / "2.x" / UNION
    whole = json.loads(path.read_text())
    place = next(name for name in whole if name.count("/") == 4 and "/vertices/" in name)
    for each in whole[place]["subtasks"]:
        each |= {"endpoint": "inner-host:80", "host": "inner-host"}
        each["taskmanager-id"] = "inner-host:80-1"
    whole["/jobmanager/config"].append({"key": "jobmanager.rpc.address", "value": "inner-host"})
    answers = FlinkAnswers("here", whole)
    job = job_of(answers, None)
    before, text = observed_in(answers, job), saved_text(answers)
    assert "inner-host" not in text
    again = FlinkAnswers("here", json.loads(text))
    assert observed_in(again, job_of(again, None)) == before
    assert scenario_of(job_of(again, None), "").text == scenario_of(job, "").text
    assert len(text) <= len(path.read_text()) + 200


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"taskmanager.memory.segment-size": "64 kb"}, {"segment_bytes": 65_536}),
        ({"taskmanager.memory.segment-size": "65536"}, {"segment_bytes": 65_536}),
        ({"taskmanager.memory.segment-size": "much"}, {"segment_bytes": 32_768}),
        ({"execution.buffer-timeout.interval": "20 ms"}, {"flush_timeout_s": 0.02}),
        ({"taskmanager.network.memory.buffers-per-channel": "3"}, {"exclusive_buffers": 3}),
        ({"taskmanager.network.memory.floating-buffers-per-gate": "-1"}, {"floating_buffers": 8}),
    ],
)
def test_options_of_the_cluster_are_taken(options: dict[str, str], expected: dict[str, Any]) -> None:
    """A cluster with larger buffers would be simulated with those of the default."""
    answers = FlinkAnswers("", json.loads((FLINK / "1.20" / CHAINED).read_text()))
    answers.saved["/jobmanager/config"] = [{"key": key, "value": value} for key, value in options.items()]
    found = tomllib.loads(scenario_of(job_of(answers, None), "").text)["channel"]["default"]
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("gauge", ["Shuffle.Netty.Input.0.debloatedBufferSize", "debloatedBufferSize"])
def test_the_size_of_debloated_buffers_is_written_beside_the_options(gauge: str) -> None:
    """The gauge of a gate, as Flink 2.3 names it, would not be found, and nothing would say what debloating did."""
    saved = json.loads((FLINK / "2.x" / CHAINED).read_text())
    sink = job_of(FlinkAnswers("", saved), None).vertices[-1]
    [metrics] = [path for path in saved if path.endswith(f"/{sink.id}/subtasks/metrics")]
    options = {"enabled": "true", "target": "200 ms"}
    keys = {f"taskmanager.network.memory.buffer-debloat.{key}": value for key, value in options.items()}
    saved |= {"/jobmanager/config": [{"key": key, "value": value} for key, value in keys.items()]}
    saved |= {metrics: [{"id": gauge, "avg": 2562.0}]}
    text = scenario_of(job_of(FlinkAnswers("", saved), None), "").text
    assert f"debloated on average: {sink.operator} 2,562 bytes" in text
    assert tomllib.loads(text)["buffer_debloat"]["target_s"] == 0.2


# Answers from outside.

ODD = [None, "x", "NaN", -1, 0, 1e400, 2**80, 0.5, [], {}, True, [[]], 'a"\n[b]', [1, {"id": "a"}]]


def _places(answer: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to every field; of a list, those of its first item."""
    yield way
    children = answer.items() if isinstance(answer, dict) else enumerate(answer) if isinstance(answer, list) else ()
    for number, (key, value) in enumerate(children):
        if isinstance(answer, dict) or number == 0:
            yield from _places(value, (*way, key))


def _changed(answers: dict[str, Any], way: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy of the answers with another value in one place, or without that field."""
    found = dict(answers)
    found[way[0]] = copy.deepcopy(answers[way[0]])
    node: Any = found
    for key in way[:-1]:
        node = node[key]
    if value is KeyError:
        del node[way[-1]]
    else:
        node[way[-1]] = value
    return found


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_an_odd_field_is_one_line_or_an_unknown(every: int) -> None:
    """A server of another version would end in a traceback, or in a scenario that does not load."""
    answers = json.loads((FLINK / "2.x" / CHAINED).read_text())
    details = [name for name in answers if "/details/" in name]
    few = {name: answer for name, answer in answers.items() if name not in details[2:]}
    refused: list[str] = []
    accepted = 0
    for way in list(_places(few))[1::every]:
        for odd in (KeyError, *ODD):
            changed = FlinkAnswers("", _changed(few, way, odd))
            try:
                job = job_of(changed, None)
                observed_in(changed, job)
                scenario_of(job, "")  # it loads, with an example for what is to be filled in
                json.loads(saved_text(changed))
                accepted += 1
            except TwinError as error:
                refused.append(str(error))
    assert not [line for line in refused if "\n" in line]
    assert len(refused) > 50 // every
    assert accepted > 500 // every


@pytest.mark.parametrize(
    ("ship", "expected"),
    [("BROADCAST", "broadcast"), ("RESCALE", "rebalance"), ("CUSTOM", "rebalance"), ("FORWARD", "forward")],
)
def test_every_ship_strategy_is_an_exchange(ship: str, expected: str) -> None:
    """One that is not simulated would be taken for another without a word."""
    text = (FLINK / "2.x" / CHAINED).read_text().replace('"HASH"', f'"{ship}"')
    answers = FlinkAnswers("", json.loads(text))
    job = job_of(answers, None)
    made = scenario_of(job, "")
    found = tomllib.loads(made.text)["channel"]["source_fast->slow_sink"]
    assert observed_in(answers, job).aligning == (() if ship == "CUSTOM" else ("slow_sink",))
    assert found["exchange"] == expected
    assert any("is simulated so" in line for line in made.assumed) == (ship in ("RESCALE", "CUSTOM"))


def _with_plan(**changes: Any) -> FlinkAnswers:
    """The answers of the chained job, with other fields of the node of its sink in the plan."""
    saved = json.loads((FLINK / "2.x" / CHAINED).read_text())
    [path] = [name for name in saved if name.endswith("/plan")]
    next(node for node in saved[path]["plan"]["nodes"] if node.get("inputs")).update(changes)
    return FlinkAnswers("", saved)


def test_two_edges_between_two_operators_are_one_exchange() -> None:
    """A stream that is joined with itself, or a side output, would be an exchange that is declared twice."""
    (edge,) = next(node for node in job_of(_with_plan(), None).vertices if node.inputs).inputs
    inputs = [{"id": edge[0], "ship_strategy": ship} for ship in ("FORWARD", "REBALANCE")]
    made = scenario_of(job_of(_with_plan(inputs=inputs), None), "")
    found = tomllib.loads(made.text)
    assert found["topology"] == "source_fast->slow_sink"
    assert found["channel"]["source_fast->slow_sink"]["exchange"] == "forward"
    assert 'exchange = "forward": one exchange of the 2 between them (FORWARD, REBALANCE)' in made.assumed


def test_a_parallelism_that_is_none_is_said() -> None:
    """Whoever reads the line would have to look for the number in the answers."""
    with pytest.raises(TwinError, match=r"vertex slow_sink: its parallelism is 2.5; allowed: a whole number from 1 on"):
        job_of(_with_plan(parallelism=2.5), None)


def test_operators_of_one_name_are_told_apart_from_the_source_on() -> None:
    """Each would be as long as there are others of its name, and a table would cut off what makes them differ."""
    saved = json.loads((FLINK / "2.x" / UNION).read_text())
    for place, answer in saved.items():
        if place.count("/") == 2 and "vertices" in answer:
            for vertex in answer["vertices"]:
                vertex["name"] = "Calc[1]"
    names = [each.operator for each in job_of(FlinkAnswers("", saved), None).vertices]
    assert names == ["Calc", *(f"Calc_{letter}" for letter in "bcdef")]


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.17.2", "as Flink 1.20; of 1.17.2 nothing was measured"),
        ("3.0-SNAPSHOT", "as Flink 2.x; of 3.0-SNAPSHOT nothing was measured"),
        (None, "the numbers of buffers of Flink 2.x, the version is not in the answers"),
        ("1.20.3", None),
        ("2.0.1", None),
    ],
)
def test_a_version_that_was_not_measured_is_said(version: str | None, said: str | None) -> None:
    """A job of Flink 1.17 would be simulated as one of 1.20 without a word."""
    answers = FlinkAnswers("", json.loads((FLINK / "2.x" / CHAINED).read_text()))
    answers.saved["/config"] = {"flink-version": version}
    found = [line for line in scenario_of(job_of(answers, None), "").assumed if "Flink 1.20" in line or "2.x" in line]
    assert found == ([] if said is None else [said])


class _Server:
    """Answers as a live server would, or fails as one."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers, self.paths = answers, []

    def __call__(self, url: str, timeout: float) -> io.BytesIO:
        assert timeout <= 10
        path = url.removeprefix("http://cluster:8081").partition("?")[0]
        self.paths.append(path)
        if path not in self.answers:
            raise urllib.error.HTTPError(url, 404, "Not Found", Message(), None)
        return io.BytesIO(json.dumps(self.answers[path]).encode())


def test_a_live_server_is_asked_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A saved file would be imported otherwise than the server that it was saved from."""
    path = FLINK / "1.20" / UNION
    server = _Server(json.loads(path.read_text()))
    monkeypatch.setattr(urllib.request, "urlopen", server)
    from_file = barrierlab(capsys, "import", "flink", str(path))
    kept = tmp_path / "kept.json"
    assert barrierlab(capsys, "import", "flink", "http://cluster:8081/", "--save", str(kept)) == from_file
    assert len(server.paths) == len(set(server.paths))
    assert kept.read_text() == path.read_text()


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (
            urllib.error.URLError(ConnectionRefusedError(111, "Connection refused")),
            "cannot be reached: Connection refused",
        ),
        (urllib.error.URLError(TimeoutError("timed out")), "no answer within 5 s"),
        (TimeoutError("timed out"), "no answer within 5 s"),
        (urllib.error.HTTPError("", 503, "Unavailable", Message(), None), "the server answers 503 Unavailable"),
        (b"<html>", "not JSON: "),
        (b"[" * 200_000, "not JSON: "),
        (b" " * (MOST_BYTES + 1), "the answer is longer than "),
    ],
    ids=range(7),
)
def test_a_server_that_fails_is_one_line(
    failure: Any, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback, or a wait without end."""

    def answer(url: str, timeout: float) -> io.BytesIO:
        if isinstance(failure, Exception):
            raise failure
        return io.BytesIO(failure)

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    status, out, err = barrierlab(capsys, "import", "flink", "http://cluster:8081", "--job", "a" * 32)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"barrierlab: http://cluster:8081/jobs/{'a' * 32}: ")
    assert said in err
    assert err.endswith(f"; {HINT}\n")


def test_a_job_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever mistypes an id would not learn which jobs there are."""
    file = str(FLINK / "2.x" / CHAINED)
    status, out, err = barrierlab(capsys, "import", "flink", file, "--job", "abc")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "has no job 'abc'; there are: " in err
    assert barrierlab(capsys, "import", "flink", file, "http://cluster:8081")[0] == 2


def test_a_job_is_named_by_the_beginning_of_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    """The example that help prints would not work, and a job that a file lists and does not hold would be offered."""
    path = FLINK / "2.x" / CHAINED
    listed = [each["jid"] for each in json.loads(path.read_text())["/jobs/overview"]["jobs"]]
    held = job_of(answers_of([str(path)]), None).id
    other = next(each for each in listed if each != held)
    whole = barrierlab(capsys, "import", "flink", str(path), "--job", held)
    assert whole[0] == 0
    assert barrierlab(capsys, "import", "flink", str(path), "--job", held[:6]) == whole
    status, _, err = barrierlab(capsys, "import", "flink", str(path), "--job", other)
    assert (status, err) == (2, f"barrierlab: {path}: has no job {other!r}; there are: {held}\n")


def test_the_only_job_that_a_file_holds_needs_no_name() -> None:
    """A job that has been cancelled since, or others on its cluster, would have to be named though there is one."""
    for state in ("CANCELED", "RUNNING"):
        saved = json.loads((FLINK / "2.x" / CHAINED).read_text())
        for each in saved["/jobs/overview"]["jobs"]:
            each["state"] = state
        assert f"/jobs/{job_of(FlinkAnswers('', saved), None).id}" in saved


def test_files_that_answer_otherwise_are_not_mixed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Two imports of a job would be one, of which nobody knows what is from where."""
    whole = json.loads((FLINK / "2.x" / CHAINED).read_text())
    parts = [tmp_path / name for name in ("a.json", "b.json", "later.json")]
    half = dict(list(whole.items())[:5])
    later = {"/jobs/overview": {"jobs": []}} | {name: answer for name, answer in whole.items() if name not in half}
    for path, answers in zip(parts, (half, later, whole | {"/config": {}}), strict=True):
        path.write_text(json.dumps(answers), encoding="utf-8")
    names = [str(path) for path in parts]
    assert barrierlab(capsys, "import", "flink", *names[:2])[0] == 0  # in two files, and listed anew
    status, out, err = barrierlab(capsys, "import", "flink", *names)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"barrierlab: {names[2]}: answers /config otherwise than a file before it; give ")


HOT = "skewed_local_saturated_aligned.json"


def test_a_hot_key_is_as_hot_as_the_subtasks_say(tmp_path: Path) -> None:
    """Keys would be used evenly: of a job with a hot key durations would come to two thirds of what they are."""
    job = _imported(FLINK / "2.x" / HOT, tmp_path, until_s=12.0)
    taken = Counter(name for _, verb, name, *_ in run(job, 1).entries if verb == "take" and "slow" in name)
    assert max(taken.values()) / taken.total() == pytest.approx(5259 / (5259 + 1791), abs=0.02)


@pytest.mark.parametrize(
    ("taken", "skew"),
    [((3700, 3350), False), ((3900, 3150), True), ((390, 315), False), ((7050, 0), True)],
    ids=["nearly even", "uneven", "few", "one key"],
)
def test_keys_are_skewed_where_chance_does_not_explain_it(taken: tuple[int, int], skew: bool, tmp_path: Path) -> None:
    """A job would have a hot key for a few records, or every key its share where one subtask has them all."""
    text = (FLINK / "2.x" / HOT).read_text()
    for old, new in zip((5259, 1791), taken, strict=True):
        text = text.replace(f'"read-records":{old},', f'"read-records":{new},')
    (tmp_path / "saved.json").write_text(text)
    made = scenario_of(job_of(answers_of([str(tmp_path / "saved.json")]), None), "")
    assert ("key_skew" in made.text) == skew
    assert busiest_share(10.0, 2) > 0.999
    for parallelism in (2, 3, 8):
        shares = [busiest_share(each / 4, parallelism) for each in range(2, 20)]
        assert shares == sorted(shares)  # so that halving finds it


def test_a_record_larger_than_a_buffer_is_as_large_as_it_is(tmp_path: Path) -> None:
    """It was cut down to a buffer: queues of as many buffers held half as many records more."""
    job = _imported(FLINK / "2.x" / "chain_local_large_aligned.json", tmp_path)
    [source] = job.sources.values()
    assert source.record_bytes.mean == pytest.approx(50_000, rel=0.001)


def test_records_that_change_their_size_are_said_to_be_simulated_without() -> None:
    """A window's results of 4 KB, simulated as its events of 100 bytes, would fill a queue thirty times as long."""
    job = job_of(answers_of([str(FLINK / "2.x" / HOT)]), None)
    larger = [replace(each, out_bytes=40_000.0) if each.operator == "fast" else each for each in job.vertices]
    for vertices, told in ((job.vertices, []), (tuple(larger), ["4,094 bytes with which it came, not 40,000"])):
        found = [line for line in scenario_of(replace(job, vertices=vertices), "").assumed if "leaves it" in line]
        assert [line.partition("with the ")[2] for line in found][:1] == told
