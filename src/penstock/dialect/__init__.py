"""SQL text to calls on ``api``."""
