"""Binary rows, and the buckets computed from their hashes."""
