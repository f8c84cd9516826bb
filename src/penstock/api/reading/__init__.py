"""Reads of a table, of one snapshot or as a stream."""
