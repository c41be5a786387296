"""A processor with two data upstreams and one control upstream completes a control barrier with one copy.

Source
    barrier-control-signals, "Barrier Alignment Mechanism": upstreams are "configured per channel", independently of
    each other. Entry S-10.
What goes wrong
    Of a node that is to wait for all upstreams, one has been forgotten on the control channel, and nobody notices.
Repair
    Such a node asks for equality: `equal_upstreams`. Elsewhere the channels may be connected differently.
"""

from barrierlab.impl import ContractError
from barrierlab.impl.control import Carrier, ControlProcessor
from barrierlab.model.checkpoint.operators import make
from barrierlab.model.defects.kinds.control import headline, sync
from barrierlab.model.defects.kinds.witness import Witness


def _run(equal_upstreams: bool) -> tuple[str, ...]:
    effects: list[str] = []
    try:
        node = ControlProcessor(
            "node",
            make("union"),
            data_upstreams=2,
            control_upstreams=1,
            equal_upstreams=equal_upstreams,
            tell=lambda verb, carrier, index, subject: effects.append(f"{verb} {subject}"),
        )
    except ContractError as error:
        return (headline(error),)
    node.offer(Carrier.CONTROL, 0, sync(1))
    return tuple(effects)


DEFECT = Witness(
    kind="value",
    broken=lambda: _run(equal_upstreams=False),
    right=lambda: _run(equal_upstreams=True),
    right_lines=("node has 2 upstreams on the data channel and 1 on the control channel",),
)
