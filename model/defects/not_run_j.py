"""The J-entries that nothing is run for, each with the reading that was chosen."""

NOT_RUN = {
    "J-12": "Staleness goes by local time, so two replicas may differ: excluded from what is claimed (test_confluence)",
}
