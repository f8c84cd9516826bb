"""Compaction: planning which small files to merge, and merging them."""
