"""A program of the user's that answers each line with a line: started, asked, watched, and ended.

A line must be answered within a limit. On a busy machine a sound program may have to wait for a core, so that the time
which counts is the CPU time that it takes for the answer, and the time in which nothing of it runs or would run: both
are read from ``/proc`` for all processes of its session. Where there is no ``/proc``, wall time counts.

Source: proc_pid_stat(5) of the Linux man-pages.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

_PROC = Path("/proc")
_TICK = 0.1
"""Of the limit, how often the watch looks: a program is ended at most so much too late."""
_CHUNK_BYTES = 16_384
"""The lines that are written before one is read: a pipe holds as much, so that neither side waits for the other."""
_MOST_BYTES = 1 << 20
"""The longest answer: a program that never ends its line must not fill the memory."""
_LAST_LINES = 5
_PATIENCE_S = 2.0
"""The time that a program has to end after it has closed its output, or was killed."""


class FailedError(Exception):
    """The program gave no answer: why, in words that follow its name."""


class Usage(NamedTuple):
    """The CPU use of a session's processes.

    Attributes
    ----------
    cpu_s : float
        All the CPU time that they have taken.
    is_running : bool
        Whether a thread of them runs, or would run if it had a core.
    """

    cpu_s: float
    is_running: bool


class Process:
    """A program that runs.

    Parameters
    ----------
    command : sequence of str
    folder : str
        The working directory.
    limit_s : float
        Seconds for an answer.

    Raises
    ------
    FailedError
        If it cannot be started.
    """

    def __init__(self, command: Sequence[str], folder: str, limit_s: float) -> None:
        self._limit_s, self._asked, self._answered, self._hangs = limit_s, 0, 0, False
        self._times = 1
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the check, which then ends it
            )
        except (OSError, ValueError) as error:
            raise FailedError(f"cannot be started: {getattr(error, 'strerror', None) or error}") from None
        self._reaper = _reaper(self._process.pid)
        self._last: deque[bytes] = deque(maxlen=_LAST_LINES)
        self._ended = threading.Event()
        self._reads = threading.Thread(target=self._read_errors, daemon=True)
        self._reads.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def answers(self, lines: Sequence[bytes], times: int = 1) -> Iterator[bytes]:
        """Yield the answer to each line, within so many times the limit; several lines are on their way at once.

        Raises
        ------
        FailedError
            If it dies, hangs, or does not end its line.
        """
        self._times = times
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        at = 0
        while at < len(lines):
            end, size = at + 1, len(lines[at])
            while end < len(lines) and size + len(lines[end]) <= _CHUNK_BYTES:
                size += len(lines[end])
                end += 1
            self._asked += end - at
            try:
                self._process.stdin.write(b"".join(lines[at:end]))
                self._process.stdin.flush()
            except OSError:
                raise FailedError(self._why()) from None
            for _ in range(end - at):
                answer = self._process.stdout.readline(_MOST_BYTES)
                if not answer.endswith(b"\n"):
                    raise FailedError(self._why(answer))
                self._answered += 1
                yield answer
            at = end

    def end(self) -> None:
        """End the program, and whatever it has started."""
        self._ended.set()
        self._kill()
        self._process.wait()
        self._reads.join(_PATIENCE_S)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            try:
                stream.close()
            except OSError:
                pass  # what was not written is for nobody
        if self._reaper is not None:
            assert self._reaper.stdin is not None
            self._reaper.communicate(b"done\n")

    def _kill(self) -> None:
        if self._reaper is None:
            self._process.kill()
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except OSError:
            pass  # it is gone

    def _why(self, answer: bytes = b"") -> str:
        """Return why there is no whole line, and the last lines that the program wrote on stderr."""
        self._ended.set()
        if self._hangs:
            why = (
                f"hangs: no answer within {self._limit_s * self._times:g} s (does it flush its output after each line?)"
            )
        elif len(answer) >= _MOST_BYTES:
            why = f"writes more than {_MOST_BYTES:,} bytes without an end of line"
        else:
            try:
                status = self._process.wait(_PATIENCE_S)
                how = f"exit status {status}" if status >= 0 else f"signal {-status}"
                why = f"dies ({how})"
            except subprocess.TimeoutExpired:
                why = "closes its output"
        self._kill()
        self._reads.join(_PATIENCE_S)
        said = " | ".join(line.decode(errors="replace").strip() for line in self._last)
        return f"{why}; its last lines on stderr: {shorten(said, 600, placeholder=' ...')}" if said else why

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                if line.strip():
                    self._last.append(line[-400:])

    def _watch(self) -> None:
        """End the program when an answer has taken too long."""
        seen, idle_s = -1, 0.0
        since: Usage | None = None
        last: Usage | None = None
        while not self._ended.wait(tick_s := self._limit_s * _TICK):
            if self._answered == self._asked or self._answered != seen:
                seen, idle_s, since = self._answered, 0.0, None
                continue
            now = _usage(self._process.pid)  # it is read through all processes, so only where a step takes long
            if since is None or last is None:
                since = last = now
            idle_s += 0.0 if now.is_running or now.cpu_s > last.cpu_s else tick_s
            last = now
            if max(idle_s, now.cpu_s - since.cpu_s) >= self._limit_s * self._times:
                self._hangs = True
                self._kill()
                return


def _reaper(pid: int) -> subprocess.Popen[bytes] | None:
    """Start what ends the program when this process is gone, however that comes; a line tells it that it need not."""
    if os.name != "posix":
        return None
    command = ["/bin/sh", "-c", f"read -r line || kill -s KILL -- -{pid}"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)


def _usage(session: int) -> Usage:
    """Return the CPU use of a session's processes; none where that cannot be seen."""
    cpu_s, is_running = 0.0, False
    for path in _PROC.glob("[0-9]*"):
        found = _stat(path / "stat")
        if found is None or int(found[3]) != session:
            continue
        cpu_s += (int(found[11]) + int(found[12])) / os.sysconf("SC_CLK_TCK")
        threads = [_stat(each / "stat") for each in (path / "task").glob("*")]
        is_running = is_running or any(each is not None and each[0] in "RD" for each in threads)
    return Usage(cpu_s, is_running)


def _stat(path: Path) -> list[str] | None:
    """Return the fields behind the name, the state first; None if the process is gone."""
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
