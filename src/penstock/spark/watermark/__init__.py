"""Event times of Spark's rows."""
