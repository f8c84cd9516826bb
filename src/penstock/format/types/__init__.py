"""Column types, and their texts in schemas and SQL."""
