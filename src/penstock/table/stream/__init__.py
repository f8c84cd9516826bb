"""A table followed as a stream: where it starts, how far a step goes, which files lie in between."""
