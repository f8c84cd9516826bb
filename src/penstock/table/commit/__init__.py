"""What keeps writers, readers and maintenance that run at once from harming each other."""
