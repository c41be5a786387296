"""The entries of F-DCKP-002 that there is nothing to run for: how the document is read, and where that is tested."""

NOT_RUN = {
    "A-20": (
        "No allocation on the fast path, and a queue of 1024 slots for each input and barrier, exclude each other. "
        "Queues are made with the aligner and kept: test_single_input_alignment_allocates_no_queues."
    ),
}
