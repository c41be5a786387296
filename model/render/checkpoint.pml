/* The rules of docs/protocol.md as guarded moves: one d_step is one move, and between two moves every scratch variable
 * is 0. Above stand the bounds of the scope, below its processes. Messages, orders and reports carry a checkpoint id n;
 * what belongs to the input or output of a task is kept by channel c, as a channel is one output and one input. */

#define BARRIER      100
#define CANCEL       150
#define IS_EVENT(m)  ((m) < BARRIER)
#define IS_BARRIER(m) ((m) >= BARRIER && (m) < CANCEL)
#define IS_CANCEL(m) ((m) >= CANCEL)
#define ID(m)        ((m) >= CANCEL -> (m) - CANCEL : (m) - BARRIER)
#define FLAGGED(m)   (UNALIGNED && IS_BARRIER(m))
#define SEQUENCE(m)  (((m) - 1) % EVENTS + 1)
#define AT(x, n)     ((x) * IDS + (n) - 1)

#define SOME(q) (len(q) > 0)
#define NONE(q) (len(q) == 0)

#define INJECT  1
#define ABORT   2
#define ACK     1
#define DECLINE 2

/* Channels and tasks. */
chan wire[CHANNELS]   = [ROOM] of { byte };
chan buffered[CHANNELS]   = [ROOM] of { byte };   /* taken, and behind a barrier (rule 7), or to be drained (rule 8) */
chan record[CHANNELS] = [ROOM] of { byte };   /* in flight on the way in (rule 16) */
chan passed[CHANNELS] = [ROOM] of { byte };   /* in flight on the way out: overtaken in the outbox (rule 16) */
chan outbox[TASKS]    = [BOX] of { byte, byte };
chan ready[TASKS]     = [CHANNELS] of { byte }; /* inputs with something to drain, in turn */
chan orders[TASKS]    = [2 * IDS + 1] of { byte, byte };
chan reports[TASKS]   = [2 * IDS + 1] of { byte, byte };
bit  waits[CHANNELS];      /* it has delivered the current barrier; what follows waits */
bit  missing[CHANNELS];    /* the snapshot is taken, and this input's barrier is missing */
bit  recording[TASKS];
byte current[TASKS];       /* the checkpoint under way; 0 is none */
byte last[TASKS];          /* last_terminated_id (rule 6); of a source, the last id it has acted on */
byte position[TASKS];      /* events that a source has made */
byte count[CHANNELS];      /* the operator: events it has seen, by input */
byte image[CHANNELS];      /* the same, in the image of the snapshot, until that is reported */

/* The coordinator. */
byte triggered, limit = CHECKPOINTS, cancels = CANCELS, crashes = CRASHES;
bit  pending[IDS];
bit  outstanding[TASKS * IDS];

#if CRASHES
byte publishing;           /* the checkpoint whose manifest is being written */
byte last_complete;
bit  down, suspended;      /* the job has failed; and the coordinator knows of it, as it has not failed itself */
byte part_position[TASKS * IDS]; /* reported, and of use for a restore (rule 20) */
byte part_count[CHANNELS * IDS];
chan part_in[CHANNELS * IDS]  = [ROOM] of { byte };
chan part_out[CHANNELS * IDS] = [ROOM] of { byte };
byte stored;               /* the newest complete checkpoint, while one may be needed; 0 is none */
byte stored_position[TASKS], stored_count[CHANNELS];
chan stored_in[CHANNELS]  = [ROOM] of { byte };
chan stored_out[CHANNELS] = [ROOM] of { byte };
#endif

