"""A sweep file becomes the same list of runs every time, or one line that says what is wrong with it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.measured import load_measured
from barrierlab.sim.sweep.plan import load_plan, plan_of, shipped_sweeps

HEAD = '[[part]]\nscenario = "diamond"\n'
RATE = '"source.source.rate_per_s"'


def planned(text: str):
    """The plan of a sweep file called mine.toml."""
    return plan_of(text, "mine", Path("mine.toml"))


def values(plan, name="source.source.rate_per_s"):
    """Return the values that the runs have for one setting."""
    return [run.parameters[name] for run in plan.runs]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "survive_anything")) for name in shipped_sweeps()]
)
def test_shipped_sweeps_can_be_planned(name):
    """Each shipped sweep must run, and say what it asks."""
    plan = load_plan(name)
    assert plan.runs
    assert plan.question


def test_the_demo_is_as_large_as_promised():
    """The demo crosses load, skew and buffers with seeds, and adds every measured job."""
    plan = load_plan("aligned_under_backpressure")
    join, *jobs = plan.parts
    assert len(plan.runs) >= 300
    assert {axis.name for axis in join.axes} == {"load", "skew", "buffers"}
    assert [len({str(run.parameters) for run in part.runs}) for part in jobs] == [11, 11, 7]
    assert len({str(run.parameters) for part in jobs for run in part.runs}) == len(load_measured())


def test_a_grid_crosses_its_axes_and_the_seeds():
    """Every combination with every seed, once."""
    plan = planned(HEAD + f"seeds = {{ first = 3, last = 5 }}\ngrid = {{ {RATE} = [1.0, 2.0], until_s = [5.0, 6.0] }}")
    seen = {(r.parameters["source.source.rate_per_s"], r.parameters["until_s"], r.seed) for r in plan.runs}
    assert seen == {(rate, until, seed) for rate in (1.0, 2.0) for until in (5.0, 6.0) for seed in (3, 4, 5)}
    assert len(plan.runs) == len({run.run_id for run in plan.runs}) == 12


def test_a_list_is_taken_row_by_row():
    """A list does not cross its columns."""
    rows = f"{{ {RATE} = 1.0, until_s = 5.0 }}, {{ {RATE} = 2.0, until_s = 6.0 }}"
    plan = planned(HEAD + f"seeds = [1]\nlist = [{rows}]\nset = {{ warmup_s = 1.0 }}")
    assert [list(run.parameters.values()) for run in plan.runs] == [[1.0, 1.0, 5.0], [1.0, 2.0, 6.0]]


@pytest.mark.parametrize("kind", ["random", "latin_hypercube"])
def test_drawn_values_stay_within_their_bounds_and_come_again(kind):
    """The same file gives the same draws; whole bounds give whole numbers, both included; another seed, others."""
    axes = f"""
        [part.{kind}]
        samples = 200
        axes.{RATE} = {{ low = 10.0, high = 1000.0, scale = "log" }}
        axes."channel.default.capacity" = {{ low = 1, high = 4 }}
        axes.until_s = {{ choices = [5.0, 6.0] }}
    """
    text = HEAD + "seeds = [1]\n" + axes
    plan = planned(text)
    rates, capacities = values(plan), values(plan, "channel.default.capacity")
    assert all(10.0 <= rate <= 1000.0 for rate in rates)
    assert 80 < sum(rate < 100.0 for rate in rates) < 120  # even in the logarithm
    assert set(capacities) == {1, 2, 3, 4}
    assert {type(c) for c in capacities} == {int}
    assert set(values(plan, "until_s")) == {5.0, 6.0}
    assert planned(text).runs == plan.runs
    assert values(planned("seed = 1\n" + text)) != rates


def test_no_setting_is_drawn_twice():
    """Whole numbers are drawn again before long, and a sweep of twenty samples could not be planned."""
    few = HEAD + 'seeds = [1, 2]\n[part.random]\nsamples = 8\naxes."channel.default.capacity" = { low = 1, high = 8 }'
    plan = planned(few)
    assert sorted(values(plan, "channel.default.capacity")) == sorted([*range(1, 9)] * 2)
    alone = planned(few.replace("samples = 8", "samples = 3")).parts[0].runs
    assert alone == plan.parts[0].runs[:6]  # more samples come behind those of before


def test_a_latin_hypercube_has_one_value_in_every_stratum():
    """That is what a Latin hypercube is for: few samples cover each axis evenly."""
    text = HEAD + f"seeds = [1]\n[part.latin_hypercube]\nsamples = 10\naxes.{RATE} = {{ low = 0.5, high = 10.5 }}"
    assert sorted(int(rate - 0.5) for rate in values(planned(text))) == list(range(10))


def test_run_ids_do_not_depend_on_the_process():
    """A resumed sweep finds its runs again, whatever the hash seed of the process."""
    code = """if True:
        from barrierlab.sim.sweep.plan import load_plan
        plan = load_plan("smoke")
        print(*[run.run_id for run in plan.runs], plan.digest)
    """
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    plan = load_plan("smoke")
    assert out == [*[run.run_id for run in plan.runs], plan.digest]


def test_run_ids_depend_on_all_that_a_run_depends_on(tmp_path):
    """Two different runs must never share an id: one of them would be lost."""
    from barrierlab.sim.scenario.load import SHIPPED

    scenario = tmp_path / "mine.toml"
    scenario.write_text((SHIPPED / "diamond.toml").read_text())
    text = '[[part]]\nscenario = "mine.toml"\nseeds = [{}]\nset = {{ until_s = {} }}'

    def run_id(seed=1, until=5.0):
        return plan_of(text.format(seed, until), "s", tmp_path / "s.toml").runs[0].run_id

    before = run_id()
    assert run_id() == before
    others = {before, run_id(seed=2), run_id(until=6.0)}
    scenario.write_text(scenario.read_text() + "\n# changed\n")
    others.add(run_id())
    assert len(others) == 4


BAD = {
    "not toml": ("part = [", "not TOML"),
    "no part": ('title = "x"', "key 'part' is missing"),
    "unknown key": ('quesiton = "x"\n' + HEAD + "seeds = [1]", "unknown key 'quesiton'.*did you mean 'question'"),
    "unknown key of a part": (HEAD + "sedes = [1]", "part 1: unknown key 'sedes'.*did you mean 'seeds'"),
    "no seeds": (HEAD, "key 'seeds' is missing"),
    "seeds of text": (HEAD + 'seeds = ["one"]', "'one' is given; a whole number of at least 0"),
    "seeds backwards": (HEAD + "seeds = { first = 2, last = 1 }", "last = 1 is less than first = 2"),
    "a seed twice": (HEAD + "seeds = [1, 1]", "1 stands there twice"),
    "no scenario": ("[[part]]\nseeds = [1]", "exactly one of scenario = NAME and measured = true"),
    "unknown mode": (
        '[[part]]\nmeasured = true\nmodes = ["unalined"]\nseeds = [1]',
        "part 1: modes: 'unalined' is given; allowed: aligned, unaligned, .*did you mean 'unaligned'",
    ),
    "no mode": ("[[part]]\nmeasured = true\nmodes = []\nseeds = [1]", "modes: .* a list of at least one value"),
    "modes of a scenario": (HEAD + 'modes = ["aligned"]\nseeds = [1]', "modes goes with measured = true only"),
    "unknown scenario": ('[[part]]\nscenario = "diamnd"\nseeds = [1]', "diamnd.*did you mean 'diamond'"),
    "control signals": (
        '[[part]]\nscenario = "graceful_shutdown"\nseeds = [1]',
        "part 1: scenario: 'graceful_shutdown' is of control signals; allowed: one of a job or of a join",
    ),
    "unknown setting": (HEAD + "seeds = [1]\nset = { untill_s = 1.0 }", "untill_s"),
    "impossible value": (HEAD + "seeds = [1]\nset = { until_s = -1.0 }", "until_s"),
    "empty axis": (HEAD + f"seeds = [1]\ngrid = {{ {RATE} = [] }}", "a list of at least one value"),
    "ragged list": (HEAD + "seeds = [1]\nlist = [{ until_s = 1.0 }, { warmup_s = 1.0 }]", "the same keys"),
    "an axis twice": (HEAD + "seeds = [1]\ngrid = { until_s = [1.0] }\nlist = [{ until_s = 1.0 }]", "varied twice"),
    "an axis that is set": (
        HEAD + "seeds = [1]\nset = { until_s = 1.0 }\ngrid = { until_s = [1.0] }",
        "'until_s' is an axis",
    ),
    "a run twice": (HEAD + "seeds = [1]\nlist = [{ until_s = 1.0 }, { until_s = 1.0 }]", "planned twice: diamond"),
    "bounds backwards": (
        HEAD + "seeds = [1]\n[part.random]\nsamples = 2\naxes.until_s = { low = 2.0, high = 1.0 }",
        "low < high",
    ),
    "no samples": (
        HEAD + "seeds = [1]\n[part.random]\nsamples = 0\naxes.until_s = { low = 1.0, high = 2.0 }",
        "samples: 0 is given",
    ),
    "more samples than settings": (
        HEAD + 'seeds = [1]\n[part.random]\nsamples = 9\naxes."channel.default.capacity" = { low = 1, high = 8 }',
        "random.samples: 9 is given; allowed: at most 8: the axes have no more settings",
    ),
    "samples without end": (
        HEAD + "seeds = [1]\n[part.random]\nsamples = 1000000000\naxes.until_s = { low = 1.0, high = 8.0 }",
        "allowed: at most 1000000 runs",
    ),
    "a setting twice in one hypercube": (
        HEAD
        + "seeds = [1]\n[part.latin_hypercube]\nsamples = 4\n"
        + 'axes."channel.default.capacity" = { low = 1, high = 4, scale = "log" }',
        "latin_hypercube.samples: 4 is given, and only 3 different settings came: take fewer samples",
    ),
    "unknown scale": (
        HEAD + 'seeds = [1]\n[part.random]\nsamples = 2\naxes.until_s = { low = 1.0, high = 2.0, scale = "lg" }',
        "linear or log is allowed; did you mean 'log'",
    ),
    "too many runs": (HEAD + "seeds = { first = 1, last = 9999999 }", "at most 1000000 runs"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_bad_sweep_is_told_in_one_line(text, words):
    """The line names the file and the key, and says what is allowed."""
    with pytest.raises(SweepError, match=words) as error:
        planned(text)
    assert str(error.value).startswith("mine.toml: ")
    assert "\n" not in str(error.value)


def test_an_unknown_sweep_is_told_with_a_suggestion():
    """A slip of the pen is answered with the name that was meant."""
    with pytest.raises(SweepError, match="did you mean 'smoke'"):
        load_plan("smok")


def test_many_settings_are_planned_without_loading_each(monkeypatch):
    """A million settings would take half an hour before the first run begins; or a bad value would be found in one."""
    from barrierlab.sim.scenario import load as module
    from barrierlab.sim.sweep.plan import short_hash

    loaded: list[dict[str, object]] = []
    real = module.load
    monkeypatch.setattr(module, "load", lambda source, settings: loaded.append(settings) or real(source, settings))
    monkeypatch.setattr("barrierlab.sim.sweep.plan.MOST_LOADED", 50)
    text = (
        '[[part]]\nscenario = "diamond"\nseeds = [1, 2]\ngrid = { until_s = [5.0, 6.0, 7.0] }\n'
        'random = { samples = 200, axes = { "source.source.rate_per_s" = { low = 1.0, high = 9.0 } } }\n'
    )
    runs = plan_of(text, "many", Path("many.toml")).runs
    assert len(runs) == len({run.run_id for run in runs}) == 1200
    assert 50 <= len(loaded) < 70
    assert {settings["until_s"] for settings in loaded} == {5.0, 6.0, 7.0}
    text_digest = hashlib.blake2b(real("diamond").text.encode(), digest_size=16).hexdigest()
    assert [run.run_id for run in runs[:4]] == [
        short_hash([run.scenario, text_digest, run.parameters, run.seed]) for run in runs[:4]
    ]
    with pytest.raises(SweepError, match="until_s"):
        plan_of(text.replace("7.0", "-7.0"), "many", Path("many.toml"))
