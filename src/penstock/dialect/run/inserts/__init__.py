"""Shared code of statements that insert rows."""
