"""The status of every option key: honoured, ignored or refused."""
