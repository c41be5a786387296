"""`barrierlab ask`: each question beside its oracle, a closed form, a count or a measured run."""

from __future__ import annotations

import csv
import json
import math
import string
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scipy.special import lambertw

import barrierlab.sim.advise.simulated as sim_advise_simulated
import barrierlab.sim.ask.analyses as sim_ask_analyses
import barrierlab.sim.ask.bench as sim_ask_bench
import barrierlab.sim.cli.ask as sim_cli_ask
from barrierlab.sim.ask.analyses import ANALYSES, Analysed
from barrierlab.sim.ask.answer import NOTHING, Sensitivity, _change, answered
from barrierlab.sim.ask.bench import Bench, Number, QuestionError, Serial
from barrierlab.sim.ask.measures import MEASURES, WORDS, age_ms, failing_every_ms, forced_aligned
from barrierlab.sim.ask.question import Question, names, question_of, read
from tests.sim.support import barrierlab

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"
ASKED = [question_of(name) for name in names() if not question_of(name).missing]


SELDOM = {"source.clicks.rate_per_s": 5.0, "source.payments.rate_per_s": 5.0}
"""Few records of `crash_and_recover`, where they decide nothing."""
SELDOM_SET = [word for key, rate in SELDOM.items() for word in ("--set", f"{key}={rate}")]


def bench(question: Question, precision: float = 0.05, **settings: Any) -> Bench:
    """Return a bench in this process."""
    given = {**question.set, **settings}
    more = {"of_joins": question.of_joins}
    return Bench(question.scenario, given, question.always, question.checkpoints, precision, Serial(), **more)


def found(name: str, precision: float = 0.05) -> Analysed:
    """Return what the analysis of a question comes to, as it is shipped; not what would change it."""
    question = question_of(name)
    return ANALYSES[question.analysis["name"]][0](bench(question, precision), question.analysis)


def at(numbers: Analysed, name: str) -> float:
    """Return the value of a number."""
    number = numbers.numbers[name]
    assert isinstance(number, Number)
    return number.at


def measured(run: str) -> dict[str, str]:
    """Return the row of a job that was measured on a cluster."""
    with (files("barrierlab.sim") / "data" / "flink" / "runs.csv").open(encoding="utf-8") as rows:
        return next(row for row in csv.DictReader(rows) if row["run"] == run)


FALLING = """
topology = "a->m b->m m->s"
source.a.rate_per_s = 50.0
source.b = { rate_per_s = 5.0, events = 20 }
operator.m = { kind = "union", service_s = 0.005 }
operator.s.kind = "sink"
checkpoint.interval_s = 1.0
"""
"""A job of a third of its load, whose second source ends early: its checkpoints take less and less."""


def test_a_job_whose_checkpoints_become_shorter_does_not_fall_behind(tmp_path: Path) -> None:
    """A reader would believe that durations grow without end, where they fall and the job is idle most of the time."""
    (path := tmp_path / "falling.toml").write_text(FALLING, encoding="utf-8")
    q4 = question_of("Q4")
    analysed = ANALYSES[q4.analysis["name"]][0](
        Bench(str(path), {}, q4.always, q4.checkpoints, 0.05, Serial()), q4.analysis
    )
    assert analysed.case == "steady"
    assert analysed.notes == [
        "durations change during the runs, though the job keeps up: another warmup_s gives other numbers"
    ]


# The oracles.


@pytest.mark.slow
def test_q4_through_equal_exchanges_all_is_start_delay() -> None:
    """A user would look for skew where there is a queue."""
    q4 = found("Q4")
    assert at(q4, "delay") == pytest.approx(float(measured("V_p1_chain_sat_aligned")["delay_ms_slow"]), rel=0.05)
    assert at(q4, "alignment") == 0.0
    assert at(q4, "share") > 0.95
    assert q4.numbers["cause"] == "data queued ahead of the barrier"


