"""Tables of files, generated rows and printed rows, for SQL scripts."""
