"""An output time that is not ready when it is asked for is dropped, and the next tick asks for a later one.

Source
    merge-map-join-barrier, examples A.4.1, A.4.5 and A.4.6: "out_time = pipeline_clock_now()" on each tick.
What goes wrong
    Frames take 5 ms, ticks come every 10: each tick asks for 5 ms more than there is, for ever.
Repair
    Keep the output time until it is ready or stale (`Pending`), or read the clock a budget behind.
"""

from __future__ import annotations

from barrierlab.impl.join import JoinAttempt, JoinStage, Readiness, Skipped
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at_ns, outs, show, times, world


class NowOrNever(JoinStage):
    """A stage that forgets what does not succeed at once."""

    def poll(self, now_ns: int) -> JoinAttempt | Skipped | Readiness | None:
        answer = super().poll(now_ns)
        if isinstance(answer, Readiness):
            self.wanted.clear()
        return answer


def witness(components: JoinComponents) -> list[int]:
    """A frame each millisecond that takes 5; a tick every 10."""
    it = world(components, "timestamp", times(components, at_ns(1)), slots=16)
    for now in range(1, 50):
        if now >= 5:
            show(it, 1, now - 5, now=now)
        if now % 10 == 0:
            it.offer(now, now)
        it.run(now)
    return outs(it)


DEFECT = JoinDefect("liveness", "value", JoinComponents(stage=NowOrNever), witness, [10, 20, 30, 40], [])
