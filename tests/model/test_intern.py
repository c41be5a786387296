"""Values as numbers and as shared objects: one for what nothing tells apart, and for nothing else."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from barrierlab.impl.messages import CheckpointBarrier, Event
from barrierlab.model.explore.intern import Pool, exact

ATOMS = st.sampled_from([0, 1, True, False, None, "", "a", b"a", 1.0])
MESSAGES = st.builds(Event, st.just("a"), st.just(1), value=st.sampled_from([None, 1, True])) | st.builds(
    CheckpointBarrier, st.integers(1, 2), st.just(1)
)
VALUES = st.recursive(
    ATOMS | MESSAGES, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.lists(inner, max_size=2), max_leaves=6
)
"""Few different ones, so that two are often alike; what `repr` says of them is all that there is to say."""


@given(st.lists(VALUES, min_size=2, max_size=6))
@example([(1, 0), (True, False)])
@example([["a"], ("a",)])
@example([Event("a", 1), Event("a", 1, value=1)])
@example([Event("a", 1, value=True), Event("a", 1, value=1)])
def test_one_object_stands_for_what_nothing_tells_apart(values: list[object]) -> None:
    """Two machines would be taken for one, or one for two."""
    pool = Pool()
    kept = [pool.shared(value) for value in values]
    assert [repr(each.value) for each in kept] == [repr(value) for value in values]
    assert len(set(map(id, kept))) == len(set(map(repr, values)))


@given(VALUES, VALUES)
def test_values_share_what_they_have_in_common(one: object, other: object) -> None:
    """A table of machines that differ little would take as much room as of machines that differ in all."""
    pool, long = Pool(), ("long", one, ("part",))
    first, second = pool.shared((long, other)), pool.shared((one, ("long", one, ("part",))))
    assert first.value[0] is second.value[1]  # type: ignore[index]


@given(st.lists(VALUES, min_size=2, max_size=4))
@example([["a"], ("a",)])
@example([Event("a", 1), Event("a", 1, value=1)])
def test_what_is_exact_tells_apart_all_but_numbers_that_are_equal(values: list[object]) -> None:
    """Two states would be taken for one."""
    said = {repr(value).replace("True", "1").replace("False", "0").replace("1.0", "1") for value in values}
    assert len(set(map(exact, values))) == len(said)
