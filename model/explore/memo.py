"""The steps of a deterministic machine, worked out once: a table of calls, states and arguments, and what each gives.

The machines that are explored give themselves away as values. So each distinct local step is made once: the machine is
restored, called, and captured. From then on it is a lookup, however many states of the whole it is part of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

from barrierlab.model.explore.growth import GROWTH

R = TypeVar("R")


class Memo(dict[tuple[Any, ...], R]):
    """The results of a function by its arguments, which are a key: ``memo[call, state, *arguments]``.

    Parameters
    ----------
    does : callable
        Gives the same for the same arguments, which are hashable.

    Examples
    --------
    >>> asked = []
    >>> step = Memo(lambda call, state: asked.append(call) or state + 1)
    >>> step["emit", 1], step["emit", 1], asked
    (2, 2, ['emit'])
    """

    __slots__ = ("_does",)

    def __init__(self, does: Callable[..., R]) -> None:
        super().__init__()
        self._does = does

    def __missing__(self, key: tuple[Hashable, ...]) -> R:
        GROWTH.check()
        result = self[key] = self._does(*key)
        return result

    def differences(
        self, name: str, asked: Callable[[tuple[Any, ...]], str], words: Callable[[R], Iterator[str]]
    ) -> Iterator[str | None]:
        """Work everything out a second time, the last first: a line of what differs, or None, for each.

        That each is looked up after the first time rests on a machine that goes by what it captures alone. One that
        goes by more, such as how often it was called, does something else in another order.

        Parameters
        ----------
        name : str
            Of the machine.
        asked, words : callable
            The text of a key, and the effects of a result in words.
        """
        for key, result in reversed(tuple(self.items())):
            again = self._does(*key)
            if again == result:
                yield None
                continue
            first, second = _listed(words(result)), _listed(words(again))
            does = f"{name} does not do the same twice in {asked(key)}: {first}; then {second}"
            yield f"{does}; all that it goes by has to be in `capture`"


def _listed(words: Iterator[str]) -> str:
    return ", ".join(words) or "nothing"
