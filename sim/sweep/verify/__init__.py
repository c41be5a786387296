"""Stored journals judged a second time, as Spark SQL."""
