"""Operations on a table, as functions: scan, write, commit, time travel, system tables."""
