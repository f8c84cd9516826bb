"""``format("penstock")``: Spark's Python Data Source API. Its streams are for Spark Connect."""
