"""Storage: the ``FileIO`` seam and its implementations."""
