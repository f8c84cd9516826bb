"""Read and write data files as Arrow batches, with their statistics and the mapping of types."""
