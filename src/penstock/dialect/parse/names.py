"""Names and pairs of names, as statements hold them."""

from __future__ import annotations

from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
"""A name of one to three parts: the last is the table's, before it the database's and the catalog's."""
Pairs: TypeAlias = tuple[tuple[str, str], ...]
PartitionSpec: TypeAlias = tuple[tuple[str, str | None], ...]
"""Partition columns with the text of their values; None for NULL."""
