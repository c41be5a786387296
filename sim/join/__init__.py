"""Timed runs of joins."""
