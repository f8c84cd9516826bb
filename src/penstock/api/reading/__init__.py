"""Batch reads and streams of a table."""