/* History: what the invariants speak of. Nothing above depends on it. */
byte completed;
byte before;               /* the last checkpoint that was begun before the job was restored */
byte applied[CHANNELS];    /* events that took effect */
byte gave[CHANNELS];       /* events that were given off, be they in the outbox or sent */
byte inside[CHANNELS];     /* the last barrier that took effect at the receiver */
byte outside[CHANNELS];    /* the last barrier that was sent */
byte blocked[CHANNELS];    /* the checkpoint whose barrier blocks the input */
byte cause[TASKS];         /* 1 + the last barrier ahead of what took effect last, while that is being sent */
byte newest[TASKS];        /* the newest barrier that took effect */
byte last_cut[TASKS];
bit  begun[TASKS * IDS];
bit  aborted[TASKS * IDS];
bit  ahead[TASKS * IDS];   /* its barrier went ahead, flagged */
bit  suspect[TASKS * IDS]; /* FWD has something against it if it completes */
bit  wrong[TASKS * IDS];   /* CUT has */
bit  cut[TASKS * IDS];
bit  acknowledged[TASKS * IDS];
byte cut_gave[CHANNELS * IDS];
byte cut_applied[CHANNELS * IDS];
byte cut_record[CHANNELS * IDS];
byte cut_passed[CHANNELS * IDS];
#if CRASHES
byte stored_gave[CHANNELS], stored_applied[CHANNELS];
byte seen[TASKS];          /* events that had taken effect when the job failed; then, that had in what was restored */
#endif

#define VIOLATED(name) printf(name); assert(false)

/* Scratch. */
byte h, i, j, k, m, n, o, x, y;

#define ENDED(n)    ((n) > before && (n) <= triggered && !pending[(n) - 1])
#define HAS_ROOM(c) (len(wire[c]) - FLAGGED_IN(c) < CAPACITY)

inline tidy() { h = 0; i = 0; j = 0; k = 0; m = 0; n = 0; o = 0; x = 0; y = 0 }

/* Sending (rules 1, 5 and 16). */

inline give_all(t, message) {
	for (i : 0 .. CHANNELS - 1) {
		if
		:: FROM(i) == t ->
			outbox[t]!i, message;
			if :: IS_EVENT(message) -> gave[i]++ :: else fi
		:: else
		fi
	}
}

/* FWD: what is sent and its cause lie on the same side of every barrier that is not ahead of its place. */
inline judge_side(t, c) {
	if
	:: cause[t] && outside[c] != cause[t] - 1 ->
		for (j : 1 .. IDS) {
			if
			:: ((j > outside[c] && j <= cause[t] - 1) || (j <= outside[c] && j > cause[t] - 1 && !ahead[AT(t, j)])) ->
				if :: j == completed && j > before -> VIOLATED("! FWD\n") :: else fi;
				if :: !ENDED(j) -> suspect[AT(t, j)] = 1 :: else fi
			:: else
			fi
		}
	:: else
	fi
}

inline send(t) {
	do
	:: SOME(outbox[t]) ->
		outbox[t]?<o, x>;
		if
		:: FLAGGED(x) || HAS_ROOM(o) ->
			outbox[t]?o, x;
			if :: IS_EVENT(x) -> judge_side(t, o) :: else fi;
			if :: IS_BARRIER(x) && ID(x) > outside[o] -> outside[o] = ID(x) :: else fi;
			wire[o]!x
		:: else -> break
		fi
	:: else -> break
	od
}

inline forget(t) {
	if
	:: NONE(outbox[t]) ->
		cause[t] = 0;
		for (j : 1 .. IDS) {
			if :: j <= completed -> ahead[AT(t, j)] = 0 :: else fi
		}
	:: else
	fi
}

inline finish(t) { forget(t); send(t); forget(t); tidy() }

/* A part: the image, the barrier, the report (rules 4, 8, 16 and 17). */

inline snapshot(t, id) {
	if :: id == last_cut[t] -> VIOLATED("! ONCE\n") :: id < last_cut[t] -> VIOLATED("! ID\n") :: else fi;
	last_cut[t] = id;
	if :: !ENDED(id) -> cut[AT(t, id)] = 1 :: else fi;
	for (i : 0 .. CHANNELS - 1) {
		if
		:: TO(i) == t ->
			image[i] = count[i];
			if
			:: !ENDED(id) ->
				cut_applied[AT(i, id)] = applied[i];
				if :: image[i] != applied[i] -> wrong[AT(t, id)] = 1 :: else fi
			:: else
			fi
		:: FROM(i) == t -> if :: !ENDED(id) -> cut_gave[AT(i, id)] = gave[i] :: else fi
		:: else
		fi
	}
}

inline begin(t, id) { if :: !ENDED(id) -> begun[AT(t, id)] = 1 :: else fi }

