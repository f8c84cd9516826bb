"""Marking partitions done, manually or by time."""
