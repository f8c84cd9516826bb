"""Our own side of the comparison, in the words that the engines use: locations and canonical rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.interop.canonical import rows_of, sort_rows, table_of
from tests.interop.engines import Row

import penstock
from penstock.catalog.changes import SchemaChange


def catalog_of(location: Path) -> penstock.Catalog:
    """Return the catalog that the table at ``location`` is in."""
    return penstock.Catalog(location.parent.parent.as_uri())


def name_of(location: Path) -> str:
    """Return ``db.table``."""
    return f"{location.parent.stem}.{location.name}"


def create(
    location: Path, columns: str, *, partition_by: Sequence[str] = (), options: Mapping[str, str] | None = None
) -> Path:
    """Create the table and its database, and return the location."""
    catalog = catalog_of(location)
    catalog.create_database(location.parent.stem, if_not_exists=True)
    catalog.create_table(name_of(location), columns, partition_by=list(partition_by), options=dict(options or {}))
    return location


def load(location: Path) -> penstock.Table:
    """Return the table with what is on disk now."""
    return catalog_of(location).load_table(name_of(location))


def append(location: Path, rows: Sequence[Row]) -> None:
    """Append canonical rows in one commit."""
    table = load(location)
    table.append(table_of(list(rows), table.arrow_schema))


def overwrite(location: Path, rows: Sequence[Row], partition: Mapping[str, Any]) -> None:
    """Replace a partition, or everything for ``{}``, in one commit."""
    table = load(location)
    table.overwrite(table_of(list(rows), table.arrow_schema), partition=dict(partition))


def alter(location: Path, changes: Sequence[SchemaChange]) -> None:
    """Change the schema."""
    if changes:
        catalog_of(location).alter_table(name_of(location), *changes)


def read(location: Path, **how: Any) -> list[Row]:
    """Return the canonical rows in canonical order; ``how`` goes to ``to_arrow``."""
    return sort_rows(rows_of(load(location).to_arrow(**how)))
