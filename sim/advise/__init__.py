"""Advice on the interval between checkpoints: the closed form, the pieces of its cost, and a simulated check."""
