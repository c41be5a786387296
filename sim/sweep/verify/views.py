"""SQL views of stored journals: who sent and took what, what waits, who cut when; a view each, in order.

`model/spec/history.py` and `model/spec/attempts.py` say in words what is asked here; nothing of them is used. Every
view is keyed by the run and the *attempt* of its job, from 1: a ``>restore`` begins a new one.
"""

from __future__ import annotations

from typing import NamedTuple

FIRST, NEVER = -1, 2**63 - 1
"""Before every entry of a journal, and after."""


class View(NamedTuple):
    """A view, and whether so many others look at it that it is kept once it is computed."""

    sql: str
    kept: bool = False


# Every entry, with its attempt. `straight` follows at once upon the taking of a message from the same channel.
_ENTRIES = """
SELECT run_id, number, at_ns, verb, node, channel, message, kind, sequence, size_bytes, timestamp_ms,
    checkpoint_id, epoch, unaligned,
    1 + count_if(verb = '>restore') OVER (PARTITION BY run_id ORDER BY number ROWS UNBOUNDED PRECEDING) AS attempt,
    lag(verb) OVER journal = 'take' AND lag(node) OVER journal = node AND lag(channel) OVER journal = channel
        AS straight
FROM events
WINDOW journal AS (PARTITION BY run_id ORDER BY number)
"""

# What each attempt began from, and the attempt that had triggered that: its parent. What is ended by a crash or a
# restore, or was stopped, owes nothing that only a longer one would show.
_ATTEMPTS = """
WITH spans AS (
    SELECT run_id, attempt, min(at_ns) AS start_ns, max(at_ns) AS end_ns,
        coalesce(max(CASE verb WHEN '>restore' THEN checkpoint_id END), 0) AS restored_id,
        bool_or(verb = '>crash') OR attempt < max(attempt) OVER (PARTITION BY run_id) AS crashed
    FROM entries GROUP BY run_id, attempt
), parents AS (
    SELECT later.run_id, later.attempt, max(earlier.attempt) AS parent
    FROM spans AS later JOIN entries AS earlier
        ON earlier.run_id = later.run_id AND earlier.attempt < later.attempt
        AND earlier.verb = '>trigger' AND earlier.checkpoint_id = later.restored_id
    GROUP BY later.run_id, later.attempt
)
SELECT run_id, attempt, start_ns, end_ns, restored_id, parent, crashed OR coalesce(cut_off, false) AS cut_off
FROM spans JOIN runs USING (run_id) LEFT JOIN parents USING (run_id, attempt)
"""

# Of each attempt the ones that it goes on from, the nearest first, each with the checkpoint that ends it.
_LINE = """
WITH RECURSIVE line AS (
    SELECT run_id, attempt, parent AS ancestor, restored_id AS checkpoint_id, 1 AS depth
    FROM attempts WHERE parent IS NOT NULL
    UNION ALL
    SELECT line.run_id, line.attempt, parent, restored_id, depth + 1
    FROM line JOIN attempts ON attempts.run_id = line.run_id AND attempts.attempt = line.ancestor
    WHERE parent IS NOT NULL
)
SELECT * FROM line
"""

_TASKS = """
SELECT run_id, node, sum(input) AS inputs
FROM (SELECT run_id, receiver AS node, 1 AS input FROM channels UNION ALL SELECT run_id, sender, 0 FROM channels)
GROUP BY run_id, node
"""

# The first snapshot of each task for each checkpoint: its cut.
_CUTS = """
SELECT run_id, attempt, node, checkpoint_id, min(number) AS number
FROM entries WHERE verb = 'snapshot' GROUP BY run_id, attempt, node, checkpoint_id
"""

_COMPLETED = """
SELECT run_id, attempt, checkpoint_id, min(number) AS number, min(at_ns) AS at_ns
FROM entries WHERE verb = 'completed' GROUP BY run_id, attempt, checkpoint_id
"""

# What was declined, or cancelled at the outputs, by task.
_GIVEN_UP = """
SELECT DISTINCT run_id, attempt, node, checkpoint_id FROM entries WHERE verb IN ('decline', 'cancel')
"""

# The checkpoints whose barrier a task forwarded flagged.
_UNALIGNED = """
SELECT DISTINCT run_id, attempt, node, checkpoint_id FROM entries WHERE verb = 'forward' AND unaligned
"""

