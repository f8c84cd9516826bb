"""Short ways to schemas, changes and warehouses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest

from penstock.catalog.changes import SchemaChange
from penstock.catalog.directory import DirectoryBackend
from penstock.catalog.new_schema import TableDefinition, build_schema
from penstock.catalog.schema_changes import apply_changes
from penstock.catalog.warehouse import open_warehouse
from penstock.format.schema import TableSchema
from penstock.format.types.ddl import ColumnSpec, parse_columns
from penstock.io.memory import MemoryFileIO

TABLE = "shop.orders"


def _definition(
    columns: str | tuple[ColumnSpec, ...],
    *,
    partition_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    watermark: tuple[str, str | None] | None = None,
    comment: str | None = None,
) -> TableDefinition:
    return TableDefinition(
        columns=parse_columns(columns) if isinstance(columns, str) else columns,
        partition_by=tuple(partition_by),
        options=tuple((options or {}).items()),
        watermark=watermark,
        comment=comment,
    )


def _new_schema(
    columns: str | tuple[ColumnSpec, ...], *, defaults: Mapping[str, str] | None = None, **rest: Any
) -> TableSchema:
    definition = _definition(columns, **rest)
    return build_schema(definition, defaults=defaults or {}, table=TABLE, time_millis=1_000)


def _evolve(schema: TableSchema, *changes: SchemaChange, has_snapshots: bool = True) -> TableSchema:
    return apply_changes(schema, changes, table=TABLE, has_snapshots=has_snapshots, time_millis=2_000)


@pytest.fixture
def definition() -> Callable[..., TableDefinition]:
    return _definition


@pytest.fixture
def new_schema() -> Callable[..., TableSchema]:
    return _new_schema


@pytest.fixture
def evolve() -> Callable[..., TableSchema]:
    return _evolve


@pytest.fixture
def warehouse() -> Iterator[DirectoryBackend]:
    name = f"catalog-{uuid4()}"
    yield open_warehouse(f"memory://{name}/warehouse")
    MemoryFileIO(name).discard()
