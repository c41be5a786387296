"""A sweep's answer in a few sentences, with numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from barrierlab.sim.core.amounts import percent
from barrierlab.sim.sweep.analyse import LEAST_RUNS, PIECES
from barrierlab.sim.sweep.measured import WITHIN
from barrierlab.sim.sweep.outcome import ResultRow, steadiness


def answer(analysis: ResultRow) -> list[str]:
    """Return sentences on what failures cost, where the time goes, what changes it most, how far to trust it."""
    parts = [part["name"] for part in analysis["sweep"]["parts"]]
    sentences = [text for part in parts if (text := _share(part, [r for r in analysis["pieces"] if r["part"] == part]))]
    if text := steadiness(analysis["runs"]):
        sentences.append(text)
    if text := survived(analysis["runs"]):
        sentences.insert(0, text)
    if text := completed(analysis["completion"]):
        sentences.insert(0, text)
    if text := _strongest(analysis["effects"]):
        sentences.append(text)
    sentences += not_compared(analysis["effects"])
    if text := _trust(analysis["measured"]):
        sentences.append(text)
    return sentences or ["No checkpoint was completed after the warm-up, so there is nothing to say about its time."]


def completed(cells: Sequence[ResultRow]) -> str:
    """Say how many checkpoints completed, and under which setting the fewest; nothing if all did.

    >>> few = {"triggered": 8, "completed": 2, "share": 0.25, "scenario": "loop", "parameters": {"tolerable": 0}}
    >>> completed([few, few | {"completed": 8, "share": 1.0}])
    '10 of 16 checkpoints completed, 2 of 8 with loop tolerable=0; durations are of those, and compare settings badly.'
    """
    triggered, done = (sum(cell[name] for cell in cells) for name in ("triggered", "completed"))
    if done == triggered:
        return ""
    worst = min((cell for cell in cells if cell["triggered"]), key=lambda cell: cell["share"])
    words = " ".join([worst["scenario"], *(f"{name}={value}" for name, value in worst["parameters"].items())])
    fewest = f", {worst['completed']} of {worst['triggered']} with {words}" if len(cells) > 1 else ""
    return f"{done} of {triggered} checkpoints completed{fewest}; durations are of those, and compare settings badly."


def survived(runs: ResultRow) -> str:
    """Return a sentence on the failures, or nothing if there were none.

    >>> survived({"OK": 9, "failures": 1, "events_replayed": 30, "duplicates": 0, "violations": 0})
    'Jobs failed once in 9 runs and went on from a checkpoint: 30 events were replayed, none was written twice.'
    """
    failures, duplicates = runs["failures"], runs["duplicates"]
    if not failures:
        return ""
    times = "once" if failures == 1 else f"{failures} times"
    again = (
        f"{duplicates} written again by sinks that promise at least once" if duplicates else "none was written twice"
    )
    return (
        f"Jobs failed {times} in {runs['OK']} runs and went on from a checkpoint: "
        f"{runs['events_replayed']} events were replayed, {again}."
    )


def mean_pieces(rows: Iterable[ResultRow]) -> dict[str, float]:
    """Mean pieces over some cells; `n` is the number of their checkpoints.

    Each run counts alike, however many checkpoints it has: so the effects of axes are weighted, too.
    """
    rows = list(rows)
    runs = sum(row["runs"] for row in rows)
    names = ("end_to_end_ms", *PIECES)
    means = {name: sum(row[name] * row["runs"] for row in rows) / runs for name in names}
    return {"n": sum(row["n"] for row in rows), **means}


def _share(part: str, rows: Sequence[ResultRow]) -> str:
    if not rows:
        return ""
    mean = mean_pieces(rows)
    total = mean["end_to_end_ms"]
    if not total:
        return f"In part “{part}” checkpoints take no time."
    start, alignment = mean["start_delay_ms"] / total, mean["alignment_ms"] / total
    return (
        f"In part “{part}” a checkpoint takes {_ms(total)} on average ({mean['n']} checkpoints). On the critical "
        f"path of its barrier {percent(start)} of that is start delay (of tasks until their first barrier comes), "
        f"{percent(alignment)} alignment (until their last is in) "
        f"and {percent(max(0.0, 1.0 - start - alignment))} snapshots, their storage and acknowledgements."
    )


def not_compared(effects: Sequence[ResultRow]) -> list[str]:
    """Return a sentence for each reason why no difference is there of an axis, or of some of its values.

    >>> axis = {"part": "a", "axis": "load", "drawn": False, "without_checkpoints": [], "differences": []}
    >>> first, second, third = ({"value": value, "from": "2"} for value in "123")
    >>> not_compared([axis | {"values": [second, third], "without_checkpoints": ["1"], "differences": [third]}])
    ['No steady checkpoint completed with load 1; its differences are from 2.']
    >>> not_compared([axis | {"values": [first, second, third]}])
    ['Not compared: load; no two runs with checkpoints differ in that alone, as those of a grid do.']
    """
    sentences: list[str] = []
    unpaired: list[tuple[str, str, str]] = []
    drawn: list[tuple[str, str, str]] = []
    for effect in effects:
        axis, part, differences = effect["axis"], effect["part"], effect["differences"]
        values = [row["value"] for row in effect["values"]]
        if effect["drawn"]:
            drawn += [(axis, part, "")] if values else []
            continue
        if effect["without_checkpoints"] and values:
            but = f"; its differences are from {differences[0]['from']}" if differences else ""
            missing = _named([(axis, part, f" {', '.join(effect['without_checkpoints'])}")], effects)
            sentences.append(f"No steady checkpoint completed with {missing}{but}.")
        compared = {row[key] for row in differences for key in ("value", "from")}
        left = [value for value in values if value not in compared]
        if len(values) > 1 and left:
            unpaired.append((axis, part, f" {', '.join(left)}" if differences else ""))
    if unpaired:
        alone = "no two runs with checkpoints differ in that alone, as those of a grid do"
        sentences.append(f"Not compared: {_named(unpaired, effects)}; {alone}.")
    if drawn:
        sentences.append(f"Not compared are axes whose values are drawn: {_named(drawn, effects)}.")
    return sentences


def _named(left: Iterable[tuple[str, str, str]], effects: Iterable[ResultRow]) -> str:
    """Name axes, or values of them; and their parts, where others that have such an axis are not meant."""
    parts: dict[tuple[str, str], list[str]] = {}
    for axis, part, values in left:
        parts.setdefault((axis, values), []).append(part)
    all_parts = {axis: [e["part"] for e in effects if e["axis"] == axis] for axis, _ in parts}
    return ", ".join(
        f"{axis}{values}" + ("" if its == all_parts[axis] else f" of part “{'”, “'.join(its)}”")
        for (axis, values), its in parts.items()
    )


def _strongest(effects: Iterable[ResultRow]) -> str:
    """Return a sentence on what changes the duration most."""
    found = [(effect, row) for effect in effects for row in effect["differences"]]
    if not found:
        return ""
    # A difference that may be chance hides no smaller one that is not.
    effect, row = max(found, key=lambda pair: (_is_sure(pair[1]), abs(pair[1]["end_to_end_ms"]["at"])))
    change = row["adjusted_ms"]
    among = "only difference" if len(found) == 1 else f"largest of {len(found)} differences"
    step = f"{effect['axis']} from {row['from']} to {row['value']}"
    if all(row["adjusted_ms"]["low"] == 0.0 == row["adjusted_ms"]["high"] for _, row in found):
        axes = dict.fromkeys(effect["axis"] for effect, _ in found)
        return f"Of what is compared nothing changes the duration: {', '.join(axes)}."
    if change["low"] is None:
        few = "1 seed is" if change["n"] == 1 else f"{change['n']} seeds are"
        return (
            f"The {among} is that of {step}: {change['at']:+.1f} ms; {few} too few for an interval "
            f"({LEAST_RUNS} are needed), so it may be chance."
        )
    if not _is_sure(row):
        return (
            f"Nothing changes the duration more than chance does: the {among}, {step}, is "
            f"{change['at']:+.1f} ms{_interval(change, len(found))}."
        )
    pieces = {"start delay": row["start_delay_ms"]["at"], "alignment": row["alignment_ms"]["at"]}
    most = max(pieces, key=lambda piece: abs(pieces[piece]))
    verb = "lengthens" if change["at"] > 0 else "shortens"
    low, high = sorted(abs(change[end]) for end in ("low", "high"))
    size = {"low": low, "high": high}
    return (
        f"What changes the duration most is {effect['axis']}: from {row['from']} to {row['value']} {verb} it by "
        f"{_ms(abs(change['at']))}{_interval(size, len(found))}, {_ms(abs(pieces[most]))} of it {most}, other things "
        f"equal.{_larger(found, row)}"
    )


def _larger(found: Sequence[tuple[ResultRow, ResultRow]], strongest: ResultRow) -> str:
    """Return a sentence on a difference that is larger than the strongest one, but may be chance."""
    effect, row = max(found, key=lambda pair: abs(pair[1]["end_to_end_ms"]["at"]))
    if row is strongest:
        return ""
    step = f"{effect['axis']} from {row['from']} to {row['value']}"
    return f" A larger one, {step}, is {row['end_to_end_ms']['at']:+.1f} ms, which may be chance."


def _is_sure(row: ResultRow) -> bool:
    """Return whether the interval of a difference leaves out 0."""
    change = row["adjusted_ms"]
    return change["low"] is not None and not change["low"] <= 0.0 <= change["high"]


def _trust(cells: Sequence[ResultRow]) -> str:
    judged = [cell for cell in cells if cell["good"] is not None]
    if not judged:
        return ""
    off = [abs(c["ratio"] - 1.0) for c in judged if c["saturated"] and c["target"] == WITHIN and c["ratio"] is not None]
    jobs = len({cell["job"] for cell in judged})
    typical = f"; under saturation the typical deviation is {percent(median(off), 1)}" if off else ""
    return (
        f"Of {len(judged)} statistics of {jobs} runs measured on a real Flink cluster, "
        f"{sum(cell['good'] for cell in judged)} are predicted within their target{typical}."
    )


def _interval(change: ResultRow, count: int) -> str:
    of_all = f", adjusted for {count} differences" if count > 1 else ""
    return f" (95 % interval {change['low']:.0f} to {change['high']:.0f} ms{of_all})"


def _ms(value: float) -> str:
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"
