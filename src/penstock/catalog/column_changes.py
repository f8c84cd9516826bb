"""Apply one change of a column to a schema.

Source:
    Paimon ``core:schema/SchemaManager.java`` (``generateTableSchema``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    Place,
    Position,
    RenameColumn,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
    path_of,
)
from penstock.catalog.checks.bucket_key import BUCKET_KEY, is_chosen, without_choice
from penstock.catalog.checks.column_options import rename_in_options, split_names
from penstock.catalog.checks.nested import edit_siblings, edit_type, index_of
from penstock.catalog.checks.options import is_true
from penstock.catalog.checks.type_change import check_type_change, hashes_alike
from penstock.errors import AlreadyExistsError, InvalidSchemaError, NotFoundError
from penstock.format.types.data_types import DataField, DataType, with_nullability
from penstock.format.types.field_ids import highest_field_id, next_field
from penstock.format.types.text import format_sql_type, parse_sql_type
from penstock.format.watermark import (
    computed_columns,
    expressions_using,
    rename_in_expressions,
    renumber_after_drop,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.format.schema import TableSchema

NULL_TO_NOT_NULL_DISABLED = "alter-column-null-to-not-null.disabled"


def add_column(schema: TableSchema, change: AddColumn, table: str) -> TableSchema:
    """Add a column at its position, with the next free id."""
    path = path_of(change.column)
    data_type = _data_type(change.type)
    if not data_type.nullable:
        raise InvalidSchemaError(
            f"table {table}: column '{'.'.join(path)}' cannot be added as NOT NULL, since rows written before have no"
            " value; add it without"
        )
    # Some engines number nested fields separately, so their ids may exceed the highest id in the schema.
    taken = max(schema.highest_field_id, highest_field_id(schema.fields))
    field, highest_id = next_field(path[-1], data_type, taken, description=change.description)
    position = change.position or _default_position(schema, path)

    def insert(siblings: tuple[DataField, ...]) -> tuple[DataField, ...]:
        _check_free(schema, siblings, path, table)
        return _placed(siblings, field, position, table)

    fields = edit_siblings(schema.fields, path, insert, table)
    return replace(schema, fields=fields, highest_field_id=highest_id)


def rename_column(schema: TableSchema, change: RenameColumn, table: str) -> TableSchema:
    """Rename a column without moving it; ``rename_options`` renames it in the options."""
    path = path_of(change.column)
    _check_not_partition_key(schema, path, "renamed", table)

    def rename(siblings: tuple[DataField, ...]) -> tuple[DataField, ...]:
        index = index_of(siblings, path, table)
        _check_free(schema, siblings, (*path[:-1], change.new_name), table)
        return _with_field(siblings, index, replace(siblings[index], name=change.new_name))

    fields = edit_siblings(schema.fields, path, rename, table)
    return replace(schema, fields=fields)


def rename_options(options: Mapping[str, str], change: RenameColumn) -> dict[str, str]:
    """Rename a column in the options; options name top-level columns only."""
    path = path_of(change.column)
    if len(path) > 1:
        return dict(options)
    return rename_in_expressions(rename_in_options(options, path[0], change.new_name), path[0], change.new_name)


def drop_column(schema: TableSchema, change: DropColumn, table: str) -> TableSchema:
    """Remove a column, and shift the positions of the computed columns after it."""
    path = path_of(change.column)
    _check_not_partition_key(schema, path, "dropped", table)
    options = schema.option_map

    def remove(siblings: tuple[DataField, ...]) -> tuple[DataField, ...]:
        index = index_of(siblings, path, table)
        if len(siblings) == 1:
            raise InvalidSchemaError(
                f"table {table}: column '{'.'.join(path)}' is the only one there and cannot be dropped"
            )
        return (*siblings[:index], *siblings[index + 1 :])

    fields = edit_siblings(schema.fields, path, remove, table)
    if len(path) == 1:
        options = _options_after_drop(schema, path[0], table)
    return replace(schema, fields=fields, options=tuple(options.items()))


def update_column_type(schema: TableSchema, change: UpdateColumnType, table: str) -> TableSchema:
    """Change a column's type if the files already written can be read with the new type."""
    path = path_of(change.column)

    def update(source: DataType) -> DataType:
        target = _data_type(change.type)
        if with_nullability(source, nullable=True) != with_nullability(target, nullable=True):
            _check_not_partition_key(schema, path, "given another type", table)
            if len(path) == 1 and not hashes_alike(source, target):
                _check_not_bucket_key(schema, path[0], "given a type that hashes to other buckets", table)
        if change.keep_nullability:
            target = with_nullability(target, nullable=source.nullable)
        else:
            _check_nullability(schema, source, path, nullable=target.nullable, table=table)
        check_type_change(
            (source, target),
            options=schema.option_map,
            allow_explicit=change.allow_explicit,
            where=f"table {table}: column '{'.'.join(path)}'",
        )
        return target

    return replace(schema, fields=edit_type(schema.fields, path, update, table))


def update_column_nullability(schema: TableSchema, change: UpdateColumnNullability, table: str) -> TableSchema:
    """Allow or forbid NULL values."""
    path = path_of(change.column)

    def update(source: DataType) -> DataType:
        _check_nullability(schema, source, path, nullable=change.nullable, table=table)
        return with_nullability(source, nullable=change.nullable)

    return replace(schema, fields=edit_type(schema.fields, path, update, table))


