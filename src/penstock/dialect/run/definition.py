"""Build the CREATE TABLE of an existing table, and merge it with a ``CREATE TABLE … LIKE``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.dialect.parse.create_from import EXCLUDING, INCLUDING, OVERWRITING
from penstock.dialect.parse.statements import ComputedColumn, CreateTable, WatermarkClause
from penstock.dialect.run.show import stored_options
from penstock.errors import InvalidSqlError, UnsupportedFeatureError
from penstock.format.types.ddl import ColumnSpec
from penstock.format.types.text import parse_sql_type
from penstock.format.watermark import EXPRESSION_KEY, computed_columns, declared_watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.dialect.parse.names import Path
    from penstock.dialect.parse.statements import CreateTableLike
    from penstock.dialect.state import SqlState
    from penstock.format.schema import TableSchema


def definition_of(state: SqlState, name: Path, rules: Mapping[str, str]) -> CreateTable:
    """Return the definition of a catalog or session table, without the features that the rules exclude.

    Raises:
        UnsupportedFeatureError: it is a view; or it has a feature that CREATE TABLE cannot express here, and the rules
            do not exclude it.
        TableStoreError: as ``SqlState.load``.
    """
    own = state.session_table(name)
    table = own if own is not None else _stored(state.load(name).schema, name, rules)
    if rules["METADATA"] == EXCLUDING:
        shown = {column.name for column in table.metadata}
        table = replace(table, columns=tuple(each for each in table.columns if each.name not in shown), metadata=())
    return replace(
        table,
        computed=() if rules["GENERATED"] == EXCLUDING else table.computed,
        watermark=None if rules["WATERMARKS"] == EXCLUDING else table.watermark,
        partition_by=() if rules["PARTITIONS"] == EXCLUDING else table.partition_by,
        options=() if rules["OPTIONS"] == EXCLUDING else table.options,
    )


def merged(statement: CreateTableLike, source: CreateTable) -> CreateTable:
    """Return the definition of the table that a ``CREATE TABLE … LIKE`` creates.

    Raises:
        InvalidSqlError: both tables define the same thing, and the rules do not say which definition is used.
    """
    table, rules = statement.table, statement.rules
    name = ".".join(table.name)
    _refuse_twice(name, "column", [each.name for each in (*source.columns, *table.columns)])
    if source.partition_by and table.partition_by:
        raise InvalidSqlError(f"table {name}: both tables have partitions; LIKE … (EXCLUDING PARTITIONS)")
    if rules["OPTIONS"] == INCLUDING:
        _refuse_twice(name, "option", [key for key, _ in (*source.options, *table.options)])
    if source.watermark is not None and table.watermark is not None and rules["WATERMARKS"] != OVERWRITING:
        raise InvalidSqlError(f"table {name}: both tables have a watermark; LIKE … (OVERWRITING WATERMARKS)")
    own = {each.name for each in table.computed}
    kept = [each for each in source.computed if rules["GENERATED"] != OVERWRITING or each.name not in own]
    _refuse_twice(name, "computed column", [each.name for each in (*kept, *table.computed)])
    offset = len(source.columns) + len(kept)
    return replace(
        table,
        columns=(*source.columns, *table.columns),
        metadata=(*source.metadata, *table.metadata),
        computed=(*_renumbered(source, kept), *(replace(each, place=each.place + offset) for each in table.computed)),
        watermark=table.watermark or source.watermark,
        partition_by=table.partition_by or source.partition_by,
        options=tuple({**dict(source.options), **dict(table.options)}.items()),
        is_temporary=table.is_temporary or source.is_temporary,
    )


def _stored(schema: TableSchema, name: Path, rules: Mapping[str, str]) -> CreateTable:
    options = schema.option_map
    computed = () if rules["GENERATED"] == EXCLUDING else tuple(_computed(schema, name))
    declared = None if rules["WATERMARKS"] == EXCLUDING else declared_watermark(options)
    clause = None
    if declared is not None:
        expression = options.get(EXPRESSION_KEY, "")
        if declared.delay_millis is None:
            raise UnsupportedFeatureError(
                f"table {'.'.join(name)}: its watermark, {expression}, can only be declared with Flink; LIKE … "
                "(EXCLUDING"
                " WATERMARKS)"
            )
        interval = expression.rpartition("` - ")[2] if "` - " in expression else None
        clause = WatermarkClause(column=declared.column, interval=interval)
    return CreateTable(
        name=name,
        columns=tuple(
            ColumnSpec(
                name=field.name, type=field.type, description=field.description, default_value=field.default_value
            )
            for field in schema.fields
        ),
        computed=computed,
        watermark=clause,
        partition_by=schema.partition_keys,
        options=tuple(stored_options(schema)),
    )


def _computed(schema: TableSchema, name: Path) -> Iterable[ComputedColumn]:
    options = schema.option_map
    for place, column in computed_columns(schema.fields, options).items():
        expression, data_type = options.get(f"schema.{place}.expr"), options.get(f"schema.{place}.data-type")
        if expression is None or data_type is None:
            raise UnsupportedFeatureError(
                f"table {'.'.join(name)}: column '{column}' is one of Flink's metadata; LIKE … (EXCLUDING GENERATED)"
            )
        yield ComputedColumn(place=place, name=column, expression=expression, type=parse_sql_type(data_type))


def _renumbered(source: CreateTable, kept: Iterable[ComputedColumn]) -> Iterable[ComputedColumn]:
    """Renumber the computed columns after some of them were removed."""
    gone = {each.place for each in source.computed} - {each.place for each in kept}
    return [replace(each, place=each.place - sum(place < each.place for place in gone)) for each in kept]


def _refuse_twice(table: str, kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidSqlError(f"table {table}: {kind} '{name}' is duplicated, here and in the table after LIKE")
        seen.add(name)
