"""Refuse features of the format that Penstock does not support; the error gives the reason and an alternative.

There are three lists: reasons not to create a table, not to write it, and not to read it. Each list contains the next
one, because a table with an unsupported feature may still be readable. Options are judged by
``options.status.features``.

Source:
    docs/spec/format.md sections 9 and 10, docs/spec/commit.md section 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.columns import is_without_key
from penstock.errors import UnsupportedFeatureError
from penstock.format.schema import types_within
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.format.types.text import format_sql_type
from penstock.options.status.features import STORED_PREFIXES, Operation, refusals_of
from penstock.options.status.keys import is_known, nearest_key
from penstock.printable import mask_value

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
    return (*_unwritable(schema, options), *_without_key(schema, options))


def create_refusals(schema: TableSchema, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return why Penstock does not create such a table, including the reasons against writing."""
    return (*_unwritable(schema, options), *_uncreatable(schema, options))


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


def check_taggable(ref: TableRef) -> None:
    """Check that nothing outside of the table depends on its tags. Raises ``UnsupportedFeatureError``."""
    raise_refusals(ref.name, "tag or restore", tuple(refusals_of(ref.options, Operation.TAG)))


def check_kind(options: Mapping[str, str], table: str) -> None:
    """Refuse a new table of another kind, whose options have other values. Raises ``UnsupportedFeatureError``."""
    kind = {key: value for key, value in options.items() if key == "type"}
    raise_refusals(table, "create", tuple(refusals_of(kind, Operation.READ)))


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
    yield from refusals_of(options, Operation.READ)
    branch = options.get("branch", "main")
    if branch != "main":
        yield f"'branch' = '{branch}': only the main branch is supported"
    for field in schema.fields:
        for inner in types_within(field.type):
            if isinstance(inner, AtomicType) and inner.root in _UNREADABLE_ROOTS:
                yield f"column '{field.name}' has type {format_sql_type(inner)}, which is not supported: drop it"


def _unwritable(schema: TableSchema, options: Mapping[str, str]) -> tuple[str, ...]:
    reasons = (*_unreadable(schema, options), *refusals_of(options, Operation.APPEND), *_unknown(schema))
    return tuple(dict.fromkeys(reasons))


def newer_refusals(schema: TableSchema) -> tuple[str, ...]:
    """Return why a schema cannot be written again: it has keys that a newer release of Paimon has added."""
    keys = ", ".join(f"'{key}'" for key in schema.unknown_keys)
    cure = "update Penstock, or use the engine that wrote it"
    return (f"schema {schema.id} has keys of a newer release ({keys}): {cure}",) if keys else ()


def _unknown(schema: TableSchema) -> Iterator[str]:
    yield from newer_refusals(schema)
    for key, value in schema.options:
        if key.startswith(STORED_PREFIXES) and not is_known(key):
            near = nearest_key(key)
            cure = f"did you mean '{near}'? If not, " if near else ""
            yield (
                f"option '{key}' = '{mask_value(key, value)}' is not known and may change what is stored: {cure}write "
                "with the engine that set it, or remove the option"
            )


def _without_key(schema: TableSchema, options: Mapping[str, str]) -> Iterator[str]:
    if is_without_key(schema):
        yield (
            f"'bucket' = '{options['bucket']}' without 'bucket-key' is read only here, as Java does not open it: "
            "create a table with a bucket key, or without buckets, and insert the rows of this one"
        )


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
