"""Writes: from rows to data files and commit messages."""
