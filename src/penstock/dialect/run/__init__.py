"""From statement values to calls of the API."""
