"""The checks of what a caller configures: whole numbers within bounds, and values of one type.

``nan`` compares as less than nothing and more than nothing, and ``True`` counts as 1, so a comparison alone lets both
through; a float that is whole today is none tomorrow. Numbers here are of type int, and nothing else.
"""

from __future__ import annotations

from barrierlab.impl.errors import LimitError


def check_number(name: str, value: object, least: int, most: int | None = None, or_none: str = "") -> None:
    """Raise LimitError unless `value` is a whole number from `least` to `most`.

    Parameters
    ----------
    name : str
    value : object
    least : int
    most : int, optional
        By default there is none.
    or_none : str
        The meaning of None, where that is allowed.
    """
    if value is None and or_none:
        return
    if type(value) is not int or value < least or (most is not None and value > most):
        expected = f"a whole number, {least} or more" if most is None else f"a whole number from {least} to {most}"
        raise LimitError(name, value, f"{expected}, or None {or_none}" if or_none else expected)


def check_flag(name: str, value: object) -> None:
    """Raise LimitError unless `value` is True or False."""
    if type(value) is not bool:
        raise LimitError(name, value, "True or False")


def check_type(name: str, value: object, kind: type) -> None:
    """Raise LimitError unless `value` is of this type itself."""
    if type(value) is not kind:
        raise LimitError(name, value, f"of type {kind.__name__}")
