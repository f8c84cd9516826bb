"""Checks for stale schemas.

A handle must not cast values of a newer file to an older type that cannot hold them, nor write with an older number of
buckets into partitions that do not have it any more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.datafile.widening import keeps_values
from penstock.errors import CommitConflictError, InvalidOptionError, SchemaMismatchError
from penstock.format.manifest.entry import FileKind
from penstock.format.types.data_types import with_nullability
from penstock.format.types.text import format_sql_type
from penstock.options import BucketOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.format.types.data_types import DataField
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


def check_schema_of_file(ref: TableRef, store: MetadataStore, schema_id: int, fields: Iterable[DataField]) -> None:
    """Raise if a file was written with a newer schema in which a column has a type that the read schema cannot hold.

    Files that are older than the read schema are cast by the rules of the format: a user requested that cast by
    altering the column.

    Args:
        ref: its schema is the read schema.
        schema_id: of the file.
        fields: columns of the read schema to read.
    """
    if schema_id <= ref.schema.id:
        return
    stored = {field.id: field.type for field in store.load_schema(schema_id).fields}
    for field in fields:
        newer = stored.get(field.id)
        if newer is not None and not keeps_values(newer, field.type):
            raise SchemaMismatchError(
                f"table {ref.name}: column '{field.name}' became {format_sql_type(newer)} in schema {schema_id}, and "
                f"is read here as {format_sql_type(field.type)}, its type in schema {ref.schema.id}, which cannot hold "
                "all its values: load the table again; a stream has to be started again, from its checkpoint"
            )


def at_latest_schema(ref: TableRef, store: MetadataStore) -> TableRef:
    """Return the table with its latest schema. Raises as ``MetadataStore.load_latest_schema``."""
    latest = store.load_latest_schema()
    return ref if latest.id == ref.schema.id else replace(ref, schema=latest)


def check_schema_of_rewrites(
    ref: TableRef, store: MetadataStore, files: Iterable[DataFileMeta], latest_id: int
) -> None:
    """Raise if rows were rewritten with an older type of a column: the new files would keep the cast to that type.

    Args:
        files: the new files.
        latest_id: id of the table's latest schema.
    """
    ids = {file.schema_id for file in files} - {latest_id}
    if not ids:
        return
    latest = {field.id: field.type for field in store.load_schema(latest_id).fields}
    for schema_id in ids:
        for field in store.load_schema(schema_id).fields:
            now = latest.get(field.id, field.type)
            if with_nullability(now, nullable=True) != with_nullability(field.type, nullable=True):
                raise CommitConflictError(
                    f"table {ref.name}: column '{field.name}' became {format_sql_type(now)} while rows were rewritten "
                    f"as {format_sql_type(field.type)}; nothing was committed: plan again from the latest schema"
                )


def check_buckets_of_new_files(
    ref: TableRef,
    store: MetadataStore,
    delta: Sequence[ManifestEntry],
    *,
    known_buckets: Mapping[bytes, int],
    latest_id: int,
) -> None:
    """Raise if a writer that does not know the table's number of buckets brings an old number into a partition.

    Writers that know it could not write to the partition any more. Where the partition still has files of the old
    number, it stays as it is.

    Args:
        ref: with the writer's schema.
        delta: the changes to be committed.
        known_buckets: number of buckets of the partitions to which files are added.
        latest_id: id of the table's latest schema.
    """
    if ref.schema.id == latest_id or all(entry.total_buckets < 0 for entry in delta):
        return
    buckets = replace(ref, schema=store.load_schema(latest_id)).parsed(BucketOptions).bucket
    present = set(known_buckets.items())
    present |= {(entry.partition, entry.total_buckets) for entry in delta if entry.kind is FileKind.DELETE}
    for entry in delta:
        number = entry.total_buckets
        if entry.kind is FileKind.ADD and number != buckets and (entry.partition, number) not in present:
            raise InvalidOptionError(
                f"table {ref.name}: rows were written with {number} buckets, and since then option 'bucket' has become "
                f"{buckets}; nothing was committed: load the table again; a stream has to be started again"
            )
