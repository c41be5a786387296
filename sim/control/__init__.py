"""Timed runs of control signals."""
