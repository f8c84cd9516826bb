"""The status of every option key: honoured, refused, or of another engine."""
