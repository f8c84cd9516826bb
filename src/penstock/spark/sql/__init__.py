"""Spark functions for the SQL dialect."""
