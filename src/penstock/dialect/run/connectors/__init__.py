"""Tables of a session with a connector: how they are declared and read."""
