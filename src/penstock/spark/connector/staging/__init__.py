"""Tables that a statement creates or replaces together with its rows."""
