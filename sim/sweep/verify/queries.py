"""The invariants in SQL over stored journals: each query gives a row for everything that breaks its invariant.

What they mean is said in `model.spec.invariants`; this is a second judge, which reads the words there in its own way.
Its rows are (run_id, attempt, at_ns, reason). Where one thing that is wrong makes all that follows wrong, only the
first is given.
"""

from __future__ import annotations

from barrierlab.sim.sweep.verify.views import FIRST, NEVER

# For each channel and complete checkpoint: sent before the sender's cut == applied before the receiver's + recorded.
#
# The counts must balance; and so do the lists if as far as the receiver's cut no event was applied in another's
# place, and what is recorded is what was sent there.
CUT = """
WITH out_of_place AS (
    SELECT applied.run_id, applied.attempt, applied.channel, min(applied.event_place) AS event_place
    FROM events_of AS applied
    LEFT JOIN events_of AS sent ON sent.run_id = applied.run_id AND sent.attempt = applied.attempt
        AND sent.channel = applied.channel AND sent.event_place = applied.event_place AND sent.side = 'sent'
    WHERE applied.side = 'applied' AND applied.message IS DISTINCT FROM sent.message
    GROUP BY applied.run_id, applied.attempt, applied.channel
), captures AS (
    SELECT captured.run_id, captured.attempt, captured.channel, captured.checkpoint_id, captured.message,
        captured.number, captured.node = sender AS by_sender
    FROM entries AS captured JOIN channels USING (run_id, channel) WHERE verb = 'capture'
), recorded AS (
    -- By the receiver, as it came; behind that by the sender, as far as it was sent, in that order.
    SELECT run_id, attempt, channel, checkpoint_id, message, row_number() OVER (
        PARTITION BY run_id, attempt, channel, checkpoint_id
        ORDER BY by_sender, CASE WHEN by_sender THEN place END, number
    ) AS place
    FROM captures
    LEFT JOIN (
        SELECT run_id, attempt, channel, message, max(place) AS place
        FROM carried SEMI JOIN captures USING (run_id, attempt, channel, message)
        WHERE what = 'sent' GROUP BY run_id, attempt, channel, message
    ) AS sent USING (run_id, attempt, channel, message)
    WHERE NOT by_sender OR place IS NOT NULL
), in_flight AS (
    SELECT sides.run_id, sides.attempt, sides.channel, sides.checkpoint_id, count(*) AS recorded,
        count_if(recorded.message IS DISTINCT FROM events_of.message) AS wrong
    FROM sides
    JOIN recorded USING (run_id, attempt, channel, checkpoint_id)
    LEFT JOIN events_of ON events_of.run_id = sides.run_id AND events_of.attempt = sides.attempt
        AND events_of.channel = sides.channel AND events_of.side = 'sent'
        AND events_of.event_place = sides.applied + recorded.place
    GROUP BY sides.run_id, sides.attempt, sides.channel, sides.checkpoint_id
)
SELECT run_id, attempt, at_ns, concat(
    'checkpoint ', checkpoint_id, ' on ', channel, ': ', sent, ' events were sent before the cut, ', applied,
    ' applied before the cut and ', coalesce(recorded, 0), ' recorded as in flight',
    CASE WHEN sent = applied + coalesce(recorded, 0) THEN ', but they are not the same' ELSE '' END
) AS reason
FROM sides
LEFT JOIN in_flight USING (run_id, attempt, channel, checkpoint_id)
LEFT JOIN out_of_place USING (run_id, attempt, channel)
JOIN (SELECT run_id, coalesce(consistency, '') = 'at_least_once' AS permits_orphans FROM runs) USING (run_id)
WHERE sent > applied + coalesce(recorded, 0) OR sent < applied + coalesce(recorded, 0) AND NOT permits_orphans
    OR wrong > 0 OR event_place <= applied
"""

