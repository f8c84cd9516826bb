"""What a commit of a table does beside the rows: retention, tags, partitions done."""
