"""What happened to a table, as values: what each commit did, and how the table is now."""
