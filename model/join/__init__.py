"""Joins of streams in shared memory: reference, world, invariants and scopes."""
