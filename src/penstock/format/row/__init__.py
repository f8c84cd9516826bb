"""Binary rows, and the buckets that follow from their hashes."""
