"""Runs that would never end: announced, and ended by a budget."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from pathlib import Path
from time import monotonic

import pytest

import barrierlab.sim.core.budget as sim_core_budget
import barrierlab.sim.sweep.commands as sim_sweep_commands
from barrierlab.sim import load
from barrierlab.sim.checkpoint.estimate import announcement, steps
from barrierlab.sim.checkpoint.result import run
from barrierlab.sim.core.budget import BudgetError, budget
from tests.sim.support import barrierlab

ENDLESS = {
    "a checkpoint a nanosecond": "checkpoint.interval_s=1e-9",
    "thirty thousand years": "until_s=1e12",
    "a watermark a nanosecond": "source.source.watermark_interval_s=1e-9",
    "an event a nanosecond": "source.source.rate_per_s=1e9",  # back pressure makes that a short run, and a long count
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_budget_ends_any_run(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A slip of a unit would run until somebody kills it, and a script would wait for ever."""
    status, out, err = barrierlab(capfd, "run", "diamond", "--set", ENDLESS[name], "--budget", "0.2s")
    assert (status, out) == (3, "")
    assert err == (
        "barrierlab: undecided: --budget 0.2s is used up, and nothing was judged: give more, or a shorter run\n"
    )


def test_a_budget_ends_what_drops_its_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm struck in a finaliser that the collector ran, where Python drops what is raised: an endless run."""
    monkeypatch.setattr(sim_core_budget, "AGAIN_S", 0.05)
    dropped = 0
    with pytest.raises(BudgetError), budget(0.05):  # noqa: PT012
        while True:
            try:
                signal.pause()
            except BudgetError:
                dropped += 1
                if dropped == 3:
                    raise
    assert signal.getitimer(signal.ITIMER_REAL)[1] == 0  # it does not strike again; the watchdog of tests never does


def test_what_python_drops_is_said_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm struck in the callback of a weak reference: a user saw a traceback beside the line of the budget."""
    dropped: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: dropped.append(what.exc_type))

    class Waits:
        def __del__(self) -> None:
            signal.pause()

    class Fails:
        def __del__(self) -> None:
            raise KeyError

    begun_s = monotonic()
    with pytest.raises(BudgetError), budget(0.05):  # noqa: PT012
        Waits()
        Fails()
        signal.pause()
    assert monotonic() - begun_s < sim_core_budget.AGAIN_S
    assert dropped == [KeyError]


def test_an_alarm_of_the_callers_own_goes_on() -> None:
    """A watchdog that has set one would never strike: of tests, say, whose command hangs behind its budget."""
    outer = signal.setitimer(signal.ITIMER_REAL, 1000.0, 7.0)
    try:
        with budget(500.0):
            assert signal.getitimer(signal.ITIMER_REAL)[0] <= 500.0
        left_s, every_s = signal.getitimer(signal.ITIMER_REAL)
        assert (500.0 < left_s <= 1000.0, every_s) == (True, 7.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)


