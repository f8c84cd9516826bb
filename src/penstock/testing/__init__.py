"""Test tools: test suites to inherit, Hypothesis strategies, a model of a table, storage that fails on demand.

``suites`` needs pytest; ``file_io`` needs nothing.
"""
