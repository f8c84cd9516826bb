"""Actions around commits: row changes, retention, tags, marking partitions done."""
