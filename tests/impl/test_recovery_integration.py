"""Jobs that fail at any turn, with their coordinator or without, and go on: each event has its effect outside once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl import DirectoryStore, Ledger, MemoryStore, Triggered
from tests.breadth import examples
from tests.impl.job import Job, Outside, Troubled
from tests.impl.support import Join

CHAIN = Outside("a->map map->sink")
JOIN = Outside("a->join b->join join->sink", operators={"join": Join}, events=4, interval=4)
ENOUGH = 2000


def visible(outside: Outside) -> list[str]:
    """Return what a reader sees: an event of a source by its name, a pair by its two."""
    seen = outside.ledger.visible("sink")
    return [str(e) if e.value is None else " ".join(sorted(map(str, e.value))) for e in seen]


def expected(outside: Outside) -> list[str]:
    """Return what a run without failures shows."""
    numbers = range(1, outside.events + 1)
    if outside.operators is None:
        return [f"a{n}" for n in numbers]
    return [f"a{m} b{n}" for m, n in product(numbers, numbers)]


def afresh(outside: Outside, **changes) -> Outside:
    """The same job with an empty store and nothing outside."""
    return replace(outside, **{"store": MemoryStore(), "ledger": Ledger(), **changes})


@pytest.mark.parametrize("outside", [CHAIN, JOIN], ids=["chain", "join"])
@pytest.mark.parametrize("unaligned", [False, True])
def test_by_hand_on_a_disk(tmp_path, outside, unaligned):
    """If it fails, what is stored does not bring a job back: it repeats, or misses, what a reader sees (rule 22)."""
    folder = str(tmp_path / "store")
    outside = afresh(outside, unaligned=unaligned, store=DirectoryStore(folder))
    job = Job(outside)
    while not outside.store.completed():
        assert not job.go(1)
    job.go(2)
    outside.store = DirectoryStore(folder)  # the process is another one
    highest = outside.store.highest_id()
    again = job.fail(lost=True)
    assert again.restored.checkpoint_id == outside.store.completed()[0]
    assert all(position > 1 for position in again.positions().values())
    assert (again.in_flight() > 0) == unaligned
    assert again.go(ENOUGH)
    triggered = [answer.checkpoint_id for answer in again.answers if type(answer) is Triggered]
    assert triggered[0] == highest + 1
    assert sorted(visible(outside)) == sorted(expected(outside))
    if outside.operators is None:
        assert visible(outside) == expected(outside)


@pytest.mark.parametrize("outside", [CHAIN, JOIN], ids=["chain", "join"])
@pytest.mark.parametrize("unaligned", [False, True])
@pytest.mark.parametrize(("lost", "lands"), [(False, False), (True, False), (True, True)])
def test_a_failure_at_any_turn(outside, unaligned, lost, lands):
    """If it fails, there is a moment at which a failure costs an event, or doubles one."""
    whole = Job(afresh(outside, unaligned=unaligned))
    assert whole.go(ENOUGH)
    assert sorted(visible(whole.outside)) == sorted(expected(outside))
    restored = set()
    flying = 0
    for turn in range(1, whole.turn + 1):
        here = afresh(outside, unaligned=unaligned)
        job = Job(here)
        job.go(turn)
        before = visible(here)
        job = job.fail(lost, lands)
        restored.add(job.restored.checkpoint_id)
        flying += job.in_flight()
        assert visible(here)[: len(before)] == before
        assert job.go(ENOUGH)
        assert sorted(visible(here)) == sorted(expected(outside))
    assert len(restored) > 2  # from the beginning, and from several checkpoints
    assert (flying > 0) == unaligned


def test_a_job_that_fails_when_it_is_over_has_nothing_left_to_do():
    """If it fails, the last events are written again, or never: the final checkpoint was complete."""
    here = afresh(CHAIN)
    job = Job(here)
    assert job.go(ENOUGH)
    again = job.fail(lost=True)
    assert again.coordinator.ended
    assert again.restored.tasks["sink"].finished
    assert again.go(1)
    assert visible(here) == expected(CHAIN)


FAILURES = st.lists(st.tuples(st.integers(1, 25), st.booleans(), st.booleans()), max_size=5)
TROUBLE = st.lists(st.sampled_from(["", "refused", "part refused", "lost", "landed"]), max_size=6)


@given(
    st.sampled_from([CHAIN, JOIN, Outside("a->u b->u u->v v->sink", events=4), Outside("a->sink", events=6)]),
    st.booleans(),
    st.sampled_from(["exactly_once", "at_least_once", "idempotent"]),
    st.integers(2, 9),
    FAILURES,
    TROUBLE,
)
@settings(max_examples=examples(150), deadline=None)
def test_any_number_of_failures(outside, unaligned, guarantee, interval, failures, trouble):
    """If it fails, some chain of failures loses an event, or a sink keeps less than it guarantees.

    The store may refuse, and may not say whether a manifest is there; too much of that, and the job fails for it.
    """
    here = afresh(outside, unaligned=unaligned, guarantee=guarantee, interval=interval, store=Troubled(trouble))
    job = Job(here)
    begun = []
    for turns, lost, lands in failures:
        job.go(turns)
        begun.append(here.store.highest_id())
        job = job.fail(lost, lands)
        note(f"restored {min(job.restored.checkpoint_id, 2)}, in flight {job.in_flight() > 0}")
    while not job.go(ENOUGH):
        assert job.doomed
        note("doomed")
        job = job.fail()
    assert begun == sorted(begun)
    if outside.operators is None:
        wanted = {f"{source}{n}" for source in job.sources for n in range(1, outside.events + 1)}
    else:
        wanted = set(expected(outside))
    seen = Counter(visible(here))
    assert set(seen) == wanted
    if guarantee == "exactly_once" or (guarantee == "idempotent" and outside.operators is None):
        assert set(seen.values()) == {1}
