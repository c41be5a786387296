"""Channels in simulated time, and how a task reads them."""
