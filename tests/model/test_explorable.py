"""The explorable run: what it draws and says is what Python says of the same journal."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from barrierlab.model.checkpoint.scripted import FOLDER
from barrierlab.model.checkpoint.trace import is_timed, lines_of, read, text_of, topology_of
from barrierlab.model.render.explorable import MODULE, MOST_ENTRIES, data_of, element, packed, page, resources
from barrierlab.model.render.spacetime import lay_out
from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.history import Entry
from barrierlab.model.spec.invariants import Case, Limits, cut
from barrierlab.model.spec.topology import Topology
from barrierlab.sim import load, run
from tests.browser import evaluate

KEPT = Path(__file__).parents[1] / "traces"
TRACES = sorted(KEPT.glob("**/*.trace"))
SCRIPTED = sorted(FOLDER.glob("**/*.trace"))
TRIED = 1_000_000
"""The id of the checkpoint that a tried cut would be."""

Journal = tuple[list[Entry], Topology]


def journal(path: Path) -> Journal:
    """Entries and topology of a trace."""
    head, entries = read(path.read_text(encoding="utf-8"), path.name)
    return entries, topology_of(head)


LAID_OUT = """
return value.map((data) => {
  const run = its.layOut(data);
  return {
    at: run.at, restores: run.restores, stepOfEntry: run.stepOfEntry,
    arrows: run.messages.map((m) => [data.channels[m.channel].name, data.subjects[m.subject].text, m.sent, m.taken,
      m.applied, m.gone, m.ignored, m.restored, m.recordedBy.length > 0]),
    marks: run.marks.map((m) => [m.node, m.step, m.verb, m.text]),
    cuts: [...run.checkpoints.values()].map((c) => [c.id, Object.fromEntries(c.cut)]),
    lines: run.moves.map((m) => its.lineOf(data, run.entries[m.entry])),
  };
});
"""


def test_it_is_laid_out_as_every_picture_is(tmp_path: Path) -> None:
    """The page would show another run than the SVG of the same trace."""
    journals = [(path, *journal(path)) for path in (*TRACES, *SCRIPTED)]
    found = evaluate(MODULE, LAID_OUT, [data_of(entries, topology, "x") for _, entries, topology in journals], tmp_path)
    assert len(found) > 50
    for (path, entries, topology), its in zip(journals, found, strict=True):
        drawn = lay_out(entries, topology)
        assert its["at"] == drawn.times_ns, path
        assert its["restores"] == drawn.restores
        assert its["stepOfEntry"] == drawn.step_of_entry
        arrows = [
            [
                a.channel,
                text_of(a.message),
                a.sent,
                a.taken,
                a.applied,
                a.gone,
                a.ignored,
                a.restored_in_flight,
                bool(a.recorded_by),
            ]
            for a in drawn.arrows
        ]
        assert its["arrows"] == arrows, path
        assert its["marks"] == [[m.process, m.step, m.kind, m.text] for m in drawn.marks], path
        assert dict(map(tuple, its["cuts"])).get(drawn.checkpoint_id, {}) == drawn.cut
        moves = [entry for entry in entries if entry[1][0] == ">"]
        if not is_timed(entries):  # one that another brings about is part of it
            moves = [
                entry
                for before, entry in zip([None, *moves], moves, strict=False)
                if before is None or before[0] != entry[0]
            ]
        assert its["lines"] == [line.lstrip("> ") for line in lines_of(moves)], path


JUDGED = """
return value.map(({ data, cuts }) => {
  const run = its.layOut(data);
  return cuts.map(({ attempt, entries, checkpoint }) => {
    const cut = new Map(Object.entries(entries).map(([task, entry]) => [task, run.stepOfEntry[entry]]));
    const recorded = checkpoint === null ? null : run.checkpoints.get(checkpoint).recorded;
    const verdict = its.judge(run, attempt, cut, recorded);
    const told = (message) => [data.subjects[message.subject].text, data.channels[message.channel].name];
    const faults = verdict.faults.map((fault) => [fault.kind, ...told(fault.message)]);
    return { faults, inFlight: verdict.inFlight.map(told), words: its.wordsOf(run, verdict, recorded, false) };
  });
});
"""


class Tried:
    """Cuts tried in a run: what Python says of each, and the value that the component is asked for.

    Parameters
    ----------
    entries, topology : journal
    count : int
        How many cuts.
    seed : int
    part : bool
        Whether the component has the part around the last checkpoint only.
    """

    def __init__(self, entries: list[Entry], topology: Topology, count: int, seed: int, part: bool = False) -> None:
        self.entries, self.topology = entries, topology
        drawn = lay_out(entries, topology)
        self.steps = drawn.step_of_entry
        self.run = Run.of(entries, topology)
        self.starts = [0, *(place for place, entry in enumerate(entries) if entry[1] == ">restore"), len(entries)]
        self.data = data_of(entries, topology, "x", part=part)
        self.kept = range(
            self.data["first_entry"],
            self.data["first_entry"] + len(self.data["entries"]["verb"]) - self.data["earlier"] - self.data["later"],
        )
        draw = random.Random(seed)
        self.cuts = [self._drawn(draw) for _ in range(count)]

    def _drawn(self, draw: random.Random) -> tuple[int, dict[str, int], int | None]:
        """An attempt, the place of each task's cut, and the checkpoint whose records count."""
        attempts = [
            n
            for n, first in enumerate(self.starts[:-1])
            if first < self.kept.stop and self.starts[n + 1] > self.kept.start
        ]
        number = draw.choice(attempts)
        first, last = max(self.starts[number], self.kept.start), min(self.starts[number + 1], self.kept.stop) - 1
        restoring = (">restore", "restored", "restored_in_flight")
        first = max([first, *(n for n in range(first, last) if self.entries[n][1] in restoring)])
        cuts = [
            (task, checkpoint_id)
            for task, checkpoint_id in self.run.attempts[number].history.cuts
            if checkpoint_id in self.run.attempts[number].complete
        ]
        checkpoint_id = draw.choice(cuts)[1] if cuts and draw.random() < 0.7 else None
        taken = {
            entry[2]: place
            for place, entry in enumerate(self.entries)
            if entry[1] == "snapshot"
            and isinstance(entry[4], tuple)
            and entry[4][0] == checkpoint_id
            and first <= place <= last
        }
        near = draw.random() < 0.7
        places = {}
        for task in self.topology.tasks:
            place = draw.randint(first, last)
            if near and task in taken:
                place = taken[task] + (draw.randint(-12, 12) if draw.random() < 0.4 else 0)
            places[task] = min(max(place, first), last)
        if part_has_no_records(self.data, checkpoint_id):
            checkpoint_id = None
        return number, places, checkpoint_id

    def asked(self) -> dict[str, Any]:
        """The value of the component: places are those of its own journal."""
        earlier, first = self.data["earlier"], self.data["first_entry"]
        cuts = [
            {
                "attempt": number - sum(0 < start <= first for start in self.starts[:-1]),
                "entries": {task: place - first + earlier for task, place in places.items()},
                "checkpoint": n,
            }
            for number, places, n in self.cuts
        ]
        return {"data": self.data, "cuts": cuts}

    def told(self, number: int, places: dict[str, int], checkpoint_id: int | None) -> Counter[tuple[str, str, str]]:
        """Return the equation's answer, with a snapshot of every task where it is cut, and a checkpoint's records."""
        behind: dict[int, list[Entry]] = {}
        for task, place in places.items():
            while place + 1 < len(self.entries) and self.steps[place + 1] == self.steps[place]:
                place += 1
            behind.setdefault(place, []).append((self.entries[place][0], "snapshot", task, None, (TRIED, "-")))
        changed: list[Entry] = []
        for place, entry in enumerate(self.entries):
            if entry[1] == ">restore" and place == self.starts[number + 1]:
                changed.append((entry[0], "completed", "coordinator", None, TRIED))
            changed.append(entry)
            if entry[1] == "capture" and isinstance(entry[4], tuple) and entry[4][0] == checkpoint_id:
                changed.append((*entry[:4], (TRIED, entry[4][1])))
            changed += behind.get(place, [])
        if self.starts[number + 1] == len(self.entries):
            changed.append((self.entries[-1][0], "completed", "coordinator", None, TRIED))
        attempt = Run.of(changed, self.topology).attempts[number]
        attempt.complete = {TRIED: attempt.complete[TRIED]}
        reasons = [violation.reason for violation in cut(Case(attempt, Limits(), None, True))]
        found = [
            re.fullmatch(r"(\S+) is (an orphan in|lost to|out of order in) checkpoint \d+ of (\S+):.*", each)
            for each in reasons
        ]
        assert all(found)
        return Counter((each[2], each[1], each[3]) for each in found if each)


