"""Timed runs of checkpoints: engine, tasks, coordinator, faults, failover, metrics, results."""
