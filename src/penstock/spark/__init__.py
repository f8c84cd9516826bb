"""Spark integration: thin wrappers around ``penstock.table``; the only package that imports pyspark."""