def part_has_no_records(data: dict[str, Any], checkpoint_id: int | None) -> bool:
    """Return whether what a checkpoint recorded is not in the journal that the component has."""
    if not data["first_entry"]:
        return False
    return checkpoint_id != data["checkpoint"]


def said(topology: Topology, answer: dict[str, Any], is_free: bool) -> Counter[tuple[str, str, str]]:
    """The same, of the component's answer."""
    if is_free:
        lost = [("lost", *each) for each in answer["inFlight"]]
        faults = [*lost, *answer["faults"]]
    else:
        faults = answer["faults"]
    net: Counter[tuple[str, str]] = Counter()
    for kind, event, channel in faults:
        if kind != "order":
            net[event, channel] += 1 if kind == "lost" else -1
    words = {True: "lost to", False: "an orphan in"}
    found = Counter(
        (words[count > 0], event, topology.ends(channel)[1]) for (event, channel), count in net.items() if count
    )
    return found + Counter(
        ("out of order in", event, topology.ends(channel)[1]) for kind, event, channel in faults if kind == "order"
    )


def held_against(tried: Sequence[Tried], folder: Path) -> Counter[str]:
    """Compare what is said of each cut; how many were consistent, had orphans, lost events, or are in disorder."""
    answers = evaluate(MODULE, JUDGED, [each.asked() for each in tried], folder)
    seen: Counter[str] = Counter()
    for its, found in zip(tried, answers, strict=True):
        for (number, places, checkpoint_id), answer in zip(its.cuts, found, strict=True):
            right = its.told(number, places, checkpoint_id)
            wrong = said(its.topology, answer, checkpoint_id is None)
            if checkpoint_id is None:  # there Python has no records, with which an order could be compared
                right, wrong = (
                    Counter({k: n for k, n in each.items() if k[0] != "out of order in"}) for each in (right, wrong)
                )
            assert wrong == right, (number, places, checkpoint_id)
            assert answer["words"]["good"] == (not answer["faults"])
            seen.update({kind for kind, _, _ in right} or {"consistent"})
            seen["of a checkpoint"] += checkpoint_id is not None
    return seen


