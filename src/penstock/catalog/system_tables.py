"""System tables of a whole catalog, in the database ``sys``: tables, partitions, options.

Source:
    Paimon ``core:table/system/AllTablesTable.java``, ``AllPartitionsTable.java``, ``AllTableOptionsTable.java``,
    ``CatalogOptionsTable.java``. Values that only a catalog with users has (owner, creator, times) are NULL, as in
    Paimon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.catalog.names import TableName
from penstock.errors import DamagedFileWarning, FormatError, NotFoundError, warn
from penstock.printable import mask_locations, mask_options
from penstock.table.inspect.system import file_counts, live_partitions
from penstock.table.read.live import load_live_files
from penstock.table.ref import FileLocator
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.catalog.backend import Backend
    from penstock.table.ref import TableRef

SYSTEM_DATABASE: Final = "sys"
_TEXT: Final[pa.DataType] = pa.string()
_LONG: Final[pa.DataType] = pa.int64()
_COUNTS: Final = {
    "record_count": _LONG,
    "file_size_in_bytes": _LONG,
    "file_count": _LONG,
    "last_file_creation_time": _LONG,
}
_TABLES: Final = pa.schema(
    {
        "database_name": _TEXT,
        "table_name": _TEXT,
        "table_type": _TEXT,
        "partitioned": pa.bool_(),
        "primary_key": pa.bool_(),
        "owner": _TEXT,
        "created_at": _LONG,
        "created_by": _TEXT,
        "updated_at": _LONG,
        "updated_by": _TEXT,
        **_COUNTS,
    }
)
_PARTITIONS: Final = pa.schema(
    {"database_name": _TEXT, "table_name": _TEXT, "partition_name": _TEXT, **_COUNTS, "done": pa.bool_()}
)
_TABLE_OPTIONS: Final = pa.schema({"database_name": _TEXT, "table_name": _TEXT, "key": _TEXT, "value": _TEXT})
_CATALOG_OPTIONS: Final = pa.schema({"key": _TEXT, "value": _TEXT})


def load_catalog_table(warehouse: Backend, name: str) -> pa.Table:
    """Load a system table of a warehouse; reads the metadata of its tables, one after another.

    Warns with ``DamagedFileWarning`` about tables with damaged metadata, which are left out.

    Raises:
        NotFoundError: there is no such system table; the message lists all.
    """
    if name not in CATALOG_TABLES:
        raise NotFoundError(f"there is no table {SYSTEM_DATABASE}.{name}; there are {', '.join(CATALOG_TABLES)}")
    schema, rows = CATALOG_TABLES[name]
    values = list(_catalog_options(warehouse) if rows is None else _of_all_tables(warehouse, rows))
    columns = [pa.array([row[place] for row in values], field.type) for place, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def _of_table(ref: TableRef) -> Iterator[Sequence[object]]:
    schema = ref.schema
    store = MetadataStore(ref)
    snapshot = store.load_latest_snapshot()
    counts = (0, 0, 0, None) if snapshot is None else file_counts(load_live_files(store, snapshot))
    kind, *unknown = ref.options.get("type", "table"), *[None] * 5
    yield kind, bool(schema.partition_keys), bool(schema.primary_keys), *unknown, *counts


def _partitions(ref: TableRef) -> Iterator[Sequence[object]]:
    store, locator = MetadataStore(ref), FileLocator.of(ref)
    partitions = live_partitions(store, store.load_latest_snapshot()) if ref.schema.partition_keys else ()
    for partition, files in partitions:
        label = locator.partition_label(partition)
        is_done = ref.file_io.has_file(ref.layout.partition_success_path(label))
        yield label, *file_counts(files), is_done


def _table_options(ref: TableRef) -> Iterator[Sequence[object]]:
    yield from mask_options(ref.schema.options).items()


def _catalog_options(warehouse: Backend) -> Iterator[Sequence[object]]:
    yield "warehouse", mask_locations(warehouse.location)
    yield from mask_options(warehouse.options).items()


def _of_all_tables(
    warehouse: Backend, rows: Callable[[TableRef], Iterator[Sequence[object]]]
) -> Iterator[Sequence[object]]:
    """Yield the rows of each table after its database and name; skip tables that are dropped meanwhile."""
    for database in warehouse.list_databases():
        for table in warehouse.list_tables(database):
            name = str(TableName(database=database, table=table))
            try:
                yield from [(database, table, *row) for row in rows(warehouse.load_table(name))]
            except (FormatError, NotFoundError) as error:
                if table in warehouse.list_tables(database):
                    warn(f"table {name} is left out: {error}", DamagedFileWarning)


CATALOG_TABLES: Final[Mapping[str, tuple[pa.Schema, Callable[[TableRef], Iterator[Sequence[object]]] | None]]] = {
    "tables": (_TABLES, _of_table),
    "partitions": (_PARTITIONS, _partitions),
    "all_table_options": (_TABLE_OPTIONS, _table_options),
    "catalog_options": (_CATALOG_OPTIONS, None),
}
"""Columns of each, by name in the database ``sys``, and the rows of a table after its database and name."""
