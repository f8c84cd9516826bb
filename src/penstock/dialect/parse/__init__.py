"""Parse SQL text to statement values."""
