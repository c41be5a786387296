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
# # The orphan message
#
# Notebook 1 showed a cut that is consistent. Here is one that is not. It comes from a sentence in a document that reads
# well: when the last barrier is in, a task
#
# > (a) snapshots its state, ... (c) processes the drained events, (d) then forwards the barrier.
#
# What waited behind the barrier is drained one step too early. This notebook shows the shortest run in which that
# matters, what it costs in a job, and the repair.

# %%
# %matplotlib inline
import pandas as pd
from IPython.display import Code

from barrierlab import load, run
from barrierlab.model.defects.catalogue import entry
from barrierlab.sim.notebook import explore

pd.set_option("display.max_colwidth", None)

orphan = entry("A-04")
orphan.title

# %% [markdown]
# ## 1. The shortest run
#
# The real code of a task, with these two steps exchanged, in a dataflow of two sources, a join and a sink. Every order
# in which messages can come is explored; there is no shorter run that goes wrong.
#
# * `a1` is behind the barrier of `a`, and waits at *join* (the broad bar).
# * The barrier of `b` is in: *join* takes its snapshot. `a1` is behind this cut.
# * Then `a1` goes on to *s* **ahead of** the barrier. *s* has it before its own cut.
#
# Sent behind a cut, taken before one: the red arrow crosses the dashed cut backwards. `a1` is an **orphan**.

# %%
found = orphan.defect.as_documented()
found

# %% [markdown]
# In Jupyter you can walk through it, and drag the cut: it says whether it is consistent, and what is not.

# %%
explore(found.trace)

# %% [markdown]
# The same as text. A line after `>` is something that can happen, the lines below are what it brings about. This is the
# move of the last barrier.

# %%
begin, end = found.trace.index("> deliver b->join"), found.trace.index("> ack join 1")
Code(found.trace[begin:end], language="text")

# %% [markdown]
# ## 2. What it costs
#
# The same code in simulated time, in a job that crashes twice. The cut of a checkpoint is not looked at by anybody
# until it is needed: until the crash, all is well. Then the job goes back, *count* has not seen the event and takes it
# again, and the sink, which has it already, takes it a second time.

# %%
job = load("crash_and_recover")
documented = run(job, seed=2, components=orphan.defect.components)
sound = run(job, seed=2)
wrong = pd.DataFrame(documented.violation_rows())
wrong["invariant"].value_counts().to_frame("violations")

# %% [markdown]
# Ten invariants are asked of every run. CUT is the equation: what was sent before the cut is what was taken before it,
# and what is recorded in between. FWD is its cause, seen at one task; REC its effect, seen at the end: an event that
# counts twice.

# %%
wrong.groupby("invariant")[["reason"]].first()

# %% [markdown]
# ## 3. The repair
#
# Rule 8 of the [protocol](../docs/protocol.md): **forward right after the image, before anything buffered is drained.**
# In the same scope every order of messages now holds, and so does the job, under the very same arrivals and crashes.

# %%
explored = orphan.defect.sound()
rows = {
    "states that were explored": [found.states, explored.states],
    "moves of the shortest run": [found.steps, "there is none"],
    "violations in the job": [len(documented.violations), len(sound.violations)],
}
pd.DataFrame(rows, index=["as documented", "repaired"]).T

# %% [markdown]
# The same moment in the repaired job: the barrier goes on first (black), then what waited behind it (grey).

# %%
longest = sound.checkpoints.set_index("checkpoint_id")["alignment_max_ms"].idxmax()
sound.space_time(longest)

# %% [markdown]
# 111 sentences of that kind are kept, each with its shortest run: `barrierlab defects`. Notebook 6 walks through some.
# Next: three ways to treat a barrier, and [what each of them costs](03_aligned_unaligned_and_the_timeout.ipynb).
