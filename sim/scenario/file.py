"""One scenario file as tables: its keys read and checked, its parameters and a user's settings applied.

What the tables mean is for the builder of its kind (`sim.scenario.load`, `sim.control.scenario`, `sim.join.scenario`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from barrierlab.model.errors import InputError
from barrierlab.sim.scenario.readers import ValueReader, WrongValueError, keys_of, stem, suggest

S = TypeVar("S")


class ScenarioError(InputError):
    """A scenario that cannot be run. The message is one line: file, key, what came, what is allowed, what to do."""


class ScenarioFile:
    """The tables of a scenario. Every fault names the file and the key.

    Attributes
    ----------
    name, text : str
    data : dict
        As read from TOML; `begin` applies parameters and settings to it.
    settings : dict
        Parameter names or dotted keys to values, from who runs it.
    """

    def __init__(self, name: str, text: str, data: dict[str, Any], settings: dict[str, Any]) -> None:
        self.name, self.text, self.data, self.settings = name, text, data, settings

    def fail(self, where: str, what: str) -> NoReturn:
        """Raise the one error of a scenario."""
        line = " ".join(f"{where} {what}".split())  # a name in quotes may hold line breaks
        raise ScenarioError(f"{self.name}: {line}")

    def begin(self, top: Mapping[str, ValueReader], tables: Sequence[str]) -> dict[str, Any]:
        """Apply parameters and settings; the values of the keys above all tables.

        Parameters
        ----------
        top : mapping
            The readers of those keys.
        tables : sequence of str
            The tables that there may be.
        """
        known = [*top, *tables]
        self._apply(known)
        for key in self.data:
            if key not in known:
                self._unknown("", key, known)
        return {key: self.value("", key, self.data[key], top) for key in self.data if key in top}

    @property
    def parameters(self) -> dict[str, str]:
        """Return the parameters that the file declares, each with its help, its choices and its default."""
        texts = {}
        for name, table in self.data.get("parameters", {}).items():
            allowed = f" ({', '.join(table['choices'])})" if "choices" in table else ""
            texts[name] = f"{table.get('help', '')}{allowed}; default {table['default']}"
        return texts

    def has(self, key: str) -> bool:
        """Return whether there is a value at a dotted key."""
        node: Any = self.data
        for part in _split(key):
            node = node.get(part) if isinstance(node, dict) else None
        return node is not None

    def table(self, name: str) -> dict[str, Any]:
        """The table of a name; empty if there is none."""
        table = self.data.get(name, {})
        if not isinstance(table, dict):
            self.fail(f"{name!r}", f"must be a table: [{name}]")
        return table

    def tables(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The tables within the table of a name, each with its own name."""
        for key, table in self.table(name).items():
            if not isinstance(table, dict):
                self.fail(f"[{name}]", f"holds tables, one for each name: [{name}.{key}]")
            yield key, table

    def list_of_tables(self, name: str) -> list[dict[str, Any]]:
        """Return the tables of a name that may stand several times: [[fault]]."""
        tables = self.data.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.fail(f"{name!r}", f"is a list of tables: [[{name}]]")
        return tables

    def settings_of(self, kind: type[S], where: str, table: Mapping[str, Any] | None = None) -> S:
        """A table, ``[where]`` if it is not given, as its settings."""
        return kind(**self.section(where, self.table(where) if table is None else table, keys_of(kind)))

    def section(self, where: str, table: Mapping[str, Any], readers: Mapping[str, ValueReader]) -> dict[str, Any]:
        """The values of a table."""
        return {key: self.value(where, key, value, readers) for key, value in table.items()}

    def value(self, where: str, key: str, value: Any, readers: Mapping[str, ValueReader]) -> Any:
        """The value of a key, checked by its reader."""
        if key not in readers:
            self._unknown(where, key, list(readers))
        try:
            return readers[key](value)
        except WrongValueError as wrong:
            self.fail(f"[{where}] {key}" if where else key, f"is {value!r}; allowed: {wrong}")

    def _unknown(self, where: str, key: str, known: list[str]) -> NoReturn:
        place = f"[{where}]" if where else ""
        same = [name for name in known if stem(name) == stem(key)]
        if same:
            self.fail(place, f"has no key {key!r}: its unit is wrong; did you mean {same[0]!r}?")
        self.fail(place, f"has no key {key!r}; allowed: {', '.join(known)}" + suggest(key, known))

    def _apply(self, known: list[str]) -> None:
        parameters = self.data.get("parameters", {})
        if not isinstance(parameters, dict):
            self.fail("'parameters'", "must be tables such as [parameters.level]")
        wanted = dict(self.settings)
        for name, table in parameters.items():
            if (
                not isinstance(table, dict)
                or not set(table) <= {"default", "choices", "sets", "help"}
                or "default" not in table
            ):
                self.fail(f"[parameters.{name}]", "takes the keys default, choices or sets, and help")
            value = wanted.pop(name, table["default"])
            choices, sets = table.get("choices"), table.get("sets", [])
            if choices is not None and not (
                isinstance(choices, dict) and all(isinstance(each, dict) for each in choices.values())
            ):
                self.fail(f"[parameters.{name}] choices", "must be tables: a name, and the keys that it sets")
            if not isinstance(sets, list) or not all(isinstance(key, str) for key in sets):
                self.fail(f"[parameters.{name}] sets", "must be a list of keys in quotes")
            if choices is not None:
                if str(value) not in choices:
                    self.fail(
                        f"parameter {name!r}",
                        f"is {value!r}; allowed: {', '.join(choices)}" + suggest(str(value), choices),
                    )
                for key, setting in choices[str(value)].items():
                    self._set(key, setting)
            for key in sets:
                self._set(key, value)
        for key, value in wanted.items():
            if key.split(".")[0] not in known:
                self.fail(
                    f"setting {key!r}",
                    f"is neither a parameter ({', '.join(parameters) or 'there are none'}) nor a key of the file"
                    + suggest(key, [*parameters, *known]),
                )
            self._set(key, value)

    def _set(self, key: str, value: Any) -> None:
        node: Any = self.data
        parts = _split(key)
        if not parts:
            self.fail("setting ''", "is no key; write one such as source.a.rate_per_s")
        for part in parts[:-1]:
            node = self._item(key, node, part) if isinstance(node, list) else node.setdefault(part, {})
            if not isinstance(node, dict | list):
                self.fail(f"setting {key!r}", f"goes through {part!r}, which is not a table")
        if isinstance(node, list):
            self.fail(f"setting {key!r}", f"ends at a table; name one of its keys: {key}.kind")
        node[parts[-1]] = copy.deepcopy(value)

    def _item(self, key: str, tables: list[Any], part: str) -> Any:
        """One of a list of tables, by its number from 0."""
        if not part.isdecimal() or int(part) >= len(tables):
            allowed = f"0 to {len(tables) - 1}" if tables else "none, there is no table"
            self.fail(f"setting {key!r}", f"asks for table {part!r}; allowed: {allowed}")
        return tables[int(part)]


