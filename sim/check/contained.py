"""The code of an external class, kept from what it may not do to the process that checks it."""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FrameType

from barrierlab.model.errors import InputError
from barrierlab.model.origin import is_external_at, is_ours_at

LOOK_S = 10.0
"""So often it is looked whether a call is still the one of last time: a thousand times what one takes."""
_MISSED_LOOKS = 6
"""So many looks' worth of CPU time goes by without one where C code spins that lets no handler run."""
_STDERR = 2


class NeverReturnsError(InputError):
    """A call of an external class does not come back: one line with which."""


class _Looked(BaseException):
    """Not an Exception, which what explores would take for one of the class, and go on to the next call like it."""


@contextmanager
def contained(look_s: float = LOOK_S) -> Iterator[None]:
    """Write to stderr what external code prints, and end a call of it that does not come back.

    Where alarms are not ours to set, as in another thread or below the alarm of a test runner, no call is ended; nor
    is one that somebody goes through with a debugger, or of an installed package. C code that spins, and so lets no
    look happen, is killed by SIGPROF, with a traceback; C code that waits, and looks at no signal, is not ended.

    Raises
    ------
    NeverReturnsError
        After two looks at most.
    """
    last: list[FrameType | None] = [None]

    def look(_: int, frame: FrameType | None) -> None:
        call, at = _call_of(frame)
        if call is not None and at is not None and call is last[0] and sys.gettrace() is None:
            place = f"{Path(at.f_code.co_filename).name}, line {at.f_lineno}"
            raise _Looked(f"{call.f_code.co_qualname} has not come back for {look_s:g} s (it is in {place})")
        last[0] = call
        if kills:
            signal.setitimer(signal.ITIMER_PROF, _MISSED_LOOKS * look_s)

    is_ours = threading.current_thread() is threading.main_thread() and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    kills = is_ours and signal.getsignal(signal.SIGPROF) is signal.SIG_DFL  # else a profiler has it
    with redirect_stdout(sys.stderr):
        if not is_ours:
            yield
            return
        before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, look_s, look_s)
        if kills:
            faulthandler.register(signal.SIGPROF, file=_STDERR, all_threads=False, chain=True)
            signal.setitimer(signal.ITIMER_PROF, _MISSED_LOOKS * look_s)
        try:
            yield
        except _Looked as found:
            raise NeverReturnsError(f"{found}; allowed: a call that ends") from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            if kills:
                signal.setitimer(signal.ITIMER_PROF, 0)
                faulthandler.unregister(signal.SIGPROF)


def _call_of(frame: FrameType | None) -> tuple[FrameType | None, FrameType | None]:
    """Return the call of external code that ours waits for, and where in external code that is; None outside one."""
    at = call = waited_for = None
    while frame is not None:
        path = frame.f_code.co_filename
        if is_ours_at(path):
            waited_for = call
        elif not path.startswith("<") and is_external_at(path):
            at, call = at or frame, frame
        frame = frame.f_back
    return waited_for, at
