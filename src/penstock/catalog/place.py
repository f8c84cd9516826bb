"""A table in a directory, whichever catalog names it: its location, loading it, and changes of its schema.

Source:
    Paimon ``core:schema/SchemaManager.java``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.columns import check_schema
from penstock.catalog.checks.features import check_readable
from penstock.catalog.schema_changes import change_stored_schema
from penstock.catalog.schema_files import load_latest_schema
from penstock.errors import NotFoundError, StorageError
from penstock.format.layout import TableLayout
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


def load_location(location: str, options: Mapping[str, str] | None = None) -> TableRef:
    """Load the table at a path or URI; ``options`` configure object stores. Raises as ``load_table``."""
    return load_place(place_at(location, options))


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