# Messages are taken, and take effect, in the order in which they were sent, of which the end is the last; a source
# sends in the order of its sequence. A barrier or cancel that was sent may have no effect: it was ignored, or given
# up.
FIFO = """
WITH sent AS (
    SELECT * FROM carried WHERE what = 'sent' AND NOT is_passing
), taken_wrong AS (
    SELECT taken.run_id, taken.attempt, min_by(taken.at_ns, taken.turn) AS at_ns, min_by(concat(
        taken.message, ' was taken from ', taken.channel, ' where ', coalesce(sent.message, 'nothing'), ' was next'
    ), taken.turn) AS reason
    FROM carried AS taken
    LEFT JOIN sent ON sent.run_id = taken.run_id AND sent.attempt = taken.attempt
        AND sent.channel = taken.channel AND sent.turn = taken.turn
    WHERE taken.what = 'taken' AND NOT taken.is_passing AND taken.message IS DISTINCT FROM sent.message
    GROUP BY taken.run_id, taken.attempt, taken.channel
), behind_the_end AS (
    SELECT run_id, attempt, min(at_ns) AS at_ns,
        concat(min_by(message, place), ' was sent on ', channel, ' after the end') AS reason
    FROM (
        SELECT *, min(CASE kind WHEN 'EndOfInput' THEN place END) OVER (PARTITION BY run_id, attempt, channel) AS ending
        FROM carried WHERE what = 'sent'
    )
    WHERE place > ending GROUP BY run_id, attempt, channel
), fates AS (
    -- What became of each barrier and cancel that was sent, the equal ones in order.
    SELECT run_id, attempt, channel, message, what,
        row_number() OVER (PARTITION BY run_id, attempt, channel, message ORDER BY number) AS time
    FROM carried
    WHERE what IN ('applied', 'ignored') AND kind IN ('CheckpointBarrier', 'CancelBarrier') AND NOT is_passing
), fated AS (
    SELECT sent.*,
        CASE WHEN kind IN ('CheckpointBarrier', 'CancelBarrier') THEN row_number() OVER (
            PARTITION BY run_id, attempt, channel, message ORDER BY number
        ) END AS time
    FROM sent
), due AS (
    SELECT fated.run_id, fated.attempt, fated.channel, message,
        row_number() OVER (PARTITION BY fated.run_id, fated.attempt, fated.channel ORDER BY fated.number) AS turn
    FROM fated
    LEFT JOIN fates USING (run_id, attempt, channel, message, time)
    LEFT JOIN channels ON channels.run_id = fated.run_id AND channels.channel = fated.channel
    LEFT JOIN aborted ON aborted.run_id = fated.run_id AND aborted.attempt = fated.attempt
        AND aborted.node = channels.receiver AND aborted.checkpoint_id = fated.checkpoint_id
    WHERE time IS NULL OR fates.what = 'applied' OR fates.what IS NULL AND aborted.node IS NULL
), applied_wrong AS (
    SELECT applied.run_id, applied.attempt, min_by(applied.at_ns, applied.turn) AS at_ns, min_by(concat(
        applied.message, ' took effect on ', applied.channel, ' where ', coalesce(due.message, 'nothing'), ' was next'
    ), applied.turn) AS reason
    FROM carried AS applied
    LEFT JOIN due ON due.run_id = applied.run_id AND due.attempt = applied.attempt
        AND due.channel = applied.channel AND due.turn = applied.turn
    WHERE applied.what = 'applied' AND NOT applied.is_passing AND applied.message IS DISTINCT FROM due.message
    GROUP BY applied.run_id, applied.attempt, applied.channel
), made AS (
    SELECT run_id, attempt, at_ns, channel, message, sequence, lag(sequence) OVER made AS before
    FROM (
        SELECT carried.*, count_if(verb = 'restored_in_flight') OVER (PARTITION BY run_id, attempt, channel) AS
        restored_in_flight FROM carried SEMI JOIN tasks
            ON tasks.run_id = carried.run_id AND tasks.node = carried.node AND tasks.inputs = 0
        WHERE what = 'sent' AND kind = 'Event'
    )
    WHERE event_place > restored_in_flight
    WINDOW made AS (PARTITION BY run_id, attempt, channel ORDER BY event_place)
)
SELECT * FROM taken_wrong
UNION ALL SELECT * FROM behind_the_end
UNION ALL SELECT * FROM applied_wrong
UNION ALL
SELECT run_id, attempt, at_ns, concat(message, ' was sent on ', channel, ' after number ', before, ' of its source')
FROM made WHERE sequence <= before
"""

