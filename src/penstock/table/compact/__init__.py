"""Small files to large ones: what to merge, and the merge itself."""
