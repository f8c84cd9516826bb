"""Draws the history from `penstock.api.history` as a page or in a terminal; reads no table itself."""
