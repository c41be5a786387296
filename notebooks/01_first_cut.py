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
# # A first cut
#
# Flink takes a checkpoint by sending **barriers** through the running job. A task that has the barrier of every input
# saves its state and sends the barrier on. All these snapshots together are a *cut* through the job: what each task
# had seen when it saved. This notebook shows
#
# 1. one barrier on its way, and why the cut it makes is consistent;
# 2. how long that takes in a job that ran on a real Flink cluster, simulated and measured;
# 3. a sweep: where the time of an aligned checkpoint goes.
#
# The simulation runs the protocol's own code under simulated time. The same scenario and seed give the same run.

# %%
# %matplotlib inline
import tempfile

import pandas as pd

from barrierlab import load, run
from barrierlab.sim.sweep import run_sweep
from barrierlab.sim.sweep.measured import compare, load_measured, statistics_of

pd.set_option("display.precision", 1)

# %% [markdown]
# ## 1. A barrier walks through a diamond
#
# One source feeds two tasks, *left* and the slower *right*; *meet* takes from both. Each channel takes 1 ms here, so
# that the walk can be seen. Once the run is over it is judged: were all its cuts consistent, was nothing lost, doubled
# or overtaken?

# %%
result = run(load("diamond", settings={"channel.default.latency_s": 0.001}), seed=1)
result.verdict

# %%
checkpoints = result.checkpoints.set_index("checkpoint_id")
checkpoints[["status", "end_to_end_duration_ms", "start_delay_max_ms", "alignment_max_ms"]]

# %% [markdown]
# The checkpoint with the longest alignment shows most. Here is the job, with the time from the trigger to each task's
# cut.

# %%
longest = checkpoints["alignment_max_ms"].idxmax()
result.graph(longest)

# %% [markdown]
# And here is the walk. Time runs to the right, every line is a task, every black arrow the barrier on one channel.
#
# * The source cuts at once and sends the barrier both ways. *left* is ready and passes it on. *right* is busy and takes
#   it when it is through with what came before.
# * *meet* has the barrier from *left* early. From then on (the broad bar) it takes nothing more from *left*: it
#   **aligns**. What *right* still sends is ahead of the barrier, and is taken.
# * With the second barrier *meet* cuts, sends the barrier on, and drains what it buffered.
#
# Events ahead of the barrier are blue, those behind it grey, lines by their sender, dots by their receiver. Each blue
# line ends before its receiver's cut, and each grey one after it. That is what *consistent* means here.

# %%
result.space_time(longest)

# %% [markdown]
# The same from the journal, at *meet*. A line that begins with `>` is a move of the simulation, the others are its
# effects. `block`: the barrier of that channel is in. `buffer`: an event behind it has to wait. After the `snapshot`
# and the `forward` of the barrier, `>drain` takes the event up again.

# %%
begin_ms = checkpoints.loc[longest, "trigger_timestamp_ms"]
end_ms = begin_ms + checkpoints.loc[longest, "end_to_end_duration_ms"]
events = result.events.fillna("")
events[(events["node"] == "meet") & events["at_ms"].between(begin_ms, end_ms)]

# %% [markdown]
# The timeline has Flink's own terms: **start delay** is the time from the trigger to a task's first barrier,
# **alignment** from its first to its last.

# %%
result.timeline(longest)

# %% [markdown]
# ## 2. A measured job, predicted
#
# `flink_chain` is a job that ran on a cluster of Flink 2.3: source, fast, slow, sink, two subtasks each. At the level
# `sat_4ms` the source offers more than *slow* can take at 4 ms a record, so all buffers in front of it are full. The
# scenario has Flink's buffers and credits with their default numbers; nothing is fitted to this run.

# %%
[job] = [job for job in load_measured() if job.name == "R_chain_sat_4ms_aligned"]
chain = run(load(job.scenario, settings=job.settings), seed=1)
chain.verdict

# %% [markdown]
# Its checkpoints, once the job is warm:

# %%
columns = ["end_to_end_duration_ms", "start_delay_max_ms", "alignment_max_ms", "critical_task"]
chain.checkpoints.query("steady").set_index("checkpoint_id")[columns]

