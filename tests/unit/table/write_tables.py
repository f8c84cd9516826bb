"""Tables to write to, and what came out, for the tests of writers."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.datafile.formats import FORMATS
from penstock.datafile.types import to_arrow_schema
from penstock.format.layout import format_of
from penstock.format.schema import TableSchema
from penstock.format.types.data_types import DataField
from penstock.format.types.text import parse_sql_type
from penstock.io.memory import MemoryFileIO
from penstock.table.ref import FileLocator, TableRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.io.file_io import FileIO
    from penstock.table.message import CommitMessage

COLUMNS = {"id": "BIGINT", "k": "BIGINT", "p": "INT", "s": "STRING"}


def table_of(
    columns: dict[str, str] = COLUMNS,
    options: dict[str, str] | None = None,
    *,
    partition_keys: tuple[str, ...] = (),
    file_io: FileIO | None = None,
) -> TableRef:
    fields = tuple(
        DataField(id=i, name=name, type=parse_sql_type(text)) for i, (name, text) in enumerate(columns.items())
    )
    schema = TableSchema(
        id=3,
        fields=fields,
        highest_field_id=len(fields) - 1,
        partition_keys=partition_keys,
        options=tuple((options or {}).items()),
    )
    return TableRef(
        name="shop.orders",
        location="memory://t/shop.db/orders",
        file_io=file_io or MemoryFileIO(name=str(uuid.uuid4())),
        schema=schema,
    )


def batch_of(ref: TableRef, columns: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns, schema=to_arrow_schema(ref.schema.fields))


def rows_of(ref: TableRef, message: CommitMessage) -> list[dict[str, Any]]:
    """The rows of a message's files, file after file."""
    rows: list[dict[str, Any]] = []
    locator = FileLocator.of(ref)
    for file in message.new_files:
        path = locator.path(message.partition, message.bucket, file)
        data_format = FORMATS[format_of(file.file_name)]
        found: list[dict[str, Any]] = []
        for batch in data_format.read(ref.file_io, path, ref.schema.fields, batch_rows=10_000):
            found += batch.to_pylist()
        assert len(found) == file.row_count
        assert len(ref.file_io.read(path)) == file.file_size
        rows += found
    return rows


def stored_files(ref: TableRef, directory: str | None = None) -> list[str]:
    """Paths of all files below the table, relative to it."""
    found: list[str] = []
    for status in ref.file_io.list(directory or ref.location):
        if status.is_dir:
            found += stored_files(ref, status.path)
        else:
            found.append(status.path.removeprefix(f"{ref.location}/"))
    return found


def message_files(ref: TableRef, messages: Sequence[CommitMessage]) -> list[str]:
    """Paths of the files of messages, relative to the table, sorted."""
    locator = FileLocator.of(ref)
    return sorted(
        locator.path(message.partition, message.bucket, file).removeprefix(f"{ref.location}/")
        for message in messages
        for file in message.new_files
    )
