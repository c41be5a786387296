"""A name that something had before is refused with the one that it has now, in one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barrierlab.model.checkpoint.external import ExternalError, parts_of
from barrierlab.model.checkpoint.protocols import ProtocolError, protocol_of
from barrierlab.model.checkpoint.scripted import replay
from barrierlab.model.checkpoint.trace import TraceError, read
from barrierlab.model.renamed import OLDER_NAMES, renamed
from tests.sim.support import barrierlab


class ReleasesNext:
    """An aligner as it was written for the names before."""

    def release_next(self, now_ns: int) -> None: ...


TEXTS: dict[str, tuple[Callable[[str], object], str, str]] = {
    "an effect": (read, "topology: a->s\n\n> deliver a->s\n    s hold a->s a1\n", "buffer"),
    "a move": (read, "topology: a->s\n\n> release s\n", "drain"),
    "what was in flight": (read, "topology: a->s\n\n> deliver a->s\n    s put_back a->s a1\n", "restored_in_flight"),
    "a field of a header": (replay, "topology: a->s\ngives_up: 1 0\n", "aborts_one"),
    "a mode": (replay, "topology: a->s\nmode: fallback\n", "aligned_with_timeout"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_trace_of_before_is_told_the_new_name(what: str) -> None:
    """A user who kept a trace would have to guess what its words are called now."""
    reader, text, new = TEXTS[what]
    with pytest.raises(TraceError, match=f"called '{new}' now") as raised:
        reader(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("command", "new"),
    [
        (["check", "--protocol", "fallback"], "aligned_with_timeout"),
        (["table", "fallback"], "aligned_with_timeout"),
        (["run", "diamond", "--set", "checkpoint.aligned_timeout_s=1"], "aligned_checkpoint_timeout_s"),
        (["run", "crash_and_recover", "--set", "mode=aligned-timeout-50ms"], "aligned_with_timeout"),
    ],
)
def test_the_command_line_says_the_new_name(command: list[str], new: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A script of before would fail with a list of names, or with status 1, as if it had found a violation."""
    status, _, err = barrierlab(capsys, *command)
    assert status == 2
    assert len(err.splitlines()) == 1
    assert new in err


def test_a_class_of_before_is_told_the_new_name_of_its_method() -> None:
    """It would be said to lack a method that its author never heard of."""
    with pytest.raises(ExternalError, match="'release_next', which is called 'drain_next' now; rename it") as raised:
        parts_of(ReleasesNext, "aligned")
    assert "\n" not in str(raised.value)


def test_only_what_is_known_here_is_a_new_name() -> None:
    """A key would be proposed where it is none."""
    assert renamed("fallback", ["aligned", "aligned_with_timeout"]) == "aligned_with_timeout"
    assert renamed("fallback", ["aligned"]) is None
    assert renamed("aligned", OLDER_NAMES.values()) is None
    with pytest.raises(ProtocolError, match="it is called 'aligned_with_timeout' now"):
        protocol_of("fallback")
