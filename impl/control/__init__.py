"""Barrier control signals: what tells every processor of a pipeline that all its upstreams have come to one point.

The head sends a signal on the data channel or on the control channel. An instant one is processed as it comes; a
barrier takes effect at a processor once every upstream has delivered it, and is then forwarded on the same channel. A
terminal one ends the processor. Source: barrier-control-signals; protocol rules 24 to 26.
"""

from barrierlab.impl.control.aligner import ControlAligner as ControlAligner
from barrierlab.impl.control.aligner import CountingAligner as CountingAligner
from barrierlab.impl.control.aligner import IdentityAligner as IdentityAligner
from barrierlab.impl.control.aligner import align_control_signal as align_control_signal
from barrierlab.impl.control.errors import AfterEndError as AfterEndError
from barrierlab.impl.control.errors import BarrierIdError as BarrierIdError
from barrierlab.impl.control.errors import BarrierOverlapError as BarrierOverlapError
from barrierlab.impl.control.errors import ControlSignalError as ControlSignalError
from barrierlab.impl.control.errors import DuplicateBarrierError as DuplicateBarrierError
from barrierlab.impl.control.errors import NoUpstreamsError as NoUpstreamsError
from barrierlab.impl.control.errors import UnequalUpstreamsError as UnequalUpstreamsError
from barrierlab.impl.control.head import BarrierIdAllocator as BarrierIdAllocator
from barrierlab.impl.control.head import ControlSourceProcessor as ControlSourceProcessor
from barrierlab.impl.control.processor import ControlProcessor as ControlProcessor
from barrierlab.impl.control.processor import MakeControlAligner as MakeControlAligner
from barrierlab.impl.control.signals import BarrierControlSignal as BarrierControlSignal
from barrierlab.impl.control.signals import BarrierControlSignalKind as BarrierControlSignalKind
from barrierlab.impl.control.signals import BarrierKey as BarrierKey
from barrierlab.impl.control.signals import Carrier as Carrier
from barrierlab.impl.control.signals import ControlSignal as ControlSignal
from barrierlab.impl.control.signals import InstantControlSignal as InstantControlSignal
from barrierlab.impl.control.signals import Message as Message
