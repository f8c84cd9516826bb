"""Names in SQL text."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name in back quotes, as SQL and Spark's ``F.col`` take any name."""
    return "`" + name.replace("`", "``") + "`"
