"""Small edits of a table, each of which a comparison must notice."""

from __future__ import annotations

from collections.abc import Iterator

from barrierlab.model.explore.table import Table


def edits(table: Table) -> Iterator[tuple[str, str, Table]]:
    """Each small edit of a table: what it is, in which row, and the table that it makes."""
    for row in table.rows:
        for place, action in enumerate(row.then):
            before, after = row.then[:place], row.then[place + 1 :]
            yield f"{row.name}, without {action.__name__}", row.name, table.changed(row.name, then=before + after)
            if after and after[0] is not action:
                swapped = (*before, after[0], action, *after[1:])
                name = f"{row.name}, {after[0].__name__} before {action.__name__}"
                yield name, row.name, table.changed(row.name, then=swapped)
        for place, guard in enumerate(row.when):
            left = row.when[:place] + row.when[place + 1 :]
            yield f"{row.name}, whether or not {guard.__name__}", row.name, table.changed(row.name, when=left)
