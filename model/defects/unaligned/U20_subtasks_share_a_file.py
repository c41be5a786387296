"""Two parallel tasks write what was in flight to one file, and nobody notices when a file is damaged.

Source
    F-DCKP-006, "In-Flight Buffer Persistence Format": operator and input name the file; a number of events and their
    bytes are in it, and no more. Entry U-20.
What goes wrong
    Of two subtasks of one operator, the later overwrites the record of the earlier, and both read it: events are lost,
    and others come twice. A wrong bit is another event.
Repair
    The subtask is in the path and in the file, and a checksum is at its end (protocol rule 21).
"""

from collections.abc import Callable
from struct import pack

from barrierlab.impl import DamagedError, InFlight
from barrierlab.impl.storage.snapshot import decode_in_flight, encode_in_flight, in_flight_path
from barrierlab.model.defects.kinds.witness import Witness


def documented_path(operator_id: str, subtask: int, input_id: int) -> str:
    """As documented: the subtask is not in it."""
    return f"operators/{operator_id}/inflight_{input_id}.buf"


def documented_file(subtask: int, record: InFlight) -> bytes:
    """Input, number of events, and each with its length."""
    events = b"".join(pack("<I", len(event)) + event for event in record.events)
    return pack("<IQ", record.channel, len(record.events)) + events


def read_documented(data: bytes, subtask: int) -> InFlight:
    """Return what is in a file of one event."""
    return InFlight(data[0], (data[16:],))


def written(
    path: Callable[[str, int, int], str],
    write: Callable[[int, InFlight], bytes],
    read: Callable[[bytes, int], InFlight],
) -> tuple[str, ...]:
    """Subtask 0 of x had a1 in flight on its input 0, and subtask 1 had b1; then a bit of a file turns."""
    files = {path("x", n, 0): write(n, InFlight(0, (event,))) for n, event in enumerate((b"a1", b"b1"))}
    lines = [f"subtask {n}: {read(files[path('x', n, 0)], n).events[0].decode()}" for n in (0, 1)]
    try:
        damaged = read(files[path("x", 1, 0)].replace(b"b1", b"b0"), 1).events[0].decode()
    except DamagedError:
        damaged = "refused"
    return *lines, f"damaged: {damaged}"


DEFECT = Witness(
    kind="value",
    broken=lambda: written(documented_path, documented_file, read_documented),
    right=lambda: written(in_flight_path, encode_in_flight, decode_in_flight),
    right_lines=("subtask 0: a1", "subtask 1: b1", "damaged: refused"),
)
