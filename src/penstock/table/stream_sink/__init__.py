"""Exactly-once commits of the micro-batches of a stream."""
