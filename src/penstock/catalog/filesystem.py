"""Tables of a file-system catalog: create, load, alter, rename, drop.

Source:
    Paimon ``core:catalog/FileSystemCatalog.java``, ``core:schema/SchemaManager.java``.
"""

from __future__ import annotations

import time
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.features import check_readable
from penstock.catalog.checks.schema import check_schema
from penstock.catalog.databases import check_database_exists, list_tables
from penstock.catalog.names import parse_data_table_name, split_table_branch
from penstock.catalog.new_schema import TableDefinition, build_schema, table_defaults
from penstock.catalog.schema_files import list_schema_ids, load_latest_schema
from penstock.catalog.stored_changes import change_stored_schema
from penstock.catalog.trash import discard
from penstock.catalog.view_files import view_exists
from penstock.catalog.warehouse import TablePlace, Warehouse, place_at, place_of
from penstock.errors import AlreadyExistsError, InvalidSchemaError, NotFoundError, StorageError
from penstock.format.layout import TableLayout
from penstock.table.commit.put import put_schema
from penstock.table.identity import new_creation_millis
from penstock.table.read.branch import at_branch
from penstock.table.ref import TableRef, storage_of_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.catalog.changes import SchemaChange
    from penstock.format.schema import TableSchema
    from penstock.io.file_io import FileIO, FileStatus


# A failed write of a schema means that another writer has committed one, unless the storage refuses every write.
_TRIES_WITHOUT_PROGRESS: Final = 10
_RETRY_WAIT_S: Final = 0.01
# Higher than the default of difflib, because all names begin with the same database.
_ALIKE: Final = 0.75


def create_table(
    warehouse: Warehouse, name: str, definition: TableDefinition, *, if_not_exists: bool = False
) -> TableRef:
    """Create a table by writing ``schema/schema-0``; of concurrent creators one succeeds.

    Args:
        name: ``database.table``, or the location of a table outside the warehouse.
        if_not_exists: return the existing table, even if its columns differ.

    Raises:
        AlreadyExistsError: the table exists, or the directory contains other files.
        NotFoundError: the database does not exist.
        InvalidSchemaError: names, columns, keys or the watermark are invalid.
        InvalidOptionError: an option is invalid, or two options exclude each other.
        UnsupportedFeatureError: the table uses a feature of the format that Penstock does not support.
    """
    place = place_of(warehouse, name)
    planned = plan_table(warehouse, place, definition)
    if planned is not None and put_schema(place.file_io, place.location, planned.schema):
        return planned
    if if_not_exists:
        return load_place(place)
    raise AlreadyExistsError(f"table {place.name} already exists; choose another name, or give if_not_exists")


def plan_table(warehouse: Warehouse, place: TablePlace, definition: TableDefinition) -> TableRef | None:
    """Return a new table with its first schema; None if there is a table at the place. Nothing is written.

    Raises as ``create_table``.
    """
    if place.database is not None:
        check_database_exists(warehouse, place.database)
    if list_schema_ids(place.file_io, place.location):
        return None
    schema = build_schema(
        definition,
        defaults=table_defaults(dict(warehouse.options)),
        table=place.name,
        time_millis=new_creation_millis(),
    )
    _check_vacant(place)
    _check_no_view(warehouse, place)
    return ref_of(place, schema)


def load_table(warehouse: Warehouse, name: str) -> TableRef:
    """Load a table with its latest schema.

    Args:
        name: ``database.table``, or the location of a table inside or outside the warehouse.

    Raises:
        NotFoundError: the table does not exist.
        FormatError: the schema file is damaged.
        UnsupportedFeatureError: the rows cannot be read correctly: a primary key, another kind of table, and so on.
        InvalidSchemaError, InvalidOptionError: the schema violates a rule of the format.
    """
    place = place_of(warehouse, name)
    try:
        return load_place(place)
    except NotFoundError as error:
        if place.database is None:
            raise
        there = list_tables(warehouse, place.database)
        near = get_close_matches(place.name, [f"{place.database}.{table}" for table in there], n=1, cutoff=_ALIKE)
        if not near or near[0] == place.name:
            raise
        raise NotFoundError(
            f"table {place.name} does not exist in {warehouse.location}; did you mean {near[0]}?"
        ) from error


def load_location(location: str, options: Mapping[str, str] | None = None) -> TableRef:
    """Load the table at a path or URI; ``options`` configure object stores. Raises as ``load_table``."""
    return load_place(place_at(location, options))


def load_place(place: TablePlace) -> TableRef:
    """Load the table at a place. Raises as ``load_table``."""
    schema = load_latest_schema(place.file_io, place.location, place.name)
    ref = ref_of(place, schema)
    check_readable(ref)
    check_schema(schema, place.name, is_stored=True)
    return ref


