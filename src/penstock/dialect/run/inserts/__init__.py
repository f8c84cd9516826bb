"""What the statements that insert rows share."""
