"""The entries of the catalogue about barrier alignment, F-DCKP-002."""
