"""The explorable run in a notebook: the widget has what the page has, and says what is done with it."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from barrierlab.model.checkpoint.check import ScopeViolation
from barrierlab.model.checkpoint.world import World
from barrierlab.model.defects.catalogue import catalogue
from barrierlab.model.defects.kinds.barrier import BarrierDefect
from barrierlab.model.render.explorable import MODULE
from barrierlab.sim import load, run
from barrierlab.sim.cli.main import main
from barrierlab.sim.notebook import NoWidgetError, explore
from tests.browser import chromium

anywidget = pytest.importorskip("anywidget")
KEPT = Path(__file__).parents[1] / "traces"
TEXT = (KEPT / "an_input_waits_behind_its_barrier.trace").read_text(encoding="utf-8")


def test_a_result_is_explored() -> None:
    """A notebook would have pictures that stand still."""
    result = run(load("diamond", {"until_s": 2.5}), seed=1)
    whole, part = (json.loads(widget.data) for widget in (result.explore(), result.explore(1)))
    assert list(whole) == ["packed"]
    assert len(part.get("packed", "")) < len(whole["packed"])
    assert isinstance(result.explore(1), anywidget.AnyWidget)
    with pytest.raises(KeyError, match="there is no checkpoint 99"):
        result.explore(99)


def test_a_trace_and_a_counterexample_are_explored() -> None:
    """Anything that a check has found could be read as text only."""
    data = json.loads(explore(TEXT).data)
    assert data["title"].startswith("The barrier of a comes first")
    assert json.loads(explore(ScopeViolation("CUT", "x", 1, "y", TEXT)).data) == data
    assert data["checkpoint"] == 1


def test_other_moves_are_there_where_the_world_is_known() -> None:
    """Of an entry of the catalogue one would see the run that is kept, and no other."""
    defect = next(each for each in catalogue() if each.id == "A-04").defect
    assert isinstance(defect, BarrierDefect)
    trace = defect.as_documented().trace
    assert "graph" not in unpacked(explore(trace).data)
    data = unpacked(explore(trace, world=World(defect.bounds, defect.components)).data)
    assert len(data["graph"]["degrees"]) > 1000
    assert data["graph"]["path"][-1][0] in dict(data["graph"]["wrong"])


def unpacked(text: str) -> dict[str, Any]:
    """The data of a widget."""
    data: dict[str, Any] = json.loads(text)
    return json.loads(zlib.decompress(base64.b64decode(data["packed"]))) if "packed" in data else data


def test_without_the_extra_one_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook of somebody who has no anywidget would end in a traceback of imports."""
    monkeypatch.delitem(sys.modules, "barrierlab.sim.notebook.widget", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(NoWidgetError, match=r"needs anywidget.*pip install 'barrierlab\[notebook\]'"):
        explore(TEXT)


def test_the_command_line_needs_no_widget(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A user who installs the package without extras could not look at a run."""
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(SystemExit) as ended:
        main(["show", str(KEPT / "an_input_waits_behind_its_barrier.trace"), "--format", "html"])
    assert ended.value.code == 0
    assert "brl-run" in capsys.readouterr().out


HOST = """
const source = new Blob([document.getElementById('module').textContent], { type: 'text/javascript' });
const values = { data: JSON.stringify(JSON.parse(document.getElementById('data').textContent)) };
const model = { get: (name) => values[name], set: (name, value) => { values[name] = value; }, save_changes: () => {},
  on: (name, does) => { values[name] = does; } };
import(URL.createObjectURL(source)).then(async (widget) => {
  const el = document.getElementById('cell');
  window.end = await widget.default.render({ model, el });
  window.values = values;
  const run = document.querySelector('.brl-run');
  run.explorable = { rows: true, view: el.firstChild.explorable };
});
"""


@pytest.mark.slow
def test_the_module_is_what_anywidget_asks_for(tmp_path: Path) -> None:
    """The cell would stay empty, and Python would not hear where the cut was put."""
    data = explore(TEXT).data.replace("<", "\\u003c")
    page = tmp_path / "host.html"
    page.write_text(
        f'<!doctype html><div id=cell></div><div class="brl-run"></div><script type="application/json" id=data>{data}'
        f'</script><script type="text/plain" id=module>{MODULE.read_text(encoding="utf-8")}</script>'
        f"<script>{HOST}</script>",
        encoding="utf-8",
    )
    with chromium(tmp_path) as browser:
        browser.open(page)
        told: dict[str, Any] = browser.script("({ cut: window.values.cut, verdict: window.values.verdict })")
        assert set(told["cut"]) == {"a", "b", "join", "sink"}
        assert told["verdict"].startswith("consistent: ")
        browser.script("document.querySelector('.brl-run').explorable.view.cutAt({ join: 0 })")
        assert browser.script("window.values.verdict").startswith("not consistent: ")
        browser.script("window.end()")
        assert browser.script("document.querySelector('#cell .brl').childElementCount") == 0
        assert browser.said == []
