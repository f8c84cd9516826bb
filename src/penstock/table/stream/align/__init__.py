"""Alignment of the watermarks of several streams."""
