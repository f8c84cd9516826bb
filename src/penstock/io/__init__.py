"""Storage: the ``FileIO`` protocol and its implementations."""
