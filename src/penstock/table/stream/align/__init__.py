"""Watermark alignment of several streams."""
