"""Statements on a table of a Spark catalog that are not plain reads and writes."""
