# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A twin of your job
#
# A job runs on a cluster, and somebody wants to know what its checkpoints would be under other settings. A *twin* is
# its scenario, and a profile of what the cluster itself costs: late threads, hops, acknowledgements. The profile is
# fitted to a few checkpoints that were measured, and says nothing of the job.
#
# `barrierlab import flink URL` writes the scenario of a job from Flink's REST server. Here the job is one whose
# statistics are shipped: a chain on a cluster of Flink 2.3, saturated.

# %%
# %matplotlib inline
import pandas as pd

from barrierlab import load
from barrierlab.sim.advise.advice import advise, utilisation_at
from barrierlab.sim.advise.pieces import measured
from barrierlab.sim.sweep.measured import DATA
from barrierlab.sim.twin.calibrate import calibrate, observed_from
from barrierlab.sim.twin.predict import beside, predict

pd.set_option("display.precision", 2)
job = load("flink_chain")
observed = {run.name: run for run in observed_from([str(DATA)], job)}
chains = {name: run for name, run in observed.items() if name.startswith("R_chain")}
pd.DataFrame({name: {"mode": run.mode, "checkpoints": len(run.checkpoints)} for name, run in chains.items()}).T

# %% [markdown]
# ## 1. Calibrate
#
# On two of these runs, aligned and unaligned: twenty checkpoints. Each cost has one estimator; nothing is fitted by
# trying out simulations.

# %%
fitted_on = ["R_chain_sat_4ms_aligned", "R_chain_sat_4ms_unaligned"]
profile = calibrate([observed[name] for name in fitted_on])
costs = pd.DataFrame({name: cost.values_s for name, cost in profile.costs.items()}) * 1e3
axes = costs.plot.box(vert=False, figsize=(8, 2.8), xlabel="ms", color="#1f9aa0")

# %% [markdown]
# What the data do not say is said, and the scenario's own value stands:

# %%
pd.set_option("display.max_colwidth", 120)
pd.Series(profile.undetermined, name="not determined").to_frame()

# %% [markdown]
# ## 2. Predict, and look
#
# The two runs again, and one that the profile has not seen: with a timeout of 0.3 s. Five runs each, with the costs
# as one measured run had them. *low* to *high* is an interval of 90 %, with the error of the simulation in it.

# %%
rows = []
for mode in ["aligned", "unaligned", "aligned_with_timeout"]:
    name = f"R_chain_sat_4ms_{mode.removeprefix('aligned_with_')}"
    for each in beside(predict("flink_chain", {"mode": mode}, profile, runs=5), [observed[name]]):
        seen = "fitted on" if name in fitted_on else "not seen"
        rows.append(
            (
                mode,
                seen,
                each.operator,
                f"{each.statistic}, {each.unit}",
                each.low,
                each.median,
                each.high,
                each.measured,
            )
        )
columns = ["mode", "", "operator", "statistic", "low", "predicted", "high", "measured"]
twin = pd.DataFrame(rows, columns=columns)
whole = twin[twin["operator"] == ""].set_index(["mode", "", "statistic"]).drop(columns="operator")
whole["ratio"] = whole["predicted"] / whole["measured"].where(whole["measured"] > 0)
whole = whole.drop("processed, B", level=2).style.format(precision=1, thousands=",")
whole.format("{:.2f}", subset="ratio", na_rep="–")

# %% [markdown]
# By operator, each dot one statistic in ms: start delays and alignments.

# %%
times = twin[twin["statistic"].str.endswith("ms") & (twin["measured"] > 0)]
axes = None
for colour, (mode, group) in zip(["#3b82c4", "#3f9d63", "#e08a1e"], times.groupby("mode"), strict=True):
    look = {"kind": "scatter", "loglog": True, "color": colour, "label": mode, "figsize": (5, 4.2), "alpha": 0.8}
    axes = group.plot(x="measured", y="predicted", ax=axes, xlabel="measured, ms", ylabel="predicted, ms", **look)
line = axes.axline((10, 10), (1000, 1000), color="#868d97", linewidth=1)

# %% [markdown]
# What is long is predicted well, milliseconds of threads are not. Below saturation flush timers decide, and one
# measured run is one draw: see [how far a prediction holds](../docs/explanation/prediction.md).
#
# ## 3. How often?
#
# A checkpoint costs something each time, a failure what came since the last one. For a job that crashes, and a failure
# every hour: the share of all time that is lost, by interval.

# %%
pieces = measured(load("crash_and_recover"))
intervals_s = [3, 5, 8, 12, 20, 30, 40, 60, 90, 150, 300, 600]
lost = pd.DataFrame(
    {
        f"a failure every {hours:g} h": {s: 100 * (1 - utilisation_at(pieces, 3600 * hours, s)) for s in intervals_s}
        for hours in [0.25, 1, 4]
    }
)
advice = advise(pieces, mtbf_s=3600.0, own_s=3.0)
look = {"loglog": True, "marker": ".", "figsize": (8, 3.4), "color": ["#3b82c4", "#e08a1e", "#3f9d63"]}
axes = lost.plot(xlabel="interval, s", ylabel="time lost, %", **look)
band = axes.axvspan(*advice.band_s, color="#8c8c8c", alpha=0.25, label="within 1 % of the least cost, at 1 h")
legend = axes.legend()
advice.sentence

# %%
choices = [(choice.name, choice.interval_s, 100 * (1 - choice.utilisation), choice.lag_s) for choice in advice.choices]
table = pd.DataFrame(choices, columns=["interval", "s", "time lost, %", "lag at most, s"]).set_index("interval")
table.style.format(precision=2, na_rep="–")

# %% [markdown]
# `barrierlab advise` holds this closed form against runs, and chooses mode, timeout and tolerable failures as well.
# These were the nine; the [tutorial](../docs/tutorial/first-hour.md) walks the same way on the command line.
