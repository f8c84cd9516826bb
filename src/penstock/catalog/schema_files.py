"""Read the schema files of a table.

Schema files are read before the table's options are known. So reads are confined to the table's directory, with the
default limits; otherwise a link at ``schema`` could lead to the schemas of another table.

Source:
    Paimon ``core:schema/SchemaManager.java``; docs/spec/format.md section 2, docs/spec/commit.md section 5.3.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import FormatError, NotFoundError
from penstock.format.layout import TableLayout, schema_id_of, snapshot_id_of
from penstock.format.schema import decode_schema

if TYPE_CHECKING:
    from penstock.format.schema import TableSchema
    from penstock.io.file_io import FileIO


def list_schema_ids(file_io: FileIO, location: str) -> tuple[int, ...]:
    """Return the ids of the table's schemas, ascending; empty if there is no table."""
    found = (schema_id_of(status.name) for status in file_io.list(TableLayout(location).schema_directory))
    return tuple(sorted(schema_id for schema_id in found if schema_id is not None))


def load_schema(file_io: FileIO, location: str, schema_id: int) -> TableSchema:
    """Read one schema file.

    Raises:
        NotFoundError: the file does not exist.
        FormatError: the file is not a valid schema.
    """
    path = TableLayout(location).schema_path(schema_id)
    return decode_schema(file_io.confined(location).read(path), path)


def load_latest_schema(file_io: FileIO, location: str, table: str, *, skip_damaged: bool = False) -> TableSchema:
    """Read the schema with the highest id.

    Args:
        skip_damaged: read the one with the highest id that is not damaged; the lowest one must not be.

    Raises:
        NotFoundError: the table does not exist.
        FormatError: the file is not a valid schema, or it is lost.
    """
    ids, directory = list_schema_ids(file_io, location), TableLayout(location).schema_directory
    if not ids:
        check_schemas_not_lost(file_io, location, table)
        raise NotFoundError(
            f"table {table} does not exist: there is no schema file in {directory}; create it, or check"
            " the name and the warehouse"
        )
    if skip_damaged:
        for schema_id in reversed(ids[1:]):
            with suppress(FormatError):
                return load_schema(file_io, location, schema_id)
        return load_schema(file_io, location, ids[0])
    return load_schema(file_io, location, ids[-1])


def check_schemas_not_lost(file_io: FileIO, location: str, table: str) -> None:
    """Raise ``FormatError`` if a directory without schemas has snapshots or manifests: perhaps those of a table."""
    layout = TableLayout(location)
    found = "snapshots" if has_snapshots(file_io, location) else "manifests"
    if found == "snapshots" or file_io.list(layout.manifest_directory):
        raise FormatError(
            f"table {table} has {found}, but no schema file in {layout.schema_directory}: restore the files schema-N of"
            " that directory from a copy; do not create the table again. If it was dropped, a job that was still"
            f" writing has left them: stop the job, and delete {location} with the tools of the storage; do the same if"
            " the rows may be lost"
        )


def has_snapshots(file_io: FileIO, location: str) -> bool:
    """Whether the table has snapshots."""
    return any(
        snapshot_id_of(status.name) is not None for status in file_io.list(TableLayout(location).snapshot_directory)
    )
