"""Databases and tables of a catalog, in directories of a warehouse or on a REST server.

The functions of the same names in ``databases`` and ``filesystem`` document behavior and errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog import databases, filesystem
from penstock.catalog.rest import tables as rest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.catalog.changes import SchemaChange
    from penstock.catalog.new_schema import TableDefinition
    from penstock.catalog.warehouse import Warehouse
    from penstock.table.ref import TableRef


def create_database(warehouse: Warehouse, name: str, *, if_not_exists: bool = False) -> None:
    """Create a database."""
    if warehouse.server is not None:
        rest.create_database(warehouse, warehouse.server, name, if_not_exists=if_not_exists)
    else:
        databases.create_database(warehouse, name, if_not_exists=if_not_exists)


def list_databases(warehouse: Warehouse) -> tuple[str, ...]:
    """Return the sorted names of the databases."""
    if warehouse.server is not None:
        return rest.list_databases(warehouse.server)
    return databases.list_databases(warehouse)


def check_database_exists(warehouse: Warehouse, name: str) -> None:
    """Check that a database exists."""
    if warehouse.server is not None:
        rest.check_database_exists(warehouse.server, name)
    else:
        databases.check_database_exists(warehouse, name)


def drop_database(warehouse: Warehouse, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
    """Drop a database; with ``cascade`` its tables too."""
    if warehouse.server is not None:
        rest.drop_database(warehouse.server, name, if_exists=if_exists, cascade=cascade)
    else:
        databases.drop_database(warehouse, name, if_exists=if_exists, cascade=cascade)


def list_tables(warehouse: Warehouse, database: str, *, like: str | None = None) -> tuple[str, ...]:
    """Return the sorted names of the tables of a database; a server may return others than those ``like`` a name."""
    if warehouse.server is not None:
        return rest.list_tables(warehouse.server, database)
    return databases.list_tables(warehouse, database, like=like)


def create_table(
    warehouse: Warehouse, name: str, definition: TableDefinition, *, if_not_exists: bool = False
) -> TableRef:
    """Create a table."""
    if warehouse.server is not None:
        return rest.create_table(warehouse, warehouse.server, name, definition, if_not_exists=if_not_exists)
    return filesystem.create_table(warehouse, name, definition, if_not_exists=if_not_exists)


def load_table(warehouse: Warehouse, name: str) -> TableRef:
    """Load a table with its latest schema."""
    if warehouse.server is not None:
        return rest.load_table(warehouse, warehouse.server, name)
    return filesystem.load_table(warehouse, name)


def drop_table(warehouse: Warehouse, name: str, *, if_exists: bool = False) -> None:
    """Drop a table."""
    if warehouse.server is not None:
        rest.drop_table(warehouse.server, name, if_exists=if_exists)
    else:
        filesystem.drop_table(warehouse, name, if_exists=if_exists)


def rename_table(warehouse: Warehouse, source: str, target: str) -> None:
    """Rename a table within the catalog."""
    if warehouse.server is not None:
        rest.rename_table(warehouse.server, source, target)
    else:
        filesystem.rename_table(warehouse, source, target)


def alter_table(warehouse: Warehouse, name: str, changes: Sequence[SchemaChange]) -> TableRef:
    """Apply changes to a table's schema, all or none."""
    if warehouse.server is not None:
        return rest.alter_table(warehouse, warehouse.server, name, changes)
    return filesystem.alter_table(warehouse, name, changes)