@pytest.mark.parametrize("name", ["Q1", "Q4"])
def test_what_is_slow_is_where_the_barrier_waits(name: str) -> None:
    """Behind a hot key a sink aligns for long: it would be said to be slow, and a queue ahead of it the cause."""
    question = replace(question_of(name), scenario="hot_key", set={}, checkpoints=8)
    (facts,) = bench(question).facts({}, range(1, 2))
    delay, alignment = (max(each[i] for each in facts.operators.values()) for i in (0, 1))
    assert delay > alignment > 0.5 * delay
    words = {name: WORDS[word](facts) for name, word in question.analysis["words"].items()}
    expected = {"piece": "start delay", "place": "count", "slowest": "count", "busiest": "count"}
    expected["cause"] = "data queued ahead of the barrier"
    assert words == {word: expected[word] for word in words}
    assert MEASURES["alignment"][1](facts) == facts.operators["sink"][1]


@pytest.mark.slow
def test_q9_is_the_optimum_of_lambert_w() -> None:
    """The interval would be none that is best."""
    q9 = found("Q9")
    cost, mtbf_s = 0.1 / 3600, 3600.0
    exact_s = mtbf_s * (1 + cost + lambertw(-math.exp(-1 - cost)).real)
    assert at(q9, "best") == pytest.approx(exact_s, rel=1e-3)
    simulated = q9.numbers["simulated"]
    assert isinstance(simulated, Number)
    assert simulated.low is not None
    assert simulated.high is not None
    assert simulated.low <= at(q9, "lost") <= simulated.high
    assert at(q9, "replay") == pytest.approx(at(q9, "best") / 2 + at(q9, "duty") * at(q9, "best"))
    lost = [row["lost"] for row in q9.rows if row["lost"] is not None]
    assert min(lost) == pytest.approx(at(q9, "lost"))


def test_q10_the_newest_checkpoint_is_as_old_as_the_closed_form_says() -> None:
    """Several at once would seem to be of no use, or to be free."""
    q10 = found("Q10")
    assert q10.case == "less"
    assert at(q10, "one") == pytest.approx(7000 + 7000 / 2, rel=0.005)
    assert at(q10, "four") == pytest.approx(7000 + 2000 / 2, rel=0.005)


@pytest.mark.slow
def test_q14_a_commit_waits_for_half_a_period_and_a_checkpoint() -> None:
    """A reader would be promised records that are not there yet, or a broker drop a transaction that is still open."""
    q14 = found("Q14")
    assert at(q14, "wait") == pytest.approx(3000 / 2 + 200, rel=0.02)
    assert at(q14, "open") == pytest.approx(3000 + 200, rel=0.02)
    assert at(q14, "most") <= at(q14, "open") + 100


def test_q14_what_an_aggregate_makes_is_committed_too() -> None:
    """Of a job with an aggregate before its sink the answer would be that no checkpoint completes."""
    question = question_of("Q14")
    options = {"numbers": {"wait": "commit_wait"}}
    q14 = ANALYSES["mean"][0](bench(question, **{"operator.count.kind": "aggregate", **SELDOM}), options)
    assert at(q14, "wait") == pytest.approx(3000 / 2 + 200, rel=0.02)


@pytest.mark.slow
def test_q1_what_is_slow_is_the_queue_and_a_longer_timeout_helps() -> None:
    """A user would be sent to his store while the barrier stands in a queue."""
    q1 = found("Q1")
    mean_ms = float(measured("V_p1_chain_sat_aligned")["e2e_ms_mean"])
    assert (q1.case, q1.numbers["piece"]) == ("helps", "start delay")
    assert mean_ms < at(q1, "needed") < 1.1 * mean_ms
    assert at(q1, "duration") == pytest.approx(mean_ms, rel=0.05)
    shares = [row["expire, %"] for row in q1.rows]
    assert shares == sorted(shares, reverse=True)  # a longer timeout ends fewer
    assert [row["timeout, s"] for row in q1.rows][:2] == pytest.approx([0.6, 1.2])
    assert shares[0] == 100.0
    assert shares[-1] == 0.0
    assert at(q1, "expired") == pytest.approx(shares[1] / 100)


