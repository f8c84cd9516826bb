"""Conversion of directories of files, and of tables of other formats, into tables; and export to Parquet."""
