"""Changes of rows by copy on write: DELETE, UPDATE and MERGE replace the files that hold rows to change."""
