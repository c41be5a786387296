"""Advice on the interval between checkpoints: its closed forms."""
