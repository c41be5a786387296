"""The limit of what an input may buffer is tested for all inputs together, if at all.

Source
    F-DCKP-002: by the configuration a full buffer stops the reading of its channel, by "Buffer Memory Management" it
    costs the checkpoint, by the error table either that or the mode. `buffer_event` checks nothing, and
    `is_buffer_limit_exceeded` compares all events with `max_buffer_per_input * num_inputs`. Entry A-12.
What goes wrong
    One input holds as much as was meant for all. (And bytes are counted by the size of the type, not of the value, so
    that the limit of memory is never reached.)
Repair
    Each input is checked before a message is taken, inclusively, and is not read when full; bytes are counted by the
    caller's function, and one message too many costs the checkpoint (protocol rule 7).
"""

from dataclasses import replace

from barrierlab.impl import BarrierAligner, BarrierAlignerConfig
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class LimitsTheSum(BarrierAligner):
    """An aligner in which one input may take what another leaves unused."""

    def __init__(self, config: BarrierAlignerConfig) -> None:
        super().__init__(replace(config, max_buffer_per_input=config.max_buffer_per_input * config.num_inputs))


DEFECT = BarrierDefect(
    breaks="BOUND",
    bounds=Bounds("a->join b->join", events=2, max_buffer_per_input=1),
    components=with_aligner(LimitsTheSum),
    title="An input may buffer one message. a holds two, for b holds none.",
)
