"""Numbers, times, partitions and JSON as Java writes them."""
