"""Batch reads by Spark."""
