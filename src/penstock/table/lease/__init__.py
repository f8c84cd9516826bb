"""Leases: across processes, at most one holder of a name at a time."""