@pytest.mark.slow
def test_q2_aligned_and_unaligned_are_as_measured() -> None:
    """A user would choose by durations that no cluster has."""
    q2 = found("Q2")
    aligned, unaligned = (measured(f"V_p1_chain_sat_{mode}") for mode in ("aligned", "unaligned"))
    assert q2.case == "less"
    assert at(q2, "aligned") == pytest.approx(float(aligned["e2e_ms_mean"]), rel=0.05)
    assert at(q2, "persisted") == pytest.approx(float(unaligned["persisted_bytes_mean"]), rel=0.1)
    assert at(q2, "throughput") == pytest.approx(1.0, rel=0.02)
    down_ms = 20e3 * (math.exp(2.0 / 20) - 1)  # a failure during a recovery begins it again
    assert at(q2, "down_aligned") == pytest.approx(down_ms, rel=0.2)
    read_ms = 1e3 * at(q2, "persisted") / 1e8
    assert 0 < at(q2, "down_unaligned") - at(q2, "down_aligned") < 5 * read_ms
    assert q2.numbers["forced"] == "none"  # not even the cluster's sink


@pytest.mark.slow
def test_q7_the_target_is_what_is_queued_for_an_exchange() -> None:
    """A user would choose a target that halves nothing, or hear that bytes of unaligned checkpoints stay."""
    q7 = found("Q7")
    aligned, unaligned = (measured(f"V_p1_chain_sat_{mode}") for mode in ("aligned", "unaligned"))
    without_ms = float(aligned["e2e_ms_mean"])
    assert q7.case == "found"
    assert at(q7, "without") == pytest.approx(without_ms, rel=0.05)
    assert at(q7, "duration") == pytest.approx(without_ms / 2, rel=0.05)
    debloated = measured("V_debloat200ms_chain_sat_aligned")
    per_target = float(debloated["e2e_ms_mean"]) / (2 * float(debloated["debloat_target_ms"]))  # of two exchanges
    assert at(q7, "target") == pytest.approx(without_ms / 1e3 / 2 / (2 * per_target), rel=0.1)
    assert at(q7, "drain") == pytest.approx(without_ms / 2, rel=0.1)
    assert at(q7, "persisted_without") == pytest.approx(float(unaligned["persisted_bytes_mean"]), rel=0.05)
    assert at(q7, "persisted") == pytest.approx(at(q7, "persisted_without") * 0.45, rel=0.1)
    assert at(q7, "unaligned") < 100.0
    assert at(q7, "throughput") == pytest.approx(at(q7, "throughput_without"), rel=0.01)


@pytest.mark.slow
def test_q3_is_where_the_law_of_the_timeout_says() -> None:
    """A timeout would be advised that writes everything, or that never matters."""
    q3 = found("Q3")
    capacity = 4096 / 0.004  # bytes a second
    in_flight = float(measured("V_p1_chain_sat_unaligned")["persisted_bytes_mean"])
    assert q3.case == "found"
    assert at(q3, "timeout") == pytest.approx(0.95 * in_flight / capacity, rel=0.05)  # N - C t = 0.05 N
    assert at(q3, "slope") == pytest.approx(-0.1 * capacity, rel=0.1)
    assert at(q3, "switched") == 1.0  # half of it ends them all
    assert at(q3, "half") == pytest.approx(500 * at(q3, "timeout"), rel=0.15)
    assert at(q3, "longest") == pytest.approx(float(measured("V_p1_chain_sat_aligned")["e2e_ms_mean"]), rel=0.05)
    table = [row for row in q3.rows if row.get("persisted") is not None]
    assert [row["persisted"] for row in table] == sorted((row["persisted"] for row in table), reverse=True)


