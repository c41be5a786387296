"""The contents of channels and other queues as small numbers, so that a state is a tuple of them."""

from __future__ import annotations

from collections.abc import Callable

from barrierlab.model.explore.growth import GROWTH


class Queues:
    """The contents of queues as numbers; 0 is the empty one.

    Parameters
    ----------
    takes_room, is_barrier : callable, optional
        What there is to know of an item of a channel.

    Attributes
    ----------
    contents : list of tuple of int
        The items, first in first, by number of the queue.
    depths : list of int
        How much of its room a channel has used, by number.
    to_last_barrier : list of tuple of int
        The items up to the last barrier, with that; none without one.
    """

    __slots__ = ("_after", "_is_barrier", "_numbers", "_takes_room", "contents", "depths", "to_last_barrier")

    def __init__(
        self,
        takes_room: Callable[[int], bool] = lambda item: False,
        is_barrier: Callable[[int], bool] = lambda item: False,
    ) -> None:
        self._takes_room, self._is_barrier = takes_room, is_barrier
        self._numbers: dict[tuple[int, ...], int] = {}
        self._after: dict[tuple[int, int], int] = {}
        self.contents: list[tuple[int, ...]] = []
        self.depths: list[int] = []
        self.to_last_barrier: list[tuple[int, ...]] = []
        self.number(())

    def number(self, items: tuple[int, ...]) -> int:
        """The number of the queue that holds `items`."""
        number = self._numbers.get(items)
        if number is None:
            GROWTH.check()
            number = self._numbers[items] = len(self.contents)
            self.contents.append(items)
            self.depths.append(sum(map(self._takes_room, items)))
            self.to_last_barrier.append(self._up_to_last_barrier(items))
        return number

    def _up_to_last_barrier(self, items: tuple[int, ...]) -> tuple[int, ...]:
        end = len(items)
        while end and not self._is_barrier(items[end - 1]):
            end -= 1
        return items[:end]

    def put(self, queue: int, item: int) -> int:
        """`queue` with `item` behind all else."""
        after = self._after.get((queue, item))
        if after is None:
            after = self._after[queue, item] = self.number((*self.contents[queue], item))
        return after

    def without(self, queue: int, place: int = 0) -> int:
        """`queue` without what is at a place."""
        after = self._after.get((~queue, place))
        if after is None:
            items = self.contents[queue]
            after = self._after[~queue, place] = self.number(items[:place] + items[place + 1 :])
        return after
