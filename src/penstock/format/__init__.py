"""The file format: values, enums, codecs, file names. Pure code: no files, clock, threads or environment."""
