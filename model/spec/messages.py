"""The specification's view of a message: the name of its class, and a few fields.

It imports nothing of the code under test, so a journal may hold anybody's messages.
"""

from __future__ import annotations

from typing import Protocol, cast

UNALIGNED_FLAG = 1
"""In the flags of a barrier."""

# What a buffered message counts for, in bytes, where it does not say so itself (a barrier: F-DCKP-001, "Wire format").
CONTROL_SIZES = {"CheckpointBarrier": 24, "Watermark": 8, "CancelBarrier": 8, "EndOfInput": 1}


class MessageView(Protocol):
    """The interface of a message of any kind; each has the fields of its kind."""

    checkpoint_id: int
    epoch: int
    flags: int
    timestamp_ms: int
    source: str
    sequence: int
    size_bytes: int


def kind_of(message: object) -> str:
    """Return the name of the kind of `message`: ``"Event"``, ``"Watermark"``, ``"CheckpointBarrier"``..."""
    return type(message).__name__


def size_of(message: object) -> int:
    """Return the size of `message` in bytes where it is buffered."""
    size = CONTROL_SIZES.get(type(message).__name__)
    return cast(MessageView, message).size_bytes if size is None else size
