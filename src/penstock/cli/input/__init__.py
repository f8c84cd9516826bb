"""Rows from files."""
