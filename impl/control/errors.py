"""The errors of control signals: for what the builder of a pipeline did wrong, or what its upstreams did.

Where channels lose and repeat nothing and one head gives the ids, an overlap or a duplicate cannot come. A processor
that meets one fails: it closes its outputs and says why (`ControlProcessor.failure`). An aligner on its own raises.
"""

from __future__ import annotations

from barrierlab.impl.errors import BarrierError, ContractError, shown


class ControlSignalError(BarrierError):
    """An upstream broke a rule that alignment relies on. The aligner is unchanged."""


class BarrierOverlapError(ControlSignalError):
    """A barrier other than the next one of this upstream (barrier-control-signals, "No overlap")."""

    expected = "the same barriers in the same order from every upstream"
    hint = "let one head give all ids, and send every barrier to every upstream"

    def __init__(self, carrier: object, pending: object, actual: object) -> None:
        super().__init__(f"barrier overlap on {carrier} channel: {actual} while {pending} is pending")


class DuplicateBarrierError(ControlSignalError):
    """A barrier that this upstream delivered already, or an older one (barrier-control-signals, "No duplicates")."""

    hint = "align wherever channels meet, and use a transport that repeats nothing"

    def __init__(self, carrier: object, actual: object, newest: int) -> None:
        super().__init__(
            f"duplicate barrier on {carrier} channel: {actual} after barrier {newest}", f"ids above {newest}"
        )


class NoUpstreamsError(ContractError):
    """A processor or an aligner without upstreams (protocol rule 26)."""

    expected = "1 or more"
    hint = "connect the processor to the head or to another one"

    def __init__(self, carrier: object) -> None:
        super().__init__(f"no upstreams on the {carrier} channel")


class UnequalUpstreamsError(ContractError):
    """A processor whose two channels have different numbers of upstreams where they must be equal (defect S-10)."""

    expected = "as many on one as on the other"
    hint = "connect both channels of every upstream, or do not ask for equality"

    def __init__(self, name: str, data: int, control: int) -> None:
        super().__init__(f"{name} has {data} upstreams on the data channel and {control} on the control channel")


class BarrierIdError(ContractError):
    """A barrier id that is 0 or does not fit 64 bits."""

    expected = f"1 to {2**64 - 1}"
    hint = "take ids from the head of the pipeline; 0 is no barrier"

    def __init__(self, barrier_id: object) -> None:
        super().__init__(f"barrier id {shown(barrier_id)}")


class AfterEndError(ContractError):
    """A message sent behind the end of its sender."""

    expected = "nothing after the end"
    hint = "send it before the end"

    def __init__(self, name: str, actual: object) -> None:
        super().__init__(f"'{actual}' from {name}, which has ended")
