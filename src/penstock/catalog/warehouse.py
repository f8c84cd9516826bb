"""A warehouse as a value: its location, and the options of new tables in it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from penstock.catalog.names import check_database_name, is_location, parse_data_table_name
from penstock.format.layout import database_path, table_path
from penstock.io.resolve import resolve
from penstock.io.settings import with_durability
from penstock.options.external import PREFIX
from penstock.options.write import DURABLE_KEY, CommitOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.io.file_io import FileIO

# No catalog takes it for a database, since those end in .db.
_TRASH_DIRECTORY: Final = ".dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse:
    """A directory of databases. Picklable.

    Attributes:
        location: in the form that ``file_io`` takes, without a slash at the end.
        options: of the catalog, as pairs; ``table-default.<key>`` goes to new tables.
    """

    location: str
    file_io: FileIO
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def exists(self) -> bool:
        """Whether its directory is there."""
        return self.file_io.exists(self.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """Where a table is or will be.

    Attributes:
        name: for messages: ``database.table``, or the location where no catalog was asked.
        database: None for a table named by its location.
        trash: directory next to it, on the same storage, for what is being dropped.
        use_options: of the catalog, which apply to every use of the table.
    """

    name: str
    location: str
    file_io: FileIO
    database: str | None
    trash: str
    use_options: tuple[tuple[str, str], ...] = ()


def open_warehouse(location: str, options: Mapping[str, str] | None = None) -> Warehouse:
    """Find the storage of a warehouse; nothing is read or made.

    Args:
        location: a path or URI.
        options: of the catalog.

    Raises:
        InvalidOptionError: the location cannot be one.
        UnsupportedFeatureError: a storage that is not built in.
    """
    file_io, path = resolve(location, options)
    is_durable = CommitOptions.parse(options or {}).durable
    return Warehouse(
        location=path,
        file_io=with_durability(file_io, durable=is_durable),
        options=tuple((options or {}).items()),
    )


def location_of_database(warehouse: Warehouse, name: str) -> str:
    """Return the directory of the database of that name, whether or not it is there.

    Raises:
        InvalidSchemaError: it cannot be a name.
    """
    check_database_name(name)
    return database_path(warehouse.location, name)


def place_of(warehouse: Warehouse, name: str) -> TablePlace:
    """Return where the table of that name is, or will be.

    Args:
        name: ``database.table``, or a path or URI, which has a slash.

    Raises:
        InvalidSchemaError: it cannot be a name.
    """
    if is_location(name):
        return replace(place_at(name, dict(warehouse.options)), use_options=_use_options(warehouse))
    parsed = parse_data_table_name(name)
    return TablePlace(
        name=str(parsed),
        location=table_path(warehouse.location, parsed.database, parsed.table),
        file_io=warehouse.file_io,
        database=parsed.database,
        trash=trash_of(warehouse),
        use_options=_use_options(warehouse),
    )


def place_at(location: str, options: Mapping[str, str] | None = None) -> TablePlace:
    """Return the place of a table that is named by its path or URI; ``options`` are those of object stores."""
    file_io, path = resolve(location, options)
    parent = path.rpartition("/")[0]
    return TablePlace(name=path, location=path, file_io=file_io, database=None, trash=f"{parent}/{_TRASH_DIRECTORY}")


def trash_of(warehouse: Warehouse) -> str:
    """Return the directory for what is being dropped."""
    return f"{warehouse.location}/{_TRASH_DIRECTORY}"


def trash_path(trash: str, name: str) -> str:
    """Return a fresh path in it; the name is only for users who inspect it."""
    return f"{trash}/{name}-{uuid.uuid4()}"


def _use_options(warehouse: Warehouse) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in warehouse.options if key == DURABLE_KEY or key.startswith(PREFIX))
