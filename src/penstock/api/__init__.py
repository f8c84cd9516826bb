"""``Catalog`` and ``Table``: the thin handles that users hold."""
