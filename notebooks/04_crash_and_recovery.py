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
# # Crash and recovery
#
# A checkpoint is taken to be thrown away. It is needed when something fails: then the whole job goes back to the
# newest complete one, and its sources replay what came after it. What the outside sees of that is up to the sink. This
# notebook shows what *exactly once* costs, and what is saved by barriers that nobody waits for.

# %%
# %matplotlib inline
import pandas as pd

from barrierlab import load, run

pd.set_option("display.precision", 1)
promises = ["exactly_once", "at_least_once", "idempotent"]
runs = {promise: run(load("crash_and_recover", {"guarantee": promise}), seed=1) for promise in promises}
{promise: result.verdict for promise, result in runs.items()}

# %% [markdown]
# ## 1. What the outside sees
#
# Two sources, *count*, a sink. *count* crashes at 5.0 s, and at 12.6 s, the second time with a checkpoint under way.
#
# * The sink that promises **at least once** writes each record when it comes. After a crash it writes again what it had
#   written since the checkpoint.
# * The one that promises **exactly once** collects, and commits when it hears that the checkpoint is complete. Its line
#   is a staircase; what a crash throws away was never visible.
# * An **idempotent** one writes at once, each record under a name: what comes again replaces itself.
#
# (The run ends at 20 s; what the staircase lacks then would come with the next checkpoint.)

# %%
at_once = runs["at_least_once"].events.query("verb == 'write'")
upserts = runs["idempotent"].events.query("node == 'sink' and verb == 'upsert'").drop_duplicates("subject")
commits = runs["exactly_once"].events.query("verb == 'commit'")
commits = commits.assign(name=commits["subject"].str.split(",").str[0], records=commits["subject"].str.count("Event"))
commits = commits.drop_duplicates("name")  # one that is repeated after a restore has no effect

seen = pd.DataFrame({"at least once": pd.Series(1, at_once["at_ms"] / 1e3).groupby(level=0).sum()})
seen = seen.join(pd.Series(1, upserts["at_ms"] / 1e3, name="idempotent").groupby(level=0).sum(), how="outer")
seen = seen.join(commits.assign(s=commits["at_ms"] / 1e3).set_index("s")["records"].rename("exactly once"), how="outer")
look = {"drawstyle": "steps-post", "figsize": (9, 3.4), "color": ["#3b82c4", "#e08a1e", "#3f9d63"]}
axes = seen.fillna(0).cumsum().plot(xlabel="time, s", ylabel="records written", **look)
crashes_s = runs["exactly_once"].recoveries["failed_at_ms"] / 1e3
lines = axes.vlines(crashes_s, *axes.get_ylim(), color="#d64045", linestyle="--", label="crash")
legend = axes.legend()

# %% [markdown]
# All three runs have the same arrivals, crashes and checkpoints, and hold: judged by following each record through all
# attempts. In numbers:

# %%
rows = {promise: result.run_row() for promise, result in runs.items()}
columns = ["events_in", "events_replayed", "duplicates", "failures", "recovery_time_max_ms", "catch_up_max_ms"]
pd.DataFrame(rows).T[columns]

# %% [markdown]
# So exactly once costs no record, and it costs time: until the next checkpoint is complete nothing is visible.

# %%
waits = pd.DataFrame({"commit at s": commits["at_ms"] / 1e3, "records": commits["records"]})
waits["seconds since the one before"] = waits["commit at s"].diff().fillna(waits["commit at s"])
waits.reset_index(drop=True)

# %% [markdown]
# ## 2. What a failure costs
#
# Down for detection and restart, then the backlog is worked off at what the job can do beyond its load.

# %%
columns = ["cause", "failed_at_ms", "restored_ms", "checkpoint_id", "downtime_ms", "events_replayed", "catch_up_ms"]
runs["exactly_once"].recoveries[columns]

# %% [markdown]
# ## 3. Barriers that nobody waits for
#
# If the state may count a record twice as well, nobody need wait for a barrier: **tracked** barriers are counted, and
# an input is read on behind its own. Here `payments` are slow on their way to *count*. How long do `clicks` take from
# their source to *count*?

# %%
tracked = {mode: run(load("tracked", {"mode": mode}), seed=1) for mode in ["aligned", "tracked"]}
taken = {}
for mode, result in tracked.items():
    events = result.events
    emitted = events.query("verb == '>emit' and node == 'clicks'").groupby("subject")["at_ms"].last()
    late = events.query("verb == 'deliver' and node == 'count'").set_index("subject")
    taken[mode] = late.assign(emitted_ms=emitted).dropna(subset="emitted_ms").query("at_ms >= emitted_ms")
delays = pd.DataFrame(
    {mode: pd.Series((t["at_ms"] - t["emitted_ms"]).values, t["emitted_ms"].values / 1e3) for mode, t in taken.items()}
)
look = {"style": ".", "markersize": 3, "figsize": (9, 3), "color": ["#b98b00", "#3b82c4"]}
axes = delays.plot(xlabel="made at the source, s", ylabel="until count takes it, ms", **look)

# %% [markdown]
# Aligned, each checkpoint is a spike: clicks wait behind their barrier until that of the payments is in. Tracked,
# there is none. (*count* crashes at 5 s and goes back to the checkpoint at 3 s. What came in between is replayed from
# 6.5 s on, and drawn there.) The price is in the state: what was read from behind the barrier is in the snapshot, and
# comes again.

# %%
twice = {}
for mode, result in tracked.items():
    taken_at_count = result.events.query("node == 'count' and verb in ('deliver', 'snapshot', 'restored')")
    [cut, restored] = [taken_at_count.query(f"verb == '{verb}'").index[0] for verb in ("snapshot", "restored")]
    before = taken_at_count.loc[:cut].query("verb == 'deliver'")["subject"]
    again = taken_at_count.loc[restored:].query("verb == 'deliver'")["subject"]
    twice[mode] = {"verdict": result.verdict, "counted twice in the state": int(before.isin(again).sum())}
pd.DataFrame(twice).T

# %% [markdown]
# Both hold: what a protocol promises is what it is held to. `at least once` is half of the equation, that nothing is
# lost. Which of these your own code keeps is the question of [the next notebook](05_your_aligner.ipynb).
