"""The entries P- that nothing is run for, each with the reading that was chosen.

The others are modules beside this one; P-16, which has two readings, is two of them.
"""

NOT_RUN = {
    "P-17": (
        "The 128-bit atomic of the document is in no standard library, so there is nothing to run; what a narrower "
        "word cuts off is P-06. Chosen: the word is a value of 128 bits in the document's layout, and the cell is a "
        "dict, of which `pop` is one step (protocol rule 3). Tested in `tests/impl/test_barrier_protocol.py` and P-01."
    ),
}
