"""Checkpoints: aligners, gate, injector, task, coordinator, recovery, transactions."""
