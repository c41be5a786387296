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
# # Your aligner
#
# Who writes an engine writes the part that decides, input by input, what may be taken while a checkpoint is under way.
# Here is one in thirty lines. It takes the place of the one in `impl`, in whole dataflows of the real tasks and
# coordinator, and every order of their messages is tried: red, a picture, green.
#
# It is the one notebook with a class of its own; [Your aligner](../docs/your-aligner.md) says what each method is for.

# %%
import pandas as pd

from barrierlab.impl import CheckpointBarrier, SnapshotFailedError
from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.model.suites.conformance import cases, outcomes

pd.set_option("display.max_colwidth", 90)

# %% [markdown]
# ## 1. A first draft
#
# Messages come in by `offer`, effects go out by calls of the port. `seen` remembers which barriers are in; with the
# last one it takes the snapshot, and sends the barrier on. What it does not take part in yet, it declares.

# %%


class Draft:
    """Counts what is in, by input."""

    capabilities = Capabilities(aborts=False, ends=False, timeout=False, limits=False, leaves_in_channel=True)

    def __init__(self, port, config):
        self.port, self.seen = port, [False] * config.num_inputs

    def can_take(self, input_id):
        return True

    def offer(self, input_id, message, now_ns):
        if not self.can_take(input_id):
            return False  # it stays in its channel
        if type(message) is not CheckpointBarrier:
            self.port.deliver(input_id, message)
        else:
            self.seen[input_id] = True
            self.port.block(input_id, message.checkpoint_id)
            if all(self.seen):
                self.cut(message)
        return True

    def cut(self, barrier):
        self.seen = [False] * len(self.seen)
        try:
            self.port.snapshot(barrier)
        except SnapshotFailedError as error:
            self.port.decline(barrier.checkpoint_id, error.reason)
            self.port.cancel(barrier.checkpoint_id)
        else:
            self.port.forward(barrier)
            self.port.complete(barrier)
        self.port.resume(barrier.checkpoint_id)

    def capture(self):
        return tuple(self.seen)

    def restore(self, value):
        self.seen = list(value)


# %% [markdown]
# ## 2. Red
#
# Each row is a small dataflow, explored to the end, or until something breaks. With one input nothing can go wrong: not
# even a crash. With two it does.

# %%
red = outcomes(Draft)
pd.DataFrame(
    {
        "verdict": {each.name: each.verdict for each in red},
        "states": {each.name: each.states for each in red},
        "breaks": {each.name: ", ".join(v.invariant for v in each.violations) for each in red},
        "moves": {each.name: ", ".join(str(v.steps) for v in each.violations) for each in red},
    }
)

# %% [markdown]
# ## 3. The picture
#
# A shortest run of the smallest dataflow that breaks. The barrier of `a` is in, and what comes behind it is taken all
# the same, ahead of the cut of `s`: an orphan, as in notebook 2.

# %%
[broken, *others] = [violation for each in red for violation in each.violations]
broken

# %% [markdown]
# ## 4. Green
#
# An input that has delivered its barrier waits for the others. That is one line.

# %%


class Waits(Draft):
    """Reads nothing more from an input whose barrier is in."""

    def can_take(self, input_id):
        return not self.seen[input_id]


green = outcomes(Waits)
verdicts = pd.DataFrame({"draft": {each.name: each.states for each in red}})
verdicts["waits"] = {each.name: each.states for each in green}
verdicts["verdict of waits"] = {each.name: each.verdict for each in green}
verdicts

# %% [markdown]
# The numbers are states: who waits can be in fewer.
#
# ## 5. What was not asked
#
# It holds as far as it declares to take part. A verdict that left something out says so: these scopes need what the
# class has not, and are skipped until it does.

# %%
reasons = pd.Series([case.not_asked for case in cases(Waits) if case.not_asked], name="scopes").value_counts()
reasons.to_frame()

# %% [markdown]
# In a test suite that is one file (`cases(MyAligner)`, a test for each scope), on the command line
# `barrierlab check --impl my_engine.aligner:Waits`, in CI [an action](../docs/in-ci.md). Aborts are next: who lets the
# inputs go when a checkpoint is aborted, and does not remember it, waits for ever when the late barrier comes. That is
# one of [the defects](06_the_gallery_of_defects.ipynb).
