"""Exactly-once commits of the batches of a stream."""