# Where the end of a channel took effect first in an attempt; `FIRST` if it had done so before the cut it began from.
_ENDED = f"""
WITH ends AS (
    SELECT run_id, attempt, node, channel, min(number) AS number
    FROM entries WHERE verb = 'end' GROUP BY run_id, attempt, node, channel
), before AS (
    SELECT line.run_id, line.attempt, ends.node, ends.channel, {FIRST} AS number
    FROM line
    JOIN ends ON ends.run_id = line.run_id AND ends.attempt = line.ancestor
    LEFT JOIN cuts ON cuts.run_id = line.run_id AND cuts.attempt = line.ancestor
        AND cuts.node = ends.node AND cuts.checkpoint_id = line.checkpoint_id
    WHERE cuts.number IS NULL OR ends.number < cuts.number
)
SELECT run_id, attempt, node, channel, min(number) AS number
FROM (SELECT * FROM ends UNION ALL SELECT * FROM before) GROUP BY run_id, attempt, node, channel
"""

# When a task had nothing more to do: when it said so, or with the end of its last input. `FIRST` if it had finished
# in an attempt that this one goes on from, and has no cut there or nearer by.
_FINISHED = f"""
WITH all_ended AS (
    SELECT run_id, attempt, node, max(number) AS number
    FROM ended JOIN tasks USING (run_id, node)
    GROUP BY run_id, attempt, node, inputs HAVING count(*) = inputs
), own AS (
    SELECT run_id, attempt, node, min(entries.number) AS number
    FROM entries LEFT JOIN all_ended USING (run_id, attempt, node)
    WHERE verb = '>finish' OR verb = 'end' AND entries.number >= all_ended.number
    GROUP BY run_id, attempt, node
), nearest AS (
    SELECT line.run_id, line.attempt, cuts.node, min(depth) AS depth
    FROM line JOIN cuts ON cuts.run_id = line.run_id AND cuts.attempt = line.ancestor
        AND cuts.checkpoint_id = line.checkpoint_id
    GROUP BY line.run_id, line.attempt, cuts.node
), before AS (
    SELECT line.run_id, line.attempt, own.node, {FIRST} AS number
    FROM line
    JOIN own ON own.run_id = line.run_id AND own.attempt = line.ancestor
    LEFT JOIN nearest ON nearest.run_id = line.run_id AND nearest.attempt = line.attempt AND nearest.node = own.node
    WHERE nearest.depth IS NULL OR line.depth < nearest.depth
)
SELECT run_id, attempt, node, min(number) AS number
FROM (SELECT * FROM own UNION ALL SELECT * FROM before) GROUP BY run_id, attempt, node
"""

# What is sent (or restored in its channel), taken, applied or ignored, in this order: `place` is that among all of
# these on the channel, `event_place` that among the events, `turn` that among those that keep their place. A barrier
# does not, in an attempt in which some go ahead, if it is flagged or its checkpoint went unaligned, or was aborted,
# at the receiver: CUT asks what it passed. What a `block` applies is the barrier that was taken, or else sent.
_CARRIED = """
WITH barriers AS (
    SELECT * FROM entries
    WHERE verb = 'block' OR kind = 'CheckpointBarrier' AND verb IN ('send', 'restored_in_flight', 'take')
), applied AS (
    SELECT *, coalesce(
        max(CASE verb WHEN 'take' THEN number END) OVER so_far,
        min(CASE WHEN verb <> 'block' THEN number END) OVER so_far
    ) AS its_number
    FROM barriers
    WINDOW so_far AS (PARTITION BY run_id, attempt, channel, checkpoint_id ORDER BY number ROWS UNBOUNDED PRECEDING)
), blocks AS (
    SELECT applied.run_id, applied.attempt, applied.number, applied.at_ns, applied.verb, applied.node, applied.channel,
        applied.checkpoint_id, applied.straight,
        coalesce(barriers.message, cast(applied.checkpoint_id AS string)) AS message,
        coalesce(barriers.kind, 'id') AS kind, coalesce(barriers.unaligned, false) AS unaligned
    FROM applied
    LEFT JOIN barriers ON barriers.run_id = applied.run_id AND barriers.number = applied.its_number
    WHERE applied.verb = 'block'
), passages AS (
    SELECT run_id, attempt, number, at_ns, verb, node, channel, checkpoint_id, straight, message, kind, unaligned,
        sequence, timestamp_ms,
        CASE verb WHEN 'take' THEN 'taken' WHEN 'ignore' THEN 'ignored'
            WHEN 'deliver' THEN 'applied' WHEN 'end' THEN 'applied' ELSE 'sent' END AS what
    FROM entries WHERE verb IN ('send', 'restored_in_flight', 'take', 'deliver', 'end', 'ignore')
    UNION ALL
    SELECT *, NULL, NULL, 'applied' FROM blocks
), overtaking AS (
    SELECT DISTINCT run_id, attempt FROM entries WHERE verb = '>overtake' OR verb = 'forward' AND unaligned
), passing AS (
    SELECT DISTINCT run_id, attempt, channel, checkpoint_id, 'CheckpointBarrier' AS kind
    FROM (SELECT * FROM unaligned UNION ALL SELECT * FROM aborted)
    JOIN overtaking USING (run_id, attempt)
    JOIN channels USING (run_id) WHERE node = receiver
), placed AS (
    SELECT passages.*,
        kind = 'CheckpointBarrier' AND (passing.channel IS NOT NULL OR unaligned AND overtaking.run_id IS NOT NULL)
            AS is_passing
    FROM passages
    LEFT JOIN passing USING (run_id, attempt, channel, checkpoint_id, kind)
    LEFT JOIN overtaking USING (run_id, attempt)
)
SELECT *, row_number() OVER so_far AS place, count_if(kind = 'Event') OVER so_far AS event_place,
    count_if(NOT is_passing) OVER so_far AS turn
FROM placed
WINDOW so_far AS (PARTITION BY run_id, attempt, channel, what ORDER BY number ROWS UNBOUNDED PRECEDING)
"""

