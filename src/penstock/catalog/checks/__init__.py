"""Checks of schemas and table options."""
