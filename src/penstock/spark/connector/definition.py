"""Convert Spark's table definitions and changes to Penstock's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql.types import StructField, StructType

from penstock.catalog.changes import (
    FIRST,
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
    after,
    path_of,
)
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.schema_changes import EXPLICIT_CASTING_DISABLED, update_column_type
from penstock.errors import InvalidSchemaError, NotFoundError, UnsupportedFeatureError
from penstock.spark.connector.actions.defaults import CURRENT_DEFAULT
from penstock.spark.types import from_spark_schema, from_spark_type, to_spark_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.catalog.changes import SchemaChange
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField, DataType
    from penstock.spark.connector.gateway import JavaObject

_COMMENT: Final = "comment"
# Spark's own properties, without meaning for the table.
_IGNORED: Final = frozenset({"owner", "is_managed_location", "table_type"})
# Parquet is what Spark adds to `saveAsTable` and `toTable` without a format.
_PROVIDERS: Final = frozenset({"penstock", "paimon", "parquet"})
_UNSUPPORTED: Final = {
    "location": "the catalog gives the table its place; Catalog.create_table takes a location for a name",
    "external": "every table of a warehouse is its own",
    "collation": "texts are compared by their bytes",
}
DefaultText: TypeAlias = "Callable[[str, str], str | None]"
"""Returns the text of a default from the name of a column and SQL."""
_NO_LAYOUT: Final = {
    "cluster_by": "CLUSTER BY: leave it out; CALL sys.compact(..., order_strategy => 'zorder', order_by => ...) sorts",
    "sorted_bucket": "SORTED BY: leave it out; the rows of a bucket stay in the order in which they are inserted",
}


def definition_of(
    schema: StructType, transforms: JavaObject, properties: Mapping[str, str], table: str, default_of: DefaultText
) -> TableDefinition:
    """Convert the clauses of ``CREATE TABLE`` to a table definition.

    Args:
        default_of: computes the text of a default.
    """
    defaults = {
        field.name: default_of(field.name, field.metadata[CURRENT_DEFAULT])
        for field in schema.fields
        if CURRENT_DEFAULT in field.metadata
    }
    options = options_of(properties, table)
    partition_by = []
    for transform in transforms:
        if transform.name() == "bucket":
            count, *keys = transform.arguments()
            options |= {"bucket": str(count.value()), "bucket-key": ",".join(key.fieldNames()[0] for key in keys)}
        elif transform.name() == "identity":
            partition_by.append(str(transform.references()[0].fieldNames()[0]))
        else:
            clause = f"PARTITIONED BY {transform.toString()}: partitions are columns: add a computed one"
            raise UnsupportedFeatureError(f"table {table}: {_NO_LAYOUT.get(str(transform.name()), clause)}")
    return TableDefinition(
        columns=tuple(replace(each, default_value=defaults.get(each.name)) for each in from_spark_schema(schema)),
        partition_by=tuple(partition_by),
        options=tuple(options.items()),
        comment=properties.get(_COMMENT),
    )


def options_of(properties: Mapping[str, str], table: str) -> dict[str, str]:
    """Return the options among ``TBLPROPERTIES``."""
    options = {}
    for key, value in properties.items():
        if key in _UNSUPPORTED:
            raise UnsupportedFeatureError(f"table {table}: {key} '{value}': {_UNSUPPORTED[key]}")
        if key == "provider" and value.lower() not in _PROVIDERS:
            raise UnsupportedFeatureError(
                f"table {table}: USING {value}: leave it out; the option file.format chooses parquet, orc or avro. If "
                "the statement has none, it is the setting spark.sql.sources.default or the format of the write: add "
                '.format("penstock") before saveAsTable, or where writeStream.toTable shall create the table'
            )
        # Spark repeats the options of OPTIONS (...) under a prefix.
        if key not in {"provider", _COMMENT, *_IGNORED} and not key.startswith("option."):
            options[key] = value
    return options


def changes_of(
    changes: JavaObject, fields: Sequence[DataField], table: str, default_of: DefaultText, *, ignores_case: bool
) -> tuple[SchemaChange, ...]:
    """Convert the changes of ``ALTER TABLE``.

    Args:
        fields: the columns of the table.
        default_of: computes the text of a default.
        ignores_case: whether names that differ only in case are the same.
    """
    made = tuple(_change(change, table, default_of) for change in changes)
    dropped = tuple(change.column for change in made[: len(fields)] if isinstance(change, DropColumn))
    added = tuple(change for change in made[len(fields) :] if isinstance(change, AddColumn))
    is_replacement = len(dropped) + len(added) == len(made) and added and dropped == tuple((f.name,) for f in fields)
    return _replacement(fields, added, ignores_case=ignores_case) if is_replacement else made


def is_evolution(change: JavaObject, schema: TableSchema, table: str) -> bool:
    """Whether a row of a statement ``WITH SCHEMA EVOLUTION`` may change a column so: to a type that keeps all values.

    New columns are always added, so that an error, and not a missing column, is the answer to a type without a
    counterpart.
    """
    if change.getClass().getSimpleName() != "UpdateColumnType":
        return True
    options = {**schema.option_map, EXPLICIT_CASTING_DISABLED: "true"}
    try:
        update_column_type(replace(schema, options=tuple(options.items())), _update_type(change), table)
    except (InvalidSchemaError, NotFoundError, UnsupportedFeatureError):
        return False
    return True


def _replacement(
    fields: Sequence[DataField], columns: Sequence[AddColumn], *, ignores_case: bool
) -> tuple[SchemaChange, ...]:
    """Return the changes of ``REPLACE COLUMNS``, for which Spark drops all columns and adds the new ones.

    A column whose name is in the new list keeps its values.
    """
    before = {field.name: field for field in fields}
    in_any_case = {field.name.lower(): field for field in fields} if ignores_case else {}
    kept = set()
    changes: list[SchemaChange] = []
    position = FIRST
    for column in columns:
        path = path_of(column.column)
        field = before.get(path[-1]) or in_any_case.get(path[-1].lower())
        if field is None:
            changes.append(replace(column, position=position))
        else:
            kept.add(field.name)
            if field.name != path[-1]:
                changes.append(RenameColumn(column=(field.name,), new_name=path[-1]))
            changes.append(MoveColumn(column=path, position=position))
            changes += _redefined(field, column)
        position = after(path[-1])
    # The last column of a table cannot be dropped, so the new ones come first.
    return (*changes, *(DropColumn(column=(name,)) for name in before if name not in kept))


def _redefined(field: DataField, column: AddColumn) -> list[SchemaChange]:
    path = path_of(column.column)
    changes: list[SchemaChange] = []
    new_type = column.type
    # Several types of the format are one type in Spark; such a column keeps its own.
    if not isinstance(new_type, str) and to_spark_type(field.type) != to_spark_type(new_type):
        changes.append(UpdateColumnType(column=path, type=new_type))
    if field.description != column.description:
        changes.append(UpdateColumnComment(column=path, comment=column.description))
    if field.default_value is not None:
        changes.append(UpdateColumnDefault(column=path, default=None))
    return changes


def _change(change: JavaObject, table: str, default_of: DefaultText) -> SchemaChange:
    kind = change.getClass().getSimpleName()
    if kind == "UpdateColumnDefaultValue":
        path, sql = _path(change), str(change.newDefaultValue())
        return UpdateColumnDefault(column=path, default=default_of(".".join(path), sql) if sql else None)
    if kind not in _CHANGES:
        raise UnsupportedFeatureError(f"table {table}: Spark's {kind} has no counterpart in the format")
    return _CHANGES[kind](change, table)


def _path(change: JavaObject) -> tuple[str, ...]:
    return tuple(str(name) for name in change.fieldNames())


def _type(data_type: JavaObject, column: str) -> DataType:
    field = {"name": column, "type": json.loads(data_type.json()), "nullable": True, "metadata": {}}
    spark_type: StructField = StructType.fromJson({"type": "struct", "fields": [field]})[column]
    return from_spark_type(spark_type.dataType, column)


def _update_type(change: JavaObject) -> UpdateColumnType:
    path = _path(change)
    return UpdateColumnType(column=path, type=_type(change.newDataType(), path[-1]))


def _position(position: JavaObject) -> Position | None:
    if position is None:
        return None
    return FIRST if position.getClass().getSimpleName() == "First" else after(position.column())


def _set(change: JavaObject, table: str) -> SchemaChange:
    key, value = str(change.property()), str(change.value())
    if key == _COMMENT:
        return UpdateComment(comment=value or None)
    for name, text in options_of({key: value}, table).items():
        return SetOption(key=name, value=text)
    raise UnsupportedFeatureError(f"table {table}: {key} is reserved for Spark and cannot be set")


def _remove(change: JavaObject, _: str) -> SchemaChange:
    key = str(change.property())
    return UpdateComment(comment=None) if key == _COMMENT else RemoveOption(key=key)


def _add(change: JavaObject, table: str) -> SchemaChange:
    path = _path(change)
    if not change.isNullable():
        raise UnsupportedFeatureError(
            f"table {table}: column '{path[-1]}' cannot be NOT NULL: rows that are there have NULL in it"
        )
    if change.defaultValue() is not None:
        raise UnsupportedFeatureError(
            f"table {table}: DEFAULT of a new column '{path[-1]}': rows that are there have NULL in it; add it "
            f"without, then ALTER COLUMN {path[-1]} SET DEFAULT"
        )
    return AddColumn(
        column=path,
        type=_type(change.dataType(), path[-1]),
        description=change.comment(),
        position=_position(change.position()),
    )


def _move(change: JavaObject, table: str) -> SchemaChange:
    position = _position(change.position())
    if position is None:
        raise UnsupportedFeatureError(f"table {table}: say FIRST or AFTER another column")
    return MoveColumn(column=_path(change), position=position)


_CHANGES: Final[dict[str, Callable[[JavaObject, str], SchemaChange]]] = {
    "SetProperty": _set,
    "RemoveProperty": _remove,
    "AddColumn": _add,
    "RenameColumn": lambda change, _: RenameColumn(column=_path(change), new_name=str(change.newName())),
    "DeleteColumn": lambda change, _: DropColumn(column=_path(change)),
    "UpdateColumnType": lambda change, _: _update_type(change),
    "UpdateColumnNullability": lambda change, _: UpdateColumnNullability(
        column=_path(change), nullable=bool(change.nullable())
    ),
    "UpdateColumnComment": lambda change, _: UpdateColumnComment(
        column=_path(change), comment=change.newComment() or None
    ),
    "UpdateColumnPosition": _move,
}
