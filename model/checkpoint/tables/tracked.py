"""Tracked checkpoints: the barriers of a checkpoint are counted, and an input is read on behind its own.

Invariant: a snapshot holds all that came before the barriers; it may buffer what came after one, too.

Flink's ``AT_LEAST_ONCE`` mode. All that waits is the end of an input behind its barrier: a task that has ended could
send no barrier. A newer barrier ends the count of an older checkpoint (protocol rule 6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from barrierlab.model.checkpoint.tables.actions import block, resume
from barrierlab.model.checkpoint.tables.aligned import ALIGNED
from barrierlab.model.checkpoint.tables.common import NOT_SAID
from barrierlab.model.checkpoint.tables.gate import GateState
from barrierlab.model.checkpoint.tables.stimuli import Stimulus
from barrierlab.model.explore.table import Action, Table


def _read_on(then: tuple[Action[GateState, Stimulus], ...]) -> Iterator[Action[GateState, Stimulus]]:
    """The actions of an aligned checkpoint, where an input that is blocked is read on at once."""
    for action in then:
        yield action
        if action is block:
            yield resume


TRACKED = Table(
    *(replace(row, then=tuple(_read_on(row.then))) for row in ALIGNED.rows), theory=__doc__, not_said=NOT_SAID
)
