"""A defect of a value, a time or an interface: a few calls, to what is as documented and to what is sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from barrierlab.model.defects.kinds.found import Found


@dataclass(frozen=True, slots=True)
class Witness:
    """A defect of a value, a time or an interface, which a few calls show.

    Attributes
    ----------
    kind : str
        As of `model.defects.kinds.found.Defect`.
    broken, right : callable
        The same calls, to what is as documented and to what is sound; what came of each, a line each.
    right_lines : tuple of str
        What comes of the sound ones; what comes of the others is kept beside the entry.
    """

    kind: str
    broken: Callable[[], tuple[str, ...]]
    right: Callable[[], tuple[str, ...]]
    right_lines: tuple[str, ...]
    breaks: str = "value"

    def as_documented(self) -> Found:
        """Return what comes of the calls, if it is what it is said to be."""
        return _of_calls(self.broken(), self.right_lines)

    def sound(self) -> Found:
        """The same of the sound code."""
        return _of_calls(self.right(), self.right_lines)


def _of_calls(lines: tuple[str, ...], right: tuple[str, ...]) -> Found:
    if lines == right:
        return Found()
    return Found(frozenset({"value"}), len(lines), 0, 0.0, "".join(f"{line}\n" for line in lines))