inline forward(t, id) { begin(t, id); give_all(t, BARRIER + id) }

/* Ahead of the outbox, whose events are recorded (rule 16). */
inline forward_ahead(t, id) {
	begin(t, id);
	ahead[AT(t, id)] = 1;
	k = len(outbox[t]);
	for (i : 0 .. CHANNELS - 1) {
		if :: FROM(i) == t -> outbox[t]!i, BARRIER + id :: else fi
	}
	do
	:: k > 0 ->
		outbox[t]?o, x;
		if
		:: IS_EVENT(x) ->
			passed[o]!x;
			if :: cut[AT(t, id)] -> cut_passed[AT(o, id)]++ :: else fi
		:: else
		fi;
		outbox[t]!o, x;
		k--
	:: else -> break
	od
}

inline move_all(from, to) { do :: SOME(from) -> from?x; to!x :: else -> break od }

inline clear(list) { do :: SOME(list) -> list?x :: else -> break od }

inline acknowledge(t, id) {
	reports[t]!ACK, id;
#if CRASHES
	part_position[AT(t, id)] = position[t];
	for (i : 0 .. CHANNELS - 1) {
		if
		:: TO(i) == t -> part_count[AT(i, id)] = image[i]; move_all(record[i], part_in[AT(i, id)])
		:: FROM(i) == t -> move_all(passed[i], part_out[AT(i, id)])
		:: else
		fi
	}
#endif
	for (i : 0 .. CHANNELS - 1) {
		if
		:: TO(i) == t -> image[i] = 0; clear(record[i])
		:: FROM(i) == t -> clear(passed[i])
		:: else
		fi
	}
}

/* How a checkpoint ends at a task: what was buffered may go, and nothing is recorded any more (rules 8, 10 and 17). */

inline drain_all(t) {
	for (i : 0 .. CHANNELS - 1) {
		if
		:: TO(i) == t && waits[i] ->
			waits[i] = 0;
			if :: SOME(buffered[i]) -> ready[t]!i :: else fi
		:: else
		fi
	}
}

inline resume(t) {
	for (i : 0 .. CHANNELS - 1) {
		if :: TO(i) == t -> blocked[i] = 0 :: else fi
	}
}

inline end_here(t, id) {
	last[t] = id;
	current[t] = 0;
	recording[t] = 0;
	drain_all(t);
	for (i : 0 .. CHANNELS - 1) {
		if :: TO(i) == t -> missing[i] = 0; clear(record[i]) :: else fi
	}
}

inline send_cancel(t, id) {
	aborted[AT(t, id)] = 1;
	for (i : 0 .. CHANNELS - 1) {
		if :: FROM(i) == t -> clear(passed[i]) :: else fi
	}
	give_all(t, CANCEL + id)
}

inline abort_here(t, id) { end_here(t, id); send_cancel(t, id); resume(t) }

/* Rule 10: a cancel marker and the coordinator's abort act alike. */
inline cancelled(t, id) {
	if
	:: id <= last[t] || id < current[t] -> skip
	:: else -> abort_here(t, id)
	fi
}

/* Rule 7. */
inline buffer(c, message) {
	buffered[c]!message;
	if :: len(buffered[c]) > MOST_BUFFERED -> VIOLATED("! BOUND\n") :: else fi
}

/* Rules 6 and 8. */

inline block(t, c, id) {
	if :: id < newest[t] || id <= inside[c] -> VIOLATED("! ID\n") :: else fi;
	newest[t] = id;
	inside[c] = id;
	blocked[c] = id;
	begin(t, id);
	if :: id == completed -> VIOLATED("! LIVE\n") :: else fi
}

/* A ready input leaves the turn. */
inline not_ready(t, c) {
	if
	:: ready[t]??[eval(c)] -> ready[t]??eval(c)
	:: else
	fi
}

inline delivered_all(t) {
	k = 1;
	for (i : 0 .. CHANNELS - 1) {
		if :: TO(i) == t && !waits[i] -> k = 0 :: else fi
	}
}

inline complete_part(t) {
	acknowledge(t, current[t]);
	end_here(t, current[t])
}

