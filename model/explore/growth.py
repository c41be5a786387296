"""Tables that may not grow: what several processes number alike, none of them may number alone.

The parts of a state are numbers in tables that fill as a system is explored (`model.explore.intern`,
`model.explore.memo`). Processes that explore the same system side by side understand each other's states as long as
their tables are equal. So each of them explores with closed tables; a state that would need a new entry is put aside,
and is afterwards explored by all of them in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UnknownPartError(BaseException):
    """A closed table would have to grow. (No `Exception`: a system that forgives what its machines raise stays out.)"""


class Growth:
    """The tables of this process, as a whole.

    Attributes
    ----------
    is_closed : bool
        Whether an entry that is not there is an `UnknownPartError`.
    """

    __slots__ = ("is_closed",)

    def __init__(self) -> None:
        self.is_closed = False

    def check(self) -> None:
        """Raise if the tables are closed; asked for each entry that is not there yet."""
        if self.is_closed:
            raise UnknownPartError

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Keep the tables as they are meanwhile."""
        self.is_closed = True
        try:
            yield
        finally:
            self.is_closed = False


GROWTH = Growth()
