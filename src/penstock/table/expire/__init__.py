"""Removal of snapshots, partitions and files that are no longer needed; rollback."""