# At most one snapshot a task and checkpoint. A complete one has a snapshot and an acknowledgement of every task, but
# for those that had finished; and a snapshot also of one that had, if the checkpoint had begun there.
ONCE = """
WITH twice AS (
    SELECT run_id, attempt, max(at_ns) AS at_ns,
        concat(node, ' took ', count(*), ' snapshots of checkpoint ', checkpoint_id) AS reason
    FROM entries WHERE verb = 'snapshot'
    GROUP BY run_id, attempt, node, checkpoint_id HAVING count(*) > 1
), parts AS (
    SELECT run_id, attempt, node, checkpoint_id,
        min(CASE verb WHEN 'snapshot' THEN number END) AS cut,
        min(CASE verb WHEN '>ack' THEN number END) AS acknowledged,
        min(CASE WHEN verb IN ('block', 'forward') THEN number END) AS begun
    FROM entries WHERE verb IN ('snapshot', '>ack', 'block', 'forward')
    GROUP BY run_id, attempt, node, checkpoint_id
), asked AS (
    SELECT completed.run_id, completed.attempt, completed.at_ns, checkpoint_id, tasks.node,
        coalesce(cut < completed.number, false) AS has_cut,
        coalesce(acknowledged < completed.number, false) AS has_acknowledged,
        coalesce(begun < completed.number, false) AS has_begun,
        coalesce(finished.number < completed.number, false) AS has_finished
    FROM completed
    JOIN tasks USING (run_id)
    LEFT JOIN parts USING (run_id, attempt, node, checkpoint_id)
    LEFT JOIN finished USING (run_id, attempt, node)
)
SELECT * FROM twice
UNION ALL
SELECT run_id, attempt, at_ns, concat('checkpoint ', checkpoint_id, ' was completed without a snapshot of ', node)
FROM asked WHERE NOT has_cut AND (has_begun OR NOT has_finished)
UNION ALL
SELECT run_id, attempt, at_ns,
    concat('checkpoint ', checkpoint_id, ' was completed without the acknowledgement of ', node)
FROM asked WHERE NOT has_acknowledged AND NOT has_finished
"""

# What a task sends is on the same side of every complete barrier as its cause, the message that took effect last. Of
# an unaligned barrier only this is asked: what came behind it causes nothing ahead of it.
FWD = """
WITH sides AS (
    SELECT *,
        coalesce(max(CASE WHEN verb = 'send' AND kind = 'CheckpointBarrier' THEN checkpoint_id END) OVER so_far, 0)
            AS outside,
        coalesce(max_by(checkpoint_id, CASE verb WHEN 'block' THEN number END) OVER so_far, 0) AS inside
    FROM entries WHERE verb IN ('send', 'deliver', 'end', 'block')
    WINDOW so_far AS (PARTITION BY run_id, attempt, node, channel ORDER BY number ROWS UNBOUNDED PRECEDING)
), caused AS (
    SELECT *, max_by(inside, cause) OVER so_far AS side, max(cause) OVER so_far AS caused_by
    FROM (SELECT *, CASE WHEN verb IN ('deliver', 'end') THEN number END AS cause FROM sides)
    WINDOW so_far AS (PARTITION BY run_id, attempt, node ORDER BY number ROWS UNBOUNDED PRECEDING)
), other_side AS (
    SELECT caused.* FROM caused JOIN runs USING (run_id)
    WHERE verb = 'send' AND caused.kind IN ('Event', 'Watermark')
        AND (outside > side OR outside < side AND coalesce(consistency, '') <> 'at_least_once')
), named AS (
    SELECT sent.run_id, sent.attempt, sent.at_ns, sent.number, sent.node, sent.message, sent.channel, outside, side,
        caused_by, min(passed.checkpoint_id) AS checkpoint_id
    FROM other_side AS sent
    JOIN completed AS passed ON passed.run_id = sent.run_id AND passed.attempt = sent.attempt
        AND passed.checkpoint_id > least(outside, side) AND passed.checkpoint_id <= greatest(outside, side)
    LEFT JOIN unaligned ON unaligned.run_id = sent.run_id AND unaligned.attempt = sent.attempt
        AND unaligned.node = sent.node AND unaligned.checkpoint_id = passed.checkpoint_id
    WHERE unaligned.node IS NULL OR side >= outside
    GROUP BY sent.run_id, sent.attempt, sent.at_ns, sent.number, sent.node, sent.message, sent.channel, outside, side,
        caused_by
)
SELECT named.run_id, named.attempt, named.at_ns, concat(
    named.node, ' sent ', named.message, ' on ', named.channel,
    CASE WHEN outside < side THEN ' ahead of' ELSE ' behind' END, ' barrier ', named.checkpoint_id,
    ', but its cause ', cause.message, ' came',
    CASE WHEN outside < side THEN ' behind' ELSE ' ahead of' END, ' that on ', cause.channel
) AS reason
FROM named JOIN entries AS cause ON cause.run_id = named.run_id AND cause.number = named.caused_by
"""

