"""Removal of snapshots, partitions and files that nothing needs any more; rollback."""
