"""Batch reads: from a snapshot to its live files, splits and rows."""
