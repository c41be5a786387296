"""The kinds of entries: each says how its defects are shown, beside the sound code."""