/* Rule 17: of a newer checkpoint, on an input that delivered: it waits, with all behind it. */
inline park(t) {
	k = len(ready[t]);
	do
	:: k > 0 ->
		ready[t]?y;
		buffered[y]?<x>;
		if
		:: recording[t] && !missing[y] && !IS_EVENT(x) && ID(x) > current[t] -> waits[y] = 1
		:: else -> ready[t]!y
		fi;
		k--
	:: else -> break
	od
}

inline any_missing(t) {
	k = 0;
	for (i : 0 .. CHANNELS - 1) {
		if :: TO(i) == t && missing[i] -> k = 1 :: else fi
	}
}

/* Rule 16: the image, the barrier ahead of everything; then nothing waits, and the others' data is recorded. */
inline begin_recording(t) {
	for (i : 0 .. CHANNELS - 1) {
		if :: TO(i) == t && !waits[i] -> missing[i] = 1 :: else fi
	}
	snapshot(t, current[t]);
	forward_ahead(t, current[t]);
	drain_all(t);
	recording[t] = 1;
	park(t)
}

inline record_one(t, c, event) {
	if
	:: cut[AT(t, current[t])] ->
		if
		:: IS_SOURCE(FROM(c)) && SEQUENCE(event) != cut_applied[AT(c, current[t])] + cut_record[AT(c, current[t])] + 1 ->
			wrong[AT(t, current[t])] = 1
		:: else
		fi;
		cut_record[AT(c, current[t])]++
	:: else
	fi;
	record[c]!event
}

/* The barrier has passed what its channel and its input hold ahead of it. */
inline record_overtaken(t, c, ahead_of_it) {
	k = len(buffered[c]);
	do
	:: k > 0 ->
		buffered[c]?x;
		if :: IS_EVENT(x) -> record_one(t, c, x) :: else fi;
		buffered[c]!x;
		k--
	:: else -> break
	od;
	k = len(wire[c]);
	j = ahead_of_it;
	do
	:: k > 0 ->
		wire[c]?x;
		if :: j > 0 && IS_EVENT(x) -> record_one(t, c, x) :: else fi;
		if :: j > 0 -> j-- :: else fi;
		wire[c]!x;
		k--
	:: else -> break
	od
}

/* A barrier takes effect on an input, in its turn or ahead of its place. */
inline on_barrier(t, c, id, ahead_of_it) {
	if
	:: recording[t] && id <= current[t] ->
		if
		:: id == current[t] && missing[c] ->
			missing[c] = 0;
			park(t);
			block(t, c, id);
			record_overtaken(t, c, ahead_of_it);
			any_missing(t);
			if :: k == 0 -> complete_part(t) :: else fi;
			resume(t)
		:: else
		fi
	:: recording[t] && id > current[t] && !missing[c] -> buffer(c, BARRIER + id); waits[c] = 1
	:: !recording[t] && (id <= last[t] || id < current[t]) -> skip
	:: else ->
		if
		:: current[t] && id > current[t] ->
			reports[t]!DECLINE, current[t];
			h = current[t];
			abort_here(t, h)
		:: else
		fi;
		current[t] = id;
		waits[c] = 1;
		not_ready(t, c);
		block(t, c, id);
		if
		:: UNALIGNED && !IS_SINK(t) ->
			begin_recording(t);
			record_overtaken(t, c, ahead_of_it);
			any_missing(t);
			if :: k == 0 -> complete_part(t) :: else fi;
			resume(t)
		:: else ->
			delivered_all(t);
			if
			:: k ->
				snapshot(t, id);
				forward(t, id);
				complete_part(t);
				resume(t)
			:: else
			fi
		fi
	fi
}

/* A message takes its effect: it has come in its turn, or is drained. */
inline step(t, c) {
	if
	:: IS_EVENT(m) ->
		if :: missing[c] -> record_one(t, c, m) :: else fi;
		cause[t] = inside[c] + 1;
		if
		:: IS_SOURCE(FROM(c)) && SEQUENCE(m) != applied[c] + 1 -> VIOLATED("! FIFO\n")
		:: else
		fi;
		applied[c]++;
		count[c]++;
		give_all(t, m)
	:: IS_BARRIER(m) -> n = ID(m); on_barrier(t, c, n, 0)
	:: IS_CANCEL(m) -> n = ID(m); cancelled(t, n)
	fi
}

