"""Questions that people ask about checkpoints, answered by runs: a sentence, a number, what would change it."""
