"""Run statement values as calls of the API."""
