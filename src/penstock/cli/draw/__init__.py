"""Draws what `penstock.table.inspect.history` gathered: as a page, and on a terminal. Nothing here looks at a table."""
