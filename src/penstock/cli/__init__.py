"""Commands compute values; ``render`` prints them."""
