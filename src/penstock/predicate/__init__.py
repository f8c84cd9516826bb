"""Filters as values: build, parse, bind to a schema, and evaluate on statistics and partitions."""
