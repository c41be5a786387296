"""Sweeps of joins: analysis and report."""
