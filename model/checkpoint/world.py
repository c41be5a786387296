"""A whole dataflow, untimed: the tasks and the coordinator of `impl` on bounded channels, moved in any order.

The world is a transition system (`model.explore.checker`): `start`, the `moves` of a state, and the state `after` one.
A state is a tuple of small numbers, one for each task, channel, queue of reports, queue of orders, the coordinator and
what is left of each fault; tables say what they stand for (`model.checkpoint.task_transitions`,
`model.checkpoint.coordinator_transitions`), and what a move does to a task is looked up there once it has been done
once. A move is small and has a line of text, such as ``deliver a->join``.

A move of a task ends with what it sends, as far as there is room; what is left waits in its outbox for ``push``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

from barrierlab.impl.checkpoint.actions import AbortTask, Inject, Notify
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.impl.checkpoint.recovery import Restore, Wiring, from_the_beginning, snapshot_of
from barrierlab.impl.checkpoint.report import Acknowledge, Decline, Tell
from barrierlab.impl.checkpoint.task import Task
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.impl.storage.snapshot import Checkpoint, Manifest
from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.checkpoint.coordinator_transitions import CoordinatorTransitions, Decision
from barrierlab.model.checkpoint.monitor import (
    TASK,
    CompletedCut,
    Past,
    TaskMonitor,
    completes,
    differs,
    raised,
)
from barrierlab.model.checkpoint.operators import refolding
from barrierlab.model.checkpoint.scope import Bounds, make_coordinator, make_operator, make_task
from barrierlab.model.checkpoint.task_transitions import CoordinatorOrder, Info, LocalStep, Note, TaskTransitions
from barrierlab.model.checkpoint.trace import NS_PER_MOVE, write
from barrierlab.model.checkpoint.trace_header import header_of
from barrierlab.model.errors import RAISED
from barrierlab.model.explore.checker import ExplorationLimits, UndecidedError, traps
from barrierlab.model.explore.intern import Interner
from barrierlab.model.explore.memo import Memo
from barrierlab.model.explore.queues import Queues
from barrierlab.model.spec.history import COORDINATOR, Entry
from barrierlab.model.spec.invariants import Verdict, judge_run
from barrierlab.model.spec.topology import Topology
from barrierlab.model.spec.watch import Breach

MOST_TO_REST = 10_000
"""States on the way of a run to rest; the longest of the standard scopes has fewer than a hundred."""

_DOWN = 1
"""In a state: the job has failed. More by the number of what is being written then."""

LATE = ("", " late")
"""The words of a move's text for the time."""
_LATENESS = (None, "late")
"""The same in a journal."""

WorldState = tuple[int, ...]
Does = Callable[["World", WorldState, "Move"], WorldState]


class Move:
    """One thing that can happen. There is one object for each, so that they compare by identity.

    Attributes
    ----------
    text : str
        ``"deliver a->join"``: what `World.move` reads back.
    does : callable
        Given the world and a state, what comes of it.
    kind : str
        ``"trigger"``, ``"cancel"``, ``"report"`` (what a task said reaches the coordinator), ``"order"`` (what the
        coordinator said reaches a task), or ``"task"``.
    numbers : tuple of int
        Where: of a task's moves, the task first.
    is_fault : bool
        Whether it costs a checkpoint, and need never happen.
    """

    __slots__ = ("does", "is_fault", "kind", "numbers", "text")

    def __init__(self, text: str, does: Does, *numbers: int, kind: str = "task", is_fault: bool = False) -> None:
        self.text = text
        self.does = does
        self.kind = kind
        self.numbers = numbers
        self.is_fault = is_fault

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"


class Stored(NamedTuple):
    """The content of the store: the newest complete checkpoint.

    Attributes
    ----------
    checkpoint_id : int
        0 if there is none.
    parts : tuple of Acknowledge
    pasts : tuple of Past
        By task, what the monitors know of it.
    wrong : tuple of (str, str)
        What the monitors have against it, if it was being written when the job failed: no task is left to say so then.
    """

    checkpoint_id: int
    parts: tuple[Acknowledge, ...]
    pasts: tuple[Past, ...]
    wrong: tuple[Breach, ...] = ()


