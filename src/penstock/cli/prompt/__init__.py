"""The interactive prompt of ``penstock sql``; imported when a prompt is shown."""
