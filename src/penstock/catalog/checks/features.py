"""Refuse features of the format that Penstock does not support; the error gives the reason and an alternative.

There are three lists: reasons not to create a table, not to write it, and not to read it. Each list contains the next
one, because a table with an unsupported feature may still be readable.

Source:
    docs/spec/format.md sections 9 and 10, docs/spec/commit.md section 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.nested import types_within
from penstock.catalog.checks.options import is_true
from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.format.schema import TableSchema
    from penstock.table.ref import TableRef

_UNREADABLE_ROOTS: Final = frozenset({TypeRoot.BLOB, TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY})


def read_refusals(schema: TableSchema, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return why rows of such a table cannot be read correctly; empty if they can.

    Args:
        options: the stored options, overridden by the options of the handle.
    """
    return tuple(_unreadable(schema, options))


def write_refusals(schema: TableSchema, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return why such a table cannot be written, including the reasons against reading."""
    return (*_unreadable(schema, options), *_unwritable(options))


def create_refusals(schema: TableSchema, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return why Penstock does not create such a table, including the reasons against writing."""
    return (*write_refusals(schema, options), *_uncreatable(schema, options))


def check_readable(ref: TableRef) -> None:
    """Check that the table's rows can be read correctly.

    Deletion vectors are not checked here: they are in the index manifest of a snapshot, and the scan refuses them.

    Raises:
        UnsupportedFeatureError: the table cannot be read; the message has all reasons.
    """
    raise_refusals(ref.name, "read", read_refusals(ref.schema, ref.options))


def check_writable(ref: TableRef) -> None:
    """Check that rows can be appended to the table. Raises ``UnsupportedFeatureError`` with all reasons."""
    raise_refusals(ref.name, "write", write_refusals(ref.schema, ref.options))


def check_kind(options: Mapping[str, str], table: str) -> None:
    """Refuse a new table of another kind, whose options have other values. Raises ``UnsupportedFeatureError``."""
    raise_refusals(table, "create", tuple(_other_kind(options)))


def raise_refusals(table: str, verb: str, refusals: tuple[str, ...]) -> None:
    """Raise ``UnsupportedFeatureError`` if there are any reasons."""
    if refusals:
        raise UnsupportedFeatureError(f"table {table}: cannot {verb} it: {'; '.join(refusals)}")


def _unreadable(schema: TableSchema, options: Mapping[str, str]) -> Iterator[str]:
    if schema.primary_keys:
        yield (
            f"it has a primary key ({', '.join(schema.primary_keys)}), and Penstock keeps append tables only:"
            " create it without one, or use Flink or Spark with Paimon"
        )
    yield from _other_kind(options)
    if is_true(options, "data-evolution.enabled"):
        yield "'data-evolution.enabled' spreads a row over several files: copy the table without it"
    branch = options.get("branch", "main")
    if branch != "main":
        yield f"'branch' = '{branch}': only the main branch is supported"
    manifests = options.get("manifest.format", "avro").lower()
    if manifests != "avro":
        yield f"'manifest.format' = '{manifests}': only avro is supported"
    for field in schema.fields:
        for inner in types_within(field.type):
            if isinstance(inner, AtomicType) and inner.root in _UNREADABLE_ROOTS:
                yield f"column '{field.name}' has type {format_sql_type(inner)}, which is not supported: drop it"


def _other_kind(options: Mapping[str, str]) -> Iterator[str]:
    kind = options.get("type", "table").lower()
    if kind != "table":
        yield f"'type' = '{kind}' is not an ordinary table: only 'table' is supported"


def _unwritable(options: Mapping[str, str]) -> Iterator[str]:
    if is_true(options, "deletion-vectors.enabled"):
        yield "'deletion-vectors.enabled' = 'true' is read only here: write a table without it"
    if is_true(options, "row-tracking.enabled"):
        yield "'row-tracking.enabled' = 'true' is read only here: write a table without it"
    if options.get("bucket-function.type", "default").lower() == "hive":
        yield "'bucket-function.type' = 'hive' is read only here: use 'default' or 'mod'"


def _uncreatable(schema: TableSchema, options: Mapping[str, str]) -> Iterator[str]:
    if options.get("partition.legacy-name", "true").lower() == "false":
        return
    types = {field.name: field.type for field in schema.fields}
    for name in schema.partition_keys:
        data_type = types.get(name)
        if isinstance(data_type, AtomicType) and data_type.root in (TypeRoot.BINARY, TypeRoot.VARBINARY):
            yield (
                f"partition key '{name}' of type {format_sql_type(data_type)} has no stable directory name:"
                " set 'partition.legacy-name' = 'false', or partition by another column"
            )
