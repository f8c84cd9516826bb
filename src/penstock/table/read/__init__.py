"""Batch reads: the live files, splits and rows of a snapshot."""