/* Moves. */

#define IS_FREE(c) (!waits[c] && NONE(buffered[c]))

#define CAN_PUSH(t, c) (outbox[t]?[c, x] && HAS_ROOM(c))
inline push(t) { finish(t) }

#define CAN_DELIVER(t, c) (SOME(wire[c]) && NONE(outbox[t]) && NONE(ready[t]) && len(buffered[c]) < MOST_BUFFERED)
inline deliver(t, c) {
	wire[c]?m;
	if
	:: IS_FREE(c) -> step(t, c)
	:: waits[c] && current[t] && IS_BARRIER(m) && ID(m) <= current[t] -> skip
	:: waits[c] && current[t] && m == CANCEL + current[t] -> n = ID(m); cancelled(t, n)
	:: else -> buffer(c, m)
	fi;
	finish(t)
}

#define CAN_DRAIN(t) (SOME(ready[t]) && NONE(outbox[t]))
inline drain(t) {
	ready[t]?h;
	buffered[h]?m;
	if :: SOME(buffered[h]) -> ready[t]!h :: else fi;
	y = h;
	step(t, y);
	park(t);
	finish(t)
}

#define MAY_PASS(t, c, id) (wire[c]??[eval(BARRIER + id)] && id > last[t] && !(HOLDS_BARRIER(c)) && (!current[t] || (id >= current[t] && (recording[t] -> missing[c] : !waits[c]))))
#define IS_FIRST(c, id) (wire[c]?[eval(BARRIER + id)])
#define CAN_OVERTAKE(t, c, id) (MAY_PASS(t, c, id) && (!IS_FIRST(c, id) || SOME(outbox[t]) || SOME(ready[t]) || len(buffered[c]) >= MOST_BUFFERED))
inline overtake(t, c, id) {
	k = len(wire[c]);
	j = 0;
	y = k;
	do
	:: k > 0 ->
		wire[c]?x;
		if :: x == BARRIER + id -> y = j :: else -> wire[c]!x; j++ fi;
		k--
	:: else -> break
	od;
	o = y;
	on_barrier(t, c, id, o);
	finish(t)
}

#define CAN_EMIT(t) (IS_UP && NONE(outbox[t]) && position[t] < EVENTS)
inline emit(t) {
	position[t]++;
	m = FIRST(t) + position[t] - 1;
	give_all(t, m);
	finish(t)
}

/* Rules 3 and 4: position and barrier in one step; an order about what is done with does nothing. */
#define CAN_OBEY(t, what) (orders[t]?[what, n])
inline inject(t) {
	if
	:: n > last[t] ->
		last[t] = n;
		snapshot(t, n);
		if :: UNALIGNED -> forward_ahead(t, n) :: else -> forward(t, n) fi;
		acknowledge(t, n)
	:: else
	fi;
	finish(t)
}
inline abort_at_source(t) {
	if
	:: n > last[t] -> last[t] = n; send_cancel(t, n)
	:: else
	fi;
	finish(t)
}
inline abort_at_task(t) { cancelled(t, n); finish(t) }

/* The coordinator (rules 2, 10 and 20). */

#define CAN_TRIGGER (IS_UP && triggered < limit)
inline trigger() {
	triggered++;
	pending[triggered - 1] = 1;
	for (i : 0 .. TASKS - 1) {
		outstanding[AT(i, triggered)] = 1;
		if :: IS_SOURCE(i) -> orders[i]!INJECT, triggered :: else fi
	}
	tidy()
}

#if CRASHES
#define IS_PUBLISHED(id) (publishing == (id))
#define IS_UP (!down)
inline drop_part(t, id) {
	part_position[AT(t, id)] = 0;
	for (j : 0 .. CHANNELS - 1) {
		if
		:: TO(j) == t -> part_count[AT(j, id)] = 0; clear(part_in[AT(j, id)])
		:: FROM(j) == t -> clear(part_out[AT(j, id)])
		:: else
		fi
	}
}
#else
#define IS_PUBLISHED(id) false
#define IS_UP true
#define drop_part(t, id) skip
#endif