@pytest.mark.slow
def test_q5_the_closed_form_is_beside_what_is_simulated() -> None:
    """The estimate before a deployment would be of another job."""
    q5 = found("Q5")
    assert at(q5, "duration") == pytest.approx(float(measured("V_p1_chain_sat_aligned")["e2e_ms_mean"]), rel=0.05)
    assert at(q5, "predicted") == pytest.approx(at(q5, "duration"), rel=0.1)
    assert at(q5, "p50") <= at(q5, "p95") <= at(q5, "p99")
    assert abs(at(q5, "error")) < 0.1


@pytest.mark.slow
def test_q6_what_is_in_flight_is_as_measured_and_below_the_bound() -> None:
    """A user would plan for a hundredth of the state, or for a hundred times."""
    q6 = found("Q6")
    persisted = float(measured("V_p1_chain_sat_unaligned")["persisted_bytes_mean"])
    assert at(q6, "persisted") == pytest.approx(persisted, rel=0.1)
    assert at(q6, "persisted") < at(q6, "queued") <= at(q6, "bound")


@pytest.mark.slow
def test_q8_is_the_law_of_two_stations() -> None:
    """Buffers would be advised that cost throughput."""
    q8 = found("Q8")

    def throughput(slots: float) -> float:  # blocking after service: a task that is done waits for room
        return 100 * (slots + 2) / (slots + 3)

    law = next(slots for slots in range(1, 256) if throughput(slots) >= 0.9 * throughput(256))
    assert abs(at(q8, "buffers") - law) < 1.0


@pytest.mark.slow
def test_q11_is_the_mean_wait_for_failures_in_a_row() -> None:
    """A job would be called safe that restarts every minute."""
    q11 = found("Q11")
    assert at(q11, "failed") == pytest.approx(at(q11, "expiring"), rel=0.05)
    assert at(q11, "every") == pytest.approx(at(q11, "predicted"), rel=0.1)
    assert at(q11, "loops") == pytest.approx(at(q11, "looping"), rel=0.2)
    assert at(q11, "stuck") == pytest.approx(at(q11, "detected"), rel=0.05)
    assert (at(q11, "tolerable"), at(q11, "enough")) == (1, 2)


@pytest.mark.slow
def test_q12_is_the_alignment_that_was_measured() -> None:
    """The wait for a slow input would be another than a cluster's."""
    q12 = found("Q12", precision=0.2)
    job = measured("R_union_slowmerge_sat_aligned")
    assert q12.numbers["slowest"] == "merge"
    assert at(q12, "alignment") == pytest.approx(float(job["align_ms_merge"]), rel=0.1)
    assert at(q12, "duration") == pytest.approx(float(job["e2e_ms_mean"]), rel=0.1)


@pytest.mark.slow
def test_q13_barriers_are_as_many_as_channels() -> None:
    """The cost of a fan-out would be another than it is."""
    q13 = found("Q13")
    assert [row["barriers"] for row in q13.rows] == [2 * n * n for n in (1, 2, 4, 8)]
    assert [row["channels"] for row in q13.rows] == [2 * n * n for n in (1, 2, 4, 8)]
    assert at(q13, "exponent") == pytest.approx(2.0)


@pytest.mark.slow
def test_q15_catching_up_takes_what_the_law_says() -> None:
    """A job would be said to be back before it is."""
    q15 = found("Q15")
    again_ms = 30e3 * (math.exp(1.5 / 30) - 1)  # a failure during a recovery begins it again
    assert at(q15, "down") == pytest.approx(again_ms, rel=0.1)
    assert at(q15, "catch_up") == pytest.approx(at(q15, "predicted"), rel=0.15)
    assert at(q15, "lag") == pytest.approx(at(q15, "lag_predicted"), rel=0.1)
    assert at(q15, "down_unaligned") == pytest.approx(again_ms, rel=0.2)
    assert [row["lag, s"] for row in q15.rows] == pytest.approx(
        [at(q15, "lag") / 1e3 * p for p in (1, 0.75, 0.5, 0.25, 0)]
    )


