"""Amounts as text for people."""

from __future__ import annotations


def percent(share: float, places: int = 0, *, sign: bool = False) -> str:
    """Return a share in percent, with so many decimal places; none that rounds to 0 is negative.

    >>> percent(0.987), percent(0.987, 1), percent(0.2, sign=True), percent(-0.0001), percent(-0.0001, 1, sign=True)
    ('99 %', '98.7 %', '+20 %', '0 %', '+0.0 %')
    """
    return f"{100 * share:{'+' if sign else ''}z.{places}f} %"
