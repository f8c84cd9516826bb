"""Differential tests: read random tables through every entry point, and compare with plain Python (design/0022)."""
