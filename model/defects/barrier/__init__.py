"""The entries of the catalogue about the barrier protocol, F-DCKP-001."""
