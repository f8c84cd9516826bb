"""What SQL of the dialect needs of Spark."""
