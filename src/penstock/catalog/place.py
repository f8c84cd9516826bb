"""A table in a directory, whichever catalog names it: its location, its schema files, loading and altering it.

Schema files are read before the table's options are known. So reads are confined to the table's directory, with the
default limits; otherwise a link at ``schema`` could lead to the schemas of another table.

Source:
    Paimon ``core:schema/SchemaManager.java``; docs/spec/format.md section 2, docs/spec/commit.md section 5.3.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.columns import check_schema
from penstock.catalog.checks.features import check_readable
from penstock.catalog.schema_changes import change_stored_schema
from penstock.errors import FormatError, NotFoundError, StorageError
from penstock.format.layout import TableLayout, schema_id_of, snapshot_id_of
from penstock.format.schema import decode_schema
from penstock.io.resolve import resolve
from penstock.table.commit.put import put_schema
from penstock.table.ref import TableRef, storage_of_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.catalog.changes import SchemaChange
    from penstock.format.schema import TableSchema
    from penstock.io.file_io import FileIO

TRASH_DIRECTORY: Final = ".dropped"
"""Next to dropped tables; no catalog lists it as a database, because directories of databases end in .db."""

# A failed write of a schema means that another writer has committed one, unless the storage refuses every write.
_TRIES_WITHOUT_PROGRESS: Final = 10
_RETRY_WAIT_S: Final = 0.01
# A path of one part that looks like the name of a table, perhaps with that of a catalog.
_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){1,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """The location of a table that exists or will be created.

    Attributes:
        name: name for messages: ``database.table``, or the location if the table has no catalog.
        database: the database; None for a table that is named by its location.
        trash: directory next to the table, on the same storage, to which a dropped table is moved.
        use_options: catalog options that apply to all handles of the table.
    """

    name: str
    location: str
    file_io: FileIO
    database: str | None
    trash: str
    use_options: tuple[tuple[str, str], ...] = ()


def place_at(location: str, options: Mapping[str, str] | None = None) -> TablePlace:
    """Return the location of a table given by path or URI; ``options`` configure object stores."""
    file_io, path = resolve(location, options)
    parent = path.rpartition("/")[0]
    return TablePlace(name=path, location=path, file_io=file_io, database=None, trash=f"{parent}/{TRASH_DIRECTORY}")


def ref_of(place: TablePlace, schema: TableSchema) -> TableRef:
    """Return the table at a place, with a schema."""
    return TableRef(
        name=place.name,
        location=place.location,
        file_io=storage_of_table(place.file_io, place.location, schema.option_map, dict(place.use_options), place.name),
        schema=schema,
        dynamic_options=place.use_options,
    )


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
    return decode_schema(file_io.confined(location).read(path), file_io.real(path))


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


def load_location(location: str, options: Mapping[str, str] | None = None) -> TableRef:
    """Load the table at a path or URI; ``options`` configure object stores. Raises as ``load_table``."""
    place = place_at(location, options)
    if _NAME.fullmatch(location) and not place.file_io.exists(place.location):
        raise NotFoundError(
            f"{location}: expected the path of a table, and there is no {place.location}; a table with this name is "
            f"catalog.load_table('{location}') in Python, spark.table('<catalog>.{location}') after penstock.attach"
        )
    return load_place(place)


def load_place(place: TablePlace, *, skip_damaged_schemas: bool = False) -> TableRef:
    """Load the table at a place. Raises as ``load_table``."""
    schema = load_latest_schema(place.file_io, place.location, place.name, skip_damaged=skip_damaged_schemas)
    ref = ref_of(place, schema)
    check_readable(ref)
    check_schema(schema, place.name, is_stored=True)
    return ref


def alter_place(place: TablePlace, changes: Sequence[SchemaChange], *, is_rescale: bool = False) -> TableRef:
    """Apply changes to the schema of the table at a place, as ``alter_table`` does.

    Args:
        is_rescale: the existing rows are rewritten next.
    """
    stalled = 0
    latest_id = -1
    while stalled < _TRIES_WITHOUT_PROGRESS:
        ref = load_place(place)
        stalled = 0 if ref.schema.id > latest_id else stalled + 1
        latest_id = ref.schema.id
        evolved = change_stored_schema(
            ref.schema,
            changes,
            table=place.name,
            file_io=place.file_io,
            location=place.location,
            is_rescale=is_rescale,
        )
        if evolved is ref.schema:
            return ref
        if put_schema(place.file_io, place.location, evolved):
            _check_still_there(place, ref.schema)
            return replace(ref, schema=evolved)
        time.sleep(_RETRY_WAIT_S * stalled)
    raise StorageError(
        f"table {place.name}: schema-{latest_id + 1} is refused, although no file of that number is listed in"
        f" {TableLayout(place.location).schema_directory}; check the storage, then alter again",
        True,  # noqa: FBT003 - positional, so that pickling works
    )


def _check_still_there(place: TablePlace, base: TableSchema) -> None:
    """Delete the new schema if the table was dropped or renamed meanwhile: the file alone would be a table again."""
    file_io = place.file_io.confined(place.location)
    layout = TableLayout(place.location)
    if not file_io.exists(layout.schema_path(base.id)):
        file_io.delete(layout.schema_path(base.id + 1))
        raise NotFoundError(f"table {place.name} was dropped or renamed while it was altered")
