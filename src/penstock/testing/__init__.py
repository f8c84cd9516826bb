"""Suites to inherit, strategies, a model of a table, storage that fails on demand."""
