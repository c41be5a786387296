"""The effects of external code on the process that checks it: none but a line on stderr."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest

from barrierlab.model.checkpoint.external import parts_of
from barrierlab.model.checkpoint.hosting import ExternalError
from barrierlab.sim.check.contained import NeverReturnsError, contained
from docs.aligner.aligner import PhasedAligner
from tests.sim.support import barrierlab


class Prints(PhasedAligner):
    """Says on stdout what it gets."""

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        print("got", message)
        return super().offer(input_id, message, now_ns)


class NeverReturns(PhasedAligner):
    """Waits for the second barrier in a loop."""

    def _on_barrier(self, input_id: int, barrier: Any, now_ns: int) -> None:
        while True:
            self.port.block(input_id, barrier.checkpoint_id)


class WaitsForALock(PhasedAligner):
    """Waits for a lock that nobody gives back."""

    def _on_barrier(self, input_id: int, barrier: Any, now_ns: int) -> None:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()


class WaitsForAThread(PhasedAligner):
    """Waits for a thread that waits for ever."""

    def _on_barrier(self, input_id: int, barrier: Any, now_ns: int) -> None:
        thread = threading.Thread(target=threading.Event().wait, daemon=True)
        thread.start()
        thread.join()


class SpinsInC(PhasedAligner):
    """Looks for the greatest of numbers that never end, in code that looks at no signal."""

    def _on_barrier(self, input_id: int, barrier: Any, now_ns: int) -> None:
        max(itertools.repeat(1))


class Stepped(PhasedAligner):
    """Stays at a break point for longer than four looks at it."""

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        until = monotonic() + 0.2
        while monotonic() < until:
            pass
        raise TimeoutError


@pytest.fixture
def unwatched() -> Iterator[None]:
    """Set the alarm of the test runner aside, below which no call is ended."""
    outer = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.setitimer(signal.ITIMER_REAL, *outer)


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize("kind", [NeverReturns, WaitsForALock, WaitsForAThread])
def test_a_call_that_never_returns_is_ended(kind: type) -> None:
    """A pipeline would hang until somebody looks, whatever budget it has."""
    told = r"PhasedAligner.offer has not come back for 0.05 s \(it is in test_contained.py, line \d+\); allowed: "
    with pytest.raises(NeverReturnsError, match=told), contained(0.05):
        parts_of(kind, "aligned")


def test_what_spins_in_c_is_killed() -> None:
    """No alarm is heard there, nor Ctrl-C: a pipeline would hang, and nobody would learn where."""
    lines = (
        "from barrierlab.model.checkpoint.external import parts_of",
        "from barrierlab.sim.check.contained import contained",
        f"from {__name__} import SpinsInC",
        "with contained(0.05): parts_of(SpinsInC, 'aligned')",
    )
    command = [sys.executable, "-c", "\n".join(lines)]
    ended = subprocess.run(command, capture_output=True, check=False, text=True, timeout=300)
    assert ended.returncode == -signal.SIGPROF
    assert re.search(r'File ".*test_contained.py", line \d+ in _on_barrier', ended.stderr)


@pytest.mark.usefixtures("unwatched")
def test_a_profiler_keeps_its_signal() -> None:
    """A user who profiles a check would see nothing, or be killed."""
    outer = signal.signal(signal.SIGPROF, signal.SIG_IGN)
    try:
        with contained(0.01):
            assert signal.getitimer(signal.ITIMER_PROF)[0] == 0.0
        assert signal.getsignal(signal.SIGPROF) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGPROF, outer)


@pytest.mark.usefixtures("unwatched")
def test_a_check_may_take_longer_than_a_call() -> None:
    """A class would be blamed for the time that exploring it takes."""
    looks: list[int] = []
    with contained(0.1):  # the busiest machine lets a process wait for less
        look = signal.getsignal(signal.SIGALRM)
        assert callable(look)

        def counted(number: int, frame: Any) -> None:
            looks.append(number)
            look(number, frame)

        signal.signal(signal.SIGALRM, counted)
        while len(looks) < 3:
            parts_of(PhasedAligner, "aligned")
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.usefixtures("unwatched")
def test_a_call_in_a_debugger_is_not_ended() -> None:
    """A user who steps through his class would be thrown out of it after some seconds."""
    outer = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        with pytest.raises(ExternalError, match="Stepped raised TimeoutError"), contained(0.05):
            parts_of(Stepped, "aligned")
    finally:
        sys.settrace(outer)


def test_an_alarm_of_another_is_left_alone() -> None:
    """A test runner's own limit of time would be switched off."""
    outer = signal.setitimer(signal.ITIMER_REAL, 1000.0)
    try:
        with contained(0.01):
            assert 900 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)


def test_what_a_class_prints_is_not_in_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader of the JSON would find something else there."""
    scope, kind = "aligned: a->s; events 1, checkpoints 1; no fault", f"{__name__}:{Prints.__name__}"
    status, out, err = barrierlab(capsys, "check", "--impl", kind, "--scope", scope, "--json")
    assert (status, json.loads(out)["verdict"]) == (0, "holds")
    assert "got a1\n" in err
