"""Every kept trace says what it shows, and the invariants say what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from barrierlab.model.checkpoint.trace import COMMENT, judged, read, write
from barrierlab.model.spec.invariants import INVARIANTS, MEANING, PREMISES, RUN_INVARIANTS

KEPT = Path(__file__).parents[1] / "traces"
TRACES = sorted(KEPT.glob("**/*.trace"))
MOST_LINES = 60


def reader_lines(text: str) -> list[str]:
    """Return what `read` skips below the header: the lines for the reader."""
    return [line for line in text.partition("\n\n")[2].splitlines() if not line or line[0] in "#!"]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_trace_is_judged_as_it_says(path: Path) -> None:
    """A run that people read as an example would be judged otherwise than its own last lines say."""
    text = path.read_text()
    first: dict[str, str] = {}
    for violation in judged(text, path.name).violations:
        first.setdefault(violation.invariant, str(violation))
    assert [f"! {reason}" for reason in first.values()] == [line for line in text.splitlines() if line.startswith("!")]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_trace_is_written_as_it_is_read(path: Path) -> None:
    """A trace in the repository would not be what the code writes, so a run could not be compared with it."""
    text = path.read_text()
    header, entries = read(text, path.name)
    without = [line for line in text.splitlines() if line not in reader_lines(text) or not line]
    assert write(entries, header).splitlines() == without
    assert COMMENT in header, "a comment on top says what the trace shows"
    assert len(text.splitlines()) <= MOST_LINES


def test_every_invariant_has_a_trace_that_breaks_it() -> None:
    """An invariant that nothing breaks may be one that nothing can break."""
    broken = {path.stem.split("_")[0] for path in KEPT.glob("broken/*.trace")}
    assert broken == {name.lower() for name in (*INVARIANTS, *RUN_INVARIANTS)}


@pytest.mark.parametrize("path", sorted(KEPT.glob("broken/*.trace")), ids=lambda path: path.stem)
def test_a_broken_trace_breaks_what_its_name_says(path: Path) -> None:
    """A trace filed under an invariant would show the breach of another one."""
    assert path.stem.split("_")[0].upper() in {v.invariant for v in judged(path.read_text()).violations}


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.trace")), ids=lambda path: path.stem)
def test_a_sound_trace_holds(path: Path) -> None:
    """The examples of how it is to be would be wrong."""
    assert judged(path.read_text(), path.name).verdict == "holds"


def test_every_invariant_has_a_premise_and_a_meaning() -> None:
    """An invariant would be missing among the vacuous ones of a verdict, or stand in a report without a word."""
    assert list(PREMISES) == [*INVARIANTS, *RUN_INVARIANTS]
    assert list(MEANING) == [*INVARIANTS, *RUN_INVARIANTS, "RAISED"]


@pytest.mark.parametrize("path", sorted(KEPT.glob("broken/*.trace")), ids=lambda path: path.stem)
def test_what_is_broken_has_been_asked(path: Path) -> None:
    """A verdict would name a broken invariant as vacuous, so its premise would be another than it says."""
    name = path.stem.split("_")[0].upper()
    verdict = judged(path.read_text())
    assert name not in verdict.vacuous
    if name != "REC":  # of a sink it is broken without a restore, too
        assert verdict.premises[name] > 0


def test_the_premises_of_a_run_are_counted() -> None:
    """A run would be said to have asked what it has not: the counts are done by hand."""
    text = (KEPT / "an_input_waits_behind_its_barrier.trace").read_text()
    verdict = judged(text)
    expected = {
        "CUT": 2,
        "FIFO": 2,
        "ONCE": 4,
        "FWD": 2,
        "NOLOSS": 3,
        "WM": 0,
        "ID": 4,
        "LIVE": 1,
        "BOUND": 0,
        "REC": 0,
    }
    assert verdict.premises == expected | {"in flight": 0, "buffered": 1}
    assert verdict.vacuous == tuple(name for name in PREMISES if not expected[name])


def test_a_run_of_next_to_nothing_is_vacuous_throughout() -> None:
    """A journal in which nothing comes to anything holds; a reader must see that it holds of nothing."""
    verdict = judged("topology: a->s\n\n> emit a a1\n")
    assert verdict.verdict == "holds"
    assert set(verdict.vacuous) == set(PREMISES)
