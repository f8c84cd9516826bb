"""Filters as values: built, parsed, bound to a schema, evaluated on statistics and partitions."""
