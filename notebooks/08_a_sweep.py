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
# # A sweep, from question to answer
#
# One run is one draw. A question needs many: other settings, other seeds. A *sweep* is a file that says which, a
# folder of tables that they become, and a sentence that answers. Here one is written, run on Spark, and then looked at
# with three tools that read the same files.

# %%
# %matplotlib inline
import tempfile
from pathlib import Path

import duckdb
import pandas as pd
from IPython.display import Markdown

from barrierlab.sim.sweep import answer, read, run_sweep

pd.set_option("display.precision", 2)

# %% [markdown]
# ## 1. The question
#
# *More buffers smooth the flow. What do they do to a checkpoint?* The measured chain of notebook 3, saturated, with
# three sizes of the pool that the channels of a gate share, aligned and not: six settings, five seeds each, since an
# interval needs five.

# %%
question = """
title = "Buffers"
question = "What do more buffers do to a checkpoint?"

[[part]]
name = "chain"
scenario = "flink_chain"
seeds = { first = 1, last = 5 }
set = { until_s = 16.0, warmup_s = 6.0 }
[part.grid]
mode = ["aligned", "unaligned"]
"channel.default.floating_buffers" = [0, 8, 32]
"""
folder = tempfile.TemporaryDirectory()
file, out = Path(folder.name, "buffers.toml"), Path(folder.name, "sweep")
file.write_text(question)
tables = run_sweep(file, out, master="local[2]")
pd.DataFrame({"rows": {name: len(table) for name, table in tables.items()}})

# %% [markdown]
# On a cluster `local[2]` is the URL of its master, and nothing else changes; without Java it is `processes`. A sweep
# that is stopped goes on where it was: a run is known by a digest of its settings and its seed.
#
# ## 2. The answer
#
# Reckoned on Spark, as `barrierlab report` prints it; for so few rows it would take DuckDB by itself.

# %%
Markdown("\n".join(f"> {sentence}\n>" for sentence in answer(out, "spark", "local[2]")))

# %% [markdown]
# Read the second sentence before the third: the job is overloaded, so its durations are those of full buffers.
#
# ## 3. The tables, in DuckDB
#
# A sweep is a folder of Parquet files. What was set is a column of JSON in `runs`.

# %%
checkpoints, runs = f"'{out}/checkpoints/**/*.parquet'", f"'{out}/runs/**/*.parquet'"
found = duckdb.sql(f"""
    SELECT parameters->>'mode' AS mode,
           CAST(parameters->>'$."channel.default.floating_buffers"' AS INTEGER) AS buffers,
           seed,
           avg(end_to_end_duration_ms) / 1e3 AS duration_s,
           avg(persisted_bytes) / 1e6 AS persisted_mb
    FROM {checkpoints} AS c JOIN {runs} AS r USING (run_id)
    WHERE steady AND c.status = 'COMPLETED'
    GROUP BY ALL ORDER BY ALL
""").df()
found.groupby(["mode", "buffers"])[["duration_s", "persisted_mb"]].agg(["mean", "min", "max"])

# %% [markdown]
# ## 4. And in pandas
#
# Each buffer more is more to wait behind, or more to store. A seed is a dot.

# %%
look = {"kind": "scatter", "x": "buffers", "s": 18, "figsize": (5, 2.6)}
aligned, unaligned = (found.query(f"mode == '{mode}'") for mode in ("aligned", "unaligned"))
aligned.plot(y="duration_s", color="#1f9aa0", title="aligned", ylabel="duration, s", **look)
axes = unaligned.plot(y="persisted_mb", color="#dd7000", title="unaligned", ylabel="persisted, MB", **look)

# %% [markdown]
# The longest waits on the barrier's way, aligned: the mean start delay in ms, by operator and buffers.

# %%
settings = read(out)["runs"][["run_id", "mode", "channel.default.floating_buffers"]]
tasks = tables["tasks"].query("steady").merge(settings).query("mode == 'aligned'")
delays = tasks.groupby(["operator", "channel.default.floating_buffers"])["start_delay_ms"].mean().unstack()
delays.loc[["source", "fast", "slow", "sink"]]

# %%
folder.cleanup()

# %% [markdown]
# `sim/scenarios/sweeps/` has larger ones, `barrierlab report` writes the page, and with `--events` the journals are
# tables, too, which `barrierlab verify` judges a second time in SQL. Last: [a twin of your
# job](09_a_twin_of_your_job.ipynb).
