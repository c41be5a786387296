"""The U-entries that nothing runs, each with the reading that was chosen: there are none."""

NOT_RUN: dict[str, str] = {}
