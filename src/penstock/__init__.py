"""Apache Paimon append tables for PySpark, in Python, without JARs."""
