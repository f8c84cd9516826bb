"""The commands, each imported when it is run."""
