"""From SQL text to statement values."""
