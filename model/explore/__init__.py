"""The explorer: every reachable state of any transition system, and tables of transitions."""
