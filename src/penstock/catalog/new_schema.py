"""Build the first schema of a table from the user's definition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.columns import check_column_names, check_defaults, check_new_files, check_schema
from penstock.catalog.checks.features import check_kind, create_refusals, raise_refusals
from penstock.catalog.checks.options import (
    BUCKET,
    BUCKET_KEY,
    UNAWARE_BUCKET,
    check_given_options,
    check_no_fallback_branch,
    normalised_keys,
    with_bucket_key,
)
from penstock.catalog.schema_changes import CURRENT_VERSION
from penstock.errors import InvalidOptionError
from penstock.format.schema import TableSchema, assign_field_ids
from penstock.format.watermark import watermark_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.format.types.ddl import ColumnSpec

TABLE_DEFAULT_PREFIX: Final = "table-default."

# Options for the location and for the use of a table; they are not stored with it.
_NOT_STORED: Final = {
    "path": "the catalog gives the table its place; to use another, name the table by its location",
    "auto-create": "call create_table",
    "branch": "a table is created on its main branch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """The user's definition of a new table.

    Attributes:
        options: pairs of options; they override the catalog's ``table-default.`` options.
        watermark: the event time column and the delay, such as ``("order_time", "INTERVAL '5' SECOND")``; the delay is
            None for no delay.
    """

    columns: tuple[ColumnSpec, ...]
    partition_by: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    comment: str | None = None
    watermark: tuple[str, str | None] | None = None


def table_defaults(catalog_options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that a catalog gives to new tables: its ``table-default.<key>`` options.

    Source:
        Paimon ``core:catalog/CatalogUtils.java`` (``tableDefaultOptions``).
    """
    return {
        key.removeprefix(TABLE_DEFAULT_PREFIX): value
        for key, value in catalog_options.items()
        if key.startswith(TABLE_DEFAULT_PREFIX)
    }


def build_schema(
    definition: TableDefinition, *, defaults: Mapping[str, str], table: str, time_millis: int
) -> TableSchema:
    """Build and check ``schema-0``.

    Args:
        defaults: the result of ``table_defaults``.
        table: table name for messages.
        time_millis: creation time of the table, ms since 1970-01-01 UTC.

    Raises:
        InvalidSchemaError: columns, partition keys or the watermark are invalid.
        InvalidOptionError: an option is invalid, or two options exclude each other.
        UnsupportedFeatureError: the table uses a feature of the format that Penstock does not support.
    """
    fields, highest_id = assign_field_ids(definition.columns)
    check_column_names(fields, table)
    options = _with_defaults(dict(definition.options), defaults)
    _check_stored(options, table)
    check_kind(options, table)
    check_given_options(options, table)
    check_no_fallback_branch(options, table)
    options, partition_keys = normalised_keys(options, definition.partition_by, table)
    if definition.watermark is not None:
        options |= watermark_options(fields, *definition.watermark, table)
    options = with_bucket_key(options, fields, partition_keys, table)
    schema = TableSchema(
        id=0,
        fields=fields,
        highest_field_id=highest_id,
        partition_keys=partition_keys,
        options=tuple(options.items()),
        comment=definition.comment,
        time_millis=time_millis,
        version=CURRENT_VERSION,
    )
    raise_refusals(table, "create", create_refusals(schema, options))
    check_schema(schema, table)
    check_new_files(schema.fields, schema.option_map, table)
    check_defaults(fields, table)
    return schema


def _with_defaults(given: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Merge options over the catalog's defaults; a table without buckets does not get the default bucket key."""
    merged = {**defaults, **given}
    if merged.get(BUCKET, str(UNAWARE_BUCKET)) == str(UNAWARE_BUCKET) and BUCKET_KEY not in given:
        merged.pop(BUCKET_KEY, None)
    return merged


def _check_stored(options: Mapping[str, str], table: str) -> None:
    for key, cure in _NOT_STORED.items():
        if key in options:
            raise InvalidOptionError(f"table {table}: option '{key}' is not a property of a table: {cure}")
