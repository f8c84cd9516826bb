"""DELETE, UPDATE and MERGE: files with rows to change are replaced, or get deletion vectors."""
