"""Types for names in statements."""

from __future__ import annotations

from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
"""A name of one to three parts: table; database and table; or catalog, database and table."""
Pairs: TypeAlias = tuple[tuple[str, str], ...]
PartitionSpec: TypeAlias = tuple[tuple[str, str | None], ...]
"""Partition columns with their values as text; None is NULL."""
