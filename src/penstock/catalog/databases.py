"""Databases of a warehouse; a database is a directory.

Source:
    Paimon ``core:catalog/FileSystemCatalog.java``; docs/spec/format.md section 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.names import is_database_name, is_table_name
from penstock.catalog.schema_files import list_schema_ids
from penstock.catalog.trash import discard
from penstock.catalog.view_files import list_views
from penstock.catalog.warehouse import Warehouse, location_of_database, trash_of
from penstock.errors import AlreadyExistsError, InvalidOptionError, NotFoundError
from penstock.format.layout import database_name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# Writing this file creates the directory. The file is kept only if the storage has no empty directories. It is not
# taken for a table, because tables are directories.
_MARKER: Final = ".database"


def create_database(warehouse: Warehouse, name: str, *, if_not_exists: bool = False) -> None:
    """Create a database.

    Raises:
        AlreadyExistsError: the database exists, and ``if_not_exists`` is false.
        InvalidSchemaError: the name is not valid.
    """
    path = location_of_database(warehouse, name)
    if warehouse.file_io.exists(path):
        if if_not_exists:
            return
        raise AlreadyExistsError(f"database {name} already exists in {warehouse.location}")
    marker = f"{path}/{_MARKER}"
    warehouse.file_io.write(marker, b"")
    warehouse.file_io.delete(marker)
    if not warehouse.file_io.exists(path):
        warehouse.file_io.write(marker, b"")


def list_databases(warehouse: Warehouse) -> tuple[str, ...]:
    """Return the sorted names of the databases; directories whose names are not valid are skipped."""
    found = (database_name_of(status.name) for status in warehouse.file_io.list(warehouse.location) if status.is_dir)
    return tuple(sorted(name for name in found if name is not None and is_database_name(name)))


def list_tables(warehouse: Warehouse, database: str, *, like: str | None = None) -> tuple[str, ...]:
    """Return the sorted names of the tables of a database; directories whose names are not valid are skipped.

    Args:
        like: only names that differ from it in nothing but case, for which fewer directories are listed.

    Raises:
        NotFoundError: the database does not exist.
    """
    check_database_exists(warehouse, database)
    return tuple(sorted(name for name in _tables_in(warehouse, database, like) if is_table_name(name)))


def drop_database(warehouse: Warehouse, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
    """Drop a database in one step, then delete its files.

    Args:
        cascade: drop its tables and views too; otherwise a database with any is not dropped.

    Raises:
        NotFoundError: the database does not exist, and ``if_exists`` is false.
        InvalidOptionError: the database has tables or views, and ``cascade`` is false.
    """
    path = location_of_database(warehouse, name)
    if not warehouse.file_io.exists(path):
        if if_exists:
            return
        raise _missing(warehouse, name)
    tables = sorted(_tables_in(warehouse, name))
    held = [*tables, *list_views(warehouse, name)]
    if held and not cascade:
        raise InvalidOptionError(
            f"database {name} is not empty: it has {', '.join(held[:5])}{', …' if len(held) > 5 else ''};"
            " drop them first, or give cascade"
        )
    discard(warehouse.file_io, path, trash_of(warehouse), name, tables=[f"{path}/{table}" for table in tables])


def check_database_exists(warehouse: Warehouse, name: str) -> None:
    """Check that a database exists. Raises ``NotFoundError`` or ``InvalidSchemaError``."""
    if not warehouse.file_io.exists(location_of_database(warehouse, name)):
        raise _missing(warehouse, name)


def _tables_in(warehouse: Warehouse, database: str, like: str | None = None) -> Iterator[str]:
    for status in warehouse.file_io.list(location_of_database(warehouse, database)):
        is_like = like is None or status.name.lower() == like.lower()
        if is_like and status.is_dir and list_schema_ids(warehouse.file_io, status.path):
            yield status.name


def _missing(warehouse: Warehouse, name: str) -> NotFoundError:
    there = ", ".join(list_databases(warehouse)) or "none"
    return NotFoundError(f"database {name} does not exist in {warehouse.location} (there: {there}); create it first")
