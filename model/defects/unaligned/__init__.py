"""The entries of the catalogue about unaligned checkpoints, F-DCKP-006."""
