"""Avro containers of metadata: limits, reading and writing of blocks and records."""
