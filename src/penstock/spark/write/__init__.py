"""Batch writes by Spark."""
