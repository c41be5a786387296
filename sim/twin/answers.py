"""The answers of a Flink REST server: asked of a live one, or read from files in which they were saved.

Saved answers are one JSON object, path to answer (`--save` writes it), in one file or in several. Whatever a server or
a file says is input from outside: a field that is missing or odd is None, and who needs it decides what that means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from barrierlab.model.errors import InputError
from barrierlab.sim.core.files import read_text

TIMEOUT_S = 5.0  # of one answer; a server on the same network takes milliseconds
MOST_BYTES = 64_000_000  # of one answer: of a job of 10,000 subtasks the largest is some 10 MB
DEBLOATED = ("Shuffle.Netty.Input.0.debloatedBufferSize", "debloatedBufferSize")
"""The gauge of a gate's debloated buffers, as Flink 2.3 names it, and without its groups."""
METRICS = (
    "numRecordsInPerSecond",
    "numRecordsOutPerSecond",
    "busyTimeMsPerSecond",
    "backPressuredTimeMsPerSecond",
    *DEBLOATED,
)


LISTING = "/jobs/overview"
"""The path whose answer changes while others are saved."""


class TwinError(InputError):
    """Data that cannot be imported, calibrated or predicted: one line, with what to do."""


class FlinkAnswers:
    """The answers to GET requests, by path. What was asked is kept in `asked`, so that it can be saved.

    Parameters
    ----------
    where : str
        The server or the files, for messages.
    saved : mapping of str to Any
        Path to answer. Of a path that is not there, and of a server without `url`, the answer is None.
    url : str, optional
        Of a live server.
    """

    def __init__(self, where: str, saved: Mapping[str, Any], url: str | None = None) -> None:
        self.where, self.saved, self._url = where, saved, url
        self.asked: dict[str, Any] = {}

    def get(self, path: str, query: str = "") -> Any:
        """Return the answer to a path, None if there is none (404).

        Raises
        ------
        TwinError
            If a live server cannot be reached, does not answer in time, or answers something else than JSON.
        """
        if path not in self.asked:
            self.asked[path] = self.saved.get(path) if self._url is None else self._ask(self._url, path + query)
        return self.asked[path]

    def _ask(self, url: str, path: str) -> Any:
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.request import urlopen

        hint = "give the address of a Flink REST server, such as the one of its web page, or saved answers"
        try:
            with urlopen(url + path, timeout=TIMEOUT_S) as answer:
                content = answer.read(MOST_BYTES + 1)
        except HTTPError as refused:
            if refused.code == 404:
                return None
            raise TwinError(f"{url}{path}: the server answers {refused.code} {refused.reason}; {hint}") from refused
        except TimeoutError as late:
            raise TwinError(f"{url}{path}: no answer within {TIMEOUT_S:g} s; {hint}") from late
        except (URLError, HTTPException, OSError, ValueError) as failed:
            reason = getattr(failed, "reason", None) or failed
            if isinstance(reason, TimeoutError):
                raise TwinError(f"{url}{path}: no answer within {TIMEOUT_S:g} s; {hint}") from failed
            said = getattr(reason, "strerror", None) or str(reason) or type(failed).__name__
            raise TwinError(f"{url}{path}: cannot be reached: {said}; {hint}") from failed
        if len(content) > MOST_BYTES:
            raise TwinError(f"{url}{path}: the answer is longer than {MOST_BYTES:,} bytes; {hint}")
        return parsed(content, f"{url}{path}", hint)


def parsed(content: bytes | str, where: str, hint: str) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    TwinError
        If it is none, or nested beyond reason.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as wrong:
        raise TwinError(f"{where}: not JSON: {wrong}; {hint}") from wrong


def is_address(source: str) -> bool:
    """Return whether `source` is the address of a server, and no file."""
    return source.startswith(("http://", "https://"))


def answers_of(sources: Iterable[str]) -> FlinkAnswers:
    """Return the answers of one server, or of one or more files.

    Raises
    ------
    TwinError
        If a file is no object of paths and answers, or answers otherwise than another of them; or if an address stands
        beside something else.
    """
    names = list(sources)
    if any(map(is_address, names)):
        if len(names) > 1:
            raise TwinError(f"{' '.join(names)}: allowed: one address of a server, or one or more files")
        return FlinkAnswers(names[0], {}, names[0].rstrip("/"))
    found: dict[str, Any] = {}
    for name in names:
        for path, answer in saved_in(Path(name)).items():
            if found.setdefault(path, answer) != answer and path != LISTING:
                raise TwinError(
                    f"{name}: answers {path} otherwise than a file before it; give one import's files at a time"
                )
    return FlinkAnswers(" ".join(names), found)


def saved_in(path: Path) -> dict[str, Any]:
    """Return the answers that a file holds, by path; the query of a path is left out."""
    hint = "give a file of answers, as barrierlab import --save FILE writes it, or a server's address, http://HOST:PORT"
    found = parsed(read_text(path, TwinError, hint), str(path), hint)
    if not isinstance(found, dict) or not found or not all(name.startswith("/") for name in found):
        raise TwinError(f"{path}: no object of paths (/jobs/ID ...) and answers; {hint}")
    return {name.partition("?")[0]: answer for name, answer in found.items()}


# Fields of answers.


def at(answer: Any, *keys: str) -> Any:
    """Return the value below `keys`, None if there is no way to it."""
    for key in keys:
        answer = answer.get(key) if isinstance(answer, dict) else None
    return answer


def items(answer: Any, *keys: str) -> list[dict[str, Any]]:
    """Return the objects of the list below `keys`; anything else than an object in it is left out."""
    found = at(answer, *keys)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def number(answer: Any, *keys: str, low: float = 0.0, high: float = 1e15) -> float | None:
    """Return the number below `keys`, if it is one within the bounds: no NaN, no text, no truth value."""
    found = at(answer, *keys)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if low <= found <= high and math.isfinite(found) else None


def text(answer: Any, *keys: str) -> str | None:
    """Return the text below `keys` in one line, None if it is none."""
    found = at(answer, *keys)
    return " ".join(found.split()) if isinstance(found, str) and found.strip() else None
