"""A scripted case is replayed as it stands, put right where it is wrong, and refused with its line where it is
none."""

from __future__ import annotations

import random
from dataclasses import fields
from pathlib import Path

import pytest

from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.scripted import cases, replay
from barrierlab.model.checkpoint.trace import TraceError, is_timed, judged, read, write
from barrierlab.model.checkpoint.trace_header import bounds_of, header_of
from barrierlab.model.checkpoint.world import World
from tests.breadth import first
from tests.kept import keep
from tests.model.mutants import MUTANTS, MUTANTS_RECOVERING

STORY = """\
# Two events.
topology: a->s
checkpoints: 0

# One.
> emit a a1
    a send a->s a1
> deliver a->s
    s take a->s a1

# In the middle of what it does.
    s deliver a->s a1
# Below it.

> stabilize
  > emit a a2
    a send a->s a2
  > deliver a->s
    s take a->s a2
    s deliver a->s a2

# The end.
"""
BOUNDS = [
    Bounds("a->s b->s"),
    Bounds(
        "a->s b->s",
        "aligned_with_timeout",
        1,
        1,
        (("a", 2),),
        2,
        3,
        cancels=1,
        expiries=1,
        may_expire=("s",),
        closes=True,
    ),
    Bounds(
        "a->x x->s",
        "unaligned",
        emits=True,
        sender_records=True,
        aborts_one=(2, 1),
        checkpoints=2,
        max_inflight_buffer_bytes=9,
    ),
    Bounds("a->s", crashes=1, checkpoints_again=0, guarantee="exactly_once", max_buffer_per_input=1),
    Bounds("a->x", parallelism=(("x", 2),), exchanges=(("a->x", "broadcast"),), max_buffer_memory_bytes=7),
]


def test_a_scripted_case_is_told_again() -> None:
    """The reader's lines would move, or what the moves do would change under them."""
    assert replay(STORY) == STORY


def test_a_scripted_case_is_put_right() -> None:
    """A scripted case could not be written as moves alone."""
    moves = STORY.replace("emit a a1", "emit a").splitlines(keepends=True)
    bare = "".join(line for line in moves if not line.startswith(" "))
    right = replay(bare)
    assert replay(right) == right
    assert [line for line in right.splitlines() if line[:1] == " "] == [
        line for line in STORY.splitlines() if line[:1] == " "
    ]
    assert replay(STORY.replace("s deliver a->s a1", "s deliver a->s a7\n    s deliver a->s a8")) == STORY


def test_a_verdict_is_put_at_the_end() -> None:
    """A run in which something breaks would be kept as if nothing did; or it would be said twice."""
    text = "topology: a->s\nevents: 0\n\n> trigger 1\n> inject a\n"
    told = replay(text)
    assert told.splitlines()[-1] == "! LIVE: checkpoint 1 was triggered and never ends"
    assert replay(told) == told
    assert "!" not in replay(text.replace("events: 0", "events: 0\ncut_off: yes"))
    assert "!" not in replay(text + "> stabilize\n")


def test_what_does_not_end_well_stands_below_stabilize() -> None:
    """The properties at rest would be asked of nothing but the last state."""
    text = "topology: a->s b->s\nevents: 0\ncheckpoints: 2\n\n> trigger 1\n> trigger 2\n> inject a\n> inject a\n"
    text += "> deliver a->s\n> deliver a->s\n> stabilize\n# So much for that.\n"
    assert "    ! " not in replay(text)
    told = replay(text, MUTANTS["SwallowsTheSecondBarrier"])
    assert "\n    ! LIVE: s still waits for checkpoint 2\n# So much for that.\n! NOLOSS: " in told
    assert replay(told, MUTANTS["SwallowsTheSecondBarrier"]) == told
    assert len(read(told)[1]) > 20, "the line is no effect"


