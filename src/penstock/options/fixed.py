"""Options that say where the files and rows of a table lie: they hold for every user of the table, or for none.

A writer that follows another value than the stored one commits files where no reader looks for them, or rows to a
bucket in which a filter on the key does not find them.

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
"""Never change, not even in an empty table: what the directory is and where it lies was decided when it was made."""

FIXED_WITH_DATA: Final = frozenset(
    {
        "bucket-key",
        "bucket-function.type",
        "data-file.path-directory",
        # Directories of partitions are not stored but made from the values again, by every reader.
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
"""Do not change once there are snapshots."""

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
"""Setting an option to its default is no change."""

_FEATURES: Final = frozenset({"row-tracking.enabled", "data-evolution.enabled", "deletion-vectors.enabled"})
_FIXED_FOR_ONE_USE: Final = FIXED_WITH_DATA | _FEATURES | {"type", "path", "bucket", "bucket-append-ordered"}


def check_one_use(given: Mapping[str, str], stored: Mapping[str, str], table: str, location: str) -> None:
    """Check that options of one use leave the layout of the table as it is stored.

    Args:
        given: options of this use; the value that is stored already may be given.
        stored: options of the table.
        location: the table's directory, which is its ``path``.

    Raises:
        InvalidOptionError: naming the option and how it may be set.
    """
    for key, value in given.items():
        # What asks for a feature is refused as not supported; here, what would have the table taken for one without.
        if key not in _FIXED_FOR_ONE_USE or (key in _FEATURES and value.strip().lower() == "true"):
            continue
        before = location if key == "path" else stored.get(key, DEFAULTS.get(key))
        if _meaning(key, value) != _meaning(key, before):
            was = "unset" if before is None else f"'{before}'"
            raise InvalidOptionError(
                f"table {table}: option '{key}' = '{value}' cannot be given for one use: it says where rows and files "
                f"lie, is {was} in the table, and every reader goes by that; leave it out, or create a table with it"
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
