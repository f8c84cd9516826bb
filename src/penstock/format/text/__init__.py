"""Numbers, times, partitions and JSON in the text form of Java."""
