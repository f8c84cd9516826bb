"""Thin shells around the table functions; the only room that imports pyspark."""
