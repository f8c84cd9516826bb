"""Avro container files of metadata: limits, and reading and writing of blocks and records."""
