"""Quote names in Spark's SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a column name quoted for SQL and ``F.col``; any character is allowed."""
    return "`" + name.replace("`", "``") + "`"
