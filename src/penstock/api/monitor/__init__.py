"""What monitoring systems read."""
