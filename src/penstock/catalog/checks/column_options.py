"""Table options that name columns: a rename updates them, and a column that they name cannot be dropped.

Source:
    Paimon ``core:schema/SchemaManager.java`` (``applyRenameColumnsToOptions``), ``api:CoreOptions.java``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FIELDS_PREFIX: Final = "fields."
FILE_INDEX_PREFIX: Final = "file-index."

# This key applies to every column; ``default-aggregate-function`` in it is not a column name.
DEFAULT_AGGREGATE_KEY: Final = "fields.default-aggregate-function"

_COLUMN_LISTS: Final = frozenset(
    {
        "bucket-key",
        "clustering.columns",
        "sequence.field",
        "rowkind.field",
        "record-level.time-field",
        "orc.bloom.filter.columns",
        "sink.clustering.by-columns",
        "vector-field",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
    }
)
# Only these options hold column names in their values; ``stats-mode`` = 'full' does not mean a column ``full``.
_COLUMN_LIST_SUFFIXES: Final = (".sequence-group", ".nested-key")
_FILE_INDEX_COLUMNS: Final = ".columns"


def split_names(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated list of columns; blanks around names are removed."""
    return tuple(name for name in (part.strip() for part in (text or "").split(",")) if name)


def rename_in_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Return the options with a top-level column renamed in keys and values, in the same order."""
    return {_renamed_key(key, old, new): _renamed_value(key, value, old, new) for key, value in options.items()}


def key_columns(key: str) -> tuple[str, ...]:
    """Return the columns named in the key: ``fields.a,b.sequence-group`` names a and b."""
    if not key.startswith(FIELDS_PREFIX) or key == DEFAULT_AGGREGATE_KEY:
        return ()
    return tuple(key[len(FIELDS_PREFIX) :].partition(".")[0].split(","))


def value_columns(key: str, value: str) -> tuple[str, ...]:
    """Return the columns named in the value; a file index over a map names it as ``column[key]``."""
    if _holds_columns(key):
        return tuple(name.partition("[")[0] for name in split_names(value))
    return ()


def _holds_columns(key: str) -> bool:
    if key in _COLUMN_LISTS:
        return True
    if key.startswith(FIELDS_PREFIX):
        return key.endswith(_COLUMN_LIST_SUFFIXES)
    return key.startswith(FILE_INDEX_PREFIX) and key.endswith(_FILE_INDEX_COLUMNS)


def _renamed_key(key: str, old: str, new: str) -> str:
    names = key_columns(key)
    if old in names:
        rest = key[len(FIELDS_PREFIX) + len(",".join(names)) :]
        return FIELDS_PREFIX + ",".join(new if name == old else name for name in names) + rest
    return _renamed_file_index_key(key, old, new)


def _renamed_file_index_key(key: str, old: str, new: str) -> str:
    # file-index.<type>.<column>.<setting>; a map column may have a key: <column>[<key>]
    parts = key.split(".", 3)
    if key.startswith(FILE_INDEX_PREFIX) and len(parts) == 4:
        name, bracket, rest = parts[2].partition("[")
        if name == old:
            parts[2] = new + bracket + rest
    return ".".join(parts)


def _renamed_value(key: str, value: str, old: str, new: str) -> str:
    if old not in value_columns(key, value):
        return value
    return ",".join(_renamed_entry(entry, old, new) for entry in split_names(value))


def _renamed_entry(entry: str, old: str, new: str) -> str:
    name, bracket, rest = entry.partition("[")
    return new + bracket + rest if name == old else entry


def unknown_columns(options: Mapping[str, str], columns: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield (key, column) for every option that names a column which the table does not have."""
    for key, value in options.items():
        for name in (*key_columns(key), *value_columns(key, value)):
            if name not in columns:
                yield key, name
