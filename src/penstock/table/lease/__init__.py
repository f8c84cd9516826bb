"""Leases: one holder of a name at a time, across processes."""