def test_a_fault_a_nanosecond_is_ended_as_well(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As above."""
    text = (Path(__file__).parents[2] / "sim/scenarios/diamond.toml").read_text(encoding="utf-8")
    fault = '\n[[fault]]\nkind = "stall"\ntask = "all"\nrate_per_s = 1e9\nfor_s = 0.001\n'
    (tmp_path / "job.toml").write_text(text + fault, encoding="utf-8")
    status, _, err = barrierlab(capfd, "run", str(tmp_path / "job.toml"), "--budget", "0.2s")
    assert (status, len(err.splitlines())) == (3, 1)


TWO_HOURS = {"until_s": 7200.0}


def test_what_takes_long_is_announced() -> None:
    """A person would not know whether to wait, or lose the run when the memory is full."""
    assert announcement(load("diamond")) is None
    assert "some 72 s, and 3 GB of memory without --events FILE; " in (announcement(load("diamond", TWO_HOURS)) or "")
    text = announcement(load("diamond", {"until_s": 1e12}))
    assert text is not None
    assert "years, and " in text
    assert "--budget 60s ends it" in text
    assert announcement(load("graceful_shutdown", {"until_s": 1e6})) is None  # a signal ends it at 10 s
    few = {f"source.{name}.events": 1000 for name in load("diamond").sources}
    assert announcement(load("diamond", {**few, **TWO_HOURS, "checkpoint.interval_s": 100.0})) is None
    endless = {"until_s": 1e6, "signal": [{"kind": "SyncTest", "channel": "data", "at_s": 10.0}]}
    for name, settings in (("lockstep_cameras", {"until_s": 1e6}), ("graceful_shutdown", endless)):
        text = announcement(load(name, settings))
        assert text is not None
        assert "GB of memory; a shorter until_s" in text


def test_the_estimate_of_others_is_of_the_right_size() -> None:
    """A join with a rate that was mistyped would run for hours without a word, until the memory is full."""
    join, signals = load("lockstep_cameras", {"drop": 0.0}), load("sync_under_skew")
    assert 0.7 < steps(join) / len(run(join, 1).entries) < 1.5
    assert 0.7 < steps(signals) / sum(entry[1] in (">emit", "deliver") for entry in run(signals, 1).entries) < 1.5


@pytest.mark.parametrize("name", ["diamond", "flink_chain"])
def test_the_estimate_is_of_the_right_size(name: str) -> None:
    """It would frighten people off, or say nothing where it should."""
    scenario = load(name)
    taken = sum(entry[1] == "take" for entry in run(scenario, 1).entries)
    assert 0.5 < steps(scenario) / taken < 4


@pytest.mark.parametrize("value", ["0", "-1", "1 day", "", "nan", "1e99"])
def test_a_wrong_budget_is_one_line(value: str, capfd: pytest.CaptureFixture[str]) -> None:
    """It would end a run at once, or never."""
    status, out, err = barrierlab(capfd, "run", "diamond", "--budget", value)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "allowed: a time above 0, such as 60s, 5m or 1h" in err


@pytest.mark.parametrize("command", ["run", "sweep", "check"])
def test_whatever_may_take_long_takes_a_budget(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A job of a CI has a limit of its own, and says nothing when it strikes."""
    assert "--budget SECONDS" in barrierlab(capfd, command, "--help")[1]


def test_a_sweep_keeps_what_its_budget_reached(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours of runs would be lost to one that never ends; or its process would stay behind."""

    class Clock:
        """Stands until the first run is stored, however long that takes, and is past any budget then."""

        def monotonic(self) -> float:
            return 1e6 if list((tmp_path / "out" / "runs").glob("*.parquet")) else 0.0

    monkeypatch.setattr(sim_sweep_commands, "time", Clock())
    sweep = tmp_path / "ever.toml"
    sweep.write_text('[[part]]\nscenario = "diamond"\nseeds = [1]\ngrid = { until_s = [0.5, 1e12] }\n')
    arguments = ["sweep", str(sweep), "--out", str(tmp_path / "out"), "--master", "processes[2]"]
    status, out, err = barrierlab(capfd, *arguments, "--budget", "6s")
    again = f"barrierlab {' '.join(arguments)} --resume"
    assert (status, out) == (3, "")
    assert err.splitlines()[-1] == (
        f"undecided: the budget of 6 s is used up: 1 of 2 runs are stored; to go on: {again}"
    )
    assert not multiprocessing.active_children()


def test_an_interrupted_measurement_promises_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runs were in a folder that is gone, and it said how to go on with them."""
    import barrierlab.sim.sweep.execute as sim_sweep_execute

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sim_sweep_execute, "execute", interrupted)
    status, out, err = barrierlab(capfd, "measured")
    assert (status, out, err) == (130, "", "interrupted: nothing is kept\n")
