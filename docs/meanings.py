"""The meaning of each key of a scenario, for the page of reference that is printed from the readers.

By section and key. The sections are those of `sim.scenario.readers`, and those that joins and control signals add.
"""

from __future__ import annotations

from collections.abc import Mapping

_SERVICE = "time that one event takes here"
_SPREAD = "subtasks are unequal: coefficient of variation of a factor on all services of one, drawn once a run"
_NOISE = "coefficient of variation of a factor on each service, of mean 1, besides what `service_s` has"
_KIND = "what it computes"
_PARALLELISM = "subtasks"
_SEED = "the seed that is taken when `--seed` gives none"
_TITLE = "what the scenario is about, for its readers"
_SYNC = "time that a task stands still for its snapshot; the checkpoint's, if not given"
_LATENCY = "one way of anything on the channel"
_CAPACITY = "messages that a channel of the form `spsc` holds"
_UNTIL = "how long the run lasts"
_WARMUP = "what is triggered before that is not steady, and left out of statistics"
_WINDOW = "length of a window of events' times"

MEANINGS: Mapping[str, Mapping[str, str]] = {
    "top": {
        "title": _TITLE,
        "topology": "the edges, such as `a->join b->join join->sink`",
        "protocol": "how barriers are treated at a gate",
        "until_s": f"{_UNTIL}; it goes on, and its sources send, while a checkpoint is pending or a restart under way",
        "warmup_s": _WARMUP,
        "seed": _SEED,
        "fill_in": "keys of an imported job that nobody knows yet: without them it does not load",
    },
    "source": {
        "parallelism": _PARALLELISM,
        "rate_per_s": "events of each subtask",
        "arrivals": "how they come; bursty ones pause",
        "on_s": "of bursty arrivals, mean length of a burst",
        "off_s": "of bursty arrivals, mean length of a pause",
        "events": "a subtask ends after so many",
        "catch_up_s": "so much of what backpressure held up comes in a burst, the rest is put off; all, if not given",
        "service_s": _SERVICE,
        "subtask_spread": _SPREAD,
        "service_noise": _NOISE,
        "sync_s": _SYNC,
        "record_bytes": "size of an event on the wire",
        "keys": "how many keys there are",
        "key_skew": "exponent of Zipf: 0 is even",
        "watermark_interval_s": "how often a watermark is sent; never, if not given",
        "out_of_order_s": "how late an event's own time may be",
        "trigger": "who asks for a checkpoint: the coordinator, or the injector of the source (protocol rule 2)",
    },
    "operator": {
        "kind": _KIND,
        "parallelism": _PARALLELISM,
        "service_s": _SERVICE,
        "subtask_spread": _SPREAD,
        "service_noise": _NOISE,
        "sync_s": _SYNC,
        "chain": "operators behind it in the same task, with no channel between them: a list of tables",
        "inputs": "whether gates take turns by buffer, or by message; in_line: the gate that has waited longest, as in "
        "Flink's union; auto: by message in a join",
    },
    "chained": {
        "kind": "what it does; of aggregate, window and join one task has one at most",
        "service_s": "time that it takes for each event that it gets",
    },
    "sink": {
        "guarantee": "what a failure may do to what is written",
        "aligns": "a sink waits for the barriers of all its inputs even where barriers overtake, as in Flink",
    },
    "parameters": {
        "fanout": "of `flat_map`: events that one becomes",
        "selectivity": "of `filter`: share of the events that pass",
        "window_ms": "of `join` and `window`: " + _WINDOW,
    },
    "channel": {
        "exchange": "how the events are spread; auto is forward at equal parallelism, else rebalance",
        "form": "a queue of messages, or Flink's network: buffers, credit, a flush timer",
        "capacity": _CAPACITY,
        "latency_s": _LATENCY,
        "barrier_latency_s": "of the network: what a barrier takes besides",
        "unaligned_barrier_latency_s": "the same of one that overtakes; as much as any, if not given",
        "local": "of the network: within one process, without credit",
        "segment_bytes": "size of a buffer (taskmanager.memory.segment-size)",
        "exclusive_buffers": "buffers of each channel",
        "floating_buffers": "buffers that the channels of a gate share",
        "most_buffers": "buffers in a subpartition of the sender",
        "overdraft_buffers": "buffers more that let a task end its step (FLINK-26762; 5 in 1.16 to 1.20)",
        "flush_timeout_s": "a buffer that is not full leaves after that (execution.buffer-timeout)",
        "flush_late_s": "how late the thread is that flushes",
        "bytes_per_s": "what the link carries; any amount, if not given",
        "spanning_records": "whether a record goes on in the next buffer, and may be larger; debloating has it on",
    },
    "checkpoint": {
        "interval_s": "from trigger to trigger",
        "first_s": "when the first is triggered; after an interval, if not given",
        "min_pause_s": "from the end of one to the next trigger, at least",
        "timeout_s": "a checkpoint that is not complete by then expires",
        "max_concurrent": "checkpoints under way at a time",
        "tolerable_failures": "so many that fail in a row are let pass, the next fails the job; any, if not given",
        "alignment_timeout_s": "a task that has aligned for so long declines",
        "aligned_checkpoint_timeout_s": "counted from the trigger: behind it barriers overtake; 0: at once",
        "max_inflight_bytes": "events in flight that one part may record; beyond it the task declines",
        "max_buffer_per_input": "events that wait behind a barrier, by input",
        "max_buffer_memory_bytes": "the same for all inputs of a task, in bytes",
        "hold": "where an event behind a barrier waits: with the aligner, or unread in its channel, as in Flink",
        "interruptible_timers": "an unaligned barrier comes in between the timers of one watermark (FLINK-20217)",
        "command_s": "from a trigger until the coordinator's commands leave",
        "trigger_latency_s": "the way of a command to a source",
        "ack_latency_s": "the way of an acknowledgement",
        "sync_s": "time that a task stands still for its snapshot",
        "begin_s": "work of a task that begins its part, before its barrier leaves; it takes no event then",
        "unaligned_begin_s": "the same of an unaligned part, and after a timeout; as `begin_s`, if not given",
        "channel_state_s": "time to write channel state, if there is any, beyond `async_s`, apart from its bytes",
        "channel_state_bytes_per_s": "how fast channel state is written, beyond `async_s`; at once, if not given",
        "async_s": "time that it then takes to write it",
        "cores": "that tasks share: an unaligned part that begins as one of n at work takes n / cores times as long",
    },
    "recovery": {
        "detection_s": "from a failure until it is noticed",
        "restart_s": "until all tasks run again, without their state",
        "read_bytes_per_s": "how fast state is read, that of the simulation (see `[store]`); at once, if not given",
    },
    "buffer_debloat": {
        "enabled": "whether gates choose the size of their network buffers (`buffer-debloat.enabled`, FLIP-183)",
        "period_s": "time from choice to choice (`buffer-debloat.period`)",
        "samples": "of how many choices the size is a moving average (`buffer-debloat.samples`)",
        "target_s": "how long what is queued for a gate is to last (`buffer-debloat.target`)",
        "threshold_percentages": "a smaller change of the size is not made (`buffer-debloat.threshold-percentages`)",
        "min_segment_bytes": "the smallest size (`taskmanager.memory.min-segment-size`)",
        "starting_segment_bytes": "the first size (`starting-segment-size`); before Flink 2.1, the segment's",
    },
    "watermark_alignment": {
        "max_drift_s": "how far a source's watermark may be ahead of the smallest; nothing is aligned, if not given",
        "update_interval_s": "how often the smallest is announced",
        "idle_after_s": "a source that has emitted nothing for so long is not waited for; all are, if not given",
    },
    "store": {
        "bytes_per_s": "how fast parts are written, beyond `async_s`; at once, if not given. A part has the state as "
        "it is simulated, which is small: what the state of a real job takes is `async_s`",
        "manifest_s": "time that a manifest takes: with it the checkpoint is complete",
        "retained": "complete checkpoints that are kept",
    },
    "when": {
        "at_s": "once, then",
        "every_s": "again and again",
        "first_s": "with `every_s`: the first time",
        "rate_per_s": "at random, so often on average",
    },
    "fault": {
        "task": "where it strikes: a task (`join[0]`) or all of an operator (`join`)",
        "channel": "the channel, `a->b`",
        "for_s": "how long it lasts",
        "factor": "so many times as slow",
        "added_s": "so much later",
        "in_doubt": "the store says that it failed, and yet wrote",
        "capacity_bytes": "what the store holds while it is full",
    },
    "join_top": {
        "title": _TITLE,
        "until_s": _UNTIL,
        "warmup_s": "outputs that are wanted before that are left out of statistics",
        "cooldown_s": "and those of so much at the end",
        "seed": _SEED,
    },
    "join": {
        "barrier": "what readiness is: frames by number, by time, or the newest",
        "drive": "whose frames set the outputs, or `clock`",
        "tick_s": "of `clock`: time between outputs",
        "budget_s": "of `clock`: the output of a tick is of the time so long ago",
        "pending": "what becomes of a new output while an older one waits",
        "most_pending": "outputs that wait in a queue",
        "on_failure": "an output of which a frame cannot be read: skipped, or without it",
        "by_timestamp": "of `latest`: the newest by its time, not by its number",
        "lateness_s": "an output waits so long for what is behind",
        "lateness_scope": "to which rules that applies (defect J-06)",
        "stale_timeout_s": "an input without a frame for so long is not waited for",
        "clock_domain": "the clock of the output times",
        "service_s": "time that an output takes",
        "epoch_at_s": "when the producers begin a new epoch",
        "announce_interval_s": "how often the merge map is announced",
        "request_interval_s": "how often it is asked for while there is none",
        "most_requests": "how often at most",
        "joins_at_s": "when the consumer comes",
        "control_latency_s": "the way of a map or a request",
        "control_loss": "share of them that is lost",
    },
    "input": {
        "rate_per_s": "frames",
        "phase_s": "time of the first",
        "jitter_s": "how far a frame's time is from the beat",
        "delay_s": "from the capture of a frame until it is written",
        "write_s": "how long its slot is being written",
        "latency_s": "the way of its descriptor",
        "drop": "share of the frames that never come",
        "slots": "frames that the ring holds before it overwrites",
        "restart_at_s": "when the producer restarts",
        "restart_s": "how long that takes",
        "stop_at_s": "when it ends for good",
        "offset": "by number: the frame so far from the output's",
        "window": "by number: the newest of so many frames",
        "offset_s": "by time: the frame so far from the output's time",
        "window_s": "by time: the newest within that",
        "source": "which time of a frame counts: of its descriptor, or of its slot",
        "clock_domain": "the clock of its times",
    },
    "control": {
        "wiring": "`along`: control signals go along the data; `direct`: from the head to each processor",
        "aligner": "how a barrier signal is counted (`counting` is a mistake, kept to be seen)",
        "hold_data": "an upstream that has delivered its barrier is not read until the others have",
        "max_ahead": "barriers that an upstream may be ahead of the slowest",
        "capacity": _CAPACITY,
        "latency_s": _LATENCY,
    },
    "signal": {
        "kind": "the signal",
        "channel": "the channel that carries it",
        "at_s": "when the head sends it",
        "every_s": "again and again, until `until_s`",
    },
}
