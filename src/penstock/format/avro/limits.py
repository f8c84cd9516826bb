"""Limits on Avro metadata files, so that a small damaged or hostile file does not fill the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroLimits:
    """Limits of one manifest, manifest list or index manifest.

    Attributes:
        block_bytes: of one block, uncompressed; writers end a block at 64 KB.
        file_bytes: of all blocks together, uncompressed.
        records: of all blocks together. Arrays in them may have ``ITEMS_PER_RECORD`` times as many items together.
    """

    block_bytes: int = 256 << 20
    file_bytes: int = 256 << 20
    records: int = 1_000_000


DEFAULT_LIMITS: Final = AvroLimits()
BLOCK_KEY: Final = "penstock.metadata.max-block-size"
FILE_KEY: Final = "penstock.metadata.max-file-size"
RECORDS_KEY: Final = "penstock.metadata.max-records"
ITEMS_PER_RECORD: Final = 8
MOST_EMPTY_ITEMS: Final = 65_536
"""Maximum number of nulls and other zero-byte items in one kind of array; no Paimon file has any."""
