"""The commands that `docs/your-engine.md` has a reader type, typed: a red check, a repair, and a green one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import reader, typed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your-engine.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a reader who has installed barrierlab."""
    return reader(tmp_path, monkeypatch)


@pytest.mark.slow
def test_what_the_page_has_typed_is_red_and_then_green(tmp_path: Path, environment: dict[str, str]) -> None:
    """A team would give up at the first command that does something else than the page says."""
    engine, statuses, said = tmp_path / "my_engine", list[int](), ""
    for language, block in BLOCKS:
        if language == "text":
            assert block.rstrip("\n") in said
            continue
        assert language == "bash"
        if "sed -i.bak" in block:  # the commit before the repair
            assert "::error file=aligner.py,line=1,title=CUT::" in in_a_pipeline(engine, environment, 1)
        done = typed(block, engine if engine.exists() else tmp_path, environment)
        said, statuses = done.stdout, [*statuses, done.returncode]
    assert statuses == [0, 0, 1, 0, 0]
    assert (engine / "found" / "01_CUT.svg").exists()
    assert "::notice title=barrierlab::verdict: holds for " in in_a_pipeline(engine, environment, 0)
    log = typed("git log --format=%s", engine, environment).stdout.splitlines()
    assert log == ["An input waits behind its barrier", "An aligner that is checked"]


def in_a_pipeline(engine: Path, environment: dict[str, str], status: int) -> str:
    """Return the output of the workflow's step, which is to end so."""
    workflow = yaml.safe_load((engine / ".github" / "workflows" / "aligner.yml").read_text(encoding="utf-8"))
    (check,) = [step["run"] for step in workflow["jobs"]["check"]["steps"] if step.get("name") == "Check"]
    done = typed(check, engine, environment | {"GITHUB_ACTIONS": "true"})
    assert done.returncode == status
    assert {path.name for path in engine.glob("barrierlab.*")} == {"barrierlab.sarif", "barrierlab.xml"}
    return done.stdout
