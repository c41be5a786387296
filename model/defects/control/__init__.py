"""The entries of the catalogue about barrier control signals."""
