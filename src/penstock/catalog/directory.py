"""A catalog in a directory: a database is a directory, and so is a table; a view is a file (design/0073).

A dropped directory is first renamed into the trash, which is one step on the storage, and deleted there, so that no
reader sees a part of it. A crash in between leaves files that no reader opens; the next drop in the same warehouse
deletes them. Object stores cannot rename directories. There the schema files are deleted first, the latest one last: a
directory without schemas is not a table. Snapshots and manifests are next: while there are any, the schemas may be
lost, and nothing is created or deleted there; after that, the next drop of the same name deletes what is left.

Paimon does not support views there. Its engines do not mistake ``.views`` of a database for a table, as it has no
schema and begins with a dot.

Source:
    Paimon ``core:catalog/FileSystemCatalog.java``; docs/spec/format.md section 1.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from penstock.catalog.backend import Backend
from penstock.catalog.names import (
    DEFAULT_DATABASE,
    check_database_name,
    is_database_name,
    is_location,
    is_table_name,
    parse_data_table_name,
    split_table_branch,
)
from penstock.catalog.new_schema import TableDefinition, build_schema, table_defaults
from penstock.catalog.place import (
    TRASH_DIRECTORY,
    TablePlace,
    alter_place,
    check_schemas_not_lost,
    list_schema_ids,
    load_place,
    place_at,
    ref_of,
)
from penstock.catalog.stored_view import View, decode_view, encode_view
from penstock.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    InvalidSchemaError,
    NotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from penstock.format.layout import TableLayout, database_name_of, database_path, table_path
from penstock.format.text.names import check_length
from penstock.io.resolve import resolve
from penstock.options.write import CommitOptions
from penstock.table.assumptions import new_creation_millis
from penstock.table.commit.put import put_schema
from penstock.table.read.branch import at_branch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.catalog.changes import SchemaChange
    from penstock.catalog.names import TableName
    from penstock.io.file_io import FileIO, FileStatus
    from penstock.table.ref import TableRef

# Writing this file creates the directory. The file is kept only if the storage has no empty directories. It is not
# taken for a table, because tables are directories.
_MARKER: Final = ".database"
_VIEWS: Final = ".views"
_VIEW_SUFFIX: Final = ".json"
# Higher than the default of difflib, because all names begin with the same database.
_ALIKE: Final = 0.75


def open_directory(location: str, options: Mapping[str, str]) -> DirectoryBackend:
    """Find the storage of a warehouse, a path or URI, without reading or creating anything."""
    file_io, path = resolve(location, options)
    is_durable = CommitOptions.parse(options).durable
    return DirectoryBackend(
        location=path, file_io=file_io.with_durability(durable=is_durable), options=tuple(options.items())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryBackend(Backend):
    """A directory of databases.

    Attributes:
        file_io: the storage of the directory.
    """

    file_io: FileIO

    @property
    def trash(self) -> str:
        """The directory to which dropped tables and databases are moved."""
        return f"{self.location}/{TRASH_DIRECTORY}"

    def exists(self) -> bool:
        """Whether the directory exists."""
        return self.file_io.exists(self.location)

    def place_of(self, name: str) -> TablePlace:
        """Return the directory of a table of the warehouse, or a location outside of it."""
        if is_location(name):
            return replace(place_at(name, dict(self.options)), use_options=self.use_options)
        parsed = parse_data_table_name(name)
        return TablePlace(
            name=str(parsed),
            location=table_path(self.location, parsed.database, parsed.table),
            file_io=self.file_io,
            database=parsed.database,
            trash=self.trash,
            use_options=self.use_options,
        )

    def _directory_of(self, database: str) -> str:
        check_database_name(database)
        return database_path(self.location, database)

    # Databases

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a directory."""
        path = self._directory_of(name)
        if self.file_io.exists(path):
            if if_not_exists:
                return
            raise AlreadyExistsError(f"database {name} already exists in {self.location}")
        marker = f"{path}/{_MARKER}"
        self.file_io.write(marker, b"")
        self.file_io.delete(marker)
        if not self.file_io.exists(path):
            self.file_io.write(marker, b"")

    def list_databases(self) -> tuple[str, ...]:
        """Return the names of the directories that end in .db, sorted."""
        children = self.file_io.list(self.location)
        if not children:
            self._check_not_a_file()
        found = (database_name_of(status.name) for status in children if status.is_dir)
        return tuple(sorted(name for name in found if name is not None and is_database_name(name)))

    def _check_not_a_file(self) -> None:
        # Listing a file finds nothing, as listing a directory that does not exist yet.
        with contextlib.suppress(NotFoundError, StorageError, OSError):
            self.file_io.read_range(self.location, 0, 1)
            raise InvalidOptionError(
                f"the warehouse {self.location} is a file: give the directory that has the databases, DATABASE.db"
            )

    def list_tables(self, database: str, *, like: str | None = None) -> tuple[str, ...]:
        """Return the sorted names of the directories that have a schema; ``like`` saves looking into others."""
        self.check_database_exists(database)
        return tuple(sorted(name for name in self._tables_in(database, like) if is_table_name(name)))

    def drop_database(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drop a database in one step, then delete its files."""
        path = self._directory_of(name)
        if not self.file_io.exists(path):
            if if_exists:
                return
            raise self._missing_database(name, is_dropped=True)
        tables = sorted(self._tables_in(name))
        for status in self.file_io.list(path):
            if status.is_dir and status.name not in tables and not status.name.startswith("."):
                check_schemas_not_lost(self.file_io, status.path, f"{name}.{status.name}")
        held = [*tables, *self._views_in(name)]
        if held and not cascade:
            raise InvalidOptionError(
                f"database {name} is not empty: it has {', '.join(held[:5])}{', …' if len(held) > 5 else ''};"
                " drop them first, or give cascade"
            )
        _discard(self.file_io, path, self.trash, name, tables=[f"{path}/{table}" for table in tables])

    def check_database_exists(self, name: str) -> None:
        """Check that there is a directory."""
        if not self.file_io.exists(self._directory_of(name)):
            raise self._missing_database(name)

    def _tables_in(self, database: str, like: str | None = None) -> Iterator[str]:
        for status in self.file_io.list(self._directory_of(database)):
            is_like = like is None or status.name.lower() == like.lower()
            if is_like and status.is_dir and list_schema_ids(self.file_io, status.path):
                yield status.name

    def _missing_database(self, name: str, *, is_dropped: bool = False) -> NotFoundError:
        hint = "; a name without a database is one of the database default" if name == DEFAULT_DATABASE else ""
        found = self.list_databases()
        if not found and not self.exists():
            return NotFoundError(
                f"database {name} does not exist: there is no directory {self.location}; check the name of the "
                f"warehouse{'' if is_dropped else ', or create it first'}{hint}"
            )
        near = get_close_matches(name, found, n=1, cutoff=_ALIKE)
        if near:
            return NotFoundError(f"database {name} does not exist in {self.location}; did you mean {near[0]}?{hint}")
        there = ", ".join(found) or "none"
        return NotFoundError(
            f"database {name} does not exist in {self.location} (there: {there})"
            f"{'' if is_dropped else '; create it first'}{hint}"
        )

    # Tables

    def create_table(self, name: str, definition: TableDefinition, *, if_not_exists: bool = False) -> TableRef:
        """Create a table by writing ``schema/schema-0``."""
        if is_location(name) and not name.startswith(("/", "./", "../")) and "://" not in name:
            raise InvalidOptionError(
                f"cannot create {name}: a table of the warehouse is named 'database.table'; a table at a path has an "
                f"absolute path, a URI, or './{name}'"
            )
        place = self.place_of(name)
        self.create_default_database(place.database)
        planned = self.plan_table(name, definition)
        if planned is not None and put_schema(place.file_io, place.location, planned.schema):
            return planned
        if if_not_exists:
            return load_place(place)
        raise AlreadyExistsError(f"table {place.name} already exists; choose another name, or give if_not_exists")

    def plan_table(self, name: str, definition: TableDefinition) -> TableRef | None:
        """Return a new table with its first schema. Nothing is written."""
        place = self.place_of(name)
        if place.database is not None:
            self.check_database_exists(place.database)
        if list_schema_ids(place.file_io, place.location):
            return None
        schema = build_schema(
            definition,
            defaults=table_defaults(dict(self.options)),
            table=place.name,
            time_millis=new_creation_millis(),
        )
        _check_vacant(place)
        self._check_no_view(place)
        return ref_of(place, schema)

    def load_table(self, name: str, *, skip_damaged_schemas: bool = False) -> TableRef:
        """Load a table with its latest schema; a name that does not exist gets the most similar one as advice."""
        place = self.place_of(name)
        try:
            return load_place(place, skip_damaged_schemas=skip_damaged_schemas)
        except NotFoundError as error:
            if place.database is None:
                raise
            there = self.list_tables(place.database)
            near = get_close_matches(place.name, [f"{place.database}.{table}" for table in there], n=1, cutoff=_ALIKE)
            if not near or near[0] == place.name:
                raise
            raise NotFoundError(
                f"table {place.name} does not exist in {self.location}; did you mean {near[0]}?"
            ) from error

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a table in one step, then delete its files; also what else is in a table's directory without schema.

        Raises:
            FormatError: there are snapshots or manifests, but no schema; nothing is deleted.
            StorageError: the table is dropped, but its files could not be deleted; the next drop tries again.
        """
        place = self.place_of(name)
        is_table = bool(list_schema_ids(place.file_io, place.location))
        is_remains = place.database is not None and place.file_io.exists(place.location)
        if is_remains and not is_table:
            check_schemas_not_lost(place.file_io, place.location, place.name)
        if is_table or is_remains:
            name_there = place.location.rpartition("/")[2]
            _discard(place.file_io, place.location, place.trash, name_there, tables=(place.location,))
        elif not if_exists:
            raise _missing(place)

    def rename_table(self, source: str, target: str) -> None:
        """Rename the directory of a table."""
        old, new = self.place_of(source), self.place_of(target)
        if old.database is None or new.database is None:
            raise InvalidSchemaError(
                f"cannot rename {source} to {target}: both must be database.table; a table outside a warehouse is moved"
                " with its storage's own tools"
            )
        if not list_schema_ids(old.file_io, old.location):
            raise _missing(old)
        self.check_database_exists(new.database)
        self._check_no_view(new)
        if not old.file_io.rename_dir(old.location, new.location):
            raise AlreadyExistsError(f"cannot rename {old.name} to {new.name}: there is something of that name")

    def alter_table(self, name: str, changes: Sequence[SchemaChange]) -> TableRef:
        """Put the next schema; if others have put one meanwhile, the changes are applied to that."""
        plain, branch = split_table_branch(name)
        place = self.place_of(plain)
        if branch is not None:
            found = at_branch(load_place(place), branch)
            place = replace(place, name=found.name, file_io=found.file_io)
        return alter_place(place, changes)

    def _check_no_view(self, place: TablePlace) -> None:
        if place.database is not None and self.view_exists(place.name):
            raise AlreadyExistsError(
                f"table {place.name} cannot be created: there is a view of that name; choose another one"
            )

    # Views

    def list_views(self, database: str) -> tuple[str, ...]:
        """Return the names of the files in ``.views``, sorted."""
        self.check_database_exists(database)
        return self._views_in(database)

    def _views_in(self, database: str) -> tuple[str, ...]:
        found = self._storage(database).list(f"{self._directory_of(database)}/{_VIEWS}")
        names = (status.name for status in found if not status.is_dir and not status.name.startswith("."))
        return tuple(sorted(name.removesuffix(_VIEW_SUFFIX) for name in names if name.endswith(_VIEW_SUFFIX)))

    def _view_exists(self, name: TableName) -> bool:
        return self._storage(name.database).exists(self._view_path(name))

    def _load_view(self, name: TableName) -> View:
        try:
            data = self._storage(name.database).read(self._view_path(name))
        except NotFoundError:
            raise self._missing_view(name) from None
        return decode_view(data, str(name))

    def _create_view(self, name: TableName, view: View) -> None:
        """Create a view; of concurrent creators one succeeds. Raises ``AlreadyExistsError``."""
        check_length(name.table, f"view {name}", InvalidSchemaError)
        if not self._storage(name.database).put_if_absent(self._view_path(name), encode_view(view)):
            raise AlreadyExistsError(f"view {name} already exists; choose another name, or replace it")

    def _replace_view(self, name: TableName, view: View) -> None:
        """Replace the definition of a view atomically; of concurrent calls the last one wins."""
        if not self._view_exists(name):
            raise self._missing_view(name)
        self._storage(name.database).write(self._view_path(name), encode_view(view))

    def _drop_view(self, name: TableName) -> None:
        if not self._storage(name.database).delete(self._view_path(name)):
            raise self._missing_view(name)

    def _rename_view(self, source: TableName, target: TableName) -> None:
        """Rename a view; a crash in between leaves it under both names. Raises as ``create_view``, ``drop_view``."""
        self._create_view(target, self._load_view(source))
        self._drop_view(source)

    def _storage(self, database: str) -> FileIO:
        """Return the storage of the view files of a database, which follows no link below its directory."""
        return self.file_io.confined(self._directory_of(database))

    def _view_path(self, name: TableName) -> str:
        return f"{self._directory_of(name.database)}/{_VIEWS}/{name.table}{_VIEW_SUFFIX}"

    def _missing_view(self, name: TableName) -> NotFoundError:
        return NotFoundError(f"view {name} does not exist in {self.location}; check the name")


def _check_vacant(place: TablePlace) -> None:
    # The schema directory may exist already, because another creator is writing a file into it.
    own = TableLayout(place.location).schema_directory.rpartition("/")[2]
    names = [
        status.name
        for status in place.file_io.list(place.location)
        if status.name != own and not status.name.startswith(".") and _is_in_use(place.file_io, status)
    ]
    if names:
        check_schemas_not_lost(place.file_io, place.location, place.name)
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


def _missing(place: TablePlace) -> NotFoundError:
    return NotFoundError(f"table {place.name} does not exist: there is no schema in {place.location}")


def _discard(file_io: FileIO, path: str, trash: str, name: str, *, tables: Sequence[str] = ()) -> None:
    """Rename a directory into the trash, then empty the trash.

    Args:
        tables: directories of tables in it.

    Raises:
        NotFoundError: the directory does not exist, or another process has dropped it.
        StorageError: the rename failed and the directory is unchanged; or it was renamed and its files are not deleted
            yet.
    """
    dropped = f"{trash}/{name}-{uuid.uuid4()}"
    try:
        is_renamed = file_io.rename_dir(path, dropped)
    except UnsupportedFeatureError:
        _delete_in_place(file_io, path, tables)
        return
    if not is_renamed:
        raise StorageError(f"cannot drop {path}: {dropped} is taken", True)  # noqa: FBT003 - see StorageError
    file_io.delete(dropped, recursive=True)
    _empty(file_io, trash)


def _delete_in_place(file_io: FileIO, path: str, tables: Sequence[str]) -> None:
    for table in tables:
        layout = TableLayout(table)
        for schema_id in list_schema_ids(file_io, table):
            file_io.delete(layout.schema_path(schema_id))
        # Before the data files: without these, the next drop can tell the rest from a table whose schemas are lost.
        file_io.delete(layout.snapshot_directory, recursive=True)
        file_io.delete(layout.manifest_directory, recursive=True)
    if not file_io.delete(path, recursive=True) and not tables:
        raise NotFoundError(f"cannot drop {path}: it does not exist")
    if path not in tables and file_io.exists(path):
        raise StorageError(
            f"the tables of {path} are dropped, but it is still there: another process has made a table in it, or "
            f"another engine an object {path}/ to mark the directory, which Penstock cannot delete; delete that object "
            "with a tool of the store"
        )


def _empty(file_io: FileIO, trash: str) -> None:
    """Delete the files of earlier drops; ignore errors, because another process may delete them at the same time."""
    for status in file_io.list(trash):
        with contextlib.suppress(StorageError, NotFoundError):
            file_io.delete(status.path, recursive=True)
    with contextlib.suppress(StorageError, NotFoundError):
        file_io.delete(trash)
