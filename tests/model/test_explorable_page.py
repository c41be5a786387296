"""The explorable run in a browser: what is dragged, hovered, pressed and heard, how fast, and in how many bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.state_graph import state_graph
from barrierlab.model.checkpoint.trace import judged, read, topology_of
from barrierlab.model.checkpoint.world import World
from barrierlab.model.render.explorable import data_of, page
from tests.bench.bench_explorable import DRAGS, measured, p95, page_of, the_run
from tests.browser import Browser, chromium

pytestmark = pytest.mark.slow
KEPT = Path(__file__).parents[1] / "traces"
VIEW = "document.querySelector('.brl-run').explorable"
VERDICT = "document.querySelector('.brl-verdict').textContent"


def write(name: str, folder: Path) -> Path:
    """The page of a kept trace."""
    path = KEPT / f"{name}.trace"
    text = path.read_text(encoding="utf-8")
    head, entries = read(text)
    verdict = judged(text)
    data = data_of(entries, topology_of(head), name, verdict=verdict.verdict, violations=map(str, verdict.violations))
    to = folder / f"{path.stem}.html"
    to.write_text(page(data), encoding="utf-8")
    return to


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, which has said nothing bad at the end."""
    with chromium(tmp_path_factory.mktemp("browser")) as its:
        yield its
        assert its.said == []


def at(browser: Browser, selector: str) -> tuple[float, float]:
    """The middle of an element."""
    x, y = browser.script(
        f"(() => {{ const box = document.querySelector({selector!r}).getBoundingClientRect();"
        " return [box.left + box.width / 2, box.top + box.height / 2]; })()"
    )
    return x, y


def test_the_recorded_cut_is_shown_and_a_dragged_one_is_judged(browser: Browser, tmp_path: Path) -> None:
    """A reader could not try what makes a cut consistent."""
    browser.open(write("an_input_waits_behind_its_barrier", tmp_path))
    assert browser.script(VERDICT).startswith("✓ consistent: nothing is in flight")
    x, y = at(browser, ".brl-handle[aria-label='The cut at join']")
    browser.drag(x, y, x - 330, y)
    assert "✗ not consistent: a1 on " in browser.script(VERDICT)
    assert "a1 on a->join is lost: sent ahead of the cut, taken behind it, and not recorded" in browser.script(VERDICT)
    browser.script(f"{VIEW}.choose('1')")
    assert browser.script(VERDICT).startswith("✓ consistent")


def test_an_event_made_behind_the_cut_has_its_colour(browser: Browser, tmp_path: Path) -> None:
    """It would look as if it were made ahead of the cut, and its arrow behind."""
    browser.open(write("an_input_waits_behind_its_barrier", tmp_path))
    made = f"{VIEW}.drawnMarks.filter((each) => each.mark.verb === '>emit')"
    behind = f"{made}.filter((each) => each.mark.step > {VIEW}.cut.get(each.mark.node)).length"
    marked = "document.querySelectorAll('.brl-behind').length"
    assert browser.script(marked) == browser.script(behind) == 1
    browser.script(f"{VIEW}.cutAt({{ a: 1000 }})")
    assert browser.script(marked) == browser.script(behind) == 0


def test_an_orphan_is_named(browser: Browser, tmp_path: Path) -> None:
    """The picture of a counterexample would not say what is wrong."""
    browser.open(write("broken/fwd_buffered_events_leave_before_the_barrier", tmp_path))
    assert "a1 on join->sink is an orphan: taken ahead of the cut, sent behind it" in browser.script(VERDICT)
    assert browser.script("document.querySelectorAll('.f-orphan').length") == 1


def test_keys_do_what_a_mouse_does(browser: Browser, tmp_path: Path) -> None:
    """A user without a mouse could not move the cut, and one without a screen would not hear of it."""
    browser.open(write("an_input_waits_behind_its_barrier", tmp_path))
    browser.script("document.querySelector('.brl-handle').focus()")
    before = browser.script(f"[...{VIEW}.cut]")
    browser.keys("ArrowDown", *["ArrowLeft"] * 5)
    after = browser.script(f"[...{VIEW}.cut]")
    assert [task for (task, one), (_, other) in zip(before, after, strict=True) if one != other] == ["join"]
    assert "✗ not consistent" in browser.script(VERDICT)
    focused = "document.activeElement"
    assert browser.script(f"{focused}.getAttribute('aria-label')") == "The cut at join"
    assert browser.script(f"{focused}.getAttribute('role')") == "slider"
    assert browser.script(f"{focused}.getAttribute('aria-valuetext')") == "ahead of all that it does"
    browser.keys("ArrowRight")
    assert browser.script(f"{focused}.getAttribute('aria-valuetext')") == "behind join deliver a->join a1, 1 of 6"
    browser.keys("ArrowLeft")
    live = "document.querySelector('.brl-verdict')"
    assert browser.script(f"[{live}.getAttribute('role'), {live}.getAttribute('aria-live')]") == ["status", "polite"]
    browser.keys("End", "Shift+ArrowRight", "PageDown")
    assert browser.script(f"[...{VIEW}.cut]") == before, "the page of the next checkpoint, which is the only one"
    browser.keys("m")
    assert "sent by" in browser.script(VERDICT)
    browser.keys("Escape", ",", ",")
    assert "Move 14 of 16" in browser.script("document.querySelector('.brl-now').textContent")
    assert browser.script("document.querySelectorAll('.brl-later').length") == 0
    browser.keys(*[","] * 12)
    assert browser.script("document.querySelectorAll('.brl-later').length") > 2