def update_column_comment(schema: TableSchema, change: UpdateColumnComment, table: str) -> TableSchema:
    """Set or remove a column's comment."""
    path = path_of(change.column)

    def update(siblings: tuple[DataField, ...]) -> tuple[DataField, ...]:
        index = index_of(siblings, path, table)
        return _with_field(siblings, index, replace(siblings[index], description=change.comment))

    return replace(schema, fields=edit_siblings(schema.fields, path, update, table))


def update_column_default(schema: TableSchema, change: UpdateColumnDefault, table: str) -> TableSchema:
    """Set or remove a column's default; the check of the whole schema validates its text."""
    path = path_of(change.column)

    def update(siblings: tuple[DataField, ...]) -> tuple[DataField, ...]:
        index = index_of(siblings, path, table)
        return _with_field(siblings, index, replace(siblings[index], default_value=change.default))

    return replace(schema, fields=edit_siblings(schema.fields, path, update, table))


def move_column(schema: TableSchema, change: MoveColumn, table: str) -> TableSchema:
    """Move a column within its parent."""
    path = path_of(change.column)

    def move(siblings: tuple[DataField, ...]) -> tuple[DataField, ...]:
        index = index_of(siblings, path, table)
        if change.position.reference == path[-1]:
            raise InvalidSchemaError(f"table {table}: column '{'.'.join(path)}' cannot be moved next to itself")
        return _placed((*siblings[:index], *siblings[index + 1 :]), siblings[index], change.position, table)

    return replace(schema, fields=edit_siblings(schema.fields, path, move, table))


def _data_type(given: DataType | str) -> DataType:
    return parse_sql_type(given) if isinstance(given, str) else given


def _default_position(schema: TableSchema, path: tuple[str, ...]) -> Position:
    if len(path) == 1 and is_true(schema.option_map, "add-column-before-partition"):
        for name in schema.field_names:
            if name in schema.partition_keys:
                return Position(place=Place.BEFORE, reference=name)
    return Position(place=Place.LAST)


def _placed(siblings: tuple[DataField, ...], field: DataField, position: Position, table: str) -> tuple[DataField, ...]:
    match position.place:
        case Place.FIRST:
            index = 0
        case Place.LAST:
            index = len(siblings)
        case Place.BEFORE:
            index = _reference_index(siblings, position, table)
        case Place.AFTER:
            index = _reference_index(siblings, position, table) + 1
    return (*siblings[:index], field, *siblings[index:])


def _reference_index(siblings: tuple[DataField, ...], position: Position, table: str) -> int:
    if position.reference is None:
        raise NotFoundError(f"table {table}: position {position.place} needs the name of a column")
    return index_of(siblings, (position.reference,), table)


def _with_field(siblings: tuple[DataField, ...], index: int, field: DataField) -> tuple[DataField, ...]:
    return (*siblings[:index], field, *siblings[index + 1 :])


def _check_free(schema: TableSchema, siblings: Sequence[DataField], path: tuple[str, ...], table: str) -> None:
    name = path[-1]
    if not name.strip():
        raise InvalidSchemaError(f"table {table}: a column needs a name that is not empty")
    if any(field.name == name for field in siblings):
        raise AlreadyExistsError(f"table {table}: there is a column '{'.'.join(path)}' already; choose another name")
    # Flink distinguishes computed columns from physical ones only by name.
    if len(path) == 1 and name in computed_columns(schema.fields, schema.option_map).values():
        raise AlreadyExistsError(
            f"table {table}: '{name}' is a computed column of Flink's already; choose another name"
        )


def _check_not_partition_key(schema: TableSchema, path: tuple[str, ...], done: str, table: str) -> None:
    if len(path) == 1 and path[0] in schema.partition_keys:
        raise InvalidSchemaError(
            f"table {table}: partition key '{path[0]}' cannot be {done}: directories carry its name and values;"
            " create another table and copy the rows"
        )


def _check_not_bucket_key(schema: TableSchema, name: str, done: str, table: str) -> None:
    options = schema.option_map
    if name in split_names(options.get(BUCKET_KEY)) and not is_chosen(options):
        raise InvalidSchemaError(
            f"table {table}: column '{name}' is in 'bucket-key' and cannot be {done}; create another table and copy"
            " the rows"
        )


def _options_after_drop(schema: TableSchema, name: str, table: str) -> dict[str, str]:
    _check_not_bucket_key(schema, name, "dropped", table)
    options = schema.option_map
    if name in split_names(options.get(BUCKET_KEY)):
        options = without_choice(options)
    users = expressions_using(options, name)
    if users:
        named = ", ".join(f"'{key}'" for key in users)
        raise InvalidSchemaError(
            f"table {table}: column '{name}' cannot be dropped, because {named} needs it; remove those options first"
        )
    return renumber_after_drop(schema.fields, options, schema.field_names.index(name))


def _check_nullability(
    schema: TableSchema, source: DataType, path: tuple[str, ...], *, nullable: bool, table: str
) -> None:
    disabled = schema.option_map.get(NULL_TO_NOT_NULL_DISABLED, "true").strip().lower() == "true"
    if source.nullable and not nullable and disabled:
        raise InvalidSchemaError(
            f"table {table}: column '{'.'.join(path)}' of type {format_sql_type(source)} may hold null already and"
            f" cannot become NOT NULL; if you know that it does not, set '{NULL_TO_NOT_NULL_DISABLED}' = 'false'"
        )
