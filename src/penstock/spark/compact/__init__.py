"""Compaction on Spark's executors."""
