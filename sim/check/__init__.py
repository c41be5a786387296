"""Scopes checked side by side, and what a check came to."""
