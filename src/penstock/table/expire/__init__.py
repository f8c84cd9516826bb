"""Removal of snapshots, partitions and files that are not needed any more; rollback."""
