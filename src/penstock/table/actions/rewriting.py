"""The rules for every operation that writes rows again which a table already holds (design/0078).

Compaction, sort compaction, rescaling, DELETE, UPDATE and MERGE rewrite files. What they are not meant to change must
be equal, cell by cell, before and after. So they read and write existing rows by the newest schema of their files, and
without the rules for new rows: no defaults, no NOT NULL, no lengths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from penstock.errors import CommitConflictError
from penstock.format.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from penstock.table.row_tracking import with_tracked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.types.data_types import DataField, DataType
    from penstock.table.ref import TableRef


def for_existing_rows(ref: TableRef, *, keep_lengths: bool = True, have_ids: bool = True) -> TableRef:
    """Return the table with columns that take every stored value as it is: nullable, and without defaults.

    With row tracking, its rows have their ids and sequence numbers as columns, too.

    A column may have become NOT NULL after NULL was stored in it, and other engines do not check lengths.

    Args:
        keep_lengths: False for a writer that checks lengths. A reader needs them: a value is cut where its column
            became shorter.
        have_ids: False for rows that were not committed yet, to which row tracking has not given ids.
    """
    schema = with_tracked(ref.schema) if have_ids else ref.schema
    return replace(ref, schema=replace(schema, fields=_open_fields(schema.fields, keep_lengths=keep_lengths)))


def as_replacement(
    ref: TableRef, before: Iterable[DataFileMeta], after: Iterable[DataFileMeta]
) -> tuple[DataFileMeta, ...]:
    """Return new files, which hold the remaining rows of existing files, with the creation time of the oldest of these.

    So the order of partitions stays, and a read from a creation time on does not return old rows. (Java Paimon writes
    the current time.) Every operation that rewrites rows calls this: a test lists the callers and the property test
    of rewrites covers each.

    Args:
        ref: the table with the schema by which the rows were read and written.
    """
    before = tuple(before)
    check_schema_of_rewritten(ref, before)
    created = min((file.creation_millis for file in before if file.creation_millis is not None), default=None)
    return tuple(file if created is None else replace(file, creation_millis=created) for file in after)


def check_schema_of_rewritten(ref: TableRef, files: Iterable[DataFileMeta]) -> None:
    """Raise CommitConflictError if a file to rewrite has a newer schema than ``ref``: its new columns would be lost."""
    newest = max((file.schema_id for file in files), default=0)
    if newest > ref.schema.id:
        raise CommitConflictError(
            f"table {ref.name}: a file with schema {newest} was rewritten with schema {ref.schema.id}, which may lack "
            "some of its columns; nothing was committed: load the table again and repeat the change"
        )


def _open_fields(fields: Iterable[DataField], *, keep_lengths: bool) -> tuple[DataField, ...]:
    return tuple(
        replace(field, type=_open_type(field.type, keep_lengths=keep_lengths), default_value=None) for field in fields
    )


def _open_type(data_type: DataType, *, keep_lengths: bool) -> DataType:
    """Return the nullable type, also inside; keys of maps stay NOT NULL in every file."""
    match data_type:
        case AtomicType(length=length):
            return replace(data_type, nullable=True, length=length if keep_lengths or length is None else MAX_LENGTH)
        case ArrayType(element=element) | VectorType(element=element) | MultisetType(element=element):
            return replace(data_type, nullable=True, element=_open_type(element, keep_lengths=keep_lengths))
        case MapType(key=key, value=value):
            return MapType(
                key=_open_type(key, keep_lengths=keep_lengths), value=_open_type(value, keep_lengths=keep_lengths)
            )
        case RowType(fields=fields):
            return RowType(fields=_open_fields(fields, keep_lengths=keep_lengths))
        case other:
            assert_never(other)
