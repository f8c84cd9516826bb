"""Views of a catalog in Spark."""
