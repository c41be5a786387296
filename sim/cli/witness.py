"""The command `witness`: the run that passes through a checkpoint."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from barrierlab.model.checkpoint.protocols import ProtocolError, protocol_of
from barrierlab.model.checkpoint.trace import TraceError, text_of, topology_of
from barrierlab.model.errors import InputError
from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.history import HistoryError
from barrierlab.model.spec.topology import TopologyError
from barrierlab.model.spec.witness import CutWitness, WitnessError, witness
from barrierlab.sim.checkpoint.result import Result, run
from barrierlab.sim.cli.choices import FILE, GivenSettings, settings_option
from barrierlab.sim.cli.show import read_trace
from barrierlab.sim.core.files import write
from barrierlab.sim.core.status import HOLDS, VIOLATION
from barrierlab.sim.scenario.load import load

NO_STATES = "the states of the tasks are not computed again: a trace does not hold the operators"


class NoWitnessError(InputError):
    """A request without a witness: one line, with what to give instead."""


@click.command("witness")
@click.argument("run_of", metavar="RUN")
@click.option("--checkpoint", "checkpoint_id", type=click.IntRange(min=1), required=True, help="Which one.")
@click.option("--seed", type=click.IntRange(min=0), help="Of a scenario; its own by default.")
@settings_option("Of a scenario, as for run; repeatable.")
@click.option("--out", type=FILE, help="Write the steps there, in their new order.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def witness_command(
    run_of: str, checkpoint_id: int, seed: int | None, settings: GivenSettings, out: Path | None, as_json: bool
) -> None:
    """Show that RUN could have been in the state that a checkpoint of it recorded: put the steps before the cut first.

    RUN is a trace (barrierlab run --trace), or a scenario, which is run; of a trace the states of the tasks are not
    computed again. Each task keeps its own order. Neighbouring steps are exchanged unless the one sent what the other
    took: where a cut is not consistent, such a pair is in the way, and is named (Chandy and Lamport 1985, theorem 1).

    Example: barrierlab witness diamond --checkpoint 4
    """
    found, is_exact = (
        _of_scenario(run_of, checkpoint_id, seed, settings)
        if not _is_trace(run_of)
        else _of_trace(Path(run_of), checkpoint_id, seed is not None or bool(settings))
    )
    if out is not None:
        write(out, as_text(found), NoWitnessError, "--out")
    click.echo(json.dumps(as_json_object(found), indent=2) if as_json else "\n".join(lines_of(found, is_exact)))
    sys.exit(VIOLATION if found.obstacle and is_exact else HOLDS)


def _is_trace(run_of: str) -> bool:
    return Path(run_of).suffix == ".trace" or (Path(run_of).is_file() and Path(run_of).suffix != ".toml")


def _of_scenario(name: str, checkpoint_id: int, seed: int | None, settings: GivenSettings) -> tuple[CutWitness, bool]:
    result = run(load(name, settings), seed)
    if not isinstance(result, Result):
        raise NoWitnessError(f"{name}: its runs have no checkpoints; give a scenario of checkpoints, or a trace")
    try:
        return result.witness(checkpoint_id), result.scenario.mode.is_exact
    except WitnessError as error:
        raise NoWitnessError(f"{name}: {error}") from error


def _of_trace(path: Path, checkpoint_id: int, has_settings: bool) -> tuple[CutWitness, bool]:
    if has_settings:
        raise NoWitnessError("--seed and --set are of a scenario, and a trace is given; leave them out")
    try:
        _, head, entries = read_trace(path)
        is_exact = protocol_of(head.get("mode", head.get("protocol", "aligned"))).is_exact
        found = witness(entries, Run.of(entries, topology_of(head, path.name)), checkpoint_id)
    except (TraceError, TopologyError, HistoryError, ProtocolError, WitnessError) as error:
        message = str(error)
        raise NoWitnessError(message if message.startswith(path.name) else f"{path.name}: {message}") from error
    return found, is_exact


def lines_of(found: CutWitness, is_exact: bool) -> list[str]:
    """Return the lines for a reader."""
    if found.obstacle:
        permitted = "" if is_exact else "; the protocol, at least once, permits it"
        return [f"checkpoint {found.checkpoint_id}: not consistent{permitted}", f"! {found.obstacle}"]
    in_flight = sum(map(len, found.channels.values()))
    known = sum(state is not None for _, state in found.states.values())
    return [
        f"checkpoint {found.checkpoint_id}: consistent",
        f"of the {len(found.steps)} steps of attempt {found.attempt}, {found.before} are before the cut",
        f"{found.exchanges} exchanges of neighbouring steps put those first",
        f"there the {known} tasks have the states that were recorded" if known else NO_STATES,
        f"there the channels hold the events that were recorded: {in_flight}",
    ]


def as_json_object(found: CutWitness) -> dict[str, object]:
    """Return the same for machines."""
    return {
        "checkpoint": found.checkpoint_id,
        "consistent": not found.obstacle,
        "obstacle": found.obstacle,
        "attempt": found.attempt,
        "steps": len(found.steps),
        "before": found.before,
        "exchanges": found.exchanges,
        "channels": {name: [str(each) for each in messages] for name, messages in found.channels.items()},
        "states": {
            task: {"recorded": recorded, "computed": computed} for task, (recorded, computed) in found.states.items()
        },
    }


def as_text(found: CutWitness) -> str:
    """Return the steps in their new order, a line each, with a line at the recorded state."""
    lines = [
        " ".join(filter(None, (f"{at_ns / 1e9:.9f}", task, verb.removeprefix(">"), channel, text_of(subject))))
        for at_ns, verb, task, channel, subject in found.steps
    ]
    state = f"-- the state that checkpoint {found.checkpoint_id} recorded --"
    return "\n".join([*lines[: found.before], state, *lines[found.before :], ""])
