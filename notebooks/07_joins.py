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
# # Joins: wait, age, skew
#
# A barrier can also join streams: a camera, an IMU and a lidar in shared memory, each at its own rate. An output needs
# a frame of each. Which? And may it be attempted yet? That is the barrier's one question, and three answers are usual:
#
# * **sequence**: the frames of the same number;
# * **timestamp**: the frames of the same time, as soon as every stream has come so far;
# * **latest**: whatever is newest, at once.
#
# Three prices go with them. **Wait**: how long an output waits since it was wanted. **Age**: how old its oldest frame
# is. **Skew**: how far its frames are apart.

# %%
# %matplotlib inline
import pandas as pd

from barrierlab import load, run

pd.set_option("display.precision", 1)
columns = ["wanted", "complete_share", "wait_p50_ms", "wait_p99_ms", "age_p99_ms", "skew_p99_ms"]

# %% [markdown]
# ## 1. Streams of one rate
#
# Cameras that are triggered together: numbers are times.

# %%
lockstep = run(load("lockstep_cameras"), seed=1)
pd.DataFrame(lockstep.join_rows(), index=[lockstep.verdict])[columns]

# %% [markdown]
# ## 2. Streams of three rates
#
# A camera (30 a second), an IMU (200), a lidar (9.7): their numbers have nothing to do with each other, and the
# sequence barrier asks for frames that are gone.

# %%
barriers = ["sequence", "timestamp", "latest"]
runs = {barrier: run(load("camera_imu_lidar", {"barrier": barrier}), seed=1) for barrier in barriers}
pd.DataFrame([result.join_rows()[0] for result in runs.values()], index=barriers)[columns].fillna("–")

# %% [markdown]
# Output by output: the camera sets the times, and by time most of its frames wait for the next turn of the lidar. With
# a lateness of 100 ms, which the next section is about, half of them wait 16 ms at most, in place of 100.

# %%
waits = {}
for lateness_s in [0.01, 0.1]:
    outputs = run(load("camera_imu_lidar", {"lateness_s": lateness_s, "until_s": 5.0}), seed=1).outputs
    outputs = outputs.query("at_ms > 2000 and at_ms < 4000")
    wait_ms = outputs["at_ms"] - outputs["out"] / 1e6
    waits[f"lateness {1e3 * lateness_s:g} ms"] = wait_ms.set_axis(outputs["at_ms"] / 1e3)
look = {"style": ".-", "figsize": (9, 3.2), "color": ["#b98b00", "#3b82c4"], "xlabel": "time, s", "ylabel": "wait, ms"}
axes = pd.DataFrame(waits).interpolate(limit_area="inside").plot(ylim=(0, 230), **look)
legend = axes.legend(loc="upper left", ncols=2)

# %% [markdown]
# ## 3. Lateness is slack
#
# With a lateness of 100 ms it is enough that every stream has come within 100 ms of the output's time. So a larger one
# waits *less*, and what it costs is skew. Up to the period of the slowest stream (103 ms) waiting goes, and nothing is
# paid for it; beyond, frames are older than they need be.

# %%
rows = []
for lateness_s in [0.0, 0.04, 0.08, 0.12, 0.16, 0.2, 0.24]:
    result = run(load("camera_imu_lidar", {"lateness_s": lateness_s, "until_s": 15.0}), seed=1)
    rows += result.join_rows()
budget = pd.DataFrame(rows).set_index("lateness_ms")[["wait_p99_ms", "age_p99_ms", "skew_p99_ms"]]
axes = budget.plot(
    marker="o",
    figsize=(9, 3),
    xlabel="lateness, ms",
    ylabel="99th percentile, ms",
    color=["#b98b00", "#868d97", "#d64045"],
)

# %% [markdown]
# ## 4. Which barrier?
#
# * Streams that are triggered together: **sequence**.
# * Frames must belong together: **timestamp**, with a lateness of the period of the slowest stream.
# * Waiting is worse than skew: **latest**.
#
# That every output was ready when it was attempted, that none was kept back, and in which order they came, is judged
# in each run (`{'holds'}` below). `barrierlab sweep which_join` asks the question with jitter and over seeds, and says
# how sure the answer is.

# %%
{result.verdict for result in [lockstep, *runs.values()]}

# %% [markdown]
# Next: a question of your own, [from a file to an answer](08_a_sweep.ipynb).