# What is taken has its effect once, or is held still; every event that a source makes is sent, in order, on each
# edge. A barrier or cancel may come to nothing if its checkpoint is aborted; and when an attempt is cut off, the
# last message that was taken may be in hand still.
NOLOSS = """
WITH last_taken AS (
    SELECT run_id, attempt, channel, max(place) AS last_place, max(event_place) AS last_event
    FROM carried SEMI JOIN unsettled USING (run_id, attempt, channel)
    WHERE what = 'taken' GROUP BY run_id, attempt, channel
), in_order AS (
    -- Where what is settled is the first events that were taken: how many.
    SELECT settled.run_id, settled.attempt, settled.channel, count(*) AS settled
    FROM (
        SELECT *, row_number() OVER (PARTITION BY run_id, attempt, channel ORDER BY waits, number) AS event_place
        FROM settled SEMI JOIN unsettled USING (run_id, attempt, channel) WHERE kind = 'Event'
    ) AS settled
    LEFT JOIN (SELECT * FROM carried WHERE what = 'taken' AND kind = 'Event') AS taken
        USING (run_id, attempt, channel, event_place)
    GROUP BY settled.run_id, settled.attempt, settled.channel
    HAVING count_if(settled.message IS DISTINCT FROM taken.message) = 0
), lost AS (
    SELECT unsettled.run_id, unsettled.attempt, coalesce(unsettled.at_ns, end_ns) AS at_ns, concat(
        unsettled.message, CASE WHEN missing > 0 THEN ' was taken from ' ELSE ' took effect on ' END, unsettled.channel,
        CASE WHEN missing > 0 THEN ' and had no effect' ELSE ' more often than it was taken' END
    ) AS reason
    FROM unsettled
    JOIN attempts ON attempts.run_id = unsettled.run_id AND attempts.attempt = unsettled.attempt
    JOIN channels ON channels.run_id = unsettled.run_id AND channels.channel = unsettled.channel
    LEFT JOIN last_taken ON last_taken.run_id = unsettled.run_id AND last_taken.attempt = unsettled.attempt
        AND last_taken.channel = unsettled.channel
    LEFT JOIN in_order ON in_order.run_id = unsettled.run_id AND in_order.attempt = unsettled.attempt
        AND in_order.channel = unsettled.channel
    LEFT JOIN aborted ON aborted.run_id = unsettled.run_id AND aborted.attempt = unsettled.attempt
        AND aborted.node = receiver AND aborted.checkpoint_id = unsettled.checkpoint_id
    WHERE CASE kind
        WHEN 'Event' THEN NOT (cut_off AND missing = 1 AND last_event = coalesce(settled, 0) + 1
            AND (settled IS NOT NULL OR last_event = 1))
        ELSE aborted.node IS NULL AND NOT (cut_off AND missing = 1 AND place = last_place)
    END
), flows AS (
    -- What is broadcast is on each channel of its edge, and else on one of them.
    SELECT run_id, number, channel, sender, edge, CASE exchange WHEN 'broadcast' THEN channel ELSE edge END AS flow
    FROM channels SEMI JOIN tasks
        ON tasks.run_id = channels.run_id AND tasks.node = channels.sender AND tasks.inputs = 0
), wide AS (
    SELECT *, count(*) OVER (PARTITION BY run_id, sender, flow) > 1 AS is_merged FROM flows
), made AS (
    SELECT run_id, attempt, node AS sender, message, at_ns,
        row_number() OVER (PARTITION BY run_id, attempt, node ORDER BY number) AS place
    FROM entries WHERE verb = '>emit'
), sent AS (
    SELECT run_id, attempt, sender, flow, message, at_ns, row_number() OVER (
        PARTITION BY run_id, attempt, sender, flow
        ORDER BY CASE WHEN is_merged THEN sequence END, position, event_place
    ) AS place
    FROM (
        SELECT carried.*, sender, flow, is_merged, wide.number AS position, count_if(verb = 'restored_in_flight') OVER (
            PARTITION BY carried.run_id, attempt, carried.channel
        ) AS restored_in_flight
        FROM carried JOIN wide ON wide.run_id = carried.run_id AND wide.channel = carried.channel
        WHERE what = 'sent' AND kind = 'Event'
    )
    WHERE event_place > restored_in_flight
), closed AS (
    -- The edges of which every channel has had its end: nothing waits in an outbox.
    SELECT run_id, attempt, sender, edge
    FROM flows
    JOIN (SELECT run_id, sender, edge, count(*) AS width FROM flows GROUP BY run_id, sender, edge) AS edges
        USING (run_id, sender, edge)
    JOIN (
        SELECT run_id, attempt, channel FROM carried WHERE what = 'sent' AND kind = 'EndOfInput'
        GROUP BY run_id, attempt, channel
    ) AS ends USING (run_id, channel)
    GROUP BY run_id, attempt, sender, edge, width HAVING count(*) = width
), not_sent AS (
    SELECT made.run_id, made.attempt, max(made.at_ns) AS at_ns, concat(
        min_by(made.message, made.place), ' was made by ', made.sender, ' and never sent on ', made.flow
    ) AS reason
    FROM (
        SELECT made.*, flow FROM made
        JOIN closed USING (run_id, attempt, sender) JOIN flows USING (run_id, sender, edge)
    ) AS made
    ANTI JOIN sent USING (run_id, attempt, sender, flow, place)
    GROUP BY made.run_id, made.attempt, made.sender, made.flow
), sent_otherwise AS (
    SELECT sent.run_id, sent.attempt, min_by(sent.at_ns, sent.place) AS at_ns, min_by(concat(
        sent.message, ' was sent on ', sent.flow, ' where ', coalesce(made.message, 'nothing'), ' had been made'
    ), sent.place) AS reason
    FROM sent LEFT JOIN made USING (run_id, attempt, sender, place)
    WHERE sent.message IS DISTINCT FROM made.message
    GROUP BY sent.run_id, sent.attempt, sent.sender, sent.flow
)
SELECT * FROM lost UNION ALL SELECT * FROM not_sent UNION ALL SELECT * FROM sent_otherwise
"""