# What was held at a receiver from `number` to `until` (`NEVER`, if it waits when the attempt ends). It goes when it
# is applied or ignored. A barrier or cancel of a checkpoint that was aborted has no effect then, and goes in
# silence: with the first message to leave from behind it, once all that was held ahead of it is gone.
_HELD = f"""
WITH holds AS (
    SELECT run_id, attempt, node, channel, message, kind, size_bytes, number,
        kind IN ('CheckpointBarrier', 'CancelBarrier') AS is_control,
        row_number() OVER (PARTITION BY run_id, attempt, channel, message ORDER BY number) AS time
    FROM entries WHERE verb = 'buffer'
), settled AS (
    SELECT run_id, attempt, channel, carried.message, carried.number, first.number AS held
    FROM carried
    SEMI JOIN holds USING (run_id, attempt, channel)
    LEFT JOIN (SELECT * FROM holds WHERE time = 1) AS first USING (run_id, attempt, channel, message)
    WHERE what = 'applied' OR what = 'ignored' AND NOT coalesce(straight, false)
), ends AS (
    SELECT run_id, attempt, channel, message, number,
        CASE WHEN number > held
            THEN row_number() OVER (PARTITION BY run_id, attempt, channel, message, number > held ORDER BY number)
        END AS time
    FROM settled
), spans AS (
    SELECT holds.*, coalesce(ends.number, {NEVER}) AS own,
        greatest(
            holds.number,
            max(CASE WHEN NOT is_control THEN coalesce(ends.number, {NEVER}) END) OVER (
                PARTITION BY run_id, attempt, channel ORDER BY holds.number
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        ) AS head
    FROM holds LEFT JOIN ends USING (run_id, attempt, channel, message, time)
), silent AS (
    SELECT spans.run_id, spans.attempt, spans.channel, spans.number, min(ends.number) AS until
    FROM spans
    JOIN ends ON ends.run_id = spans.run_id AND ends.attempt = spans.attempt AND ends.channel = spans.channel
        AND ends.number > spans.head AND ends.message <> spans.message
    LEFT JOIN spans AS other ON other.run_id = ends.run_id AND other.attempt = ends.attempt
        AND other.channel = ends.channel AND other.own = ends.number AND other.is_control
        AND other.number < spans.number
    WHERE spans.is_control AND other.number IS NULL
    GROUP BY spans.run_id, spans.attempt, spans.channel, spans.number
)
SELECT run_id, attempt, node, channel, message, kind, size_bytes, number,
    least(own, coalesce(silent.until, {NEVER})) AS until
FROM spans LEFT JOIN silent USING (run_id, attempt, channel, number)
"""

# The events that were sent or applied, each with where it stands to cuts, of a source by its sequence: what is put
# back is before all of them.
_EVENTS_OF = f"""
SELECT carried.run_id, attempt, channel, what AS side, message, event_place,
    CASE WHEN verb = 'restored_in_flight' THEN {FIRST} WHEN what = 'sent' AND sources.node IS NOT NULL THEN sequence
        ELSE number END AS reach
FROM carried
LEFT JOIN (SELECT run_id, node FROM tasks WHERE inputs = 0) AS sources
    ON sources.run_id = carried.run_id AND sources.node = carried.node
WHERE kind = 'Event' AND what IN ('sent', 'applied')
"""

