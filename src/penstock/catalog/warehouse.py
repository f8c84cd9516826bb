"""A warehouse as a value: its location, and the options of new tables in it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from penstock.catalog.names import check_database_name, is_location, parse_data_table_name
from penstock.errors import UnsupportedFeatureError
from penstock.format.layout import database_path, table_path
from penstock.io.memory import MemoryFileIO
from penstock.io.resolve import resolve
from penstock.io.rest.connect import FILESYSTEM, METASTORE, REST, connect
from penstock.options.external import PREFIX, VIEWS_KEY
from penstock.options.write import DURABLE_KEY, CommitOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.io.file_io import FileIO
    from penstock.io.rest.server import RestServer

# No catalog lists this directory as a database, because database directories end in .db.
_TRASH_DIRECTORY: Final = ".dropped"
_NOWHERE: Final = "rest-catalog"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse:
    """A directory of databases, or a catalog of a REST server. Picklable.

    Attributes:
        location: path in the form that ``file_io`` accepts, without a trailing slash; of a REST catalog its name.
        file_io: for a REST catalog, a storage without files: its server provides the location of each table.
        options: pairs of catalog options; ``table-default.<key>`` options apply to new tables.
        server: of a REST catalog; None for a directory.
    """

    location: str
    file_io: FileIO
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    server: RestServer | None = None

    def exists(self) -> bool:
        """Whether the warehouse directory exists; true for a server, which has already answered."""
        return self.server is not None or self.file_io.exists(self.location)


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


def open_warehouse(location: str, options: Mapping[str, str] | None = None) -> Warehouse:
    """Find the storage of a warehouse without reading or creating anything, except for a request to a REST server.

    Args:
        location: a path or URI; with ``metastore = rest`` the name of the catalog on its server.
        options: catalog options.

    Raises:
        InvalidOptionError: the location is not valid.
        UnsupportedFeatureError: there is no built-in support for the storage or the kind of catalog.
        StorageError: the server does not answer.
    """
    kind = (options or {}).get(METASTORE, FILESYSTEM)
    if kind == REST:
        server, merged = connect(location, options or {})
        return Warehouse(
            location=location, file_io=MemoryFileIO(_NOWHERE), options=tuple(merged.items()), server=server
        )
    if kind != FILESYSTEM:
        raise UnsupportedFeatureError(
            f"option '{METASTORE}' = '{kind}': a catalog is a directory ('{FILESYSTEM}') or a REST server ('{REST}'); "
            "for the tables of another one, give the directory above their databases as the warehouse"
        )
    file_io, path = resolve(location, options)
    is_durable = CommitOptions.parse(options or {}).durable
    return Warehouse(
        location=path,
        file_io=file_io.with_durability(durable=is_durable),
        options=tuple((options or {}).items()),
    )


def location_of_database(warehouse: Warehouse, name: str) -> str:
    """Return the directory of a database, which may not exist.

    Raises:
        InvalidSchemaError: the name is not valid.
    """
    check_database_name(name)
    return database_path(warehouse.location, name)


def place_of(warehouse: Warehouse, name: str) -> TablePlace:
    """Return the location of a table that exists or will be created.

    Args:
        name: ``database.table``, or a path or URI, which contains a slash.

    Raises:
        InvalidSchemaError: the name is not valid.
    """
    if warehouse.server is not None:
        raise UnsupportedFeatureError(
            f"table {name}: this needs a table in a directory, and the REST catalog at {warehouse.server.uri} decides "
            "where its tables are"
        )
    if is_location(name):
        return replace(place_at(name, dict(warehouse.options)), use_options=use_options(warehouse))
    parsed = parse_data_table_name(name)
    return TablePlace(
        name=str(parsed),
        location=table_path(warehouse.location, parsed.database, parsed.table),
        file_io=warehouse.file_io,
        database=parsed.database,
        trash=trash_of(warehouse),
        use_options=use_options(warehouse),
    )


def place_at(location: str, options: Mapping[str, str] | None = None) -> TablePlace:
    """Return the location of a table given by path or URI; ``options`` configure object stores."""
    file_io, path = resolve(location, options)
    parent = path.rpartition("/")[0]
    return TablePlace(name=path, location=path, file_io=file_io, database=None, trash=f"{parent}/{_TRASH_DIRECTORY}")


def trash_of(warehouse: Warehouse) -> str:
    """Return the directory to which dropped tables and databases are moved."""
    return f"{warehouse.location}/{_TRASH_DIRECTORY}"


def trash_path(trash: str, name: str) -> str:
    """Return a new unique path in the trash; the name only helps users who inspect the directory."""
    return f"{trash}/{name}-{uuid.uuid4()}"


def use_options(warehouse: Warehouse) -> tuple[tuple[str, str], ...]:
    """Return the catalog options that apply to all handles of its tables."""
    return tuple((key, value) for key, value in warehouse.options if key == DURABLE_KEY or key.startswith(PREFIX))


def without_views(warehouse: Warehouse) -> Warehouse:
    """Return the warehouse with the option that refuses its views."""
    return replace(warehouse, options=tuple({**dict(warehouse.options), VIEWS_KEY: "false"}.items()))
