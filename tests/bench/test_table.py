"""The kept table of ratios: a benchmark that becomes slower is named, and none is lost when another is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import table
from tests.bench.ratios import Ratio

FOUND = {"bench_a": [Ratio("pass", 1.5, "an empty call"), Ratio("align", 20.25, "an empty call")]}


def test_what_is_kept_is_read_again() -> None:
    """A comparison with what was misread would name nothing."""
    kept = table.merged([], FOUND, "pure Python")
    kept = table.merged(kept, {"bench_a": [Ratio("pass", 1.125, "an empty call")]} | {"bench_b": []}, "compiled")
    assert kept == [table.Kept("bench_a", "pass", "an empty call", (1.5, 1.125))]
    kept = table.merged(kept, FOUND, "pure Python")
    text = table.page(kept, "a machine")
    assert table.read(text) == [
        table.Kept("bench_a", "pass", "an empty call", (1.5, 1.12)),
        table.Kept("bench_a", "align", "an empty call", (20.2, None)),
    ]


def test_other_benchmarks_and_the_other_build_stay() -> None:
    """A measurement of one would empty the rest of the table."""
    kept = [table.Kept("bench_b", "hop", "a heap", (7.0, 2.0))]
    after = table.merged(kept, FOUND, "compiled")
    assert kept[0] in after
    assert table.Kept("bench_a", "pass", "an empty call", (None, 1.5)) in after


def test_the_documents_figures_of_the_other_build_stay() -> None:
    """A run of one build would take the other's away."""
    text = table.with_documents("", "compiled", ["| a | 1 |"])
    text = table.with_documents(text + "\n", "pure Python", ["| a | 2 |"])
    text = table.with_documents(text + "\n", "compiled", ["| a | 3 |"])
    assert text == "### pure Python\n\n| a | 2 |\n\n### compiled\n\n| a | 3 |"


@pytest.mark.parametrize(("ratio", "named"), [(1.79, False), (1.81, True)])
def test_a_ratio_that_became_a_fifth_slower_is_named(ratio: float, named: bool) -> None:
    """A slow change would come in, or each run would name what only wavers."""
    kept = table.merged([], FOUND, "pure Python")
    lines = table.slower(kept, {"bench_a": [Ratio("pass", ratio, "an empty call")]}, "pure Python")
    assert bool(lines) is named
    assert not table.slower(kept, {"bench_a": [Ratio("pass", ratio, "an empty call")]}, "compiled")


def test_the_exit_status_says_that_one_is_slower(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job that compares would pass, whatever became slower."""
    ratios = {"now": 2.0}
    monkeypatch.setattr(table, "KEPT", tmp_path / "bench.md")
    monkeypatch.setattr(table, "modules", lambda: ["bench_a"])
    monkeypatch.setattr(table, "measured", lambda module: [Ratio("pass", ratios["now"], "an empty call")])
    assert table.main(["--compare"]) == 2, "nothing is kept, so nothing was compared"
    assert table.main(["--write"]) == 0
    assert table.main(["--compare"]) == 0
    ratios["now"] = 2.5
    assert table.main(["--compare"]) == 1
    assert "bench_a: pass was 2, is 2.5 times an empty call: 25 % slower" in capsys.readouterr().out


def test_what_only_looks_slower_once_is_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever else the machine does would be taken for a change of the code."""
    ratios = iter([2.0, 3.0, 2.1])
    monkeypatch.setattr(table, "KEPT", tmp_path / "bench.md")
    monkeypatch.setattr(table, "modules", lambda: ["bench_a"])
    monkeypatch.setattr(table, "measured", lambda module: [Ratio("pass", next(ratios), "an empty call")])
    assert table.main(["--write"]) == 0
    assert table.main(["--compare"]) == 0


def test_the_benchmarks_with_ratios_are_found() -> None:
    """A benchmark that says its ratios would not be in the table."""
    assert "bench_impl" in table.modules()
    assert all(hasattr(__import__(f"tests.bench.{name}", fromlist=["ratios"]), "ratios") for name in table.modules())
