"""Stored journals judged a second time, in SQL."""
