"""Row changes by copy-on-write: DELETE, UPDATE and MERGE replace the files that contain rows to change."""
