"""Defects planted in the exported model, each beside the entry of the catalogue that plants it in the machines."""

from __future__ import annotations

from collections.abc import Mapping

Edits = tuple[tuple[str, str], ...]

_ALL_IN = """\
				snapshot(t, id);
				forward(t, id);
				complete_part(t);
				resume(t)
"""
_EVENT = """\
		applied[c]++;
		count[c]++;
		give_all(t, m)
"""

PLANTED: Mapping[str, Edits] = {
    # The snapshot is taken behind the barrier, and behind the message that follows.
    "P-12": (
        ("byte position[TASKS];", "byte saving[TASKS];\nbyte position[TASKS];"),
        (_ALL_IN, "saving[t] = id; forward(t, id); end_here(t, id); resume(t)\n"),
        (
            _EVENT,
            _EVENT.rstrip()
            + "; if :: saving[t] -> n = saving[t]; saving[t] = 0; snapshot(t, n); acknowledge(t, n) :: else fi\n",
        ),
    ),
    # What was buffered goes on ahead of the barrier.
    "A-04": (
        (
            _ALL_IN,
            """\
				snapshot(t, id);
				complete_part(t);
				resume(t);
				do
				:: SOME(ready[t]) ->
					ready[t]?h;
					buffered[h]?m;
					if :: SOME(buffered[h]) -> ready[t]!h :: else fi;
					cause[t] = inside[h] + 1;
					applied[h]++;
					count[h]++;
					give_all(t, m)
				:: else -> break
				od;
				forward(t, id)
""",
        ),
    ),
    # What comes overtakes what is to be drained.
    "A-07": (
        ("NONE(outbox[t]) && NONE(ready[t]) && len", "NONE(outbox[t]) && len"),
        (":: IS_FREE(c) -> step", ":: IS_FREE(c) || (IS_EVENT(m) && !current[t]) -> step"),
    ),
    # A barrier behind a barrier is not buffered.
    "A-05": ((" && IS_BARRIER(m) && ID(m) <= current[t] ->", " && IS_BARRIER(m) ->"),),
    # An input may hold what the others leave.
    "A-12": (("len(buffered[c]) < MOST_BUFFERED)", "len(buffered[c]) < MOST_BUFFERED * CHANNELS)"),),
    # The command is looked for behind an event.
    "P-09": (
        ("byte position[TASKS];", "byte commanded[TASKS];\nbyte position[TASKS];"),
        ("inline inject(t) {", "inline inject(t) { commanded[t] = n; finish(t) }\ninline take_command(t) {"),
        (
            "	give_all(t, m);\n	finish(t)\n}",
            """\
	give_all(t, m);
	n = commanded[t];
	if :: n -> commanded[t] = 0; take_command(t) :: else -> finish(t) fi
}""",
        ),
    ),
    # The last task's part is enough.
    "P-13": (("if :: y == 0 -> complete(n)", "if :: y == 0 || t == TASKS - 1 -> complete(n)"),),
    # A source's barrier goes ahead of what is in its outbox, and nobody records that.
    "P-14": (
        (
            ":: else -> forward(t, n) fi;",
            """\
:: else ->
			k = len(outbox[t]);
			forward(t, n);
			do :: k > 0 -> outbox[t]?o, x; outbox[t]!o, x; k-- :: else -> break od
		fi;""",
        ),
    ),
    # What a barrier passes is not recorded.
    "P-16": (
        ("if :: IS_EVENT(x) -> record_one(t, c, x) :: else fi;", "skip;"),
        ("if :: j > 0 && IS_EVENT(x) -> record_one(t, c, x) :: else fi;", "skip;"),
    ),
    # What comes behind the snapshot and ahead of its barrier is not recorded.
    "U-04": (("if :: missing[c] -> record_one(t, c, m) :: else fi;", ""),),
    # What comes behind its barrier is recorded, too.
    "U-05": (("if :: missing[c] -> record_one", "if :: recording[t] && !(record[c]??[eval(m)]) -> record_one"),),
    # The part is acknowledged at its snapshot.
    "U-12": (("begin_recording(t);", "begin_recording(t); acknowledge(t, current[t]);"),),
    # The barrier of a newer checkpoint is swallowed while another records.
    "U-08": (("buffer(c, BARRIER + id); waits[c] = 1", "skip"),),
    # What was in flight on the way in is not restored.
    "U-11": (("stored_in[i]!x; wire[i]!x; k--", "stored_in[i]!x; k--"),),
}
"""By entry: what is replaced, and by what."""

FORGETS_WHAT_IT_ABORTED: Edits = (
    (
        "inline abort_here(t, id) { end_here(t, id);",
        "inline abort_here(t, id) { k = last[t]; end_here(t, id); last[t] = k;",
    ),
)
"""A barrier of a checkpoint that was aborted begins it again (A-09), where the coordinator aborts it."""


def planted(model: str, edits: Edits) -> str:
    """Return a model with edits, each of a text that stands in it once."""
    for old, new in edits:
        assert model.count(old) == 1, f"{model.count(old)} times: {old}"
        model = model.replace(old, new)
    return model