class Builder:
    """Makes the scenario of one kind from its file."""

    def __init__(self, file: ScenarioFile) -> None:
        self.file, self.fail = file, file.fail

    def common(self, top: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
        """The fields of any kind of scenario: those above all tables, each with its default, and the file's own."""
        file = self.file
        its = {"name": file.name.removesuffix(".toml"), "title": file.name, "seed": 1, **defaults}
        its |= {"parameters": file.parameters, "settings": file.settings}
        return its | {key: value for key, value in top.items() if key in its}

    def of_kind(
        self,
        where: str,
        table: Mapping[str, Any],
        readers: Mapping[str, ValueReader],
        parameters: Mapping[str, ValueReader],
        of: Mapping[str, Sequence[str]],
    ) -> dict[str, Any]:
        """Return the values of an operator's table; those that only its kind has, by name in `of`, as `parameters`."""
        own = of.get(self.file.value(where, "kind", table.get("kind", "map"), readers), ())
        values = self.file.section(where, table, {**readers, **{key: parameters[key] for key in own}})
        given = tuple((key, values.pop(key)) for key in own if key in values)
        return {**values, "parameters": given}


def _split(key: str) -> list[str]:
    """The parts of a dotted key; a part in quotes may hold dots and arrows: channel."a->b".capacity."""
    parts, rest = [], key
    while rest:
        if rest.startswith('"') and '"' in rest[1:]:
            part, _, rest = rest[1:].partition('"')
            rest = rest.removeprefix(".")
        else:
            part, _, rest = rest.partition(".")
        parts.append(part)
    return parts