def test_a_cut_is_judged_as_the_equation_judges_it(tmp_path: Path) -> None:
    """The page would call a cut consistent that is not, or blame a message for nothing."""
    tried = [Tried(*journal(path), 40, seed) for seed, path in enumerate((*TRACES, *SCRIPTED))]
    # What is restored behind what has run stands nowhere among what was sent, so that no cut there means anything.
    tried = [each for each in tried if not any(attempt.history.out_of_place for attempt in each.run.attempts)]
    assert len(tried) > 50
    seen = held_against(tried, tmp_path)
    assert min(seen[kind] for kind in ("consistent", "an orphan in", "lost to", "of a checkpoint")) > 100


OUT_OF_TURN = """\
topology: a->s

> emit a a1
    a send a->s a1
> emit a a2
    a send a->s a2
> emit a a3
    a send a->s a3
> inject a 1
    a snapshot 1 aa
    a send a->s barrier 1 unaligned
> deliver a->s
    s take a->s {first}
    s {verb} a->s {first}
> deliver a->s
    s take a->s {second}
    s deliver a->s {second}
> overtake a->s
    s take a->s barrier 1 unaligned
    s block a->s 1
    s snapshot 1 bb
    s capture a->s 1 a3
> ack s 1
    coordinator completed 1
"""


