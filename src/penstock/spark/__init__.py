"""Thin shells around the table functions; the only package that imports pyspark."""
