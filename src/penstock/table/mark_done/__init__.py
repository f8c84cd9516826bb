"""Partitions marked done, by hand or by time."""
