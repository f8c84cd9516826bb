"""Test tools: test suites to inherit, and storage that fails on demand.

``suites`` needs pytest; ``file_io`` needs nothing.
"""
