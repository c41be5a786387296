"""Barrier control signals: what tells every processor of a pipeline that all its upstreams have come to one point.

The head sends a signal on the data channel or on the control channel. An instant one is processed as it comes; a
barrier takes effect at a processor once every upstream has delivered it, and is then forwarded on the same channel. A
terminal one ends the processor. Source: barrier-control-signals; protocol rules 24 to 26.
"""

from __future__ import annotations

from barrierlab.impl.control.aligner import ControlAligner, CountingAligner, IdentityAligner, align_control_signal
from barrierlab.impl.control.errors import (
    AfterEndError,
    BarrierIdError,
    BarrierOverlapError,
    ControlSignalError,
    DuplicateBarrierError,
    NoUpstreamsError,
    UnequalUpstreamsError,
)
from barrierlab.impl.control.head import BarrierIdAllocator, ControlSourceProcessor
from barrierlab.impl.control.processor import ControlProcessor, MakeControlAligner
from barrierlab.impl.control.signals import (
    BarrierControlSignal,
    BarrierControlSignalKind,
    BarrierKey,
    Carrier,
    ControlSignal,
    InstantControlSignal,
    Message,
)

__all__ = [
    "AfterEndError",
    "BarrierControlSignal",
    "BarrierControlSignalKind",
    "BarrierIdAllocator",
    "BarrierIdError",
    "BarrierKey",
    "BarrierOverlapError",
    "Carrier",
    "ControlAligner",
    "ControlProcessor",
    "ControlSignal",
    "ControlSignalError",
    "ControlSourceProcessor",
    "CountingAligner",
    "DuplicateBarrierError",
    "IdentityAligner",
    "InstantControlSignal",
    "MakeControlAligner",
    "Message",
    "NoUpstreamsError",
    "UnequalUpstreamsError",
    "align_control_signal",
]