@pytest.mark.slow
def test_j1_the_skew_of_each_barrier_is_that_of_its_rule() -> None:
    """A barrier would be advised by waits alone, and join what does not belong together."""
    j1 = found("J1", precision=0.2)
    lidar_ms, delay_ms = 1000 / 9.7, 50.0
    assert j1.case == "timestamp"
    assert at(j1, "sequence_share") == 0.0
    assert at(j1, "timestamp_skew_p99") == pytest.approx(lidar_ms, rel=0.03)  # a frame is at most a period old
    assert at(j1, "latest_skew_p99") > lidar_ms + delay_ms  # and the latest value a delay more
    assert at(j1, "latest_wait_p99") < 10 < at(j1, "wait")
    assert at(j1, "saved_skew") == pytest.approx(at(j1, "latest_skew_p99") - at(j1, "timestamp_skew_p99"))
    assert [row["barrier"] for row in j1.rows] == ["sequence", "timestamp", "latest"]


@pytest.mark.slow
def test_j2_the_budget_is_a_period_of_the_slowest_stream() -> None:
    """A budget would be advised that costs alignment, or that leaves waiting which costs nothing."""
    question = question_of("J2")
    for rate in (9.7, 4.9):
        j2 = ANALYSES["crossover"][0](bench(question, 0.2, lidar_rate_per_s=rate), question.analysis)
        assert j2.case == "found"
        assert at(j2, "budget") == pytest.approx(1.05 / rate, rel=0.03)
        assert at(j2, "wait") < at(j2, "waits") - 0.9e3 / rate
        assert at(j2, "skew") == pytest.approx(1.05e3 / rate, rel=0.05)
        assert j2.moves is not None
        (slower,) = {round(each, 4) for each in j2.moves({"slowest_stream": 0.95})}
        assert slower == pytest.approx(1.05 / (0.95 * rate), rel=0.03)


class Clipped(Bench):
    """A bench of a law that ends at 0: what is persisted is max(0, N - C t), N by the buffers, C by the service."""

    def __init__(self) -> None:
        self.precision, self.cut_short = 0.05, False

    def facts(self, changes: Mapping[str, Any], seeds: Iterable[int]) -> list[Any]:
        """Return runs that differ by their seed a little."""
        size, per_s = 1000.0 * changes.get("buffers", 1.0), 800.0 / changes.get("service", 1.0)
        left = max(0.0, size - per_s * changes.get("t", 0.0))
        return [SimpleNamespace(persisted=(left * (1 + seed / 1000),)) for seed in seeds]

    def loaded(self, changes: Mapping[str, Any]) -> Any:
        """Return nothing: no closed form is asked for."""


@pytest.mark.parametrize("change", [{"buffers": 0.8}, {"buffers": 1.2}, {"service": 0.8}, {"service": 3.0}])
def test_a_crossing_is_sought_anew_with_a_change(change: dict[str, float]) -> None:
    """A line through the crossing would be followed to where the measure is none: 20 % fewer buffers were 4 %."""
    options = {"lever": "t", "low": 0.0, "high": 10.0, "measure": "persisted", "of_low": 0.05, "as": "timeout"}
    crossing = ANALYSES["crossover"][0](Clipped(), options)
    exact = 0.95 * 1000.0 / 800.0
    assert at(crossing, "timeout") == pytest.approx(exact, rel=0.002)
    assert crossing.moves is not None
    assert crossing.moves(change) == pytest.approx([exact * math.prod(change.values())] * 5, rel=0.005)
    assert crossing.moves({"buffers": 9.0}) == []  # at 10.7 s, where nothing was looked at


