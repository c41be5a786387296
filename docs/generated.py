"""The reference, printed from the code while the site is built: a block ``{generated} NAME`` in a page is one part.

What is printed is Markdown, which MyST reads as if it stood in the page. Formulas become MathML, which browsers know
themselves: the site loads nothing.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import click
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from barrierlab.sim.cli.main import COMMANDS, cli
from barrierlab.sim.control import scenario as control
from barrierlab.sim.core.distributions import Distribution
from barrierlab.sim.join import scenario as join
from barrierlab.sim.scenario import readers, settings
from barrierlab.sim.sweep.tables import ON_REQUEST, TABLES
from docs.meanings import MEANINGS

Lines = Iterator[str]
WIDTH = 88
"""Of a block of code, in characters: as many as a page has beside its contents."""


# The command line.
def commands() -> Lines:
    """Every command with its help, as the command line prints it."""
    context = click.Context(cli, info_name="barrierlab", max_content_width=WIDTH, terminal_width=WIDTH)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=WIDTH, terminal_width=WIDTH)
        yield from (f"## {name}", "", COMMANDS[name][1], "", "```text", command.get_help(inner), "```", "")


# Scenarios.
Readers = Mapping[str, readers.ValueReader]


def _keys(of: type, *but: str) -> tuple[Readers, type]:
    """The keys of a class of settings, but for those of another section."""
    return {key: reader for key, reader in readers.keys_of(of).items() if key not in but}, of


def _only(of: type, *names: str) -> tuple[Readers, type]:
    return {key: readers.keys_of(of)[key] for key in names}, of


SECTIONS: dict[str, tuple[str, Readers, type | None]] = {
    "top": ("At the top of the file", readers.TOP, None),
    "source": ("`[source.NAME]`", *_keys(settings.SourceSettings)),
    "operator": ("`[operator.NAME]`", *_keys(settings.OperatorSettings, *settings.OF_SINKS)),
    "chained": (
        "`chain` of `[operator.NAME]`: tables of the operators behind it, besides the keys of their kind",
        *_keys(settings.ChainedSettings),
    ),
    "sink": ("`[operator.NAME]` of a sink, besides", *_only(settings.OperatorSettings, *settings.OF_SINKS)),
    "parameters": ("`[operator.NAME]` of some kinds, besides", readers.PARAMETERS, None),
    "channel": ('`[channel.default]`, `[channel."a->b"]`', *_keys(settings.ChannelSettings)),
    "checkpoint": ("`[checkpoint]`", *_keys(settings.CheckpointSettings)),
    "recovery": ("`[recovery]`", *_keys(settings.RecoverySettings)),
    "buffer_debloat": ("`[buffer_debloat]`", *_keys(settings.BufferDebloatSettings)),
    "watermark_alignment": ("`[watermark_alignment]`", *_keys(settings.WatermarkAlignmentSettings)),
    "store": ("`[store]`", *_keys(settings.StoreSettings)),
    "when": ("`[[fault]]`: when", *_only(settings.Fault, *settings.WHEN)),
    "fault": ("`[[fault]]`: what", *_keys(settings.Fault, *settings.WHEN)),
    "join_top": ("Of a join: at the top of the file", join.TOP, None),
    "join": ("Of a join: `[join]`", *_keys(join.JoinSettings)),
    "input": ("Of a join: `[input.NAME]`", *_keys(join.InputSettings)),
    "control": ("Of control signals: `[control]`", *_keys(control.ControlSettings)),
    "signal": ("Of control signals: `[[signal]]`", *_keys(control.SignalSettings)),
}


def allowed(reader: readers.ValueReader) -> str:
    """The words in which a reader says what it takes."""
    try:
        reader(object())
    except readers.WrongValueError as error:
        text = re.sub(r"; did you mean .*| and at most 1e\+12", "", str(error))
        return text.replace("of at least 1e-09", "above 0").replace("1e+09", "10⁹")
    return "anything"


def default(of: type | None, key: str) -> str:
    """The default of a key, as the dataclass of its settings has it."""
    fields = {field.name: field for field in dataclasses.fields(of)} if of is not None else {}
    if key not in fields or fields[key].default is dataclasses.MISSING:
        return ""
    value = fields[key].default
    if isinstance(value, Distribution):
        [value] = value.parameters
    if value is None or value == ():
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def scenario() -> Lines:
    """The keys of a scenario, table by table: what is allowed, the default, the meaning."""
    for section, (title, known, of) in SECTIONS.items():
        yield from (f"## {title}", "", "| key | allowed | default | meaning |", "| --- | --- | --- | --- |")
        for key, reader in known.items():
            cells = (f"`{key}`", allowed(reader), default(of, key), MEANINGS[section][key])
            yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
        yield ""
    yield from ("## The kinds of faults", "", "| kind | needs | may have |", "| --- | --- | --- |")
    for kind, (needs, may, _) in readers.FAULTS.items():
        yield f"| `{kind}` | {', '.join(f'`{key}`' for key in needs)} | {', '.join(f'`{key}`' for key in may)} |"


# Tables.
def tables() -> Lines:
    """The tables of a sweep, column by column."""
    for table in (*TABLES.values(), *ON_REQUEST.values()):
        key = ", ".join(f"`{name}`" for name in table.key)
        yield from (f"## {table.name}", "", f"{table.meaning[0].upper()}{table.meaning[1:]}; its key is {key}.", "")
        yield from ("| column | type | unit | meaning |", "| --- | --- | --- | --- |")
        for column in table.columns:
            yield f"| `{column.name}` | {column.kind} | {column.unit} | {column.meaning.replace('|', '/')} |"
        yield ""


# Python.
MODULES = {
    "barrierlab": "Load a scenario, run it, look at the result.",
    "barrierlab.sim.notebook": "A trace or a counterexample to walk through, with a cut that one drags.",
    "barrierlab.model.defects.catalogue": "What goes wrong when documents are taken at their word.",
    "barrierlab.model.defects.engines.catalogue": "Public reports about engines, as schemes.",
    "barrierlab.model.suites.conformance": "An aligner of your own, in a test suite or a notebook.",
    "barrierlab.model.checkpoint.external": "What such an aligner must have.",
    "barrierlab.model.checkpoint.interfaces": "What the other parts of an engine must have.",
    "barrierlab.model.checkpoint.capabilities": "What a part declares that it does not take part in.",
    "barrierlab.sim.sweep": "Many runs, and their tables.",
    "barrierlab.sim.sweep.measured": "The jobs that were measured on a cluster, beside their predictions.",
    "barrierlab.sim.twin.calibrate": "What a cluster itself costs, fitted to measured checkpoints.",
    "barrierlab.sim.twin.predict": "Checkpoints of a job predicted with such a profile.",
    "barrierlab.sim.advise.pieces": "What a checkpoint and a failure of a job cost.",
    "barrierlab.sim.advise.advice": "How often to take one.",
    "barrierlab.impl": "The protocols themselves: machines without clock, thread, chance or I/O.",
}
"""The public modules; notebooks import no others of ours."""


def api() -> Lines:
    """The public names of Python, module by module, each with its docstring."""
    for name, meaning in MODULES.items():
        module = import_module(name)
        yield from (f"## `{name}`", "", meaning, "")
        for each in sorted(public(module), key=str.lower):
            yield from documented(each, getattr(module, each))


def public(module: Any) -> list[str]:
    """The public names of a module: `__all__`, or what it defines; of one that defines nothing, all that it imports."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    names = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    own = [name for name, value in names.items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in own if callable(names[name])] or [
        name for name, value in names.items() if not inspect.ismodule(value)
    ]