def test_a_world_that_does_not_rest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in a machine would keep a test busy for ever."""
    monkeypatch.setattr("barrierlab.model.checkpoint.scripted.MOST_MOVES", 2)
    with pytest.raises(TraceError, match=r"^scripted case:3: after 2 moves it does not rest; make the world smaller$"):
        replay("topology: a->s\n\n> stabilize\n")


def test_what_a_head_says_of_all_channels_and_sinks_is_judged() -> None:
    """A scripted case that is shown, or kept, would be judged by less than the world that makes it."""
    text = replay("topology: a->s\ncut_off: yes\n\n> emit a\n> emit a\n")
    assert judged(text).verdict != "broken"
    assert {v.invariant for v in judged("capacity: 1\n" + text).violations} == {"BOUND"}
    committed = replay(cases()["recovery/a_sink_commits_once"], MUTANTS_RECOVERING["WritesTwice"])
    assert "REC" in {v.invariant for v in judged(committed).violations}
    assert judged(committed.replace("guarantee: exactly_once\n", "")).violations == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topologie: a->s\n", "t:1: the header of a world has no field 'topologie'; did you mean 'topology'?"),
        ("mode: aligned\n", "t:1: the header has no topology; write a line such as 'topology: a->join b->join'"),
        ("# T\ntopology: a->s\nevents: two\n", "t:3: 'two' stands for 'events'; write a whole number from 0 on"),
        ("topology: a->s\ncapacity: 0\n", "t:2: '0' stands for 'capacity'; write a whole number from 1 on"),
        (
            "topology: a->s\nmode: aligned_with\n",
            "t:2: 'aligned_with' stands for 'mode'; did you mean 'aligned_with_timeout'?",
        ),
        ("topology: a->s\ncloses: 1\n", "t:2: '1' stands for 'closes'; write yes or no"),
        ("topology: a->s\ncut_off: no\n", "t:2: 'no' stands for 'cut_off'; write yes, or take the line out"),
        ("topology: a->s\nmay_expire: x\n", "t:2: 'x' is no task; there are: a, s"),
        ("topology: a->s\nfirst_timestamp_ms: x=1\n", "t:2: 'x' is no task; there are: a, s"),
        ("topology: a->s\nparallelism: s\n", "t:2: 's' stands for 'parallelism'; write pairs such as join=2"),
        (
            "topology: a->s\nparallelism: x=2\n",
            "t:2: parallelism is given for 'x', which no edge names; there are: a, s",
        ),
        (
            "topology: a->s\naborts_one: 1\n",
            (
                "t:2: '1' stands for 'aborts_one'; write the checkpoint and the one that it is aborted behind, such as "
                "2 1, or 1 0"
            ),
        ),
        ("topology: a->a\n", "t:1: 'a' sends to itself; a dataflow has no loops: take 'a->a' out"),
        (
            "topology: a->s\n\n> deliver a->s\n",
            "t:3: the move 'deliver a->s' cannot be made here; these can: trigger 1, emit a a1, stabilize",
        ),
        (
            "topology: a->s\n\n\n> emit a a2\n",
            "t:4: the move 'emit a a2' cannot be made here; these can: trigger 1, emit a a1, stabilize",
        ),
        (
            "topology: a->s b->s\ncheckpoints: 0\nevents: 1\n\n> emit\n",
            "t:5: the move 'emit' may be any of emit a a1, emit b b1; these can: emit a a1, emit b b1, stabilize",
        ),
        (
            "topology: a->s\n\nemit a\n",
            "t:3: 'emit a' is no line of a scripted case; a line begins with '> ', four blanks, '#' or '!'",
        ),
        (
            "topology: a->s\n\n! LIVE: x\n> emit a\n",
            "t:4: '> emit a' stands behind a verdict; verdicts end a scripted case",
        ),
    ],
)
def test_what_is_no_scripted_case(text: str, message: str) -> None:
    """A mistake would be found nowhere, or in the wrong place, or without what would have been right."""
    with pytest.raises(TraceError) as error:
        replay(text, name="t")
    assert str(error.value) == message


def test_a_run_that_is_over_can_do_nothing_more() -> None:
    """An error would name moves as allowed which are not."""
    moves = ("finish a", "deliver a->s", "finished a", "finished s", "emit a")
    text = "topology: a->s\nevents: 0\ncheckpoints: 0\n\n" + "".join(f"> {move}\n" for move in moves)
    with pytest.raises(TraceError, match=r"^scripted case:9: the move 'emit a' cannot be made here; nothing can$"):
        replay(text)


@pytest.mark.parametrize("bounds", BOUNDS, ids=lambda bounds: bounds.topology)
def test_a_setup_survives_in_a_head(bounds: Bounds) -> None:
    """A trace would be replayed in another world than it was made in."""

    def error(field: str, came: str, allowed: str) -> TraceError:
        return TraceError(f"{field}: {came}; {allowed}")

    again = bounds_of(header_of(bounds), error)
    explicit = {"exchanges": again.exchanges} if not bounds.exchanges else {}
    assert again == type(bounds)(**{f.name: getattr(bounds, f.name) for f in fields(Bounds)} | explicit)


def test_every_field_of_a_setup_is_tried() -> None:
    """A field could be left out of headers."""
    tried = {f.name for bounds in BOUNDS for f in fields(Bounds) if getattr(bounds, f.name) != f.default}
    assert tried == {f.name for f in fields(Bounds)}


@pytest.mark.parametrize("seed", first(range(12), 5))
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds("a->join b->join join->s", cancels=1, expiries=1, checkpoints=2, capacity=1, closes=True),
        Bounds("a->x b->x x->s", "unaligned", watermarks=1, capacity=2, sender_records=True, parallelism=(("x", 2),)),
        Bounds("a->join b->join c->join join->s", "aligned_with_timeout", expiries=1, checkpoints=2, cancels=1),
        Bounds("a->x x->s", "unaligned", crashes=1, capacity=1, checkpoints=2, guarantee="exactly_once"),
    ],
    ids=lambda bounds: bounds.mode + " " + bounds.topology,
)
def test_any_run_is_a_scripted_case(bounds: Bounds, seed: int) -> None:
    """A run that somebody found, and kept as a trace, could not be reproduced."""
    world, chance, state, taken = World(bounds), random.Random(seed), None, []
    state = world.start()
    for _ in range(chance.randrange(10, 60)):
        moves = world.moves(state)
        if not moves:
            break
        taken.append(chance.choice(moves))
        state = world.after(state, taken[-1])
    for rests in (False, not world.enabled_fair_moves(state)):
        text = world.trace(taken, rests, "Any run.")
        assert replay(text) == text
        header, entries = read(text)
        assert not is_timed(entries)
        assert write(entries, header, judged(text).violations) == text


def test_another_machine_tells_another_scripted_case() -> None:
    """Replay would repeat the text instead of making it."""
    assert replay(STORY, Components(task=MUTANTS["AppliesTwice"].task)) == STORY  # it counts twice, and nobody looks
    looked = STORY.replace("checkpoints: 0", "checkpoints: 1").replace("> stabilize", "> trigger 1\n> stabilize")
    assert replay(looked, MUTANTS["AppliesTwice"]) != replay(looked)


def test_a_kept_file_is_put_right_when_asked(tmp_path: Path) -> None:
    """The option would not write, or the test would write without being asked."""
    path = tmp_path / "kept.trace"
    path.write_text("old\n")
    with pytest.raises(AssertionError):
        keep(path, "new\n", rewrite=False)
    assert path.read_text() == "old\n"
    keep(path, "new\n", rewrite=True)
    assert path.read_text() == "new\n"