# On a channel a watermark never goes back; none takes effect before an event that was sent ahead of it; and a task
# sends none that promises more than each input does that has not ended.
WM = f"""
WITH goes_back AS (
    SELECT run_id, attempt, at_ns, concat(message, ' was sent on ', channel, ' after watermark ', before) AS reason
    FROM (
        SELECT *, lag(timestamp_ms) OVER (PARTITION BY run_id, attempt, channel ORDER BY place) AS before
        FROM carried WHERE what = 'sent' AND kind = 'Watermark'
    )
    WHERE timestamp_ms < before
), times AS (
    SELECT run_id, attempt, channel, what, message, kind, place, number, at_ns,
        row_number() OVER (PARTITION BY run_id, attempt, channel, what, message ORDER BY number) AS time
    FROM carried SEMI JOIN (
        SELECT run_id, attempt, channel FROM carried WHERE what = 'applied' AND kind = 'Watermark'
    ) USING (run_id, attempt, channel)
    WHERE what IN ('sent', 'applied') AND kind IN ('Event', 'Watermark')
), matched AS (
    SELECT run_id, attempt, channel, message, kind, sent.place, applied.number, applied.at_ns,
        max(CASE WHEN kind = 'Event' AND sent.place IS NOT NULL THEN coalesce(applied.number, {NEVER}) END) OVER (
            PARTITION BY run_id, attempt, channel ORDER BY sent.place NULLS LAST, applied.number
            ROWS UNBOUNDED PRECEDING
        ) AS all_ahead
    FROM (SELECT * FROM times WHERE what = 'sent') AS sent
    FULL JOIN (SELECT * FROM times WHERE what = 'applied') AS applied
        USING (run_id, attempt, channel, message, kind, time)
), overtakes AS (
    SELECT run_id, attempt, at_ns, concat(
        message, ' took effect on ', channel, ' before an event that was sent ahead of it'
    ) AS reason
    FROM matched WHERE kind = 'Watermark' AND all_ahead > number
), promises AS (
    -- For each input of a task: what it promised and whether it had ended, whenever the task sent a watermark.
    SELECT *, max(promise) OVER so_far AS promised, max(has_ended) OVER so_far AS is_over
    FROM (
        SELECT run_id, attempt, channel AS input, number, at_ns, timestamp_ms AS promise, 0 AS has_ended,
            NULL AS message, NULL AS output, NULL AS mark
        FROM entries WHERE verb = 'deliver' AND kind = 'Watermark'
        UNION ALL
        SELECT run_id, attempt, channel, number, NULL, NULL, 1, NULL, NULL, NULL FROM ended
        UNION ALL
        SELECT sent.run_id, attempt, channels.channel, sent.number, at_ns, NULL, 0, message, sent.channel, timestamp_ms
        FROM entries AS sent JOIN channels ON channels.run_id = sent.run_id AND channels.receiver = sent.node
        WHERE verb = 'send' AND kind = 'Watermark'
    )
    WINDOW so_far AS (PARTITION BY run_id, attempt, input ORDER BY number ROWS UNBOUNDED PRECEDING)
)
SELECT * FROM goes_back
UNION ALL SELECT * FROM overtakes
UNION ALL
SELECT run_id, attempt, at_ns, concat(
    message, ' was sent on ', output, ', but ', input, ' has promised ', coalesce(cast(promised AS string), 'nothing')
) FROM promises WHERE mark IS NOT NULL AND is_over = 0 AND (promised IS NULL OR promised < mark)
"""

