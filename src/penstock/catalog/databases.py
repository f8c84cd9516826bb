"""Databases of a warehouse: directories, and nothing else.

Source:
    Paimon ``core:catalog/FileSystemCatalog.java``; docs/spec/format.md section 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.names import is_database_name, is_table_name
from penstock.catalog.schema_files import list_schema_ids
from penstock.catalog.trash import discard
from penstock.catalog.warehouse import Warehouse, location_of_database, trash_of
from penstock.errors import AlreadyExistsError, InvalidOptionError, NotFoundError
from penstock.format.layout import database_name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# Makes the directory; it stays only where a storage has no empty directories. Tables are directories, so it is
# not taken for one.
_MARKER: Final = ".database"


def create_database(warehouse: Warehouse, name: str, *, if_not_exists: bool = False) -> None:
    """Make a database.

    Raises:
        AlreadyExistsError: it is there; not with ``if_not_exists``.
        InvalidSchemaError: it cannot have that name.
    """
    path = location_of_database(warehouse, name)
    if warehouse.file_io.exists(path):
        if if_not_exists:
            return
        raise AlreadyExistsError(f"database {name} exists already in {warehouse.location}")
    marker = f"{path}/{_MARKER}"
    warehouse.file_io.write(marker, b"")
    warehouse.file_io.delete(marker)
    if not warehouse.file_io.exists(path):
        warehouse.file_io.write(marker, b"")


def list_databases(warehouse: Warehouse) -> tuple[str, ...]:
    """Return the names of the databases, sorted; directories whose names no catalog takes are left out."""
    found = (database_name_of(status.name) for status in warehouse.file_io.list(warehouse.location) if status.is_dir)
    return tuple(sorted(name for name in found if name is not None and is_database_name(name)))


def list_tables(warehouse: Warehouse, database: str) -> tuple[str, ...]:
    """Return the names of the tables of a database, sorted; directories whose names no catalog takes are left out.

    Raises:
        NotFoundError: there is no such database.
    """
    check_database_exists(warehouse, database)
    return tuple(sorted(name for name in _tables_in(warehouse, database) if is_table_name(name)))


def drop_database(warehouse: Warehouse, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
    """Remove a database at once, then delete what was in it.

    Args:
        cascade: with its tables; without, a database that has tables stays.

    Raises:
        NotFoundError: there is none; not with ``if_exists``.
        InvalidOptionError: it has tables, and ``cascade`` is false.
    """
    path = location_of_database(warehouse, name)
    if not warehouse.file_io.exists(path):
        if if_exists:
            return
        raise _missing(warehouse, name)
    tables = sorted(_tables_in(warehouse, name))
    if tables and not cascade:
        raise InvalidOptionError(
            f"database {name} is not empty: it has {', '.join(tables[:5])}{', …' if len(tables) > 5 else ''};"
            " drop them first, or give cascade"
        )
    discard(warehouse.file_io, path, trash_of(warehouse), name, tables=[f"{path}/{table}" for table in tables])


def check_database_exists(warehouse: Warehouse, name: str) -> None:
    """Check that there is such a database. Raises ``NotFoundError`` or ``InvalidSchemaError``."""
    if not warehouse.file_io.exists(location_of_database(warehouse, name)):
        raise _missing(warehouse, name)


def _tables_in(warehouse: Warehouse, database: str) -> Iterator[str]:
    for status in warehouse.file_io.list(location_of_database(warehouse, database)):
        if status.is_dir and list_schema_ids(warehouse.file_io, status.path):
            yield status.name


def _missing(warehouse: Warehouse, name: str) -> NotFoundError:
    there = ", ".join(list_databases(warehouse)) or "none"
    return NotFoundError(f"database {name} does not exist in {warehouse.location} (there: {there}); create it first")
