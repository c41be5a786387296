"""The pictures of a run show what happened, and look the same each time."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from sim import Result, load, run
from sim.figures import AHEAD, BEHIND

PICTURES = ("graph", "space_time", "timeline")


@pytest.fixture(scope="module")
def diamond() -> Result:
    """A run whose barrier takes its time on each channel."""
    return run(load("diamond", settings={"channel.default.latency_s": 0.001}), seed=1)


def ends_of_lines(figure: Figure) -> Iterable[tuple[str, tuple[float, float]]]:
    """Colour and end of each event's line."""
    for drawn in figure.axes[0].collections[1:]:
        for line in drawn.get_segments():
            yield to_hex(drawn.get_color()[0]), tuple(line[-1])


def dots(figure: Figure) -> Iterable[tuple[str, tuple[float, float]]]:
    """Colour and place of each event's dot."""
    for drawn in figure.axes[0].lines:
        if drawn.get_marker() == "o":
            for place in zip(*drawn.get_data(), strict=True):
                yield to_hex(drawn.get_color()), place


@pytest.mark.parametrize("checkpoint_id", [1, 2, 3, 4])
def test_sender_and_receiver_are_on_the_same_side_of_the_cut(diamond: Result, checkpoint_id: int) -> None:
    """The picture would show an orphan in a run that has none, or hide one."""
    figure = diamond.space_time(checkpoint_id)
    lines = set(ends_of_lines(figure))
    assert {colour for colour, _ in lines} == {AHEAD, BEHIND}
    assert lines <= set(dots(figure))


def test_the_barrier_has_an_arrow_on_each_channel(diamond: Result) -> None:
    """The walk would have gaps."""
    arrows = [text for text in diamond.space_time().axes[0].texts if text.arrow_patch is not None]
    assert len(arrows) == len(diamond.scenario.topology.channels)
    assert all(arrow.xy[0] > arrow.xyann[0] for arrow in arrows), "a channel takes 1 ms"


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_the_same_each_time(diamond: Result, picture: str) -> None:
    """A figure under version control would change with nothing having changed."""
    images = []
    for _ in range(2):
        image = io.BytesIO()
        getattr(diamond, picture)().savefig(image, format="png")
        images.append(image.getvalue())
    assert images[0] == images[1]


@pytest.mark.parametrize("picture", PICTURES)
def test_a_checkpoint_that_is_not_there_is_missed(diamond: Result, picture: str) -> None:
    """Another checkpoint would be drawn in its place."""
    with pytest.raises(KeyError, match="99"):
        getattr(diamond, picture)(99)
