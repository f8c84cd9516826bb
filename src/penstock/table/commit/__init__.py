"""Commit protocol: keeps concurrent writers, readers and maintenance from harming each other."""
