"""What a schema and its options must fulfil."""