# %% [markdown]
# A barrier is never faster than the records in front of it. Nearly all of the time is start delay: half of it in the
# buffers before *fast*, half in those before *slow*.

# %%
chain.timeline()

# %% [markdown]
# Seen in time and place: the barrier stands in the queue with everyone else. *slow* never rests, and still what it
# takes was sent more than half a second before.

# %%
chain.space_time()

# %% [markdown]
# Beside the cluster's values, means over the steady checkpoints. The target for saturated jobs is ± 10 %; what barriers
# pass is persisted, and aligned ones pass nothing. (`barrierlab measured` does this for every measured job, aligned and
# not.)

# %%
predicted = statistics_of(chain.checkpoint_rows(), chain.task_rows())
cells = pd.DataFrame([cell.as_row() for cell in compare({job.name: predicted})])
cells = cells.set_index("statistic")[["unit", "measured", "predicted", "ratio", "target"]]
cells.style.format({"ratio": "{:.3f}"}, precision=1, na_rep="–")

# %% [markdown]
# ## 3. A sweep, in tables
#
# `make demo` runs some three hundred simulations and writes a report. The sweep below asks its question in small: a
# join of two sources under low and high load, even and skewed rates, small and large buffers, two seeds each. A sweep
# is a directory of Parquet files; `barrierlab.sim.sweep.read("out/demo")` gives the tables of the demo just as here.

# %%
with tempfile.TemporaryDirectory() as directory:
    tables = run_sweep("aligned_in_small", f"{directory}/sweep")
pd.DataFrame({"rows": {name: len(table) for name, table in tables.items()}})

# %% [markdown]
# `runs` has a row for each run, with what was set and what came of it.

# %%
runs = tables["runs"].sort_values(["load", "skew", "buffers", "seed"])
found = ["verdict", "checkpoints_completed", "throughput_per_s", "backpressure_max"]
runs.set_index(["load", "skew", "buffers", "seed"])[found]

# %% [markdown]
# `checkpoints` has a row for each checkpoint. On its critical path tasks waited for their first barrier, then aligned.

# %%
settings = runs[["run_id", "load", "skew", "buffers"]]
steady = tables["checkpoints"].query("steady and status == 'COMPLETED'").merge(settings)
spent = steady.groupby(["load", "skew", "buffers"]).agg(
    checkpoints=("checkpoint_id", "size"),
    end_to_end_ms=("end_to_end_duration_ms", "mean"),
    start_delay_ms=("path_start_delay_ms", "mean"),
    alignment_ms=("path_alignment_ms", "mean"),
)
spent

# %% [markdown]
# At low load a checkpoint takes next to nothing. Above capacity the buffers in front of the join fill, and the barrier
# stands behind all that is in them: four times the buffers, nearly four times the time.

# %%
axes = spent[["start_delay_ms", "alignment_ms"]].plot.barh(
    stacked=True,
    color=["#1f9aa0", "#b98b00"],
    figsize=(8, 3.6),
    xlabel="ms, mean of the steady checkpoints of two seeds",
    ylabel="load, skew, buffers",
)
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# Why alignment, when the queue is in front of the join? `tasks`, with a row for each checkpoint and subtask, tells.
# Some keys are more frequent than others, so one subtask of the join is far behind its sister. The sink gets the
# sister's barrier early and aligns until the other's is there. Mostly it acknowledges last, so the join's queue is
# counted as the sink's alignment: a long alignment says that inputs differ, not that the task which aligns is slow.
#
# With even rates (skew 1) both inputs of the slow join are backed up alike, and its wait is start delay. With skewed
# rates only one is, and it aligns itself.

# %%
tasks = tables["tasks"].query("steady").merge(settings).query("load > 1")
tasks.groupby(["skew", "operator", "subtask"])[["start_delay_ms", "alignment_ms"]].mean()

# %% [markdown]
# What would change this picture: keys spread evenly, or a queue behind the join. `barrierlab scenarios` lists what can
# be set.
#
# All cuts here were consistent. [The next notebook](02_the_orphan_message.ipynb) has one that is not.
