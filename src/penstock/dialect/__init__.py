"""Run Flink SQL: parse text to statements, and run statements as calls on the API handles."""
