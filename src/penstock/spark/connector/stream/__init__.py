"""Streaming queries on the tables of a catalog: sources and sinks that run in the driver's process."""
