"""The moves of a state that are enough: most orders of most moves lead to the same.

Moves of tasks that share no channel can be made in either order; so can a task's next message and what is sent behind
it. `Ample.moves` picks, for a state, moves with which every run from it can begin without a difference where it ends
(a persistent set: Godefroid 1996, chapter 4; Clarke, Grumberg and Peled, "Model Checking", 10.3). All that ends is
still reached, and what is broken stays broken to the end, so no verdict changes; shortest runs do, and are to be looked
for without this. That a reduced exploration says the same as a whole one is tested on small scopes, broken machines
among them.

In this order:

* *trigger*: it puts a command behind the commands that each source has already, and nothing else looks at it, while no
  task may end (it would not be asked) and nothing may fail (it would not be lost);
* *reports* that reach the coordinator: only the last of a checkpoint decides anything, and only something that
  could still abort that checkpoint would make a difference;
* *orders* that come too late to matter: an abort of what is done with there, or older than what is under way;
* *a task*, if nobody else can change what it may do next: each of its inputs that it reads has a message waiting, or
  will never have one again; nothing that the coordinator could tell it is still open; and there is always room for
  what it sends. Which of several such tasks it is changes no verdict: the last in the direction of the channels that
  has one move alone, or else the first that has more, as what is behind it would repeat its choices.

Equal sources are no symmetry to reduce by: a join drains what it buffered in the order of its inputs, so that
exchanging two of three leads elsewhere. Two of two may be exchanged, as one at most has something buffered when both
barriers are in; but a state is numbers that stand for values with names in them, and to find its mirror costs as much
as to explore it.

When a checkpoint is aborted from outside, it may be aborted as early as that makes no other difference: the orders
then wait, and a task obeys when it will. So the time is no choice of the exploration but of `plans`.

Each shortcut rests on a property of what is explored. None is taken from the code of `impl`: another's aligner, or a
mutant, may lack it. So it is looked at in what was explored, and a scope in which it fails is explored whole
(`Ample.reduction_unsound`), or the shortcut is taken for the machines of `impl` alone. Looking afterwards is enough: up
to the first step that lacks the property the reduction is right, so it comes to a run with that step in it.

==========================  ==============================================================  =========================
shortcut                    property that it rests on                                       how it is known
==========================  ==============================================================  =========================
a trigger first             no task sees a trigger but by its orders                        by the world
a report first,             a part is whole when it is acknowledged, and stays as it is;    `TaskTransitions.
a manifest first            who has ended does nothing more                                 parts_are_late`
an abort first, that        it would change nothing later either: a gate that forgets what  `TaskTransitions.
changes nothing now         was aborted before its barrier came obeys the same abort then   ignores_always`
a notice first              sinks alone look at it, and nothing fails any more              by the world
a task first                what it does next is a function of itself and of the heads of   by the world
                            its inputs
the same                    nobody takes room from it                                       `World.was_full`
the same                    the coordinator tells it nothing but what is planned            `World.gave_up`
the same                    a sink looks at heads only, and lets nothing overtake           `TaskTransitions.
                                                                                            always_aligns`
nothing is put off for      no task comes back to what it was by steps that use nothing up  `TaskTransitions.is_acyclic`
ever (`explore`, acyclic)
`plans`: aborted at once    the source ignores an abort of what it has sent                 as *an abort first*
`plans`: a deadline passes  it passes for what is under way and declines that, so that the  `TaskTransitions.
when all is aborted         coordinator comes to the same                                   declines_what_is_late`
the same, two checkpoints,  an older checkpoint is none the worse for a cancel marker that  `impl`'s alone
two aligning tasks in line  waits behind its barrier                                        (`can_be_planned`)
tables of steps             a machine is a function of what it captured: no chance,         `model.checkpoint.external`
tries it
                            nothing kept elsewhere                                          on walks
plans share those tables    no machine sees which faults are to come                        by the world
==========================  ==============================================================  =========================

A message that stays in its channel, be it that ``can_take`` says so or that ``offer`` refuses it, makes no difference
to these: either is a function of the task and of the head, which only the task itself can change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import networkx as nx

from barrierlab.impl.checkpoint.report import Acknowledge
from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.task_transitions import Finished
from barrierlab.model.checkpoint.world import Move, World, WorldState


def plans(bounds: Bounds) -> Iterator[Bounds]:
    """Yield the bounds that together come to the same as one in which something may be aborted at any time.

    A checkpoint may be aborted as soon as it is triggered, and with it all that are older; or, if an older one is to
    complete first, as soon as that has. A task's deadline that passes aborts its checkpoint everywhere, which no task
    can tell from being aborted from outside; so that is planned, and which task's deadline passes.

    Nothing is planned where the job may fail: what is aborted early is not what a failure finds, and behind a restore
    there are more checkpoints than `Bounds.checkpoints`.
    """
    if bounds.crashes or (not bounds.cancels and not bounds.expiries):
        yield bounds
        return
    topology = bounds.graph()
    aligning = [name for name in topology.tasks if len(topology.inputs(name)) > 1]
    yield replace(bounds, cancels=0, expiries=0)
    for checkpoint_id in range(1, bounds.checkpoints + 1):
        for behind in range(checkpoint_id):
            planned = replace(bounds, cancels=0, expiries=0, aborts_one=(checkpoint_id, behind))
            if bounds.cancels:
                yield planned
            if bounds.expiries:
                for name in aligning:
                    yield replace(planned, expiries=1, may_expire=(name,))


def can_be_planned(bounds: Bounds, components: Components) -> bool:
    """Return whether `plans` are enough for such machines.

    Where a deadline may pass at one task while an older checkpoint is still to complete at another behind it, the plans
    leave out that the older one completes after the cancel marker has come there. That makes no difference to the
    machines of `impl` (protocol rule 10), and is not known of others.
    """
    if not bounds.expiries or bounds.checkpoints < 2 or components == SOUND:
        return True
    topology = bounds.graph()
    aligning = {topology.operator_of(name) for name in topology.tasks if len(topology.inputs(name)) > 1}
    return not any(aligning & nx.descendants(topology.graph(), name) for name in aligning)


class Ample:
    """The reduction of one world.

    Parameters
    ----------
    world : World
        One of the planned ones.
    whole : Bounds, optional
        That of which it is a plan; by default it is none.

    Attributes
    ----------
    world : World
    whole : Bounds or None
    ahead : dict of (int, int) to set of int
        By task and order, in which cells that order was made early.
    reduction_unsound : bool
        Whether the exploration so far has seen what this reduction is not for (the table above): what was explored by
        it says nothing then.
    """

    def __init__(self, world: World, whole: Bounds | None = None) -> None:
        self.world = world
        self.whole = whole
        self._may_expire = bool((whole or world.bounds).expiries)
        self.ahead: dict[tuple[int, int], set[int]] = {}
        bounds, topology = world.bounds, world.topology
        self._roomy = _most_messages(bounds, world) <= bounds.capacity and not bounds.sender_records
        self._senders = [
            [topology.tasks.index(topology.ends(channel)[0]) for channel in topology.inputs(name)]
            for name in topology.tasks
        ]
        self._goes_ahead = [bounds.protocol.goes_unaligned and not table.always_aligns for table in world.tables]
        self._shows_at_once = [
            bounds.guarantee == "idempotent" and not topology.outputs(name) for name in topology.tasks
        ]
        upstream = [topology.tasks.index(name) for name in nx.topological_sort(topology.graph())]
        self._downstream = upstream[::-1]
        # Sources that may end at any time come last: that leaves fewer states.
        self._upstream = sorted(upstream, key=lambda at: bounds.closes and not self._senders[at])
        self._is_open_ended = bool(bounds.cancels or (bounds.expiries and bounds.aborts_one is None))

    @property
    def reduction_unsound(self) -> bool:
        """Return whether this reduction was not for what has been explored."""
        world = self.world
        if (world.gave_up and not self._is_open_ended) or (world.was_full and self._roomy):
            return True
        for table in world.tables:
            if table.parts_are_late or not table.is_acyclic():
                return True
            if self._may_expire and not self._is_open_ended and not table.declines_what_is_late():
                return True
        return not all(world.changes_nothing_later(*where, cells) for where, cells in self.ahead.items())

    def moves(self, state: WorldState, moves: Sequence[Move]) -> Sequence[Move]:
        """Those of `moves` that are enough; all of them if it is not known which."""
        by_task: dict[int, list[Move]] = {}
        for move in moves:
            kind = move.kind
            if kind == "task":
                by_task.setdefault(move.numbers[0], []).append(move)
            elif kind == "order":
                if self._may_be_obeyed(state, move):
                    return (move,)
                if not self.world.is_notice(move):
                    by_task.setdefault(move.numbers[0], []).append(move)
            elif kind == "report":
                if self._may_be_heard(state, move):
                    return (move,)
            elif kind == "trigger":
                if not self.world.bounds.closes and not self.world.may_fail(state):
                    return (move,)
            elif kind == "publish" and not self._is_open_ended and not self.world.may_fail(state):
                return (move,)
        if not self._roomy or self._is_open_ended:
            return moves
        for at in self._downstream:
            its = by_task.get(at, ())
            if len(its) == 1 and self._is_settled(state, at, its):
                return its
        for at in self._upstream:
            its = by_task.get(at, ())
            if len(its) > 1 and self._is_settled(state, at, its):
                return its
        return moves

    def _may_be_heard(self, state: WorldState, move: Move) -> bool:
        """Return whether a report can be heard first: it decides nothing, or nothing else could make a difference to
        it."""
        report, world = self.world.reported(move), self.world
        if type(report) is Acknowledge:
            if self._is_open_ended or world.may_fail(state):
                return len(world.outstanding(state).get(report.checkpoint_id, ())) != 1
            return True
        if type(report) is not Finished or self._is_open_ended or world.can_trigger(state):
            return False
        return not (world.may_fail(state) and world.decides(state, move))

    def _may_be_obeyed(self, state: WorldState, move: Move) -> bool:
        """Return whether an order makes no difference to the task, but to what is outside."""
        if self.world.is_notice(move):
            return not self.world.may_fail(state)
        if not self.world.changes_nothing(state, move):
            return False
        at, number = move.numbers
        self.ahead.setdefault((at, number), set()).add(state[at])
        return True

    def _is_settled(self, state: WorldState, at: int, its: Sequence[Move]) -> bool:
        """Return whether no other task, nor the coordinator, can change what the task may do next."""
        world = self.world
        orders = [move for move in its if move.kind == "order"]  # none, if what comes next is a notice
        if not orders and (world.has_orders(state, at, but_notices=True) or self._may_be_notified(state, at)):
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
            is_read = index in info.takes and (world.reads_on or not info.can_drain)
            if is_read and not waits and not self._is_over(state, sender):
                return False
        return True

    def _may_be_notified(self, state: WorldState, at: int) -> bool:
        """Return whether the coordinator may come to tell the task something before that moves."""
        world = self.world
        if not self._senders[at] and world.can_trigger(state):
            return True
        plan = world.bounds.aborts_one
        if plan is None:
            return False
        _, behind = plan
        if not behind:
            return world.can_trigger(state)
        outstanding = world.outstanding(state).get(behind)
        if outstanding is None:
            return False
        return world.topology.tasks[at] not in outstanding or world.has_reports(state, at)

    def _is_over(self, state: WorldState, at: int) -> bool:
        """Return whether nothing more will come of a task."""
        world = self.world
        info = world.info(state, at)
        if info.finished and not info.outbox:
            return True
        if world.has_orders(state, at) or self._may_be_notified(state, at) or info.outbox or info.can_drain:
            return False
        if not self._senders[at]:
            return info.script is None and not world.bounds.closes
        if info.expires and (info.expires == "switch" or world.bounds.expiries):
            return False
        return all(
            not world.has_messages(state, at, index) and self._is_over(state, sender)
            for index, sender in enumerate(self._senders[at])
        )


def _most_messages(bounds: Bounds, world: World) -> int:
    """The most messages that a channel ever carries."""
    topology = world.topology
    own = bounds.events + bounds.watermarks
    passed: dict[str, int] = {}
    for name in nx.topological_sort(topology.graph()):
        inputs = topology.inputs(name)
        passed[name] = sum(passed[topology.ends(channel)[0]] for channel in inputs) if inputs else own
    return max(passed.values()) + 2 * bounds.checkpoints + 1
