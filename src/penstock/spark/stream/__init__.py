"""Streaming reads and writes by Spark."""