# For each channel and complete checkpoint: how many events were sent before the sender's cut, and applied before the
# receiver's. What a task had given off when it cut may enter the channel until the task takes anything new; of a
# source counts what it had made, whenever it was sent. A task that had finished has no cut: all of it is before.
# Where neither is so, ONCE says that.
_SIDES = f"""
WITH complete AS (
    SELECT run_id, attempt, checkpoint_id, min(at_ns) AS at_ns
    FROM (
        SELECT run_id, attempt, checkpoint_id, at_ns FROM completed
        UNION ALL
        SELECT run_id, parent, restored_id, start_ns FROM attempts WHERE parent IS NOT NULL
    )
    GROUP BY run_id, attempt, checkpoint_id
), sources AS (
    SELECT run_id, node FROM tasks WHERE inputs = 0
), around AS (
    SELECT run_id, attempt, node, number, verb,
        max_by(sequence, CASE verb WHEN '>emit' THEN number END) OVER (
            PARTITION BY run_id, attempt, node ORDER BY number ROWS UNBOUNDED PRECEDING
        ) AS made,
        min(CASE WHEN verb IN ('deliver', 'end') THEN number END) OVER (
            PARTITION BY run_id, attempt, node ORDER BY number DESC ROWS UNBOUNDED PRECEDING
        ) AS goes_on
    FROM entries WHERE verb IN ('snapshot', 'deliver', 'end', '>emit')
), cut_at AS (
    -- How far each cut reaches: at the outputs as a sequence or a number, at the inputs as a number.
    SELECT run_id, attempt, node, checkpoint_id, number AS reach_in,
        CASE WHEN sources.node IS NULL THEN coalesce(goes_on, {NEVER}) ELSE coalesce(made, {FIRST}) END AS reach_out
    FROM cuts
    JOIN around USING (run_id, attempt, node, number)
    LEFT JOIN sources USING (run_id, node)
    WHERE verb = 'snapshot'
), ends AS (
    SELECT complete.run_id, attempt, complete.checkpoint_id, complete.at_ns, channel, side,
        CASE WHEN cut_at.node IS NOT NULL THEN CASE side WHEN 'sent' THEN reach_out ELSE reach_in END
            WHEN finished.node IS NOT NULL THEN {NEVER} END AS reach
    FROM complete
    JOIN (
        SELECT run_id, channel, 'sent' AS side, sender AS node FROM channels
        UNION ALL
        SELECT run_id, channel, 'applied', receiver FROM channels
    ) USING (run_id)
    LEFT JOIN cut_at USING (run_id, attempt, node, checkpoint_id)
    LEFT JOIN finished USING (run_id, attempt, node)
), counted AS (
    SELECT *, count(message) OVER (
        PARTITION BY run_id, attempt, channel, side ORDER BY reach, message IS NULL ROWS UNBOUNDED PRECEDING
    ) AS count
    FROM (
        SELECT run_id, attempt, channel, side, message, reach, NULL AS checkpoint_id, NULL AS at_ns FROM events_of
        UNION ALL
        SELECT run_id, attempt, channel, side, NULL, reach, checkpoint_id, at_ns FROM ends
    )
)
SELECT run_id, attempt, channel, checkpoint_id, min(at_ns) AS at_ns,
    max(CASE side WHEN 'sent' THEN count END) AS sent,
    max(CASE side WHEN 'applied' THEN count END) AS applied
FROM counted WHERE message IS NULL
GROUP BY run_id, attempt, channel, checkpoint_id HAVING count(reach) = 2
"""

# What had its effect or is held still, as far as it had been taken: of events also how often.
_SETTLED = f"""
SELECT run_id, attempt, channel, message, kind, checkpoint_id, number, 0 AS waits
FROM carried WHERE what = 'applied' OR what = 'ignored' AND kind <> 'Event'
UNION ALL
SELECT run_id, attempt, channel, message, kind, NULL, number, 1 FROM held WHERE until = {NEVER}
"""

# The messages of a channel that were taken more often than settled, and the events for which it is the other way
# round.
_UNSETTLED = """
SELECT run_id, attempt, channel, message, kind, sum(step) AS missing, max(checkpoint_id) AS checkpoint_id,
    max(place) AS place, max(at_ns) AS at_ns
FROM (
    SELECT run_id, attempt, channel, message, kind, 1 AS step, checkpoint_id, place, at_ns
    FROM carried WHERE what = 'taken'
    UNION ALL
    SELECT run_id, attempt, channel, message, kind, -1, NULL, NULL, NULL FROM settled
)
GROUP BY run_id, attempt, channel, message, kind
HAVING missing > 0 OR missing < 0 AND kind = 'Event'
"""

VIEWS: dict[str, View] = {
    "entries": View(_ENTRIES, kept=True),
    "attempts": View(_ATTEMPTS, kept=True),
    "line": View(_LINE, kept=True),
    "tasks": View(_TASKS),
    "cuts": View(_CUTS, kept=True),
    "completed": View(_COMPLETED, kept=True),
    "aborted": View(_GIVEN_UP, kept=True),
    "unaligned": View(_UNALIGNED, kept=True),
    "ended": View(_ENDED, kept=True),
    "finished": View(_FINISHED, kept=True),
    "carried": View(_CARRIED, kept=True),
    "held": View(_HELD, kept=True),
    "events_of": View(_EVENTS_OF),
    "sides": View(_SIDES, kept=True),
    "settled": View(_SETTLED),
    "unsettled": View(_UNSETTLED, kept=True),
}