/* It has ended: what only judging it needed is forgotten. */
inline forget_checkpoint(id) {
	pending[id - 1] = 0;
	for (i : 0 .. TASKS - 1) {
		if :: !outstanding[AT(i, id)] -> drop_part(i, id) :: else fi;
		outstanding[AT(i, id)] = 0;
		acknowledged[AT(i, id)] = 0;
		cut[AT(i, id)] = 0;
		begun[AT(i, id)] = 0;
		suspect[AT(i, id)] = 0;
		wrong[AT(i, id)] = 0;
		forget(i)
	}
	for (i : 0 .. CHANNELS - 1) {
		cut_gave[AT(i, id)] = 0;
		cut_applied[AT(i, id)] = 0;
		cut_record[AT(i, id)] = 0;
		cut_passed[AT(i, id)] = 0
	}
}

/* With it goes all that is older, but for what is being published: nobody knows yet what becomes of that. */
inline drop_up_to(id) {
	for (k : 1 .. IDS) {
		if :: k <= id && pending[k - 1] && !IS_PUBLISHED(k) -> forget_checkpoint(k) :: else fi
	}
}

/* A checkpoint is aborted, and with it all that is older; every task learns of it. */
inline abort(id) {
	drop_up_to(id);
	for (i : 0 .. TASKS - 1) { orders[i]!ABORT, id }
}

#define CAN_CANCEL(id) (cancels && pending[id - 1] && !IS_PUBLISHED(id))
inline cancel(id) { cancels--; abort(id); tidy() }

/* The equation of CUT, and what else is asked of a complete checkpoint. */
inline judge(id) {
	for (i : 0 .. TASKS - 1) {
		if :: !cut[AT(i, id)] || !acknowledged[AT(i, id)] -> VIOLATED("! ONCE\n") :: else fi;
		if :: wrong[AT(i, id)] -> VIOLATED("! CUT\n") :: else fi;
		if :: suspect[AT(i, id)] -> VIOLATED("! FWD\n") :: else fi
	}
	for (i : 0 .. CHANNELS - 1) {
		if :: blocked[i] == id -> VIOLATED("! LIVE\n") :: else fi;
		if
		:: cut_gave[AT(i, id)] != cut_applied[AT(i, id)] + cut_record[AT(i, id)] + cut_passed[AT(i, id)] ->
			VIOLATED("! CUT\n")
		:: else
		fi
	}
}

inline complete(id) {
	judge(id);
	completed = id;
	drop_up_to(id)
}

#if CRASHES
/* Manifests are written one at a time, the oldest first (rule 20). */
inline publish_next() {
	for (k : 1 .. IDS) {
		if
		:: !publishing && pending[k - 1] ->
			y = 0;
			for (i : 0 .. TASKS - 1) { y = y + outstanding[AT(i, k)] }
			if :: y == 0 -> publishing = k :: else fi
		:: else
		fi
	}
}

inline store(id) {
	stored = id;
	for (i : 0 .. TASKS - 1) { stored_position[i] = part_position[AT(i, id)] }
	for (i : 0 .. CHANNELS - 1) {
		stored_count[i] = part_count[AT(i, id)];
		clear(stored_in[i]);
		clear(stored_out[i]);
		move_all(part_in[AT(i, id)], stored_in[i]);
		move_all(part_out[AT(i, id)], stored_out[i]);
		stored_gave[i] = cut_gave[AT(i, id)];
		stored_applied[i] = cut_applied[AT(i, id)]
	}
}

inline unstore() {
	stored = 0;
	for (i : 0 .. TASKS - 1) { stored_position[i] = 0 }
	for (i : 0 .. CHANNELS - 1) {
		stored_count[i] = 0;
		clear(stored_in[i]);
		clear(stored_out[i]);
		stored_gave[i] = 0;
		stored_applied[i] = 0
	}
}

#define CAN_PUBLISH (publishing)
inline publish() {
	h = publishing;
	publishing = 0;
	last_complete = h;
	if
	:: down -> store(h); completed = h; forget_checkpoint(h)
	:: else ->
		if :: crashes -> store(h) :: else fi;
		complete(h);
		publish_next()
	fi;
	tidy()
}

