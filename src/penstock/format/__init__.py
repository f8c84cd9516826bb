"""The format: values, enums, bytes to values and back, file names. Pure: no files, clock, threads, environment."""