@pytest.mark.parametrize(
    ("first", "verb", "second", "fault"),
    [("a1", "deliver", "a2", ""), ("a2", "deliver", "a1", "order"), ("a1", "ignore", "a2", "lost")],
    ids=["sound", "overtaken", "ignored"],
)
def test_events_out_of_their_turn_are_named(first: str, verb: str, second: str, fault: str, tmp_path: Path) -> None:
    """A cut would be called consistent to which an event is lost, or in which one comes before its cause."""
    _, entries = read(OUT_OF_TURN.format(first=first, verb=verb, second=second))
    tried = Tried(entries, Topology.parse("a->s"), 40, 3)
    held_against([tried], tmp_path)
    tried.cuts = [(0, {"a": len(entries) - 1, "s": len(entries) - 1}, 1)]
    (answer,) = evaluate(MODULE, JUDGED, [tried.asked()], tmp_path)[0]
    assert [each[:2] for each in answer["faults"]] == ([[fault, "a1"]] if fault else [])
    held_against([tried], tmp_path)


LONG = {
    "diamond": {"until_s": 4.0},
    "crash_and_recover": {},
    "survive_anything": {},
    "tracked": {"until_s": 4.0},
    "store_outage": {"until_s": 6.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("part", [False, True], ids=["whole", "part"])
@pytest.mark.parametrize("name", LONG)
def test_a_cut_of_a_simulated_run_is_judged_so_too(name: str, part: bool, tmp_path: Path) -> None:
    """The same in runs with queues, crashes and recorded messages, and where a page has only a part of the run."""
    result = run(load(name, LONG[name]), seed=1)
    seen = held_against([Tried(result.entries, result.scenario.topology, 60, 7, part)], tmp_path)
    assert seen["consistent"] or name == "tracked", "which permits orphans"
    assert seen["an orphan in"]


def test_a_page_is_whole_and_loads_nothing() -> None:
    """It would not open from a disk, or only where there is a network."""
    entries, topology = journal(KEPT / "an_input_waits_behind_its_barrier.trace")
    text = page(data_of(entries, topology, "a <b> & c", verdict="holds"))
    assert "<title>a &lt;b&gt; &amp; c</title>" in text
    loads = re.findall(r"""(?:src|href)\s*=|url\(|@import|import\s*\(|fetch\(|https?://[^"]*""", text)
    assert loads == []
    assert "default-src 'none'" in text
    assert len(text) < 100_000


def test_data_may_not_end_the_script_that_they_are_in() -> None:
    """A title could bring a script of its own into the page."""
    entries, topology = journal(KEPT / "an_input_waits_behind_its_barrier.trace")
    text = element(data_of(entries, topology, "</script><script>alert(1)</script>"))
    assert text.count("</script>") == 1


def test_one_page_shows_several_runs() -> None:
    """A report would carry the component once for each run."""
    assert resources().count("export async function mount") == 1
    assert "export" not in element({"title": "x"})


def test_long_data_are_deflated(tmp_path: Path) -> None:
    """A page of a long run would be megabytes."""
    result = run(load("diamond", {"until_s": 1.5}), seed=1)
    assert 3000 < len(result.entries) <= MOST_ENTRIES
    data = data_of(result.entries, result.scenario.topology, "x")
    small = packed(data)
    assert list(small) == ["packed"]
    assert len(small["packed"]) < len(json.dumps(data)) / 4
    body = "return JSON.stringify(await its.unpack(value.small)) === JSON.stringify(value.data);"
    assert evaluate(MODULE, body, {"small": small, "data": data}, tmp_path)
