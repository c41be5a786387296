"""Verdicts that are kept, a file each: what `check --save` and the ledger of `check --changed` write and take over.

A file holds the outcome of a scope, the key of what it depends on (`sim.check.sources`), and a digest of both and of
its own name, so that one which was cut off, changed, or copied to another name is distinguished from one that counts.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

from barrierlab.model.checkpoint.check import Outcome, ScopeViolation
from barrierlab.model.errors import InputError
from barrierlab.sim.core.files import read_text, write

DIRECTORY = Path(".barrierlab")
"""The ledger in the working directory, if none is given."""


class KeptError(InputError):
    """A kept verdict that cannot be read, or not be written: one line."""


def file_of(directory: Path, implementation: str, name: str) -> Path:
    """Return where the verdict of a scope is kept."""
    digest = hashlib.sha256(f"{name}\n{implementation}".encode()).hexdigest()
    return directory / f"{digest[:16]}.json"


def keep(path: Path, key: str, outcome: Outcome) -> None:
    """Write an outcome down, whole or not at all; without a key it is never taken over."""
    content = {"key": key, **asdict(outcome)}
    write(path, json.dumps({"digest": _digest(path, content), **content}), KeptError)


def kept(path: Path) -> tuple[str, Outcome]:
    """Return the key of a kept verdict, and the verdict.

    Raises
    ------
    KeptError
        If it is not as it was written.
    """
    text = read_text(path, KeptError, "it counts for nothing")
    try:
        content = json.loads(text)
        digest = content.pop("digest")
        if digest != _digest(path, content):
            raise ValueError("it was changed, or copied from elsewhere")
        key = content.pop("key")
        violations = tuple(ScopeViolation(**each) for each in content.pop("violations"))
        outcome = Outcome(**content, violations=violations)
        return key, replace(outcome, asked_for=tuple(outcome.asked_for))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = str(error) if type(error) is ValueError else type(error).__name__
        raise KeptError(f"{path} is no verdict that can be read ({reason})") from error


def _digest(path: Path, content: object) -> str:
    return hashlib.sha256(f"{path.name}\n{json.dumps(content, sort_keys=True)}".encode()).hexdigest()