class World:
    """Every run of bounds.

    Parameters
    ----------
    bounds : Bounds
    components : Components, optional
        Whose machines; those of `impl` by default.
    forgets : bool
        Whether a job that was restored forgets what was completed last, and one that cannot fail again what it
        committed and rolled back. Transactions have other names then: this is for a verdict, and not for a trace.

    Attributes
    ----------
    topology : Topology
    limits : ExplorationLimits
    gave_up : bool
        Whether, in any move so far, a task's refusal has cost a checkpoint.
    reads_on : bool
        Whether a task may take new messages while it has something to drain.
    was_full : bool
        Whether, in any move so far, a message has had to wait for room in its channel.

    Examples
    --------
    >>> world = World(Bounds("a->s", events=1))
    >>> state = world.start()
    >>> [str(move) for move in world.moves(state)]
    ['trigger 1', 'emit a']
    >>> [str(move) for move in world.moves(world.after(state, world.move("emit a")))]
    ['trigger 1', 'deliver a->s']
    """

    def __init__(self, bounds: Bounds, components: Components = SOUND, forgets: bool = False) -> None:
        self.bounds, self.components, self.forgets = bounds, components, forgets
        topology = self.topology = bounds.graph()
        self.limits = bounds.limits(topology)
        self.messages: Interner[StreamMessage] = Interner()
        self._flagged: dict[int, bool] = {}
        self._queues, self._reports, self._orders = Queues(self._takes_room, self._is_barrier), Queues(), Queues()
        self._report_values: Interner[object] = Interner()
        self._hearings: Memo[Decision] = Memo(self._hearing)
        self._recoveries: Memo[tuple[LocalStep, Acknowledge | None]] = Memo(self._recovered)
        self._order_values: Interner[CoordinatorOrder] = Interner()
        self._broken: Interner[tuple[Breach, ...]] = Interner(())
        self.gave_up = self.was_full = False
        self._log: list[Note] | None = None  # what happens, while anyone asks
        self._tables = [self._table(name) for name in topology.tasks]
        self._infos = [table.infos for table in self._tables]
        pasts = tuple(table.past[table.start, 0] for table in self._tables)
        self._stored: Interner[Stored] = Interner(Stored(0, (), pasts))
        self._pasts: Interner[Past] = Interner()
        self._past_numbers: Memo[int] = Memo(self._past_number)
        self._storings: Memo[int] = Memo(self._storing)
        self._plans: dict[int, Restore] = {}
        self._wiring = _wiring(topology)
        self._coordinator = CoordinatorTransitions(
            lambda first_id: make_coordinator(bounds, topology, components, first_id),
            bounds.checkpoints,
            bounds.recovers,
        )
        # Where each part of a state is.
        tasks, channels = len(topology.tasks), len(topology.channels)
        self._task_at = {name: at for at, name in enumerate(topology.tasks)}
        self._channel_at = {name: tasks + at for at, name in enumerate(topology.channels)}
        self._reports_at, self._orders_at = tasks + channels, 2 * tasks + channels
        self._coordinator_at = 3 * tasks + channels
        self._cancels_at, self._expiries_at = self._coordinator_at + 1, self._coordinator_at + 2
        self._crashes_at, self._down_at, self._stored_at = range(self._coordinator_at + 3, self._coordinator_at + 6)
        self._inputs_at = [[self._channel_at[c] for c in topology.inputs(name)] for name in topology.tasks]
        self._may_expire = [not bounds.may_expire or name in bounds.may_expire for name in topology.tasks]
        self._outputs_at = [[self._channel_at[c] for c in topology.outputs(name)] for name in topology.tasks]
        self.reads_on = components.capabilities.reads_on or any(table.pulls for table in self._tables)
        self._make_moves()

    def planned(self, bounds: Bounds) -> World:
        """Return a world that differs in which faults are to happen, and goes on with the tables of this one."""
        same = {"cancels": 0, "expiries": 0, "aborts_one": None, "may_expire": ()}
        assert replace(bounds, **same) == replace(self.bounds, **same)  # type: ignore[arg-type]
        other = copy(self)
        other.bounds, other.gave_up, other.was_full = bounds, False, False
        other._may_expire = [not bounds.may_expire or name in bounds.may_expire for name in self.topology.tasks]
        return other

    # The transition system.

    def start(self) -> WorldState:
        """Return the state in which nothing has happened."""
        queues = [0] * (len(self.topology.channels) + 2 * len(self.topology.tasks))
        cells = [table.start for table in self._tables]
        bounds = self.bounds
        return (*cells, *queues, self._coordinator.start, bounds.cancels, bounds.expiries, bounds.crashes, 0, 0, 0)

    def moves(self, state: WorldState) -> list[Move]:
        """Return all that can happen now, in an order that does not change."""
        moves: list[Move] = []
        cell = state[self._coordinator_at]
        if self.bounds.aborts_one is not None and self._is_due(cell):
            return [self._numbered("cancel", self.bounds.aborts_one[0])]
        if self.bounds.recovers:
            self._add_failures(moves, state, self._coordinator.publishing[cell])
            if state[self._down_at]:
                return moves
        if self.can_trigger(state):
            moves.append(self._numbered("trigger", self._coordinator.monitors[cell].triggered + 1))
        if state[self._cancels_at]:
            moves += [
                self._numbered("cancel", n) for n in self._coordinator.outstanding[cell] if self._may_abort(cell, n)
            ]
        for at, (outputs, is_source) in enumerate(self._shapes):
            info = self._infos[at][state[at]]
            if info.outbox:
                output, message = info.outbox[0]
                if self._has_room(state[outputs[output]], message):
                    moves.append(self._pushes[at])
            elif is_source:
                if info.script is not None:
                    moves.append(self._watermarks[at] if type(info.script) is int else self._emits[at])
                if self.bounds.closes and info.may_close:
                    moves.append(self._closes[at])
            elif self._tables[at].pulls:
                self._add_polls(moves, state, at)
            else:
                if info.can_drain:
                    self._add_drain(moves, state, at)
                if not info.can_drain or self.reads_on:
                    self._add_deliveries(moves, state, at, info.takes)
            if not is_source:
                if self._overtakes:
                    self._add_overtaking(moves, state, at)
                if info.expires == "switch" or (info.expires and self._may_cost(state, at, info.newest)):
                    moves.append(self._expires[at])
            queue = state[self._orders_at + at]
            if queue:
                moves.append(self._order_move(at, self._orders.contents[queue][0]))
            queue = state[self._reports_at + at]
            if queue:
                moves.append(self._report_move(at, self._reports.contents[queue][0]))
        return moves

    def after(self, state: WorldState, move: Move) -> WorldState:
        """Return what comes of `move`, one of the `moves` of `state`."""
        return move.does(self, state, move)

    # What is wrong with a state.

    def broken(self, state: WorldState) -> str | None:
        """Return what any run that comes here has broken, ``"CUT: ..."``; None if nothing."""
        number = state[-1]
        return None if not number else "; ".join(f"{name}: {why}" for name, why in self._broken.values[number])

    def liveness_violation(self, state: WorldState) -> str | None:
        """Return what has not ended well in a state without moves, now or when the sources end and all runs on; or
        None."""
        for name, at in self._task_at.items():
            blocked = [n for n in self._tables[at].blocked(state[at]) if n]
            if blocked:
                return f"LIVE: {name} still waits for checkpoint {blocked[0]}"
        for n in self._coordinator.outstanding[state[self._coordinator_at]]:
            return f"LIVE: checkpoint {n} was triggered and never ends"
        _, idle = self.settle(state)
        for left_behind in () if self.broken(idle) else self._left(idle):
            return f"LIVE: {left_behind}"
        _, state = self.rest(idle)
        reason = self.broken(state)
        if reason is not None:
            return reason
        left = [f"checkpoint {n} never ends" for n in self._coordinator.outstanding[state[self._coordinator_at]]]
        for name, at in self._task_at.items():
            unsent = self._tables[at].unsent(state[at])
            if unsent is not None:
                return f"{'WM' if type(unsent) is Watermark else TASK}: {name} never sends {unsent}"
            missing = self._tables[at].missing(state[at])
            if missing is not None and self.components.capabilities.ends:
                return f"REC: {missing}"
        left += self._left(state)
        return f"LIVE: {left[0]}" if left else None

    def _left(self, state: WorldState) -> Iterator[str]:
        """Yield what has not come through, in a state in which nothing goes on and no checkpoint is waited for."""
        for name, at in self._task_at.items():
            if self._infos[at][state[at]].outbox:
                yield f"{name} cannot send what is in its outbox"
            if self._tables[at].holds(state[at]):
                yield f"{name} holds something for ever"
        for channel, at in self._channel_at.items():
            if state[at]:
                yield f"{self._first_of(state[at])} is left behind in {channel}"

    def enabled_fair_moves(self, state: WorldState) -> list[Move]:
        """Return what can happen without another fault; a checkpoint that is due to be aborted (`Bounds.aborts_one`) is
        none."""
        moves = self.moves(state)
        if self.bounds.aborts_one is not None and len(moves) == 1 and moves[0].kind == "cancel":
            return moves
        return [move for move in moves if not move.is_fault and not (self.reads_on and self._reads_on(state, move))]

    def _reads_on(self, state: WorldState, move: Move) -> bool:
        """Return whether a task takes a message while it has something to drain: no loop need ever do so."""
        return move.text.startswith("deliver ") and self.info(state, move.numbers[0]).can_drain

    def rest(self, state: WorldState) -> tuple[list[Move], WorldState]:
        """Make all moves, faults aside, and then end the sources, until nothing comes of anything any more.

        That is a state without moves, or one of several that the run goes round for ever, where a machine does
        something again and again that leads nowhere (`model.explore.checker.traps`).

        Raises
        ------
        UndecidedError
            If it takes more than `MOST_TO_REST` states: it might go on for ever, and might come to rest.
        """
        taken, state = self.settle(state)
        while not self.broken(state) and (ends := self.close_sources(state)):  # one that raises never ends
            moves, state = self.settle(self.after(state, ends[0]))
            taken += [ends[0], *moves]
        return taken, state

    def settle(self, state: WorldState) -> tuple[list[Move], WorldState]:
        """The same, while no source ends."""
        moves, states = next(
            traps(state, self.enabled_fair_moves, self.after, limits=ExplorationLimits(states=MOST_TO_REST))
        )
        return list(moves), states[0]

    def reads_on_in(self, moves: Sequence[Move]) -> bool:
        """Return whether in a run a task takes a message that was offered while it had something to drain."""
        state = self.start()
        for move in moves:
            if self._reads_on(state, move):
                return True
            state = self.after(state, move)
        return False

    def differences(self) -> Iterator[str | None]:
        """Make every step of tasks, and of a coordinator that is not `impl`'s, again: a line of what differs, or None.

        (The one of `impl` is shown to be a function of what it captures by the tests.)
        """
        tables: list[TaskTransitions | CoordinatorTransitions] = [*self._tables]
        if self.components.coordinator is not CheckpointCoordinator:
            tables.append(self._coordinator)
        for table in tables:
            yield from table.differences()

    def close_sources(self, state: WorldState) -> list[Move]:
        """Return the moves by which sources end when nothing goes on, whether the bounds let them end early or not.

        No source ever ends before an external aligner that does not take part in that.
        """
        if not self.components.capabilities.ends:
            return []
        infos = [self._infos[at][state[at]] if is_source else None for at, (_, is_source) in enumerate(self._shapes)]
        return [self._closes[at] for at, info in enumerate(infos) if info and not info.finished and not info.outbox]

    # Questions about a state.

    def info(self, state: WorldState, at: int) -> Info:
        """Return what the task at a place can do."""
        return self._infos[at][state[at]]

    def has_messages(self, state: WorldState, at: int, index: int) -> bool:
        """Return whether something is in an input channel of the task at a place."""
        return bool(state[self._inputs_at[at][index]])

    def has_orders(self, state: WorldState, at: int, but_notices: bool = False) -> bool:
        """Return whether an order of the coordinator to the task is on its way, if asked other than notices."""
        orders = self._orders.contents[state[self._orders_at + at]]
        return any(not but_notices or type(self._order_values.values[each]) is not Notify for each in orders)

    def can_trigger(self, state: WorldState) -> bool:
        """Return whether another checkpoint can be begun."""
        cell = state[self._coordinator_at]
        monitor = self._coordinator.monitors[cell]
        if monitor.triggered >= monitor.limit or state[self._down_at]:
            return False
        return self._coordinator.trigger(cell) is not None

    def outstanding(self, state: WorldState) -> dict[int, frozenset[str]]:
        """Of each checkpoint that has not ended, the tasks whose part the coordinator has not."""
        return self._coordinator.outstanding[state[self._coordinator_at]]

    def changes_nothing(self, state: WorldState, move: Move) -> bool:
        """Return whether an abort, on its way to a task, has come too late to matter there, as the task is now."""
        at, number = move.numbers
        order = self._order_values.values[number]
        return type(order) is AbortTask and self._tables[at].ignores(state[at], order)

    def changes_nothing_later(self, at: int, number: int, cells: Iterable[int]) -> bool:
        """Return whether an order has made no difference to the task at a place since it was in any of `cells`."""
        return self._tables[at].ignores_always(cells, self._order_values.values[number])

    def has_reports(self, state: WorldState, at: int) -> bool:
        """Return whether something that the task reported is on its way to the coordinator."""
        return bool(state[self._reports_at + at])

    @property
    def coordinator(self) -> CoordinatorTransitions:
        """All that has ever been done with the coordinator."""
        return self._coordinator

    @property
    def restores(self) -> int:
        """Return how many different cuts the job has been restored to, the beginning among them."""
        return len(self._plans)

    @property
    def tables(self) -> Sequence[TaskTransitions]:
        """By the place of the task: all that has ever been done with it."""
        return self._tables

    def may_fail(self, state: WorldState) -> bool:
        """Return whether the job may still fail, so that it matters what is in the store and outside."""
        return bool(state[self._crashes_at])

    def decides(self, state: WorldState, move: Move) -> bool:
        """Return whether what a task reports makes the coordinator do anything, now."""
        at, number = move.numbers
        decision, cell = self._heard(state, at, number), state[self._coordinator_at]
        publishing = self._coordinator.publishing
        return bool(decision.ends or decision.orders or publishing[cell] != publishing[decision.cell])

    def is_notice(self, move: Move) -> bool:
        """Return whether an order only says that a checkpoint is complete."""
        return move.kind == "order" and type(self._order_values.values[move.numbers[1]]) is Notify

    def reported(self, move: Move) -> object:
        """Return what reaches the coordinator by a move of that kind: Acknowledge, Decline or Finished."""
        return self._report_values.values[move.numbers[1]]

    # A run, written down.

    def move(self, text: str) -> Move:
        """Return the move of which `text` is the line; where several have it (``inject a``), each does what is next.

        Raises
        ------
        KeyError
            If there is none that this world has ever made.
        """
        return self._by_text[text]

    def journal(self, moves: Iterable[Move], rests: bool = False) -> list[Entry]:
        """Return what happens in a run of `moves` from the start, each taking a nanosecond; at rest, all sources
        end."""
        run, state = list(moves), self.start()
        for move in run:
            state = self.after(state, move)
        return self._written_down([*run, *(self.rest(state)[0] if rests else ())])[0]

    def _written_down(self, moves: Iterable[Move]) -> tuple[list[Entry], WorldState]:
        """Return the journal of a run from the start, and the state that it comes to."""
        state, entries = self.start(), list[Entry]()
        for at, move in enumerate(moves, 1):
            state, notes = self.noted(state, move)
            entries += [(at * NS_PER_MOVE, *note) for note in notes]
        return entries, state

    def noted(self, state: WorldState, move: Move) -> tuple[WorldState, list[Note]]:
        """Return what comes of `move`, and its entries in a journal but for the time: the move, and then its
        effects."""
        notes = self._log = []
        try:
            return self.after(state, move), notes
        finally:
            self._log = None

    def judged(self, moves: Iterable[Move], rests: bool = False) -> Verdict:
        """Return what `model.spec.invariants` says of the journal of a run."""
        return self._judged(moves, rests)[2]

    def _judged(self, moves: Iterable[Move], rests: bool) -> tuple[list[Entry], WorldState, Verdict]:
        """Return the journal, where it ends, and its verdict: at rest the sources end only if nothing is wrong, or left
        unread, without that.

        A run that breaks something on the way ends there, as one that was cut off: what it leaves behind is no finding.
        """
        entries, state = self._written_down(moves)
        verdict = self.judge(entries, cut_off=not rests)
        if rests and verdict.verdict == "holds":
            try:
                settled, idle = self.settle(state)
                is_left = next(self._left(idle), None) is not None
                entries, state = self._written_down([*moves, *(settled if is_left else self.rest(state)[0])])
            except UndecidedError:
                return entries, state, verdict
            verdict = self.judge(entries, cut_off=self.broken(state) is not None)
        return entries, state, verdict

    def judge(self, entries: Iterable[Entry], cut_off: bool) -> Verdict:
        """Return what `model.spec.invariants` says of a journal of this world."""
        fold = refolding(self.topology, lambda name: make_operator(self.bounds, self.topology, name))
        guarantees = {sink: self.bounds.guarantee for sink in self.topology.sinks if self.bounds.guarantee}
        return judge_run(entries, self.topology, self.limits, fold, cut_off, guarantees)

    def trace(self, moves: Sequence[Move], rests: bool = False, title: str = "") -> str:
        """A run as the text of a trace, with its verdict. (`model.checkpoint.scripted.replay` makes the same of it.)"""
        entries, state, verdict = self._judged(moves, rests)
        head = {"#": title} if title else {}
        head |= header_of(self.bounds)
        if not rests or self.broken(state) is not None:
            head["cut_off"] = "yes"
        found = self.verdicts(state, verdict)
        if rests and not found:  # a journal knows not that nothing would come any more
            with suppress(UndecidedError):
                found = [reason for reason in [self.liveness_violation(state)] if reason is not None]
        return write(entries, head, found)

    def verdicts(self, state: WorldState, verdict: Verdict) -> list[str]:
        """Return what is wrong with a run that ends in `state`, a line each: the journal's, and what is in no journal.

        That is what a machine raised, and what a monitor knows of a task and no journal: its operator, and its parts.
        """
        found = [str(violation) for violation in verdict.violations]
        reason = self.broken(state) or ""
        return [reason, *found] if reason and (reason.startswith("RAISED") or not found) else found

    # What the moves do.

    def _deliver(self, state: WorldState, move: Move) -> WorldState:
        at, index, channel, late = move.numbers
        queue, new = state[channel], list(state)
        step = self._tables[at].step["offer", state[at], index, self._queues.contents[queue][0], bool(late)]
        assert step is not None
        if step.took:
            new[channel] = self._queues.without(queue)
        self._note_taking((">deliver", _LATENESS[late]), at, index, queue, 0, step)
        return self._moved(new, at, step)

    def _poll(self, state: WorldState, move: Move) -> WorldState:
        at, late, *readable = move.numbers
        new, step = list(state), self._polled(state, at, late, readable)
        assert step is not None
        if step.took and step.place >= 0:
            channel = self._inputs_at[at][step.place]
            new[channel] = self._queues.without(state[channel])
        self._note(">poll", self.topology.tasks[at], self._readable(at, late, readable) or None)
        return self._moved(new, at, step)

    def _overtake(self, state: WorldState, move: Move) -> WorldState:
        at, index, channel, late = move.numbers
        queue, new = state[channel], list(state)
        step = self._tables[at].step["overtake", state[at], index, self._queues.to_last_barrier[queue], bool(late)]
        assert step is not None
        if step.took:
            new[channel] = self._queues.without(queue, step.place)
        self._note_taking((">overtake", None), at, index, queue, step.place, step)
        return self._moved(new, at, step)

    def _note_taking(
        self, move: tuple[str, str | None], at: int, index: int, queue: int, place: int, step: LocalStep
    ) -> None:
        if self._log is not None:
            name = self.topology.tasks[at]
            channel = self.topology.inputs(name)[index]
            verb, lateness = move
            self._log.append((verb, name, channel, lateness))
            if step.took:
                message = self.messages.values[self._queues.contents[queue][place]]
                self._log.append(("take", name, channel, message))

    def _drain(self, state: WorldState, move: Move) -> WorldState:
        at, late = move.numbers
        return self._of_task(
            state, at, ">drain", _LATENESS[late], self._tables[at].step["drain", state[at], bool(late)]
        )

    def _expire(self, state: WorldState, move: Move) -> WorldState:
        (at,) = move.numbers
        new = list(state)
        if self._infos[at][state[at]].expires != "switch":
            new[self._expiries_at] -= 1
        return self._of_task(tuple(new), at, ">expire", None, self._tables[at].step["expire", state[at]])

    def _emit(self, state: WorldState, move: Move) -> WorldState:
        (at,) = move.numbers
        item = self._infos[at][state[at]].script
        verb = ">watermark" if type(item) is int else ">emit"
        return self._of_task(state, at, verb, item, self._tables[at].step["emit", state[at]])

    def _close(self, state: WorldState, move: Move) -> WorldState:
        (at,) = move.numbers
        return self._of_task(state, at, ">finish", None, self._tables[at].step["close", state[at]])

    def _push(self, state: WorldState, move: Move) -> WorldState:
        (at,) = move.numbers
        self._note(">push", self.topology.tasks[at])
        return self._settled(list(state), at)

    def _obey(self, state: WorldState, move: Move) -> WorldState:
        at, queue, new = move.numbers[0], state[self._orders_at + move.numbers[0]], list(state)
        order = self._order_values.values[self._orders.contents[queue][0]]
        new[self._orders_at + at] = self._orders.without(queue)
        checkpoint_id = order.command.checkpoint_id if isinstance(order, Inject) else order.checkpoint_id
        step = self._tables[at].step["obey", state[at], order]
        return self._of_task(tuple(new), at, _ORDER_VERBS[type(order)], checkpoint_id, step)

    def _of_task(self, state: WorldState, at: int, verb: str, subject: object, step: LocalStep | None) -> WorldState:
        assert step is not None
        self._note(verb, self.topology.tasks[at], subject)
        return self._moved(list(state), at, step)

    def _note(self, verb: str, node: str, subject: object = None) -> None:
        if self._log is not None:
            self._log.append((verb, node, None, subject))

    def _trigger(self, state: WorldState, move: Move) -> WorldState:
        return self._decided(list(state), self._coordinator.trigger(state[self._coordinator_at]))

    def _cancel(self, state: WorldState, move: Move) -> WorldState:
        new = list(state)
        if self.bounds.aborts_one is None:
            new[self._cancels_at] -= 1
        return self._decided(new, self._coordinator.abort_checkpoint(state[self._coordinator_at], *move.numbers))

    def _hear(self, state: WorldState, move: Move) -> WorldState:
        at, queue, new = move.numbers[0], state[self._reports_at + move.numbers[0]], list(state)
        new[self._reports_at + at] = self._reports.without(queue)
        decision = self._heard(state, at, self._reports.contents[queue][0])
        self.gave_up = self.gave_up or decision.aborts
        return self._decided(new, decision)

    def _heard(self, state: WorldState, at: int, number: int) -> Decision:
        """Return the decision when a report is heard; looked up by its number, as parts are large values."""
        return self._hearings[state[self._coordinator_at], at, number]

    def _hearing(self, cell: int, at: int, number: int) -> Decision:
        decision = self._coordinator.hear(cell, self.topology.tasks[at], self._report_values.values[number])
        assert decision is not None
        return decision

    # Failures.

    def _publish(self, state: WorldState, move: Move) -> WorldState:
        """Write a manifest: that is what a restore comes back to from now on."""
        decision = self._coordinator.published(state[self._coordinator_at])
        assert decision is not None
        new = list(state)
        if state[self._down_at]:
            number = new[self._stored_at] = state[self._down_at] - _DOWN
            new[self._down_at] = _DOWN
            self._breaks(new, (*decision.broken, *self._stored.values[number].wrong))
            decision = decision._replace(ends=())
        elif self.may_fail(state):  # else nobody comes back to it
            new[self._stored_at] = self._store(state, move.numbers[0], is_written=False)
        new = list(self._decided(new, decision))
        if not state[self._down_at] and not self.may_fail(state):  # else no task is left to say, or a restore will
            self._breaks(new, tuple(self._differ_from_the_cut(state, move.numbers[0], decision.parts)))
        return tuple(new)

    def _differ_from_the_cut(
        self, state: WorldState, checkpoint_id: int, parts: Iterable[Acknowledge]
    ) -> Iterator[Breach]:
        for part in parts:
            at = self._task_at[part.task]
            yield from differs(part, self._tables[at].past[state[at], checkpoint_id])

    def _store(self, state: Sequence[int], checkpoint_id: int, is_written: bool, wrong: tuple[Breach, ...] = ()) -> int:
        """Return the number of a checkpoint as stored: one that is published, or whose manifest has been written."""
        pasts = [self._past_numbers[at, state[at], checkpoint_id] for at in range(len(self._tables))]
        return self._storings[state[self._coordinator_at], is_written, checkpoint_id, wrong, *pasts]

    def _past_number(self, at: int, cell: int, checkpoint_id: int) -> int:
        return self._pasts.number(self._tables[at].past[cell, checkpoint_id])

    def _storing(self, cell: int, is_written: bool, checkpoint_id: int, wrong: tuple[Breach, ...], *pasts: int) -> int:
        if is_written:
            parts = self._coordinator.parts(cell)
        else:
            decision = self._coordinator.published(cell)
            assert decision is not None
            parts = decision.parts
        return self._stored.number(
            Stored(checkpoint_id, parts, tuple(self._pasts.values[number] for number in pasts), wrong)
        )

    def _crash(self, state: WorldState, move: Move) -> WorldState:
        """Fail a task, and with it the job: what the others may do until it is restored, they may do before."""
        self._note(">crash", self.topology.tasks[0])
        new, writing = list(state), 0
        if self._coordinator.publishing[state[self._coordinator_at]]:
            writing = self._written(state)
        decision = self._coordinator.suspend(state[self._coordinator_at])
        assert decision is not None
        return self._gone(self._decided(new, decision), writing)

    def _lose(self, state: WorldState, move: Move) -> WorldState:
        """Fail the coordinator, and with it the job; a manifest on its way has been written, if late, or never is."""
        self._note(">crash", COORDINATOR, _LATENESS[move.numbers[0]])
        new = list(state)
        if move.numbers[0]:
            new[self._stored_at] = self._written(state)
        new[self._coordinator_at] = self._coordinator.lost(state[self._coordinator_at])
        return self._gone(tuple(new))

    def _written(self, state: WorldState) -> int:
        """Return the number of what is being published, with what is to be said against it once it has been written."""
        cell = state[self._coordinator_at]
        checkpoint_id = self._coordinator.publishing[cell]
        acknowledged = self._coordinator.monitors[cell].acknowledged_by(checkpoint_id)
        wrong = completes(checkpoint_id, self._parts(state, checkpoint_id), acknowledged, self.topology, self.limits)
        return self._store(state, checkpoint_id, True, tuple(wrong))

    def _gone(self, state: WorldState, writing: int = 0) -> WorldState:
        """Drop every task, and what was under way to it and from it; but for what is being written, if anything is."""
        new = list(state)
        new[self._crashes_at] -= 1
        new[self._down_at] = _DOWN + writing
        for at, table in enumerate(self._tables):
            new[at] = table.dead[state[at],]
        queues = len(self.topology.channels) + 2 * len(self._tables)
        new[len(self._tables) : len(self._tables) + queues] = [0] * queues
        return tuple(new)

    def _restore(self, state: WorldState, move: Move) -> WorldState:
        """Restore every state and channel, and then let all go on (protocol rule 22)."""
        number, new = state[self._stored_at], list(state)
        stored = self._stored.values[number]
        self._note(">restore", COORDINATOR, stored.checkpoint_id)
        # Written when nobody could call it complete any more: what that would have lacked, the restore lacks.
        self._breaks(new, tuple(("REC" if name == "ONCE" else name, why) for name, why in stored.wrong))
        new[self._down_at] = 0
        if not self.may_fail(state):
            new[self._stored_at] = 0  # nobody comes back to it again
        try:
            plan = self._plan(number)
        except RAISED as error:  # as in `TaskTransitions`; the job restarts from the initial state
            self._breaks(new, (raised(COORDINATOR, error),))
            return tuple(new)
        notes: list[Note] = []
        finished: dict[str, Acknowledge] = {}
        for name, at in self._task_at.items():
            step, part = self._recoveries[at, new[at], number, self.forgets and not self.may_fail(state)]
            new[at] = step.cell
            self._breaks(new, step.broken)
            notes += step.notes
            if part is not None:
                finished[name] = part
        for channel, messages in plan.channels.items():
            receiver = self.topology.ends(channel)[1]
            notes += [("restored_in_flight", receiver, channel, message) for message in messages]
            new[self._channel_at[channel]] = self._queues.number(tuple(map(self.messages.number, messages)))
            if list(messages) != self._in_flight(stored, channel):
                self._breaks(new, (("REC", f"what was restored in {channel} is not what was in flight"),))
        if self._log is not None:  # states, then channels, then what becomes visible
            order = {"restored": 0, "restored_in_flight": 1}
            self._log += sorted(notes, key=lambda note: order.get(note[0], 2))
        cell, again = state[self._coordinator_at], self.bounds.checkpoints_again
        try:
            new[self._coordinator_at] = self._coordinator.resume(
                cell, stored.checkpoint_id, finished, again, self.forgets
            )
        except RAISED as error:
            self._breaks(new, (raised(COORDINATOR, error),))
        return tuple(new)

    def _recovered(self, at: int, cell: int, number: int, for_good: bool) -> tuple[LocalStep, Acknowledge | None]:
        """Return what comes of a task that is restored from what is stored, and its part if it had finished."""
        stored, name, table = self._stored.values[number], self.topology.tasks[at], self._tables[at]
        past = self._without_orphans(stored, name)
        step = table.recover(cell, self._plan(number).tasks[name], stored.checkpoint_id, past, for_good)
        return step, table.finished_part(step.cell)

    def _without_orphans(self, stored: Stored, name: str) -> Past:
        """The past of a task, but that no event counts as taken that its sender is to send: it comes again."""
        past = stored.pasts[self._task_at[name]]
        if not self.limits.permits_orphans:
            return past
        applied = []
        for channel, count in zip(self.topology.inputs(name), past.applied, strict=True):
            sender = self.topology.ends(channel)[0]
            sent = stored.pasts[self._task_at[sender]].sent[self.topology.outputs(sender).index(channel)]
            applied.append(min(count, sent))
        return past._replace(applied=tuple(applied))

    def _plan(self, number: int) -> Restore:
        """Return what `impl.checkpoint.recovery` makes of what is stored, by way of its bytes."""
        plan = self._plans.get(number)
        if plan is None:
            stored = self._stored.values[number]
            if stored.checkpoint_id:
                snapshots = tuple(snapshot_of(part, *self._wiring.tasks[part.task]) for part in stored.parts)
                manifest = Manifest(stored.checkpoint_id, stored.checkpoint_id, True, ())
                plan = self.components.plan(Checkpoint(manifest, snapshots), self._wiring)
            else:
                plan = from_the_beginning(self._wiring)
            self._plans[number] = plan
        return plan

    def _in_flight(self, stored: Stored, channel: str) -> list[StreamMessage]:
        """Return what was recorded, by the receiver and then by the sender; and the end, if only the sender had come to
        it."""
        sender, receiver = self.topology.ends(channel)
        past_out, past_in = stored.pasts[self._task_at[sender]], stored.pasts[self._task_at[receiver]]
        index, output = self.topology.inputs(receiver).index(channel), self.topology.outputs(sender).index(channel)
        due: list[StreamMessage] = [*past_in.recorded[index], *past_out.recorded_out[output]]
        return [*due, EndOfInput()] if past_out.finished and past_in.open[index] else due

    # How a move goes on.

    def _moved(self, new: list[int], at: int, step: LocalStep) -> WorldState:
        """Return the state in which a task has done its step."""
        new[at] = step.cell
        self._breaks(new, step.broken)
        if self._log is not None:
            self._log += step.notes
        return self._settled(new, at)

    def _settled(self, new: list[int], at: int) -> WorldState:
        """Send of a task what there is room for, and report what it has to report."""
        info = self._infos[at][new[at]]
        if info.outbox:
            self._send(new, at)
            info = self._infos[at][new[at]]
        if info.has_reports:
            new[at], reports = self._tables[at].reported[new[at],]
            for report in reports:
                queue = self._reports_at + at
                new[queue] = self._reports.put(new[queue], report)
        return tuple(new)

    def _send(self, new: list[int], at: int) -> None:
        outputs, count = self._outputs_at[at], 0
        outbox = self._infos[at][new[at]].outbox
        for output, message in outbox:
            channel = outputs[output]
            if not self._has_room(new[channel], message):
                self.was_full = True
                break
            count += 1
            if self.bounds.sender_records and self._is_flagged(message):
                self._sent(new, at, count)
                self._pass(new, at, output, message)
                return self._send(new, at)
            new[channel] = self._queues.put(new[channel], message)
        if count:
            self._sent(new, at, count)
        return None

    def _sent(self, new: list[int], at: int, count: int) -> None:
        step = self._tables[at].sent[new[at], count]
        new[at] = step.cell
        self._breaks(new, step.broken)
        if self._log is not None:
            self._log += step.notes

    def _pass(self, new: list[int], at: int, output: int, message: int) -> None:
        """Send a flagged barrier ahead of the last events and watermarks of its channel, which its sender records."""
        channel = self._outputs_at[at][output]
        items = self._queues.contents[new[channel]]
        place = len(items)
        while place and type(self.messages.values[items[place - 1]]) in (Event, Watermark):
            place -= 1
        new[channel] = self._queues.number((*items[:place], message, *items[place:]))
        barrier = self.messages.values[message]
        assert type(barrier) is CheckpointBarrier
        step = self._tables[at].step["passes", new[at], output, items[place:], barrier.checkpoint_id]
        assert step is not None
        new[at] = step.cell
        self._breaks(new, step.broken)
        if self._log is not None:
            self._log += step.notes

    def _decided(self, new: list[int], decision: Decision | None) -> WorldState:
        """Carry out what the coordinator has decided: orders go out, and what has ended is judged and forgotten."""
        assert decision is not None
        new[self._coordinator_at] = decision.cell
        if self._log is not None:
            self._log += decision.notes
        broken = list(decision.broken)
        for name, order in decision.orders:
            if type(order) is Notify and (self.bounds.guarantee != "exactly_once" or self.topology.outputs(name)):
                continue  # it is nothing to a task that has nothing to commit
            queue = self._orders_at + self._task_at[name]
            new[queue] = self._orders.put(new[queue], self._order_values.number(order))
        for checkpoint_id, completed in decision.ends:
            if completed:
                parts = self._parts(new, checkpoint_id)
                broken += completes(checkpoint_id, parts, decision.acknowledged, self.topology, self.limits)
            for at, table in enumerate(self._tables):
                new[at] = table.settled[new[at], checkpoint_id, completed]
        self._breaks(new, tuple(broken))
        return tuple(new)

    def _parts(self, new: Sequence[int], checkpoint_id: int) -> dict[str, CompletedCut]:
        return {name: self._tables[at].part[new[at], checkpoint_id] for name, at in self._task_at.items()}

    def _breaks(self, new: list[int], broken: tuple[Breach, ...]) -> None:
        """Keep what is broken first."""
        if broken:
            new[-1] = new[-1] or self._broken.number(broken)

    # Which moves there are.

    def _make_moves(self) -> None:
        """Make one object a move; those of orders and reports come when the first is under way."""
        topology, bounds = self.topology, self.bounds
        self._by_text: dict[str, Move] = {}
        numbered = list(enumerate(topology.tasks))
        self._shapes = [(self._outputs_at[at], not self._inputs_at[at]) for at, _ in numbered]
        self._of_numbers: dict[tuple[str, int], Move] = {}
        self._crashes = [
            self._known(f"crash {topology.tasks[0]}", World._crash, kind="crash", is_fault=True),
            self._known(f"crash {COORDINATOR}", World._lose, 0, kind="crash", is_fault=True),
            self._known(f"crash {COORDINATOR} late", World._lose, 1, kind="crash", is_fault=True),
        ]
        self._emits = [self._known(f"emit {name}", World._emit, at) for at, name in numbered]
        self._watermarks = [self._known(f"watermark {name}", World._emit, at) for at, name in numbered]
        self._closes = [self._known(f"close {name}", World._close, at) for at, name in numbered]
        self._pushes = [self._known(f"push {name}", World._push, at) for at, name in numbered]
        self._expires = [self._known(f"expire {name}", World._expire, at, is_fault=True) for at, name in numbered]
        lateness = (0, 1) if bounds.protocol.settings.is_late else (0,)
        self._drains = [
            [self._known(f"drain {name}{LATE[late]}", World._drain, at, late) for late in lateness]
            for at, name in numbered
        ]
        self._deliveries = [self._of_inputs("deliver", World._deliver, at, lateness) for at, _ in numbered]
        # An overtaking barrier is late where it was not flagged.
        self._overtakes = [
            []
            if self._tables[at].always_aligns
            else [moves[-1] for moves in self._of_inputs("overtake", World._overtake, at, lateness[-1:])]
            for at, _ in numbered
            if bounds.protocol.goes_unaligned
        ]
        self._of_polls: dict[tuple[int, int, tuple[int, ...]], Move] = {}
        self._of_orders: dict[tuple[int, int], Move] = {}
        self._of_reports: dict[tuple[int, int], Move] = {}

    def _of_inputs(self, verb: str, does: Does, at: int, lateness: Sequence[int]) -> list[list[Move]]:
        name = self.topology.tasks[at]
        return [
            [
                self._known(f"{verb} {channel}{LATE[late] if verb == 'deliver' else ''}", does, at, i, where, late)
                for late in lateness
            ]
            for i, (channel, where) in enumerate(zip(self.topology.inputs(name), self._inputs_at[at], strict=True))
        ]

    def _known(self, text: str, does: Does, *numbers: int, kind: str = "task", is_fault: bool = False) -> Move:
        move = self._by_text[text] = Move(text, does, *numbers, kind=kind, is_fault=is_fault)
        return move

    def _add_deliveries(self, moves: list[Move], state: WorldState, at: int, takes: tuple[int, ...]) -> None:
        table, cell = self._tables[at], state[at]
        for index in takes:
            queue = state[self._inputs_at[at][index]]
            if not queue:
                continue
            in_time, *late = self._deliveries[at][index]
            head = self._queues.contents[queue][0]
            step = table.step["offer", cell, index, head, False]
            if step is not None:
                moves.append(in_time)
            if late and self._is_mark(head) and _differ(step, table.step["offer", cell, index, head, True]):
                moves += late

    def _add_polls(self, moves: list[Move], state: WorldState, at: int) -> None:
        """Add the rounds of a reading loop: it may see what is in the channels, or not yet, in any order."""
        heads = {i: self._queues.contents[state[c]][0] for i, c in enumerate(self._inputs_at[at]) if state[c]}
        found = set()
        for count in range(len(heads) + 1):
            for readable in permutations(heads, count):
                for late in range(2 if self.bounds.protocol.settings.is_late else 1):
                    step = self._polled(state, at, late, readable)
                    if step is not None and (step.cell, step.place, step.broken) not in found:
                        found.add((step.cell, step.place, step.broken))
                        moves.append(self._poll_move(at, late, readable))

    def _polled(self, state: WorldState, at: int, late: int, readable: Sequence[int]) -> LocalStep | None:
        heads = [self._queues.contents[state[self._inputs_at[at][index]]][0] for index in readable]
        return self._tables[at].step["poll", state[at], tuple(readable), tuple(heads), bool(late)]

    def _poll_move(self, at: int, late: int, readable: tuple[int, ...]) -> Move:
        move = self._of_polls.get((at, late, readable))
        if move is None:
            words = " ".join(self._readable(at, late, readable))
            text = f"poll {self.topology.tasks[at]} {words}".rstrip()
            move = self._of_polls[at, late, readable] = self._known(text, World._poll, at, late, *readable)
        return move

    def _readable(self, at: int, late: int, readable: Sequence[int]) -> tuple[str, ...]:
        inputs = self.topology.inputs(self.topology.tasks[at])
        return (*(inputs[index] for index in readable), *(("late",) if late else ()))

    def _add_drain(self, moves: list[Move], state: WorldState, at: int) -> None:
        in_time, *late = self._drains[at]
        moves.append(in_time)
        table, cell = self._tables[at], state[at]
        if late and _differ(table.step["drain", cell, False], table.step["drain", cell, True]):
            moves += late

    def _add_overtaking(self, moves: list[Move], state: WorldState, at: int) -> None:
        """Add the barriers that may go ahead of their place; one at the head need not, if it can be delivered."""
        table, cell = self._tables[at], state[at]
        for index, move in enumerate(self._overtakes[at]):
            front = self._queues.to_last_barrier[state[self._inputs_at[at][index]]]
            if len(front) > 1 or (front and self._deliveries[at][index][0] not in moves):
                step = table.step["overtake", cell, index, front, bool(move.numbers[3])]
                if step is not None and (step.place or self._deliveries[at][index][0] not in moves):
                    moves.append(move)

    def _numbered(self, verb: str, checkpoint_id: int) -> Move:
        """A move of the coordinator about a checkpoint."""
        move = self._of_numbers.get((verb, checkpoint_id))
        if move is None:
            does, is_fault = _COORDINATOR_MOVES[verb]
            move = self._known(f"{verb} {checkpoint_id}", does, checkpoint_id, kind=verb, is_fault=is_fault)
            self._of_numbers[verb, checkpoint_id] = move
        return move

    def _add_failures(self, moves: list[Move], state: WorldState, publishing: int) -> None:
        """Add what a manifest that is being written, and a job that has failed or may fail, can do."""
        if publishing:
            moves.append(self._numbered("publish", publishing))
        elif state[self._down_at]:
            moves.append(self._numbered("restore", self._stored.values[state[self._stored_at]].checkpoint_id))
        if state[self._crashes_at] and not state[self._down_at]:
            moves += self._crashes if publishing else self._crashes[:-1]

    def _order_move(self, at: int, number: int) -> Move:
        move = self._of_orders.get((at, number))
        if move is None:
            order, name = self._order_values.values[number], self.topology.tasks[at]
            text = f"inject {name}"
            if not isinstance(order, Inject):
                text = f"{'abort' if type(order) is AbortTask else 'notify'} {name} {order.checkpoint_id}"
            move = self._of_orders[at, number] = self._known(text, World._obey, at, number, kind="order")
        return move

    def _report_move(self, at: int, number: int) -> Move:
        move = self._of_reports.get((at, number))
        if move is None:
            report, name = self._report_values.values[number], self.topology.tasks[at]
            if type(report) is Acknowledge or type(report) is Decline:
                text = f"{'ack' if type(report) is Acknowledge else 'decline'} {name} {report.checkpoint_id}"
            else:
                text = f"finished {name}"
            move = self._of_reports[at, number] = self._known(text, World._hear, at, number, kind="report")
        return move

    def _may_cost(self, state: WorldState, at: int, checkpoint_id: int) -> bool:
        """Return whether the deadline of a task may pass that costs a checkpoint; as planned, one that has been
        aborted."""
        if not state[self._expiries_at] or not self._may_expire[at]:
            return False
        return self.bounds.aborts_one is None or checkpoint_id not in self.outstanding(state)

    def _is_due(self, cell: int) -> bool:
        """Return whether the checkpoint that this world aborts is to be aborted now."""
        assert self.bounds.aborts_one is not None
        checkpoint_id, behind = self.bounds.aborts_one
        if behind and self._coordinator.monitors[cell].completed != behind:
            return False
        return self._may_abort(cell, checkpoint_id)

    def _may_abort(self, cell: int, checkpoint_id: int) -> bool:
        """Return whether the coordinator aborts what it is asked to: not what has ended, or what is being published."""
        if checkpoint_id not in self._coordinator.outstanding[cell]:
            return False
        decision = self._coordinator.abort_checkpoint(cell, checkpoint_id)
        return decision is not None and (decision.cell != cell or bool(decision.broken))

    def _has_room(self, queue: int, message: int) -> bool:
        """Return whether there is room; a flagged barrier needs none: an input may wait for one (protocol rule 16)."""
        return self._queues.depths[queue] < self.bounds.capacity or self._is_flagged(message)

    def _is_flagged(self, message: int) -> bool:
        flagged = self._flagged.get(message)
        if flagged is None:
            value = self.messages.values[message]
            flagged = self._flagged[message] = type(value) is CheckpointBarrier and value.is_unaligned
        return flagged

    def _takes_room(self, message: int) -> bool:
        return not self._is_flagged(message)

    def _is_mark(self, message: int) -> bool:
        """Return whether it may matter when the message comes."""
        return type(self.messages.values[message]) not in (Event, Watermark)

    def _is_barrier(self, message: int) -> bool:
        return type(self.messages.values[message]) is CheckpointBarrier

    def _first_of(self, queue: int) -> StreamMessage:
        return self.messages.values[self._queues.contents[queue][0]]

    # How it is made.

    def _table(self, name: str) -> TaskTransitions:
        topology, bounds = self.topology, self.bounds
        inputs, outputs = topology.inputs(name), topology.outputs(name)

        def make(tell: Tell) -> Task:
            return make_task(bounds, topology, self.components, name, tell)

        groups = [(exchange, indices) for _, exchange, indices in topology.output_groups(name)]
        fold = make_operator(bounds, topology, name) if inputs else None
        guarantee = bounds.guarantee if not outputs else ""
        repeats = bounds.guarantee == "idempotent" and bounds.closes  # else no source ends before it has made all
        monitor = TaskMonitor(name, inputs, outputs, fold, groups, self.limits, bounds.recovers, guarantee, repeats)
        script = () if inputs else bounds.script(name)
        return TaskTransitions(make, monitor, self.messages, self._report_values, script, bounds.recovers)


def _wiring(topology: Topology) -> Wiring:
    stored_as = {
        task: (operator, subtask)
        for operator in topology.operators
        for subtask, task in enumerate(topology.tasks_of(operator))
    }
    inputs = {task: topology.inputs(task) for task in topology.tasks}
    return Wiring(stored_as, inputs, {task: topology.outputs(task) for task in topology.tasks})


_ORDER_VERBS: dict[type, str] = {Inject: ">inject", AbortTask: ">abort", Notify: ">notify"}
_COORDINATOR_MOVES: dict[str, tuple[Does, bool]] = {
    "trigger": (World._trigger, False),
    "cancel": (World._cancel, True),
    "publish": (World._publish, False),
    "restore": (World._restore, False),
}


def _differ(step: LocalStep | None, late: LocalStep | None) -> bool:
    """Return whether a message that comes late has another effect than one that comes in time."""
    return late is not None and (step is None or step[:2] != late[:2] or step.broken != late.broken)
