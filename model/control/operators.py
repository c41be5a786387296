"""The operators of processors in runs of control signals, which lose nothing they were given.

Beside those of `model.checkpoint.operators` that pass events on, these gather events and give them off as one, whose
value is the tuple of them; the end of the last input gives off what is left. So a run can be asked whether each event
arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barrierlab.impl.messages import Event
from barrierlab.model.checkpoint.operators import BaseOperator, Filter, Map, OperatorError, Sink, Union

MOST_NAMED = 8
"""The most events that a gathered one names."""


class Gathering(BaseOperator):
    """Keeps events until something says that they belong together."""

    __slots__ = ("inputs_open", "made", "name", "rows")

    def __init__(self, name: str = "gather", inputs: int = 1) -> None:
        self.name = name
        self.inputs_open = inputs
        self.made = 0
        self.rows: list[Event] = []

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """Output nothing yet: `event` is kept."""
        self.rows.append(event)
        return ()

    def on_end(self, input_id: int) -> Iterable[Event]:
        """Return what is left, with the last input."""
        self.inputs_open -= 1
        return () if self.inputs_open else self.flush()

    def flush(self) -> list[Event]:
        """Return what is left, as one event; nothing if nothing is left."""
        rows, self.rows = self.rows, []
        return [self.gathered(rows)] if rows else []

    def gathered(self, rows: list[Event]) -> Event:
        """Return one event of `rows`, named after the processor and the rows: events of one name count as equal."""
        self.made += 1
        names = "+".join(map(str, rows)) if len(rows) <= MOST_NAMED else f"{rows[0]}+{len(rows) - 1} more"
        return Event(f"{self.name}({names})", self.made, value=tuple(rows), timestamp_ms=rows[-1].timestamp_ms)

    def checkpoint(self) -> object:
        """An immutable image of the state."""
        return self.made, self.inputs_open, tuple(self.rows)

    def restore(self, image: object) -> None:
        """Take the state of `image` on."""
        assert isinstance(image, tuple)
        self.made, self.inputs_open, rows = image
        self.rows = list(rows)


class Batch(Gathering):
    """Gives off every `batch_count` events as one."""

    __slots__ = ("batch_count",)

    def __init__(self, name: str = "batch", batch_count: int = 8, inputs: int = 1) -> None:
        super().__init__(name, inputs)
        if batch_count < 1:
            raise OperatorError(f"batch_count is {batch_count!r}; it must be a whole number from 1 on")
        self.batch_count = batch_count

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """The batch that `event` fills, if it does."""
        self.rows.append(event)
        return self.flush() if len(self.rows) == self.batch_count else ()


class Tumbling(Gathering):
    """Gives off the events of one window of event time once an event of a later window comes."""

    __slots__ = ("window_ms",)

    def __init__(self, name: str = "window", window_ms: int = 10_000, inputs: int = 1) -> None:
        super().__init__(name, inputs)
        if window_ms < 1:
            raise OperatorError(f"window_ms is {window_ms!r}; it must be a whole number from 1 on")
        self.window_ms = window_ms

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """The window that `event` shows to be over, if one is."""
        over = bool(self.rows) and event.timestamp_ms // self.window_ms > self.rows[0].timestamp_ms // self.window_ms
        done = self.flush() if over else []
        self.rows.append(event)
        return done


KINDS: dict[str, Callable[..., BaseOperator]] = {
    "map": Map,
    "union": Union,
    "filter": Filter,
    "batch": Batch,
    "window": Tumbling,
    "sink": Sink,
}
DISCARDING = ("filter",)
"""The kinds that drop events on purpose."""
