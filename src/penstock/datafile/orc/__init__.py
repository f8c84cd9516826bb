"""ORC data files."""
