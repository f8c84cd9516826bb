"""Draws what `penstock.table.story` gathered: as a page, and on a terminal. Nothing here looks at a table."""
