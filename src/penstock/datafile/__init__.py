"""Arrow batches to one data file and back, its statistics, the mapping of types."""
