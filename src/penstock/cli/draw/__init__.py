"""Draws the history that `penstock.table.inspect.history` read, as a page or on a terminal; reads no table itself."""
