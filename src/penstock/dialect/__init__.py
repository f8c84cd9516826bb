"""Flink's SQL: text to statements, statements to calls on the handles."""
