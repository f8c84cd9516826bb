"""Tags: files, readers, and the periods of automatic tags."""