# Ids strictly increase: those triggered, over all attempts; those completed, which have been triggered; the snapshots
# of a task. So do ids and epochs of the barriers that take effect at a task, where all inputs have each of them once.
ID = f"""
WITH triggered AS (
    SELECT run_id, attempt, checkpoint_id, at_ns, coalesce(max(checkpoint_id) OVER (
        PARTITION BY run_id ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS newest
    FROM entries WHERE verb = '>trigger'
), done AS (
    SELECT *, max(checkpoint_id) OVER (PARTITION BY run_id, attempt ORDER BY number ROWS UNBOUNDED PRECEDING) AS newest
    FROM completed
), snapshots AS (
    SELECT *, lag(checkpoint_id) OVER (PARTITION BY run_id, attempt, node ORDER BY number) AS before
    FROM entries WHERE verb = 'snapshot'
), epochs AS (
    -- Of the barrier that was taken, or else sent; one that nobody sent breaks FIFO.
    SELECT run_id, attempt, channel, checkpoint_id, coalesce(
        max_by(epoch, CASE WHEN verb = 'take' THEN number END), min_by(epoch, CASE WHEN verb <> 'take' THEN number END)
    ) AS its_epoch
    FROM entries WHERE verb IN ('send', 'restored_in_flight', 'take') AND kind = 'CheckpointBarrier'
    GROUP BY run_id, attempt, channel, checkpoint_id
), barriers AS (
    SELECT run_id, attempt, node, channel, checkpoint_id, at_ns, its_epoch,
        greatest(restored_id, max(checkpoint_id) OVER (
            PARTITION BY run_id, attempt, node ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )) AS newest,
        greatest(restored_id, max(checkpoint_id) OVER (
            PARTITION BY run_id, attempt, node, channel ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )) AS newest_here,
        greatest({FIRST}, max(its_epoch) OVER (
            PARTITION BY run_id, attempt, node ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )) AS epoch
    FROM (SELECT run_id, attempt, node, channel, checkpoint_id, number, at_ns FROM entries WHERE verb = 'block')
    JOIN attempts USING (run_id, attempt)
    LEFT JOIN epochs USING (run_id, attempt, channel, checkpoint_id)
)
SELECT run_id, attempt, at_ns, concat('checkpoint ', checkpoint_id, ' was triggered after ', newest) AS reason
FROM triggered WHERE checkpoint_id <= newest
UNION ALL
SELECT run_id, attempt, at_ns, concat('checkpoint ', checkpoint_id, ' was completed after ', newest)
FROM done WHERE checkpoint_id < newest
UNION ALL
SELECT run_id, attempt, at_ns, concat('checkpoint ', checkpoint_id, ' was completed and never triggered')
FROM completed ANTI JOIN triggered USING (run_id, attempt, checkpoint_id)
UNION ALL
SELECT run_id, attempt, at_ns, concat(node, ' took its snapshot of checkpoint ', checkpoint_id, ' after ', before)
FROM snapshots WHERE checkpoint_id < before
UNION ALL
SELECT run_id, attempt, at_ns, concat(
    'barrier ', checkpoint_id, ' took effect at ', node, ' on ', channel,
    CASE WHEN checkpoint_id < newest OR checkpoint_id <= newest_here THEN concat(' after barrier ', newest)
        ELSE concat(' with epoch ', its_epoch, ', after epoch ', epoch) END
)
FROM barriers
WHERE checkpoint_id < newest OR checkpoint_id <= newest_here
    OR CASE WHEN checkpoint_id > newest THEN coalesce(its_epoch <= epoch, false) ELSE its_epoch <> epoch END
"""

