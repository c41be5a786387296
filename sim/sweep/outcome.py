"""Outcome of a sweep's runs in sum: how many were judged, and how; the line that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from barrierlab.sim.checkpoint.coverage import NO_OUTPUT, NONE_COMPLETED, RESTART_LOOP, STANDS_STILL
from barrierlab.sim.checkpoint.stationarity import LEAST, NOT_STATIONARY, OVERLOADED, TOO_SHORT
from barrierlab.sim.core.status import OF_VERDICT, RAISED

ResultRow = Mapping[str, Any]
COLUMNS = (
    *("status", "verdict", "violations", "falls_short", "faults_without_effect", "vacuous_asked_for", "progress"),
    *("steady_state", "piles_up_share"),
)
"""The columns of the table `runs` that are asked."""
NUMBER = "number_of_runs"
GROUPED = f"""
SELECT status, verdict, vacuous_asked_for, progress, steady_state, falls_short,
    CASE WHEN piles_up_share >= {OVERLOADED}e0 THEN {OVERLOADED}e0 END AS piles_up_share,
    sum(violations) AS violations, sum(faults_without_effect) AS faults_without_effect, count(*) AS {NUMBER}
FROM runs
GROUP BY status, verdict, vacuous_asked_for, progress, steady_state, falls_short, piles_up_share >= {OVERLOADED}e0
ORDER BY min(run_id)
"""
"""The same columns in SQL, with the runs that are alike in one row."""
STATUSES = ("OK", RAISED, "ERROR")
"""Of a run: it came to its end; a machine of the system under test raised; it could not be finished."""

WAYS = {
    NONE_COMPLETED: "no checkpoint completed",
    RESTART_LOOP: "a restart loop",
    STANDS_STILL: "a standstill",
    NO_OUTPUT: NO_OUTPUT,
}
"""The ways in which a job does not get on, as a sum of runs names them."""


def outcome(runs: Iterable[ResultRow], planned: int) -> dict[str, Any]:
    """Return the summary of rows of the table `runs`, or of those of `GROUPED`, of so many that were planned.

    Counted are runs, but for `violations` and `idle_faults`; `vacuous` and `progress` count runs by invariant that was
    asked for, and by way of not getting on.
    """
    rows = [(row, row.get(NUMBER, 1)) for row in runs]
    words = {name: Counter[Any]() for name in ("status", "verdict", "progress", "steady_state")}
    names: Counter[str] = Counter()
    for row, number in rows:
        for name, counter in words.items():
            counter[row.get(name)] += number
        names.update(dict.fromkeys((row.get("vacuous_asked_for") or "").split(), number))
    return {
        "planned": planned,
        "done": sum(number for _, number in rows),
        **{status: words["status"][status] for status in STATUSES},
        **{verdict: words["verdict"][verdict] for verdict in OF_VERDICT},
        "violations": sum(row.get("violations") or 0 for row, _ in rows),
        "short": sum(number for row, number in rows if row.get("falls_short")),
        "idle_faults": sum(row.get("faults_without_effect") or 0 for row, _ in rows),
        "vacuous": dict(sorted(names.items())),
        "progress": {way: count for way, count in words["progress"].items() if way in WAYS},
        "not_stationary": words["steady_state"][NOT_STATIONARY],
        "too_short": words["steady_state"][TOO_SHORT],
        "overloaded": sum(number for row, number in rows if (row.get("piles_up_share") or 0.0) >= OVERLOADED),
    }


def steadiness(runs: ResultRow) -> str:
    """Return a caution about durations: those of a run that is not of a steady state depend on its length, too.

    >>> steadiness(outcome([{"steady_state": "too short to judge", "piles_up_share": 0.1}, {}], 2))
    'Of 2 runs 1 is too short to judge (fewer than 20 checkpoints after the warm-up); 1 is overloaded.'
    >>> steadiness(outcome([{"steady_state": "stationary"}], 1))
    ''
    """
    counted = (
        (
            runs["not_stationary"],
            "not stationary (MSER-5 and drift), so that a longer run would have other durations",
        ),
        (runs["too_short"], f"too short to judge (fewer than {LEAST} checkpoints after the warm-up)"),
        (runs["overloaded"], "overloaded"),
    )
    parts = [f"{count} {'is' if count == 1 else 'are'} {words}" for count, words in counted if count]
    return f"Of {runs['done']} runs {'; '.join(parts)}." if parts else ""


def verdict_line(runs: ResultRow) -> str:
    """Return `0 violations in 308 runs`, and what else a reader must know about them.

    >>> verdict_line(outcome([{"status": "OK", "verdict": "holds", "violations": 0}] * 308, 308))
    '0 violations in 308 runs'
    """
    count, judged = runs["violations"], runs["OK"] + runs[RAISED]
    text = f"{count} violation{'' if count == 1 else 's'} in {judged} run{'' if judged == 1 else 's'}"
    if runs["undecided"]:
        text += f", {runs['undecided']} of them undecided"
    if runs["short"]:
        text += f", {runs['short']} of them short of what was asked for ({_short(runs)})"
    if runs["ERROR"]:
        text += f"; {runs['ERROR']} more stopped with an error"
    if runs["done"] < runs["planned"]:
        text += f"; {runs['planned'] - runs['done']} of {runs['planned']} planned runs are not done yet"
    return text


def _short(runs: ResultRow) -> str:
    parts = [f"{words} in {runs['progress'][way]}" for way, words in WAYS.items() if way in runs["progress"]]
    parts += [f"{name} vacuous in {count}" for name, count in runs["vacuous"].items()]
    if runs["idle_faults"]:
        parts.append(f"{runs['idle_faults']} fault{'' if runs['idle_faults'] == 1 else 's'} without effect")
    return "; ".join(parts) or "nothing is measured"
