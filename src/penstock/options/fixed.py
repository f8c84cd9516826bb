"""Options that define where a table's files and rows are stored. They must be the same for all handles of the table.

A writer with another value than the stored one would commit files where no reader looks for them, or write rows to a
bucket where a filter on the key does not find them.

Source:
    Paimon ``core:schema/SchemaManager.java`` (``checkAlterTableOption``), ``api:CoreOptions.java`` (immutable options).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError
from penstock.options.layout import BucketOptions, LayoutOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

FIXED: Final = frozenset({"type", "path", "branch"})
"""Options that never change, not even in an empty table: they are determined when the directory is created."""

FIXED_WITH_DATA: Final = frozenset(
    {
        "bucket-key",
        "bucket-function.type",
        "data-file.path-directory",
        # Partition directories are not stored: every reader computes their names from the partition values.
        "partition.default-name",
        "partition.legacy-name",
        "partition",
        "primary-key",
        "primary-key.nullable",
        "row-tracking.enabled",
        "data-evolution.enabled",
        "index-file-in-data-file-dir",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
        "merge-engine",
        "rowkind.field",
        "sequence.snapshot-ordering",
    }
)
"""Options that cannot change once the table has snapshots."""

DEFAULTS: Final[Mapping[str, str]] = {
    "type": "table",
    "branch": "main",
    "bucket": "-1",
    "bucket-function.type": "default",
    "bucket-append-ordered": "true",
    "partition.default-name": "__DEFAULT_PARTITION__",
    "partition.legacy-name": "true",
    "row-tracking.enabled": "false",
    "data-evolution.enabled": "false",
    "index-file-in-data-file-dir": "false",
    "deletion-vectors.enabled": "false",
}
"""Defaults: setting an option to its default is not a change."""

_FEATURES: Final = frozenset({"row-tracking.enabled", "data-evolution.enabled", "deletion-vectors.enabled"})
_FIXED_FOR_ONE_USE: Final = FIXED_WITH_DATA | _FEATURES | {"type", "path", "bucket", "bucket-append-ordered"}


def check_one_use(given: Mapping[str, str], stored: Mapping[str, str], table: str, location: str) -> None:
    """Check that the options of a handle do not change the stored layout of the table.

    Args:
        given: options of the handle; an option may be repeated with its stored value.
        stored: options of the table.
        location: the table's directory, which is its ``path``.

    Raises:
        InvalidOptionError: an option changes the layout; the message names it and how to set it.
    """
    for key, value in given.items():
        # A value that enables a feature is refused elsewhere; this check refuses values that disable a table's feature.
        if key not in _FIXED_FOR_ONE_USE or (key in _FEATURES and value.strip().lower() == "true"):
            continue
        before = location if key == "path" else stored.get(key, DEFAULTS.get(key))
        if _meaning(key, value) != _meaning(key, before):
            was = "unset" if before is None else f"'{before}'"
            raise InvalidOptionError(
                f"table {table}: option '{key}' = '{value}' cannot be given for one use: it determines where rows and "
                f"files are, is {was} in the table, and every reader relies on that; leave it out, or create "
                "a table with it"
            )


def _meaning(key: str, text: str | None) -> object:
    if text is None:
        return None
    match key:
        case "bucket-key":
            return BucketOptions.parse({key: text}).bucket_key
        case "partition.legacy-name":
            return LayoutOptions.parse({key: text}).legacy_partition_name
        case "path":
            return text.rstrip("/")
        case "data-file.path-directory" | "partition.default-name" | "partition" | "primary-key":
            return text
        case _:
            return text.strip().lower()