def test_joins_of_one_rate_are_joined_by_sequence() -> None:
    """The exact barrier would never be advised; or a barrier that is not possible would end the answer."""
    question = question_of("J1")
    text = """
        until_s = 4.0
        [join]
        barrier = "sequence"
        [input.left]
        rate_per_s = 20.0
        offset = 0
        [input.right]
        rate_per_s = 20.0
        offset = 0
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pair.toml"
        file.write_text(text, encoding="utf-8")
        own = Bench(str(file), {}, {}, 1, 0.5, Serial(), of_joins=True)
        pair = ANALYSES["barriers"][0](own, question.analysis)
        assert pair.case == "sequence"
        assert at(pair, "sequence_share") > 0.99
        assert any("timestamp is not possible here" in note for note in pair.notes) or at(pair, "timestamp_share") >= 0
        sentence = question.answer["sequence"].format(**{name: str(each) for name, each in pair.numbers.items()})
        assert "Take the sequence barrier" in sentence
        file.write_text(text.replace("offset = 0", "delay_s = 0.2", 1), encoding="utf-8")
        cut = ANALYSES["barriers"][0](Bench(str(file), {}, {}, 1, 0.5, Serial(), of_joins=True), question.analysis)
        assert cut.case == "none"
        assert any(note.startswith("sequence has the others waiting when a run ends") for note in cut.notes)


# What every question owes.


@pytest.mark.parametrize("question", ASKED, ids=lambda each: each.name)
def test_a_question_has_a_sentence_for_each_case_and_an_oracle(question: Question) -> None:
    """An analysis would come to a case of which nothing is said."""
    cases = set(ANALYSES[question.analysis["name"]][1])
    if question.analysis["name"] == "quantile":
        cases -= {"steady"} if "judge_timeout" in question.analysis else {"helps", "useless"}
    assert set(question.answer) == cases
    oracle = f"test_{question.name.lower()}_"
    assert oracle in Path(__file__).read_text(encoding="utf-8"), f"here is no test {oracle}...: what holds it right"
    sentence = question.answer[next(case for case in ANALYSES[question.analysis["name"]][1] if case in cases)]
    assert [name for _, name, _, _ in string.Formatter().parse(sentence) if name]


def test_the_page_says_what_holds_each_answer_right() -> None:
    """A reader would not know why to trust a number."""
    page = PAGE.read_text(encoding="utf-8")
    for name in names():
        question = question_of(name)
        assert f"| {name} | {question.question} |" in page, f"{PAGE.name} has no row of {name}"
        assert (question.oracle or question.missing) in page
    assert [question_of(f"Q{n}").name for n in range(1, 16)] == [f"Q{n}" for n in range(1, 16)]


def test_a_question_of_no_known_kind_is_one_line() -> None:
    """A slip in a file would end in a traceback."""
    with pytest.raises(QuestionError, match=r"no key 'anwser'; allowed: .*; did you mean 'answer'"):
        read("Q99", 'anwser = "x"')
    with pytest.raises(QuestionError, match=r"Q99\.toml: has no key 'asked'"):
        read("Q99", 'question = "x"')
    with pytest.raises(QuestionError, match="no question 'Q99'"):
        question_of("Q99")
    assert question_of("q03").name == "Q3"


# The answer.

JOB = """
topology = "a->s"
until_s = 1.0
[source.a]
rate_per_s = 2.0
[operator.s]
kind = "sink"
[checkpoint]
interval_s = 1.0
async_s = { dist = "uniform", low = 3.0, high = 5.0 }
"""


def test_what_would_change_it_is_computed() -> None:
    """The sentence would say what its author thought."""
    question = question_of("Q10")
    answer = answered(question, bench(question, **{"checkpoint.async_s": 7.0}))
    moves = {(move.lever, move.factor): move.by.at for move in answer.moves}
    # One at a time: D + D / 2; four: D + max(2, D / 4) / 2. Their difference is 1 - D / 2, of an interval of 2.
    assert moves["writing", 0.8] == pytest.approx(1400 / 2, rel=0.02)
    assert moves["interval", 1.2] == pytest.approx(400 / 2, rel=0.02)
    assert "time to write the state (20 % less: +7" in answer.change
    assert answer.change.endswith("No effect beyond chance: 20 % more or less of arrivals.")
    assert answer.notes == (f"not answered: {question.also_missing}",)
    assert answer.sentence.endswith(" come one at a time. A measured number without an interval is the same in 5 runs.")
    assert answer.sentence.count("the same in 5 runs") == 1


def test_a_budget_ends_what_is_computed_beside_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question would go on for minutes after its budget."""
    monkeypatch.setattr(sim_advise_simulated, "FAILURES", 2)
    monkeypatch.setattr(sim_ask_analyses, "SEEDS", range(1, 3))
    monkeypatch.setattr(sim_ask_analyses, "BATCH", 2)
    monkeypatch.setattr(sim_ask_bench, "BATCH", 2)
    question = replace(question_of("Q9"), checkpoints=5)
    own = bench(question, **SELDOM)
    asked = 0

    def check_time() -> None:
        nonlocal asked
        asked += 1
        if asked > len(sim_ask_analyses.SEEDS) + 1:  # the pieces of each seed, and one run with failures
            raise sim_ask_bench.OutOfTimeError

    own.check_time = check_time  # type: ignore[method-assign]
    answer = answered(question, own)
    assert answer.found.numbers["simulated"] == "not done"
    taken, late = answer.notes
    assert (taken[:40], late) == ("not given: [recovery] read_bytes_per_s =", "not simulated: the budget was used up")
    assert answer.change == "What would change it was not looked at: the budget was used up."


