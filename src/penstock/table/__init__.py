"""What a table does, as functions: scan, write, commit, time travel, system tables."""
