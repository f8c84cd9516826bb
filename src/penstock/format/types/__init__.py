"""Column types, and their text form in schema files and SQL."""