def test_q9_says_what_its_cost_of_a_checkpoint_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose state is written beside its work would be said to stand still for as long as that takes."""
    monkeypatch.setattr(sim_ask_analyses, "SEEDS", range(1, 2))
    question = replace(question_of("Q9"), checkpoints=5)
    own = bench(question, **{"checkpoint.sync_s": 0.0, "checkpoint.async_s": 1.5, **SELDOM})

    def no_time(*_: Any) -> None:
        raise sim_ask_bench.OutOfTimeError

    monkeypatch.setattr(sim_advise_simulated, "simulated", no_time)
    found = ANALYSES["interval"][0](own, question.analysis)
    assert at(found, "cost") == pytest.approx(1.5, rel=0.01)
    assert found.notes[0].startswith("not given: [checkpoint] sync_s = ")
    assert found.notes[0].endswith("the whole duration, 1.5 s, counts as its cost, which is the most it can be)")


@pytest.mark.parametrize("skew", [2.0, 0.0])
def test_a_closed_form_says_that_it_spreads_keys_evenly(skew: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a job with a hot key it is off by a hundred times, and nothing would say why."""
    monkeypatch.setattr(sim_ask_analyses, "BATCH", 1)
    monkeypatch.setattr(sim_ask_bench, "BATCH", 1)
    question = replace(question_of("Q5"), scenario="hot_key", set={}, checkpoints=2)
    found = ANALYSES["quantile"][0](bench(question, 0.9, skew=skew), question.analysis)
    said = [note for note in found.notes if note.startswith("the closed form spreads keys evenly")]
    assert [note.endswith("; key_skew of events does not") for note in said] == ([True] if skew else [])


def test_a_budget_that_ends_early_leaves_what_would_change_it_open() -> None:
    """An answer would say that nothing changes it, where little was tried."""
    number = Number(1.0, 0.9, 1.1, "x", 5)
    tried = [Sensitivity("load", 1.2, Number(0.0, -0.1, 0.1, "x", 5))]
    found = Analysed({"growth": number}, "steady")
    chance = " No effect beyond chance: 20 % more or less of arrivals."
    assert _change(found, tried, left_out=False) == f"{NOTHING}{chance}"
    ended = "Nothing that was varied before the budget was used up changes it."
    assert _change(found, tried, left_out=True) == f"{ended}{chance}"


def test_the_closed_form_of_a_restart_loop() -> None:
    """Its mean would be that of another pattern."""
    scenario = bench(question_of("Q11")).scenario
    p = 1 - (1 - 0.12079) ** 3
    assert failing_every_ms(scenario) == pytest.approx(1e3 * (6 * (1 + p) / p**2 + 1.5 + 1.0), rel=1e-3)


