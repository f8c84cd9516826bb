"""Draws the history that `penstock.api.history` reads, as a page or on a terminal; reads no table itself."""
