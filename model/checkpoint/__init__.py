"""Checkpoints explored: the world of `impl`'s machines, its monitor, its scopes, and external systems in it."""
