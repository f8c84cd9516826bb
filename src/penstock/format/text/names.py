"""Names in SQL text."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name in backquotes, in which SQL and Spark's ``F.col`` accept any name."""
    return "`" + name.replace("`", "``") + "`"