/* No task is left, nor what was on its way to it and from it. */
inline tasks_are_gone() {
	crashes--;
	down = 1;
	for (i : 0 .. TASKS - 1) {
		seen[i] = 0;
		current[i] = 0; last[i] = 0; recording[i] = 0; position[i] = 0;
		cause[i] = 0; newest[i] = 0; last_cut[i] = 0;
		for (k : 1 .. IDS) {
			begun[AT(i, k)] = 0; aborted[AT(i, k)] = 0; ahead[AT(i, k)] = 0; suspect[AT(i, k)] = 0; wrong[AT(i, k)] = 0;
			if
			:: !IS_PUBLISHED(k) -> cut[AT(i, k)] = 0; drop_part(i, k)
			:: else
			fi
		}
		do :: SOME(outbox[i]) -> outbox[i]?o, x :: else -> break od;
		do :: SOME(orders[i]) -> orders[i]?o, x :: else -> break od;
		do :: SOME(reports[i]) -> reports[i]?o, x :: else -> break od;
		clear(ready[i])
	}
	for (i : 0 .. CHANNELS - 1) {
		seen[TO(i)] = seen[TO(i)] + applied[i];
		clear(wire[i]); clear(buffered[i]); clear(record[i]); clear(passed[i]);
		waits[i] = 0; missing[i] = 0; count[i] = 0; image[i] = 0;
		applied[i] = 0; gave[i] = 0; inside[i] = 0; outside[i] = 0; blocked[i] = 0
	}
}

#define CAN_CRASH (crashes && !down)

/* A task fails, and with it the job; a manifest goes on being written. */
inline crash() {
	suspended = 1;
	drop_up_to(IDS);
	tasks_are_gone();
	tidy()
}

/* The coordinator fails; a manifest on its way has been written, if late, or never is. Its successor knows nothing. */
inline crash_coordinator(late) {
	if :: late -> store(publishing) :: else fi;
	publishing = 0;
	last_complete = 0;
	drop_up_to(IDS);
	for (i : 0 .. TASKS * IDS - 1) { acknowledged[i] = 0 }
	tasks_are_gone();
	tidy()
}

/* Rule 22, and REC: every state and every channel is that of the cut. */
#define CAN_RESTORE (down && !publishing)
inline restore() {
	down = 0;
	suspended = 0;
	last_complete = stored;
	limit = triggered + AGAIN;
	before = triggered;
	for (i : 0 .. TASKS - 1) { position[i] = stored_position[i]; last[i] = stored; seen[i] = 0 }
	for (i : 0 .. CHANNELS - 1) {
		count[i] = stored_count[i];
		applied[i] = stored_applied[i];
		gave[i] = stored_gave[i];
		seen[TO(i)] = seen[TO(i)] + applied[i];
		k = len(stored_in[i]);
		do :: k > 0 -> stored_in[i]?x; stored_in[i]!x; wire[i]!x; k-- :: else -> break od;
		k = len(stored_out[i]);
		do :: k > 0 -> stored_out[i]?x; stored_out[i]!x; wire[i]!x; k-- :: else -> break od;
		if
		:: count[i] != applied[i] || gave[i] != applied[i] + len(wire[i]) -> VIOLATED("! REC\n")
		:: IS_SOURCE(FROM(i)) && position[FROM(i)] != gave[i] -> VIOLATED("! REC\n")
		:: else
		fi
	}
	if :: !crashes -> unstore() :: else fi;
	tidy()
}
#endif

#define CAN_HEAR(t, what) (reports[t]?[what, n])
inline hear_ack(t) {
	acknowledged[AT(t, n)] = 1;
	if
	:: pending[n - 1] && outstanding[AT(t, n)] ->
		outstanding[AT(t, n)] = 0;
#if CRASHES
		publish_next()
#else
		y = 0;
		for (i : 0 .. TASKS - 1) { y = y + outstanding[AT(i, n)] }
		if :: y == 0 -> complete(n) :: else fi
#endif
	:: else -> drop_part(t, n)
	fi;
	tidy()
}
inline hear_decline(t) {
	if :: pending[n - 1] && !IS_PUBLISHED(n) -> abort(n) :: else fi;
	tidy()
}