def test_a_message_tells_its_life(browser: Browser, tmp_path: Path) -> None:
    """One would have to count lines of the trace to see how long a message was buffered."""
    browser.open(write("an_input_waits_behind_its_barrier", tmp_path))
    x, y = browser.script(
        f"(() => {{ const each = {VIEW}.drawn.find(({{ m }}) => m.applied - m.taken > 1 && m.kind === 'event');"
        f" const box = {VIEW}.svg.getBoundingClientRect();"
        " return [box.left + (each.x1 * 2 + each.x2) / 3, box.top + (each.y1 * 2 + each.y2) / 3]; })()"
    )
    browser.hover(x, y)
    tip = browser.script("document.querySelector('.brl-tip').textContent")
    assert "a2 on a->join" in tip
    assert "buffered for 3.000 ms" in tip
    assert "took effect" in tip


def test_it_is_zoomed_and_panned(browser: Browser, tmp_path: Path) -> None:
    """A long run would be a block of ink."""
    browser.open(write("an_input_waits_behind_its_barrier", tmp_path))
    span = f"{VIEW}.to - {VIEW}.from"
    whole = browser.script(span)
    browser.script("document.querySelector('.brl-svg').focus()")
    browser.keys("+", "+")
    assert browser.script(span) < 0.4 * whole
    start = browser.script(f"{VIEW}.from")
    browser.keys("]")
    assert browser.script(f"{VIEW}.from") > start
    browser.keys("0")
    assert browser.script(span) == pytest.approx(whole)


def test_other_moves_than_those_of_the_run_are_taken(browser: Browser, tmp_path: Path) -> None:
    """Of a counterexample one would see one run, and not what would have avoided it."""
    bounds = Bounds("a->s b->s", events=1, checkpoints=1)
    world = World(bounds)
    moves, state = [], world.start()
    for text in ("trigger 1", "emit a", "deliver a->s", "emit b"):
        moves += [move for move in world.moves(state) if move.text == text]
        state = world.after(state, moves[-1])
    entries = world.journal(moves)
    graph = state_graph(World(bounds), entries, reason="CUT: planted")
    path = tmp_path / "states.html"
    path.write_text(page(data_of(entries, bounds.graph(), "states", verdict="broken", graph=graph)), encoding="utf-8")
    browser.open(path)
    others = "document.querySelector('.brl-others')"
    assert "✗ CUT: planted" in browser.script(f"{others}.innerText")
    browser.script(f"{VIEW}.stepTo(0)")
    texts = f"[...{others}.querySelectorAll('.brl-moves button')].map((each) => each.textContent)"
    assert browser.script(texts) == ["emit a ▸", "inject a", "emit b", "inject b"]
    browser.script(f"{others}.querySelectorAll('.brl-moves button')[1].click()")
    assert "Move 2 of 2: inject a" in browser.script("document.querySelector('.brl-now').innerText")
    assert "a snapshot 1" in browser.script("document.querySelector('.brl-now').innerText")
    assert "CUT" not in browser.script(f"{others}.innerText")
    browser.script(f"{others}.querySelector('button').click()")
    assert browser.script(f"{VIEW}.run.moves.length") == 4


def test_a_dark_page_and_a_narrow_one_are_drawn(tmp_path: Path) -> None:
    """On a phone the picture would run out of the page."""
    with chromium(tmp_path, width=400, dark=True) as its:
        its.open(write("an_input_waits_behind_its_barrier", tmp_path))
        assert its.script("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
        assert its.script("document.documentElement.scrollWidth") <= 400


def test_a_cut_of_twenty_tasks_is_dragged_without_a_delay(tmp_path: Path) -> None:
    """The cut would lag behind the hand. Budget: 95 of 100 drags within 50 ms, of 300 events and 20 tasks."""
    result = the_run(tmp_path)
    path = page_of(result, tmp_path / "twenty.html")
    assert path.stat().st_size < 600_000
    assert len(result.scenario.topology.tasks) == 20
    with chromium(tmp_path) as its:
        its.open(path)
        found = measured(its, DRAGS)
        assert its.said == []
    assert found["drawn"] > 1000
    # On a machine that is busy with other things a frame in which nothing happens takes long, too.
    assert p95(found["times"]) - max(0.0, p95(found["idle"]) - 17.0) < 50.0
