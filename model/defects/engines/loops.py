"""Schemes of real engines behind the pull interface, where the reading loop is theirs: a few lines each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.model.defects.engines.aligners import LeavesInChannel


class JetLoop(LeavesInChannel):
    """Hazelcast Jet: a round drains every queue in turn, up to its barrier; the last barrier goes on at once."""

    capabilities = Capabilities(timeout=False)

    def __init__(self, port: Any, config: Any) -> None:
        super().__init__(port, config)
        self.turn = 0  # where the round is

    def poll(self, readable: Sequence[int], now_ns: int) -> int | None:
        for input_id in self.inputs[self.turn :]:
            if input_id in readable and self.can_take(input_id):
                self.turn = input_id
                return input_id
        self.turn = 0
        self.end_round()
        return None

    def end_round(self) -> None: ...

    def take(self, input_id: int, message: Any, now_ns: int) -> None:
        super().offer(input_id, message, now_ns)


class StashLoop(JetLoop):
    """As reported in Hazelcast PR 22207: the last barrier waits for the end of the round, its inputs no more."""

    def __init__(self, port: Any, config: Any) -> None:
        super().__init__(port, config)
        self.is_stashed = False

    def cut(self) -> None:
        self.is_stashed, self.waits = True, [False] * len(self.inputs)
        self.turn += 1

    def end_round(self) -> None:
        if self.is_stashed:
            waits = self.waits
            super().cut()
            self.waits = waits

    def go_on(self, checkpoint_id: int) -> None:
        self.is_stashed = False
        super().go_on(checkpoint_id)
