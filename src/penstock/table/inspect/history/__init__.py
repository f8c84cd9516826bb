"""A table's history as values: the changes of each commit, and the current state of the table."""