def documented(name: str, value: Any) -> Lines:
    """A name with its signature and its docstring, and the public methods of a class."""
    yield from (f"### `{name}`", "")
    yield from signature(name, value)
    yield from docstring(value)
    if not inspect.isclass(value) or issubclass(value, Exception):
        return
    for member, raw in vars(value).items():
        if member.startswith("_") or not (inspect.isfunction(raw) or isinstance(raw, property | classmethod)):
            continue
        if text := inspect.getdoc(raw):
            shown = member if isinstance(raw, property) else f"{member}{parameters(getattr(value, member))}"
            yield from (f"`{shown}`", f": {' '.join(text.split(chr(10) * 2)[0].split())}", "")


def parameters(value: Any) -> str:
    """The parameters of something that can be called, without the names of modules."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    return re.sub(
        r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text.replace("'", "").replace("(self, ", "(").replace("(self)", "()")
    )


def signature(name: str, value: Any) -> Lines:
    """The call of a function, in a block of code."""
    if callable(value) and (text := parameters(value)):
        yield from ("```python", f"{name}{text}", "```", "")


def docstring(value: Any) -> Lines:
    """A docstring as Markdown: NumPy's sections are lists of definitions, examples are code."""
    text = inspect.getdoc(value) if inspect.isclass(value) or callable(value) else None
    if not text or (inspect.isclass(value) and value.__doc__ is None):
        return
    for at, part in enumerate(
        re.split(r"^(\w[\w ]*)\n-{3,}\n", re.sub(r"``(.+?)``", r"`\1`", text), flags=re.MULTILINE)
    ):
        if at % 2:
            yield from (f"**{part}**", "")
        elif at and ">>>" not in part:
            yield from definitions(part)
        else:
            yield from paragraphs(part)


def definitions(text: str) -> Lines:
    """``name : type`` and what is indented below it, as a list of definitions."""
    is_open = True
    for line in text.splitlines():
        if line.startswith("    "):
            yield line.strip() if is_open else f": {line.strip()}"
            is_open = True
        elif line:
            yield from ("", f"`{line}`")
            is_open = False
    yield ""


def paragraphs(text: str) -> Lines:
    """Paragraphs, with what is indented and what is typed into Python as blocks of code."""
    for part in re.split(r"\n{2,}", text.strip("\n")):
        kind = "python" if part.lstrip().startswith(">>>") else "text" if part.startswith("    ") else None
        yield from ((f"```{kind}", part, "```", "") if kind else (part, ""))


PARTS: dict[str, Callable[[], Lines]] = {"commands": commands, "scenario": scenario, "tables": tables, "api": api}


class Generated(SphinxDirective):
    """A part of the reference, where a page asks for it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Print the part, and have it read as Markdown: each time, as the code may have changed."""
        self.env.note_reread()
        text = "\n".join(PARTS[self.arguments[0]]())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


# Formulas.
def inline_math(translator: Any, node: nodes.Element) -> None:
    """Write a formula in a line of text."""
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block_math(translator: Any, node: nodes.Element) -> None:
    """Write a formula that stands alone."""
    translator.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directive and of the renderer."""
    app.add_directive("generated", Generated)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
