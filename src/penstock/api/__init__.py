"""``Catalog`` and ``Table``: the handles that users hold; they delegate to the packages below."""
