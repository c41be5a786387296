"""Barrier control signals: wiring, table, world, invariants and scopes."""