def test_what_aligns_in_any_case_is_named() -> None:
    """A user would ask for unaligned checkpoints, and wait for aligned ones."""
    edge = {'channel."fast->slow".exchange': "forward", "operator.sink.aligns": True}
    question = question_of("Q2")
    assert forced_aligned(bench(question, **edge).scenario) == "'slow' (fast->slow is forward), 'sink' (a sink)"


def test_a_restart_loop_is_told_by_what_completed_between() -> None:
    """A job that restarts in turn with progress would be called stuck, or one without progress healthy."""

    class Restarted:
        completed_at_ms = (8.0, 55.0)
        triggered_at_ms = (5.0, 50.0)
        recoveries = tuple({"failed_at_ms": failed, "restored_ms": failed + 5.0} for failed in (10.0, 30.0, 60.0))

    facts: Any = Restarted()
    assert MEASURES["loop_share"][1](facts) == pytest.approx(1 / 3)
    assert MEASURES["without_progress"][1](facts) == 30.0 - 15.0
    assert MEASURES["lag"][1](facts) == pytest.approx(((15.0 - 5.0) + (35.0 - 5.0) + (65.0 - 50.0)) / 3)


def test_the_age_of_a_checkpoint_is_its_area() -> None:
    """The age would be that at completions, which is the smallest."""

    class Done:
        completed_at_ms = (10.0, 20.0, 40.0)
        triggered_at_ms = (5.0, 15.0, 30.0)

    assert age_ms(Done()) == pytest.approx((100 + 300) / 30)  # type: ignore[arg-type]


def test_the_command_answers_about_ones_own_scenario(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user would get the answer of the shipped one."""
    monkeypatch.setattr(sim_cli_ask, "Processes", lambda count: Serial())
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")
    arguments = ["ask", "q10", "--scenario", str(tmp_path / "job.toml"), "--json", str(tmp_path / "answer.json")]
    status, out, err = barrierlab(capsys, *arguments)
    assert (status, err) == (0, "")
    kept = json.loads((tmp_path / "answer.json").read_text(encoding="utf-8"))
    assert (kept["question"], kept["scenario"], kept["case"], kept["number"]) == ("Q10", "job", "less", "younger")
    assert kept["answer"] in out
    assert "What would change it: " in out
    number = kept["numbers"]["younger"]
    assert number["low"] < number["at"] < number["high"] < 0


def test_all_questions_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A question that is not answered would be listed as if it were."""
    status, out, _ = barrierlab(capsys, "ask")
    assert status == 0
    for name in names():
        assert f"{name}  {question_of(name).question}" in out
    assert out.count("not answered yet") == sum(bool(question_of(name).missing) for name in names())
    assert out.count("the mechanism is missing") == 2


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["Q99"], 2, "no question 'Q99'"),
        (["joins"], 2, "no question 'joins'; allowed: "),
        (["J1", "--scenario", "diamond"], 2, "is no join; allowed: a scenario with [join]"),
        (["Q3", "--precision", "0%"], 2, "'0%': allowed: a share"),
        (["--json", "x"], 2, "there is no question"),
        (["Q10", "--scenario", "camera_imu_lidar"], 2, "takes no checkpoints"),
        (["Q10", "--budget", "0.000001s"], 3, "is used up before there is a number"),
        (["Q14", "--set", "checkpoint.timeout_s=0.001", *SELDOM_SET], 3, "no checkpoint completed"),
        (["Q7", "--scenario", "crash_and_recover"], 2, "which has buffers (the question sets debloat_target_s)"),
    ],
    ids=str,
)
def test_no_answer_is_one_line(
    arguments: list[str],
    status: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A script would take no answer for one."""
    monkeypatch.setattr(sim_cli_ask, "Processes", lambda count: Serial())
    found_status, out, err = barrierlab(capsys, "ask", *arguments)
    assert (found_status, out, len(err.splitlines())) == (status, "", 1)
    assert words in err
