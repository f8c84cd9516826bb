"""Random tables, read through every entry point and compared with plain Python (design/0022)."""
