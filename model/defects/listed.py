"""The entries that nothing is run for, each with the reading that was chosen and, where it is tested, the test."""

NOT_RUN = {
    "P-17": (
        "The 128-bit atomic of the document is in no standard library, so there is nothing to run; what a narrower "
        "word cuts off is P-06. Chosen: the word is a value of 128 bits in the document's layout, and the cell is a "
        "dict, of which `pop` is one step (protocol rule 3). Tested in `tests/impl/test_barrier_protocol.py` and P-01."
    ),
    "A-20": (
        "No allocation on the fast path, and a queue of 1024 slots for each input and barrier, exclude each other. "
        "Queues are made with the aligner and kept: test_single_input_alignment_allocates_no_queues."
    ),
    "S-14": (
        "Kinds share one slot. Rule 24 keeps one order for all kinds of a channel, and rule 25 lets a barrier of "
        "another kind wait like one of another id: it is late, and nothing goes wrong. The overlap that the document "
        "makes of it is S-03."
    ),
    "J-12": (
        "Staleness goes by local time, so two replicas may differ: excluded from what is claimed (test_confluence)."
    ),
    # Contradictions between documents, and which entries show the other reading.
    "X-01": (
        "Are watermarks in their place? They are: one of an input that waits is buffered with the events around it, "
        "and takes effect in its turn (protocol rules 1, 7 and 16). That it bypasses what is buffered is A-06; that it "
        "is no part of what is in flight, or ends the program, is U-10."
    ),
    "X-02": "How many inputs? 1 to 128 in both modes (protocol rule 12). A mask of 64 bits is U-07.",
    "X-03": (
        "Does a barrier overtake? One that is flagged does, and what it passes is recorded (protocol rule 16). That "
        "it stands in line, and that it overtakes what nobody records, are the two entries P-16."
    ),
    "X-04": (
        "One aligner or two? One: the aligner that may go unaligned is the other one, with a deadline more, and "
        "drains what was buffered (protocol rules 14 to 16). A second machine that forgets what was buffered is U-09, "
        "and one that forgets who has delivered is U-03."
    ),
    "X-05": (
        "Switch at 30 s or abort at 60 s, and by whom? Both are deadlines from the trigger, and the task's own "
        "timer sees to them; where unaligned is not enabled only the abort is left, and the coordinator may abort "
        "besides (protocol rules 11, 14 and 15). That nobody switches is U-02; clocks that begin where a barrier "
        "comes are A-10."
    ),
    "X-06": (
        "What is a barrier with another id? A lower one is ignored, an equal one counts once, a higher one ends the "
        "older checkpoint; epochs or flags that disagree on one id end it too (protocol rule 6). That it counts for "
        "the current one is A-01, that a lower one is new is A-03, that nothing is compared is A-16; at the source, "
        "P-03 and P-04."
    ),
    "X-07": (
        "What of a late barrier of an aborted checkpoint? Every task remembers the highest id that is done, and "
        "ignores what is not above it; a marker says that the others need not wait (protocol rules 6 and 10). "
        "Without the memory it is A-09, without the marker P-15."
    ),
    "X-08": (
        "Bit 0 of the flags is `unaligned`, as F-DCKP-001 has it (protocol rule 3). Another program's wire format "
        "has `full snapshot` there: no document here does, so nothing is run. Flags that disagree on one id are "
        "A-16."
    ),
    "X-09": (
        "One alignment or two? Two protocols, so two machines and two worlds: `impl.checkpoint.alignment` in "
        "`model.checkpoint.world`, and `impl.control` in `model.control.world` (protocol rules 6 and 24). To know "
        "who delivered is the default of both; to count copies is S-01, and to call skew an error S-03."
    ),
    "X-10": (
        "May a terminal barrier come out of band? On the control channel it may, and waits there until the data "
        "channel has drained to its fence (protocol rule 26). That it does not wait is S-06."
    ),
}
