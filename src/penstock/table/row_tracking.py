"""Row tracking: each row of a table has an id that it keeps, and the snapshot that wrote it last.

New files have neither. Their commit gives a file the id of its first row, from which those of the others follow, and
its snapshot's id as sequence number. A file of rows that were moved has both as columns.

Source:
    Paimon ``api:table/SpecialFields.java``, ``core:operation/commit/RowTrackingCommitUtils.java``,
    ``core:io/DataFileRecordReader.java``, ``core:io/RowDataFileSequenceNumberTracker.java``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import FormatError
from penstock.format.manifest.entry import FileKind
from penstock.format.schema import SYSTEM_FIELD_IDS
from penstock.format.types.data_types import AtomicType, DataField, TypeRoot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.format.schema import TableSchema

_NUMBER: Final = AtomicType(root=TypeRoot.BIGINT)
ROW_ID: Final = DataField(id=SYSTEM_FIELD_IDS["_ROW_ID"], name="_ROW_ID", type=_NUMBER)
SEQUENCE_NUMBER: Final = DataField(id=SYSTEM_FIELD_IDS["_SEQUENCE_NUMBER"], name="_SEQUENCE_NUMBER", type=_NUMBER)
TRACKED: Final = (ROW_ID, SEQUENCE_NUMBER)
"""Columns of files with rows from other files, after those of the table."""


def is_tracked(options: Mapping[str, str]) -> bool:
    """Whether a table with these options tracks its rows."""
    return options.get("row-tracking.enabled", "false").strip().lower() == "true"


def with_tracked(schema: TableSchema) -> TableSchema:
    """Return a schema with the columns of row tracking; unchanged if the table does not track its rows."""
    if not is_tracked(schema.option_map) or has_tracked(schema.fields):
        return schema
    return replace(schema, fields=(*schema.fields, *TRACKED))


def has_tracked(fields: Sequence[DataField]) -> bool:
    """Whether columns include some of row tracking."""
    return any(field in fields for field in TRACKED)


def holds_ids(file: DataFileMeta) -> bool:
    """Whether a file has the ids of its rows as a column."""
    return file.write_cols is not None and ROW_ID.name in file.write_cols


def has_ids(file: DataFileMeta) -> bool:
    """Whether the rows of a file have ids; those of a new file get them by its commit."""
    return file.first_row_id is not None or holds_ids(file)


def with_numbers(file: DataFileMeta, first: int, last: int) -> DataFileMeta:
    """Return a file with this range of sequence numbers; unchanged if its rows have numbers of their own."""
    return file if holds_ids(file) else replace(file, min_sequence_number=first, max_sequence_number=last)


def numbered(batches: Iterable[pa.RecordBatch], file: DataFileMeta, table: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with their ids and sequence numbers, where the file does not have them itself.

    Args:
        batches: all rows of the file, with one of the columns or both, which are null in a file without them.
        table: its name, for messages.

    Raises:
        FormatError: a row has no id.
    """
    row = 0
    for batch in batches:
        yield _numbered(batch, file, row, table)
        row += batch.num_rows


def _numbered(batch: pa.RecordBatch, file: DataFileMeta, row: int, table: str) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if ROW_ID.name in columns and columns[ROW_ID.name].null_count:
        if file.first_row_id is None:
            raise FormatError(
                f"table {table}: {file.file_name} has rows without an id, and its manifest gives it none: an engine "
                "wrote it that does not know row tracking; copy the rows into another table"
            )
        first = file.first_row_id + row
        given = pa.array(np.arange(first, first + batch.num_rows))
        columns[ROW_ID.name] = pc.coalesce(columns[ROW_ID.name], given)
    if SEQUENCE_NUMBER.name in columns:
        columns[SEQUENCE_NUMBER.name] = columns[SEQUENCE_NUMBER.name].fill_null(file.max_sequence_number)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def renumbered(batch: pa.RecordBatch, rows: int) -> dict[str, ArrowAny]:
    """Return the value that changed rows get besides those that were set: no sequence number, until their commit.

    Args:
        batch: the rows before.
        rows: how many of them changed.
    """
    name = SEQUENCE_NUMBER.name
    return {name: pa.nulls(rows, pa.int64())} if name in batch.schema.names else {}


class NumberRange:
    """The range of the sequence numbers of a file's rows; 0 stands for that of a commit that is not made yet."""

    __slots__ = ("_first", "_has_new", "_last")

    def __init__(self) -> None:
        self._first: int | None = None
        self._last = 0
        self._has_new = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch into account."""
        numbers = batch.column(SEQUENCE_NUMBER.name)
        self._has_new = self._has_new or numbers.null_count > 0
        first, last = pc.min(numbers).as_py(), pc.max(numbers).as_py()
        if first is not None:
            self._first = first if self._first is None else min(self._first, first)
            self._last = max(self._last, last)

    def describe(self, file: DataFileMeta, schema: TableSchema) -> DataFileMeta:
        """Return the metadata of a file with these rows, which has the columns of a schema."""
        return replace(
            file,
            min_sequence_number=self._first or 0,
            max_sequence_number=0 if self._has_new else self._last,
            write_cols=schema.field_names,
        )


def assign(
    delta: Sequence[ManifestEntry], *, snapshot_id: int, next_row_id: int
) -> tuple[tuple[ManifestEntry, ...], int]:
    """Give the rows of new files what only their commit knows: ids, and its snapshot as sequence number.

    Args:
        next_row_id: of the snapshot before.

    Returns:
        The entries, and the next row id of the new snapshot.
    """
    assigned = []
    for entry in delta:
        file = entry.file
        if entry.kind is FileKind.ADD and not has_ids(file):
            file = replace(
                file, first_row_id=next_row_id, min_sequence_number=snapshot_id, max_sequence_number=snapshot_id
            )
            next_row_id += file.row_count
        elif entry.kind is FileKind.ADD and not file.max_sequence_number:
            first = file.min_sequence_number or snapshot_id
            file = replace(file, min_sequence_number=first, max_sequence_number=snapshot_id)
        assigned.append(entry if file is entry.file else replace(entry, file=file))
    return tuple(assigned), next_row_id
