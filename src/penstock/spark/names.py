"""Names in Spark's SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a column's name as SQL and ``F.col`` take it, whatever it is made of."""
    return "`" + name.replace("`", "``") + "`"
