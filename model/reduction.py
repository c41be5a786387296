"""Which moves of a state are enough: most orders of most moves lead to the same.

Moves of tasks that share no channel can be made in either order; so can a task's next message and what is sent behind
it. `Ample.moves` picks, for a state, moves with which every run from it can begin without a difference where it ends
(a persistent set: Godefroid 1996, chapter 4; Clarke, Grumberg and Peled, "Model Checking", 10.3). All that ends is
still reached, and what is broken stays broken to the end, so no verdict changes; shortest runs do, and are to be looked
for without this. That a reduced exploration says the same as a whole one is tested on small scopes, broken machines
among them.

In this order:

* *trigger*: it puts a command behind what each source is told already, and nothing else looks at it, while no
  task may end (it would not be asked) and nothing may fail (it would not be lost);
* *reports* that reach the coordinator: only the last of a checkpoint decides anything, and only something that
  could still give that checkpoint up would make a difference;
* *orders* that come too late to matter: an abort of what is done with there, or older than what is under way;
* *a task*, if nobody else can change what it may do next: each of its inputs that it reads has a message waiting, or
  will never have one again; nothing that the coordinator could tell it is still open; and there is always room for
  what it sends.

Equal sources are no symmetry to reduce by: a join releases what it held in the order of its inputs, so that exchanging
two of three leads elsewhere. Two of two may be exchanged, as one at most has something held when both barriers are in;
but a state is numbers that stand for values with names in them, and to find its mirror costs as much as to explore it.

When a checkpoint is given up from outside, it may be given up as early as that makes no other difference: the orders
then wait, and a task obeys when it will. So the time is no choice of the exploration but of `plans`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import networkx as nx

from impl.task import Acknowledge
from model.cells import Finished
from model.setup import Setup
from model.world import Move, State, World


def plans(setup: Setup) -> Iterator[Setup]:
    """The setups that together come to the same as one in which something may be given up at any time.

    A checkpoint may be given up as soon as it is triggered, and with it all that are older; or, if an older one is to
    complete first, as soon as that has. A task's deadline that passes gives its checkpoint up everywhere, which no task
    can tell from being given up from outside; so that is planned, and which task's deadline passes.
    """
    if not setup.cancels and not setup.expiries:
        yield setup
        return
    topology = setup.graph()
    aligning = [name for name in topology.tasks if len(topology.inputs(name)) > 1]
    yield replace(setup, cancels=0, expiries=0)
    for checkpoint_id in range(1, setup.checkpoints + 1):
        for behind in range(checkpoint_id):
            planned = replace(setup, cancels=0, expiries=0, gives_up=(checkpoint_id, behind))
            if setup.cancels:
                yield planned
            if setup.expiries:
                for name in aligning:
                    yield replace(planned, expiries=1, may_expire=(name,))


class Ample:
    """The reduction of one world.

    Attributes
    ----------
    world : World
    is_void : bool
        Whether the exploration so far has seen a checkpoint given up that nobody was to give up: this reduction was
        not for such a world, and what was explored by it says nothing.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        setup, topology = world.setup, world.topology
        self._roomy = _most_messages(setup, world) <= setup.capacity and not setup.sender_records
        self._senders = [
            [topology.tasks.index(topology.ends(channel)[0]) for channel in topology.inputs(name)]
            for name in topology.tasks
        ]
        self._goes_ahead = [
            setup.mode != "aligned" and bool(topology.inputs(name)) and bool(topology.outputs(name))
            for name in topology.tasks
        ]
        self._shows_at_once = [
            setup.guarantee == "idempotent" and not topology.outputs(name) for name in topology.tasks
        ]
        self._is_open_ended = bool(setup.cancels or (setup.expiries and setup.gives_up is None))

    @property
    def is_void(self) -> bool:
        """Whether a checkpoint was given up that was not to be."""
        return self.world.gave_up and not self._is_open_ended

    def moves(self, state: State, moves: Sequence[Move]) -> Sequence[Move]:
        """Those of `moves` that are enough; all of them if it is not known which."""
        by_task: dict[int, list[Move]] = {}
        for move in moves:
            if move.kind == "trigger" and not self.world.setup.closes and not self.world.may_fail(state):
                return (move,)
            if move.kind == "report" and self._may_be_heard(state, move):
                return (move,)
            if move.kind == "publish" and not self._is_open_ended and not self.world.may_fail(state):
                return (move,)
            if move.kind == "order" and self._may_be_obeyed(state, move):
                return (move,)
            if move.kind in ("task", "order") and not self.world.is_notice(move):
                by_task.setdefault(move.numbers[0], []).append(move)
        if not self._roomy or self._is_open_ended:
            return moves
        best: Sequence[Move] = moves
        for at, its in by_task.items():
            if len(its) < len(best) and self._is_settled(state, at, its):
                if len(its) == 1:
                    return its
                best = its
        return best

    def _may_be_heard(self, state: State, move: Move) -> bool:
        """Whether a report can be heard first: it decides nothing, or nothing else could make a difference to it."""
        report, world = self.world.reported(move), self.world
        if type(report) is Acknowledge:
            if self._is_open_ended or world.may_fail(state):
                return len(world.outstanding(state).get(report.checkpoint_id, ())) != 1
            return True
        if type(report) is not Finished or self._is_open_ended or world.can_trigger(state):
            return False
        return not (world.may_fail(state) and world.decides(state, move))

    def _may_be_obeyed(self, state: State, move: Move) -> bool:
        """Whether an order makes no difference to the task, but to what is outside."""
        if self.world.is_notice(move):
            return not self.world.may_fail(state)
        return self.world.changes_nothing(state, move)

    def _is_settled(self, state: State, at: int, its: Sequence[Move]) -> bool:
        """Whether no other task, nor the coordinator, can change what the task may do next."""
        world = self.world
        orders = [move for move in its if move.kind == "order"]  # none, if what comes next is a notice
        if not orders and (world.has_orders(state, at, but_notices=True) or self._may_be_told(state, at)):
            return False
        if self._shows_at_once[at] and world.may_fail(state):
            return False
        info = world.info(state, at)
        if info.outbox:
            return False
        overtaken = {move.numbers[1] for move in its if move.text.startswith("overtake")}
        for index, sender in enumerate(self._senders[at]):
            waits = world.has_messages(state, at, index)
            if self._goes_ahead[at] and index not in overtaken and not self._is_over(state, sender):
                return False
            is_read = index in info.takes and (world.reads_on or not info.has_released)
            if is_read and not waits and not self._is_over(state, sender):
                return False
        return True

    def _may_be_told(self, state: State, at: int) -> bool:
        """Whether the coordinator may come to tell the task something before that moves."""
        world = self.world
        if not self._senders[at] and world.can_trigger(state):
            return True
        plan = world.setup.gives_up
        if plan is None:
            return False
        _, behind = plan
        if not behind:
            return world.can_trigger(state)
        outstanding = world.outstanding(state).get(behind)
        return outstanding is not None and world.topology.tasks[at] not in outstanding

    def _is_over(self, state: State, at: int) -> bool:
        """Whether nothing more will come of a task."""
        world = self.world
        info = world.info(state, at)
        if info.finished and not info.outbox:
            return True
        if world.has_orders(state, at) or self._may_be_told(state, at) or info.outbox or info.has_released:
            return False
        if not self._senders[at]:
            return info.script is None and not world.setup.closes
        if info.expires and (info.expires == "switch" or world.setup.expiries):
            return False
        return all(
            not world.has_messages(state, at, index) and self._is_over(state, sender)
            for index, sender in enumerate(self._senders[at])
        )


def _most_messages(setup: Setup, world: World) -> int:
    """The most messages that a channel ever carries."""
    topology = world.topology
    own = setup.events + setup.watermarks
    passed: dict[str, int] = {}
    for name in nx.topological_sort(topology.graph()):
        inputs = topology.inputs(name)
        passed[name] = sum(passed[topology.ends(channel)[0]] for channel in inputs) if inputs else own
    return max(passed.values()) + 2 * setup.checkpoints + 1
