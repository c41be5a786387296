"""A command that comes between the load and the store of the poller is cleared, and nobody has seen it.

Source
    F-DCKP-001, `poll_barrier`: "single atomic load", and then "clear the pending signal (single atomic store)". One
    word of 128 bits keeps the fields of a command together, and not the two steps. Entry P-01.
What goes wrong
    The command is gone, although no other took its place: this source never emits the barrier, others do, and what is
    behind them waits for it.
Repair
    Claim and clear in one step (protocol rule 3): a swap, or here the `pop` of a dict.
"""

from __future__ import annotations

from typing import NamedTuple

from barrierlab.impl import BarrierInjectorConfig, CheckpointBarrierInjector, InjectBarrierCommand, PackedBarrierCmd
from barrierlab.model.defects.kinds.barrier import SystemDefect

COMMANDS, POLLS = (5, 6), 4


class CommandMailbox(NamedTuple):
    """The cell that both share (its first number is the word), and what became of the commands."""

    cell: tuple[int, ...] = (0,)
    loaded: int = 0
    polls: int = 0
    given: tuple[int, ...] = ()
    replaced: tuple[int, ...] = ()
    emitted: tuple[int, ...] = ()

    @property
    def pending(self) -> int:
        """The id that is there; 0 if none."""
        return PackedBarrierCmd(self.cell[0]).checkpoint_id


class LoadThenStore:
    """A source polls four times, two steps each; a coordinator injects twice; in any order."""

    def start(self) -> CommandMailbox:
        return CommandMailbox()

    def moves(self, state: CommandMailbox) -> list[str]:
        polls = [] if state.polls == POLLS else ["store" if state.loaded else "load"]
        return [f"inject {each}" for each in COMMANDS[len(state.given) :][:1]] + polls

    def after(self, state: CommandMailbox, move: str) -> CommandMailbox:
        if move == "load":
            return state._replace(loaded=state.pending, polls=state.polls + (not state.pending))
        if move == "store":
            return state._replace(cell=(0,), loaded=0, polls=state.polls + 1, emitted=(*state.emitted, state.loaded))
        command = int(move.split()[1])
        replaced = (*state.replaced, state.pending) if state.pending else state.replaced
        return state._replace(
            cell=(PackedBarrierCmd.new(command, command).word,), given=(*state.given, command), replaced=replaced
        )


class ClaimsAtOnce(LoadThenStore):
    """The same with the injector of `impl`."""

    def moves(self, state: CommandMailbox) -> list[str]:
        return ["poll" if move == "load" else move for move in super().moves(state)]

    def after(self, state: CommandMailbox, move: str) -> CommandMailbox:
        injector = CheckpointBarrierInjector(BarrierInjectorConfig(None))
        if len(state.cell) > 1:
            injector.restore(state.cell)
        if move == "poll":
            barrier = injector.poll_barrier(0)
            emitted = (*state.emitted, barrier.checkpoint_id) if barrier else state.emitted
            return state._replace(cell=injector.capture(), polls=state.polls + 1, emitted=emitted)
        command = int(move.split()[1])
        outcome = injector.coordinator_handle().inject(InjectBarrierCommand(command, command))
        replaced = (*state.replaced, *outcome.replaced)
        return state._replace(cell=injector.capture(), given=(*state.given, command), replaced=replaced)


def lost(state: CommandMailbox) -> str | None:
    """Of a command that is nowhere any more."""
    for each in state.given:
        if each not in (state.pending, state.loaded, *state.emitted, *state.replaced):
            return f"LIVE: command {each} was cleared, and neither emitted nor replaced"
    return None


DEFECT = SystemDefect(
    breaks="LIVE",
    broken=LoadThenStore(),
    right=ClaimsAtOnce(),
    wrong=lost,
    title="Command 6 comes when 5 is loaded and not yet cleared: what is cleared is 6.",
)