def drop_table(warehouse: Warehouse, name: str, *, if_exists: bool = False) -> None:
    """Drop a table in one step, then delete its files.

    Inside the warehouse this also removes a table directory without schema.

    Raises:
        NotFoundError: the table does not exist, and ``if_exists`` is false.
        StorageError: the table is dropped, but its files could not be deleted; the next drop tries again.
    """
    place = place_of(warehouse, name)
    is_table = bool(list_schema_ids(place.file_io, place.location))
    is_remains = place.database is not None and place.file_io.exists(place.location)
    if is_table or is_remains:
        name_there = place.location.rpartition("/")[2]
        discard(place.file_io, place.location, place.trash, name_there, tables=(place.location,))
    elif not if_exists:
        raise _missing(place)


def rename_table(warehouse: Warehouse, source: str, target: str) -> None:
    """Rename a table within the warehouse.

    Readers and writers that use the old name fail.

    Raises:
        NotFoundError: the table or the target database does not exist.
        AlreadyExistsError: the new name is taken.
        InvalidSchemaError: a name is not a valid name in the warehouse.
    """
    old, new = place_of(warehouse, source), place_of(warehouse, target)
    if old.database is None or new.database is None:
        raise InvalidSchemaError(
            f"cannot rename {source} to {target}: both must be database.table; a table outside a warehouse is moved"
            " with its storage's own tools"
        )
    if not list_schema_ids(old.file_io, old.location):
        raise _missing(old)
    check_database_exists(warehouse, new.database)
    _check_no_view(warehouse, new)
    if not old.file_io.rename_dir(old.location, new.location):
        raise AlreadyExistsError(f"cannot rename {old.name} to {new.name}: there is something of that name")


def alter_table(warehouse: Warehouse, name: str, changes: Sequence[SchemaChange]) -> TableRef:
    """Apply changes to the schema of a table, or of a branch ``database.table$branch_b``, all or none.

    Concurrent changes by other writers are kept: on a conflict these changes are applied again to the newer schema.

    Returns:
        The table with its new schema, or with its current one if the changes have no effect.

    Raises:
        NotFoundError: the table or a column does not exist.
        AlreadyExistsError: a column of that name exists.
        InvalidSchemaError, InvalidOptionError, UnsupportedFeatureError: a change is not allowed.
    """
    plain, branch = split_table_branch(name)
    place = place_of(warehouse, plain)
    if branch is not None:
        found = at_branch(load_place(place), branch)
        place = replace(place, name=found.name, file_io=found.file_io)
    return alter_place(place, changes)


def alter_place(place: TablePlace, changes: Sequence[SchemaChange]) -> TableRef:
    """Apply changes to the schema of the table at a place, as ``alter_table`` does."""
    stalled = 0
    latest_id = -1
    while stalled < _TRIES_WITHOUT_PROGRESS:
        ref = load_place(place)
        stalled = 0 if ref.schema.id > latest_id else stalled + 1
        latest_id = ref.schema.id
        evolved = change_stored_schema(
            ref.schema, changes, table=place.name, file_io=place.file_io, location=place.location
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


def _check_vacant(place: TablePlace) -> None:
    # The schema directory may exist already, because another creator is writing a file into it.
    own = TableLayout(place.location).schema_directory.rpartition("/")[2]
    names = [
        status.name
        for status in place.file_io.list(place.location)
        if status.name != own and not status.name.startswith(".") and _is_in_use(place.file_io, status)
    ]
    if names:
        cure = "drop_table removes it" if place.database is not None else "remove it, or choose another location"
        raise AlreadyExistsError(
            f"table {place.name} cannot be created: {place.location} holds {', '.join(names[:5])} but no schema, so it"
            f" is not a table; {cure}"
        )


def _is_in_use(file_io: FileIO, status: FileStatus) -> bool:
    """Whether an entry is a file, or a directory that is not a mere marker of another engine on an object store."""
    if not status.is_dir or file_io.has_directories:
        return True
    return any(_is_in_use(file_io, each) for each in file_io.list(status.path))


def _check_no_view(warehouse: Warehouse, place: TablePlace) -> None:
    if place.database is not None and view_exists(warehouse, parse_data_table_name(place.name)):
        raise AlreadyExistsError(
            f"table {place.name} cannot be created: there is a view of that name; choose another one"
        )


def ref_of(place: TablePlace, schema: TableSchema) -> TableRef:
    """Return the table at a place, with a schema."""
    return TableRef(
        name=place.name,
        location=place.location,
        file_io=storage_of_table(place.file_io, place.location, schema.option_map, dict(place.use_options), place.name),
        schema=schema,
        dynamic_options=place.use_options,
    )


def _missing(place: TablePlace) -> NotFoundError:
    return NotFoundError(f"table {place.name} does not exist: there is no schema in {place.location}")
