"""Compaction by Spark's workers."""
