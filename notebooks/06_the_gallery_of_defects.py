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
# # The gallery of defects
#
# Documents describe protocols, and engines implement them. This is what went wrong: 111 sentences of documents that
# break when they are taken at their word, and 29 public reports about engines. Each is kept as the smallest change to
# the sound code (or as a scheme of a few lines), and is found again here, by exploring every order of events.

# %%
# %matplotlib inline
import pandas as pd
from ipywidgets import Tab

from barrierlab.model.defects.catalogue import catalogue, entry
from barrierlab.model.defects.engines.catalogue import reports
from barrierlab.sim.notebook import explore

pd.set_option("display.max_colwidth", None)

# %% [markdown]
# ## 1. How short are they?
#
# All entries that can be run, in some seconds. Each dot is one that was explored: the moves of a shortest run that
# shows it, and how many states were seen until it was found. Most need one event, one checkpoint, and a dozen moves.

# %%
rows = []
for each in (each for each in catalogue() if each.defect is not None):
    status, found = each.run()
    rows.append((each.id, each.document, each.title, each.defect.breaks, status, found.steps, found.states))
columns = ["id", "document", "title", "breaks", "status", "steps", "states"]
documents = pd.DataFrame(rows, columns=columns).set_index("id")
explored = documents[documents["states"] > 0]
axes = None
colours = ["#3b82c4", "#e08a1e", "#3f9d63", "#9467bd", "#8c8c8c"]
colour_of = dict(zip(sorted(documents["document"].unique()), colours, strict=True))
for document, group in explored.groupby("document"):
    look = {"kind": "scatter", "logy": True, "color": colour_of[document], "label": document, "alpha": 0.7}
    axes = group.plot(x="steps", y="states", ax=axes, figsize=(9, 3.6), xlabel="moves", **look)

# %% [markdown]
# ## 2. What do they break?
#
# `value` are wrong values that show in a call or two; the others are invariants of whole runs.

# %%
counts = documents.groupby(["breaks", "document"]).size().unstack(fill_value=0)
counts = counts.loc[counts.sum(axis=1).sort_values().index]
axes = counts.plot.barh(stacked=True, color=colours, figsize=(9, 4.4), xlabel="entries", ylabel="")

# %% [markdown]
# ## 3. Four of them
#
# **Recorded, and sent again** (U-05). Unaligned: what is on the way *ahead of the barrier* is part of the checkpoint.
# Here the record is of all that is in the channel.

# %%
four = {each: entry(each).defect.as_documented() for each in ["U-05", "A-01", "A-15", "U-14"]}
four["U-05"]

# %% [markdown]
# **Lost** (A-01). A barrier of another checkpoint is counted as the one that is awaited.

# %%
four["A-01"]

# %% [markdown]
# In Jupyter these are tabs to walk through: the two above; an input that has ended, for whose barrier a task waits for
# ever; and a restore in the wrong order (U-14).

# %%
Tab([explore(found.trace) for found in four.values()], titles=list(four))

# %% [markdown]
# ## 4. Engines
#
# What was reported in public, of engines that run in the world, written as schemes of a few lines from what the report
# says. As reported each breaks; as repaired it holds in the same scope. Nothing is said about their code of today.

# %%
rows = []
for each in reports():
    status, found = each.run()
    rows.append((each.id, each.engine, each.wrong, each.defect.breaks, found.steps, status))
columns = ["report", "engine", "what went wrong", "breaks", "steps", "status"]
engines = pd.DataFrame(rows, columns=columns).set_index("report")
engines.sort_values("steps").tail(12)

# %% [markdown]
# The longest of these runs is of the same mistake as that of the [planted aligner](../docs/your-aligner.md): an abort
# that comes first, and a barrier that comes late.

# %%
[seatunnel] = [each for each in reports() if each.id == "SEATUNNEL-11559"]
seatunnel.defect.as_documented()

# %% [markdown]
# `barrierlab defects A-01` prints one with its page; [why documents go wrong](../docs/explanation/documents.md) sorts
# them. Barriers that join streams of sensors have some of their own: [the next notebook](07_joins.ipynb).
