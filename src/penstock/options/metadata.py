"""Limits on how much of a metadata file, or of a server's answer, is loaded into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.format.avro.values import BLOCK_KEY, DEFAULT_LIMITS, FILE_KEY, RECORDS_KEY, AvroLimits
from penstock.options.group import OptionGroup, at_least, option, parse_bytes, parse_int, parse_long

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_KEY: Final = "penstock.metadata.max-answer-size"
PAGES_KEY: Final = "penstock.metadata.max-pages"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataOptions(OptionGroup):
    """Limits of one manifest, manifest list or index manifest, and of the answers of a REST catalog.

    Attributes:
        max_answer_bytes: uncompressed bytes of an answer, like the limit of other JSON metadata.
        max_pages: of a list; a page has at most 100 names.
    """

    max_block_bytes: int = option(
        BLOCK_KEY,
        at_least(1, parse_bytes),
        DEFAULT_LIMITS.block_bytes,
        "most uncompressed bytes of a block of a manifest; larger than the default only for one use",
    )
    max_file_bytes: int = option(
        FILE_KEY,
        at_least(1, parse_bytes),
        DEFAULT_LIMITS.file_bytes,
        "most uncompressed bytes of a whole manifest; larger than the default only for one use",
    )
    max_records: int = option(
        RECORDS_KEY,
        at_least(1, parse_long),
        DEFAULT_LIMITS.records,
        "most entries of a manifest; larger than the default only for one use",
    )
    max_answer_bytes: int = option(
        ANSWER_KEY,
        at_least(1, parse_bytes),
        32 << 20,
        "most uncompressed bytes of an answer of a REST catalog; only as an option of the catalog",
    )
    max_pages: int = option(
        PAGES_KEY,
        at_least(1, parse_int),
        1_000,
        "most pages, of 100 names each, of a list of a REST catalog; only as an option of the catalog",
    )


def metadata_limits(stored: Mapping[str, str], dynamic: Mapping[str, str], *, table: str | None = None) -> AvroLimits:
    """Return the limits for a handle of a table.

    Args:
        stored: options of the schema. They can lower limits but not raise them, because a user who can write a table's
            manifests can write its schema too.
        dynamic: options of the handle; they take precedence.
        table: table name for messages.
    """
    own = MetadataOptions.parse(stored, table=table)
    default = MetadataOptions()
    used = MetadataOptions.parse(
        {
            BLOCK_KEY: str(min(own.max_block_bytes, default.max_block_bytes)),
            FILE_KEY: str(min(own.max_file_bytes, default.max_file_bytes)),
            RECORDS_KEY: str(min(own.max_records, default.max_records)),
        },
        dynamic,
        table=table,
    )
    return AvroLimits(block_bytes=used.max_block_bytes, file_bytes=used.max_file_bytes, records=used.max_records)
