"""The command `barrierlab`.

What an exit status means is in `sim.core.status`. With `--json`, stdout is one JSON object and nothing else.
"""

from __future__ import annotations

import sys

import click

from barrierlab.sim.core.build import BUILD
from barrierlab.sim.core.status import STATUSES, Group, run_command_line

# Where each command is, and what the list of commands says of it: none is imported before it is asked for.
COMMANDS = {
    "run": ("sim.cli.run:run_command", "Simulate a scenario once, and judge it."),
    "scenarios": ("sim.cli.scenarios:scenarios_command", "List the scenarios that are shipped."),
    "table": ("sim.cli.table:table_command", "Print a protocol as a table of situations and effects."),
    "check": ("sim.cli.check:check_command", "Explore every interleaving of small scopes, of an engine's class, too."),
    "defects": ("sim.cli.defects:defects_command", "Run the catalogue of what goes wrong, each with its shortest run."),
    "export": ("sim.cli.export:export_command", "Write a scope as a model for another checker, Spin."),
    "sweep": ("sim.sweep.commands:sweep_command", "Run many runs, on processes or on Spark."),
    "analyse": ("sim.sweep.commands:analyse_command", "Print the answer of a sweep, and its figures."),
    "verify": ("sim.sweep.commands:verify_command", "Judge the journals of a sweep a second time, in SQL."),
    "report": ("sim.sweep.commands:report_command", "Write the report on a sweep: one HTML file."),
    "rerun": ("sim.cli.rerun:rerun_command", "Make one run of a sweep or an answer again, and check its digest."),
    "measured": ("sim.sweep.commands:measured_command", "Predict the jobs that were measured on a Flink cluster."),
    "witness": ("sim.cli.witness:witness_command", "Pass through the state of a checkpoint: reorder the run's steps."),
    "import": ("sim.cli.twin:import_command", "Write the scenario of a job that runs on Apache Flink."),
    "calibrate": ("sim.cli.twin:calibrate_command", "Fit a cost profile of a cluster to measured checkpoints."),
    "predict": ("sim.cli.twin:predict_command", "Predict the checkpoints of a job, and lay a measurement beside them."),
    "ask": ("sim.cli.ask:ask_command", "Answer a question: a sentence, a number, and what would change it."),
    "advise": ("sim.cli.advise:advise_command", "Say how often a job should take a checkpoint."),
    "show": ("sim.cli.show:show_command", "Show a trace or a counterexample, also as a picture."),
}


@click.group(cls=Group, lazy=COMMANDS, epilog=STATUSES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="barrierlab", message=f"%(prog)s %(version)s ({BUILD})")
def cli() -> None:
    """Prove, break and predict the checkpoints of stream processors.

    Example: barrierlab run flink_chain --set level=sat_4ms
    """


def main(arguments: list[str] | None = None) -> None:
    """Run a command, and exit with its status."""
    sys.exit(run_command_line(cli, arguments))


if __name__ == "__main__":
    main()
