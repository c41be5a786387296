"""The S-entries that nothing is run for, each with the reading that was chosen."""

NOT_RUN = {
    "S-14": (
        "Kinds share one slot. Rule 24 keeps one order for all kinds of a channel, and rule 25 lets a barrier of "
        "another kind wait like one of another id: it is late, and nothing goes wrong. The overlap that the document "
        "makes of it is S-03."
    ),
}
