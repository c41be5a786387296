"""The command `defects` and the page that it prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import barrierlab.sim.cli.defects as sim_cli_defects
from barrierlab.model.checkpoint.components import SOUND
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.defects.catalogue import CAUGHT, DOCUMENTS, LISTED, MISSED, CatalogueEntry, catalogue
from barrierlab.model.defects.engines.catalogue import reports
from barrierlab.model.defects.engines.kind import EngineEntry
from barrierlab.model.defects.kinds.barrier import BarrierDefect
from barrierlab.sim.cli.defects import DefectRow, engine_page, page
from tests.sim.support import barrierlab

PAGE = Path(__file__).parents[2] / "docs" / "defects.md"
NOT_BROKEN = BarrierDefect("CUT", Bounds("a->s", events=1), SOUND, "Nothing goes wrong.")


@pytest.fixture(scope="module")
def rows() -> list[DefectRow]:
    """The whole catalogue, run once."""
    return [DefectRow(entry, *entry.run()) for entry in catalogue()]


def test_every_entry_that_runs_is_caught(rows: list[DefectRow]) -> None:
    """A defect would be shipped as caught that is not."""
    assert [row.entry.name for row in rows if row.status == MISSED] == []
    caught = {row.entry.id for row in rows if row.status == CAUGHT}
    assert len({each for each in caught if each[0] in "PAU"}) >= 55
    assert {row.entry.id[0] for row in rows} == set(DOCUMENTS)


def test_every_entry_of_the_documents_is_there(rows: list[DefectRow]) -> None:
    """One could be forgotten."""
    counts = {"P": 17, "A": 23, "U": 22, "S": 14, "J": 27, "X": 10}
    assert {row.entry.id for row in rows} == {
        f"{k}-{n:02d}" for k, count in counts.items() for n in range(1, count + 1)
    }


def _masked(lines: list[str], cells: int) -> list[str]:
    """The page, of its matrix only the first cells, and no seconds."""
    found = []
    for line in lines:
        if re.match(r"\| [PAUSJ]-\d\d ", line):
            row = line.split(" | ")[:cells]
            line = " | ".join(cell for at, cell in enumerate(row) if at != 4)
        found.append(line)
    return found


def test_the_page_is_not_stale(rows: list[DefectRow]) -> None:
    """The page would say something else than the catalogue: `barrierlab defects --markdown` prints it again."""
    lines = "\n".join(page(rows, all_detectors=False)).split("\n")
    assert _masked(PAGE.read_text(encoding="utf-8").rstrip("\n").split("\n"), 5) == _masked(lines[:-1], 5)


@pytest.mark.slow
def test_the_matrix_is_not_stale(rows: list[DefectRow]) -> None:
    """As above, of what Hypothesis and the simulation find."""
    lines = "\n".join(page(rows)).split("\n")
    assert _masked(PAGE.read_text(encoding="utf-8").rstrip("\n").split("\n"), 9) == _masked(lines[:-1], 9)


def test_one_entry_is_shown_with_its_run(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader would not see how it goes wrong."""
    status, out, _ = barrierlab(capsys, "defects", "A-04")
    assert status == 0
    assert out.startswith("A-04 A04_barrier_after_held_records: F-DCKP-002 barrier alignment: caught\n")
    assert "What goes wrong\n" in out
    assert "! FWD: " in out


def test_json_is_a_list_with_what_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    """A machine that reads it would fail."""
    status, out, _ = barrierlab(capsys, "defects", "A-04", "X-01", "--json")
    first, second = json.loads(out)
    assert status == 0
    assert first == {
        **first,
        "name": "A04_barrier_after_held_records",
        "id": "A-04",
        "document": "F-DCKP-002 barrier alignment",
        "invariant": "FWD",
        "status": CAUGHT,
        "steps": 13,
    }
    assert set(first) == {"name", "id", "document", "invariant", "status", "steps", "states", "seconds"}
    assert (second["status"], second["steps"]) == (LISTED, 0)


