"""What a commit does besides its rows: retention, tags, partitions marked done."""
