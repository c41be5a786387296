"""The interface of a benchmark to the kept table: each module of `tests.bench` may have a function `ratios`."""

from __future__ import annotations

from typing import NamedTuple


class Ratio(NamedTuple):
    """A time as a multiple of its floor's, both measured in one run: more is slower.

    Attributes
    ----------
    name : str
        Once in its module.
    ratio : float
    floor : str
        The floor in a few words: `an empty call`.
    """

    name: str
    ratio: float
    floor: str
