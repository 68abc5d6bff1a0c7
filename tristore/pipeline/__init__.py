"""Spark: moves the event log into Delta tables, exactly once."""
