"""Event times of rows in Spark."""