# Every checkpoint that is triggered ends, once; no input waits for one that has ended; and when every source has
# finished, nothing is left in a channel or held, and every task ends. Of what was cut off only what can no longer end
# is asked: what is pending there is undecided, not wrong.
LIVE = f"""
WITH ends AS (
    SELECT *, row_number() OVER (PARTITION BY run_id, attempt, checkpoint_id ORDER BY number) AS time
    FROM entries WHERE verb IN ('completed', 'aborted')
), ended_once AS (
    SELECT run_id, attempt, checkpoint_id, bool_or(verb = 'completed') AS is_complete, bool_or(verb = 'aborted')
        AS is_aborted
    FROM ends GROUP BY run_id, attempt, checkpoint_id
), blocks AS (
    SELECT run_id, attempt, node, channel, max(number) AS number, max_by(checkpoint_id, number) AS checkpoint_id
    FROM entries WHERE verb = 'block' GROUP BY run_id, attempt, node, channel
), resumed AS (
    SELECT run_id, attempt, node, checkpoint_id, max(number) AS number
    FROM entries WHERE verb = 'resume' GROUP BY run_id, attempt, node, checkpoint_id
), waiting AS (
    SELECT run_id, attempt, node, channel, checkpoint_id
    FROM blocks LEFT JOIN resumed USING (run_id, attempt, node, checkpoint_id)
    WHERE resumed.number IS NULL OR resumed.number < blocks.number
), quiescent AS (
    -- The attempts that ended by themselves, with every source at its end.
    SELECT attempts.run_id, attempts.attempt, end_ns
    FROM attempts
    JOIN (SELECT run_id, node FROM tasks WHERE inputs = 0) AS sources USING (run_id)
    LEFT JOIN finished USING (run_id, attempt, node)
    WHERE NOT cut_off
    GROUP BY attempts.run_id, attempts.attempt, end_ns HAVING count(finished.number) = count(*)
), left_behind AS (
    SELECT run_id, attempt, channel, count_if(what = 'sent') - count_if(what = 'taken') AS number
    FROM carried WHERE what IN ('sent', 'taken')
    GROUP BY run_id, attempt, channel HAVING number > 0
)
SELECT run_id, attempt, at_ns, concat('checkpoint ', checkpoint_id, ' was ', verb, ' after it had ended') AS reason
FROM ends WHERE time > 1
UNION ALL
SELECT run_id, attempt, at_ns, concat('nothing can move any more, though ', node, ' has events to give off')
FROM entries WHERE verb = '>stuck'
UNION ALL
SELECT run_id, attempt, end_ns, concat(
    node, ' still waits on ', channel, ' for checkpoint ', checkpoint_id, ', which was ',
    CASE WHEN is_complete THEN 'completed' ELSE 'aborted' END
)
FROM waiting JOIN ended_once USING (run_id, attempt, checkpoint_id) JOIN attempts USING (run_id, attempt)
WHERE is_complete OR NOT cut_off
UNION ALL
SELECT run_id, attempt, end_ns, concat('checkpoint ', checkpoint_id, ' was triggered and never ends')
FROM (SELECT DISTINCT run_id, attempt, checkpoint_id FROM entries WHERE verb = '>trigger')
JOIN attempts USING (run_id, attempt)
ANTI JOIN ends USING (run_id, attempt, checkpoint_id)
WHERE NOT cut_off
UNION ALL
SELECT run_id, attempt, end_ns, concat(number, ' messages are left behind in ', channel)
FROM left_behind JOIN quiescent USING (run_id, attempt)
UNION ALL
SELECT run_id, attempt, end_ns, concat(count(*), ' messages of ', channel, ' are buffered for ever')
FROM held JOIN quiescent USING (run_id, attempt) WHERE until = {NEVER} GROUP BY run_id, attempt, end_ns, channel
UNION ALL
SELECT quiescent.run_id, attempt, end_ns, concat(node, ' never ends, though every source has')
FROM quiescent JOIN tasks USING (run_id) ANTI JOIN finished USING (run_id, attempt, node)
"""

