"""The names that traces, scenarios, options and external classes had before, so that a refusal can say the new one."""

from __future__ import annotations

from collections.abc import Iterable

OLDER_NAMES = {
    "aligned_timeout_s": "aligned_checkpoint_timeout_s",
    "fallback": "aligned_with_timeout",
    "gives_up": "aborts_one",
    "has_released": "can_drain",
    "hold": "buffer",
    "put_back": "restored_in_flight",
    "release": "drain",
    "release_next": "drain_next",
}
"""By the older name, that of today."""


def renamed(word: str, known: Iterable[str]) -> str | None:
    """Return the name among `known` that `word` is an older one of, if there is one."""
    new = OLDER_NAMES.get(word)
    return new if new in set(known) else None