def test_one_that_is_missed_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An entry that breaks nothing would pass for one that is caught."""
    missed = CatalogueEntry("A-99", "nothing_goes_wrong", NOT_BROKEN, "Nothing goes wrong.")
    monkeypatch.setattr(sim_cli_defects, "catalogue", lambda: (missed,))
    status, out, _ = barrierlab(capsys, "defects")
    assert status == 3
    assert out.splitlines()[-1] == "0 of 1 that can be run are caught; 0 are listed"


def test_an_unknown_name_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A person would be left without a word on what there is."""
    status, out, err = barrierlab(capsys, "defects", "A-044")
    assert (status, out) == (2, "")
    assert err == "barrierlab: there is no defect 'A-044'; did you mean 'A-04'?\n"


# The second catalogue.


@pytest.fixture(scope="module")
def engine_rows() -> list[DefectRow]:
    """The whole second catalogue, run once."""
    return [DefectRow(entry, *entry.run()) for entry in reports()]


def test_the_page_of_engines_is_not_stale(engine_rows: list[DefectRow]) -> None:
    """The page would say something else than the catalogue: `barrierlab defects --engines --markdown` prints it."""
    kept = (PAGE.parent / "engines.md").read_text(encoding="utf-8")
    assert kept == "\n".join(engine_page(engine_rows)) + "\n"
    assert "\n29 of 29 that can be run are caught; 0 are listed.\n" in kept


def test_the_page_names_the_rows_that_are_dataflows(engine_rows: list[DefectRow]) -> None:
    """A reader would take a scheme's own steps for those of a dataflow."""
    worlds = sorted(
        row.entry.row
        for row in engine_rows
        if isinstance(row.entry, EngineEntry) and isinstance(row.entry.defect, BarrierDefect)
    )
    told = re.search(r"for\s+rows ([\d,\sand]+), of the scheme", "\n".join(engine_page(engine_rows)))
    assert told is not None
    assert [int(number) for number in re.findall(r"\d+", told[1])] == worlds


def test_all_reports_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A person would not see what there is."""
    status, out, _ = barrierlab(capsys, "defects", "--engines")
    assert status == 0
    assert out.splitlines()[-1] == "29 of 29 that can be run are caught; 0 are listed"
    assert all(each.id in out for each in reports())


@pytest.mark.parametrize("options", [(), ("--engines",)])
def test_a_report_is_shown_with_its_run(capsys: pytest.CaptureFixture[str], options: tuple[str, ...]) -> None:
    """A reader would not see how it goes wrong."""
    status, out, _ = barrierlab(capsys, "defects", *options, "FLINK-20097")
    assert status == 0
    assert out.startswith("FLINK-20097 the_end_of_a_checkpoint_forgets_the_next_barrier: Flink: caught\n")
    assert "    https://issues.apache.org/jira/browse/FLINK-20097\n" in out
    assert out.rstrip().endswith("! CUT: y came behind barrier 2, and is recorded as in flight in checkpoint 2")


def test_json_of_a_report_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A machine that reads it could not tell a bug from a remark in a review."""
    status, out, _ = barrierlab(capsys, "defects", "A-04", "SEATUNNEL-11559", "--json")
    of_documents, of_engines = json.loads(out)
    assert status == 0
    added = set(of_engines) - set(of_documents)
    assert {name: of_engines[name] for name in sorted(added)} == {
        "reports": ["https://github.com/apache/seatunnel/pull/11559"],
        "row": 17,
        "standing": "review remark",
    }
    assert (of_engines["document"], of_engines["invariant"], of_engines["steps"]) == ("SeaTunnel", "LIVE", 14)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("FLINK-1776", "there is no defect 'FLINK-1776'; did you mean 'FLINK-1775'?"),
        ("A-04", "there is no defect 'A-04'; "),
    ],
)
def test_a_report_that_there_is_not_is_one_line(capsys: pytest.CaptureFixture[str], name: str, told: str) -> None:
    """A person would be left without a word on what there is; or be shown another catalogue's entry."""
    status, out, err = barrierlab(capsys, "defects", "--engines", name)
    assert (status, out) == (2, "")
    assert err.startswith(f"barrierlab: {told}")
    assert len(err.splitlines()) == 1