# No channel holds more messages than its capacity when one is sent, but for those that were restored and barriers
# that go ahead of all, which need no room; no input and no task holds back more than it may.
BOUND = f"""
WITH ahead AS (
    -- 1 where such a barrier enters its channel, -1 where it leaves.
    SELECT run_id, attempt, channel, number, is_in - lag(is_in, 1, 0) OVER (
        PARTITION BY run_id, attempt, channel, checkpoint_id ORDER BY number
    ) AS step
    FROM (SELECT *, cast(verb = 'send' AS int) AS is_in FROM entries)
    WHERE kind = 'CheckpointBarrier' AND (verb = 'take' OR verb = 'send' AND unaligned)
), steps AS (
    SELECT run_id, attempt, channel, number, 1 AS turn, at_ns, verb,
        CASE verb WHEN 'take' THEN -1 ELSE 1 END AS step,
        CASE verb WHEN 'take' THEN -1 WHEN 'restored_in_flight' THEN 1 ELSE 0 END AS restored_in_flight
    FROM entries WHERE verb IN ('send', 'restored_in_flight', 'take')
    UNION ALL
    SELECT run_id, attempt, channel, number, 0, NULL, NULL, -step, 0 FROM ahead WHERE step <> 0
), depths AS (
    SELECT *, sum(step) OVER so_far - greatest(0, sum(restored_in_flight) OVER so_far) AS depth
    FROM steps
    WINDOW so_far AS (PARTITION BY run_id, attempt, channel ORDER BY number, turn ROWS UNBOUNDED PRECEDING)
), too_deep AS (
    SELECT run_id, attempt, channel, at_ns, depth, capacity,
        max(depth) OVER (PARTITION BY run_id, attempt, channel) AS deepest
    FROM depths JOIN channels USING (run_id, channel) WHERE verb = 'send' AND depth > capacity
), moves AS (
    SELECT run_id, attempt, node, channel, number, 1 AS step, size_bytes FROM held
    UNION ALL
    SELECT run_id, attempt, node, channel, until, -1, -size_bytes FROM held WHERE until < {NEVER}
), backlogs AS (
    SELECT *, sum(step) OVER (
            PARTITION BY run_id, attempt, channel ORDER BY number ROWS UNBOUNDED PRECEDING
        ) AS count,
        sum(size_bytes) OVER (PARTITION BY run_id, attempt, node ORDER BY number ROWS UNBOUNDED PRECEDING) AS bytes
    FROM moves
)
SELECT run_id, attempt, min(at_ns) AS at_ns, concat(
    depth, ' messages were in ', channel, ' at a time; its capacity is ', capacity
) AS reason
FROM too_deep WHERE depth = deepest GROUP BY run_id, attempt, channel, depth, capacity
UNION ALL
SELECT run_id, attempt, min(end_ns), concat(
    max(count), ' messages of ', channel, ' were buffered at a time; at most ', receiver_most_buffered, ' may be'
)
FROM backlogs JOIN channels USING (run_id, channel) JOIN attempts USING (run_id, attempt)
WHERE count > receiver_most_buffered GROUP BY run_id, attempt, channel, receiver_most_buffered
UNION ALL
SELECT run_id, attempt, min(end_ns), concat(
    max(bytes), ' bytes were buffered at ', node, ' at a time; at most ', receiver_most_buffered_bytes, ' may be'
)
FROM backlogs JOIN channels USING (run_id, channel) JOIN attempts USING (run_id, attempt)
WHERE bytes > receiver_most_buffered_bytes GROUP BY run_id, attempt, node, receiver_most_buffered_bytes
UNION ALL
SELECT run_id, attempt, at_ns, concat(
    bytes, ' bytes were recorded at ', node, ' for checkpoint ', checkpoint_id, '; at most ', most, ' may be'
)
FROM (
    SELECT run_id, attempt, node, checkpoint_id, sum(size_bytes) AS bytes, max(at_ns) AS at_ns
    FROM entries WHERE verb = 'capture' GROUP BY run_id, attempt, node, checkpoint_id
)
JOIN (SELECT run_id, max(part_most_recorded_bytes) AS most FROM channels GROUP BY run_id) USING (run_id)
SEMI JOIN cuts USING (run_id, attempt, node, checkpoint_id)
ANTI JOIN aborted USING (run_id, attempt, node, checkpoint_id)
WHERE bytes > most
"""

QUERIES = {
    "CUT": CUT,
    "FIFO": FIFO,
    "ONCE": ONCE,
    "FWD": FWD,
    "NOLOSS": NOLOSS,
    "WM": WM,
    "ID": ID,
    "LIVE": LIVE,
    "BOUND": BOUND,
}
