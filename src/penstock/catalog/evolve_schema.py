"""Apply a list of changes to a schema, and return the next schema.

Source:
    Paimon ``core:schema/SchemaManager.java``; docs/spec/commit.md section 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, assert_never

from penstock.catalog.changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
)
from penstock.catalog.checks.bucket_key import BUCKET, BUCKET_KEY, CHOSEN, is_chosen, with_bucket_key, without_choice
from penstock.catalog.checks.column_options import split_names
from penstock.catalog.checks.defaults import check_defaults
from penstock.catalog.checks.features import create_refusals, newer_refusals, raise_refusals
from penstock.catalog.checks.key_options import normalised_keys
from penstock.catalog.checks.option_changes import check_option_changes
from penstock.catalog.checks.options import check_given_options
from penstock.catalog.checks.schema import check_schema, is_legacy_queue
from penstock.catalog.checks.types import check_new_files
from penstock.catalog.column_changes import (
    add_column,
    drop_column,
    move_column,
    rename_column,
    rename_options,
    update_column_comment,
    update_column_default,
    update_column_nullability,
    update_column_type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.format.schema import TableSchema

CURRENT_VERSION: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A schema with some of the changes applied.

    Attributes:
        baseline: the options before any change, but with the current column names; option changes are checked against
            these.
    """

    schema: TableSchema
    baseline: tuple[tuple[str, str], ...]

    def with_schema(self, schema: TableSchema) -> _Draft:
        return replace(self, schema=schema)


def apply_changes(
    schema: TableSchema, changes: Sequence[SchemaChange], *, table: str, has_snapshots: bool, time_millis: int
) -> TableSchema:
    """Apply changes in order, all or none.

    Args:
        table: table name for messages.
        has_snapshots: whether the table has snapshots; if so, fewer options may change.
        time_millis: creation time of the new schema, ms since 1970-01-01 UTC.

    Returns:
        The schema with the next id; ``schema`` itself if the changes have no effect.

    Raises:
        NotFoundError: a change names a column that does not exist.
        AlreadyExistsError: a new or renamed column has the name of another column.
        InvalidSchemaError: the format, or the data already written, does not allow a change of columns.
        InvalidOptionError: an option may not change, or it conflicts with another option.
        UnsupportedFeatureError: an option enables a feature that Penstock does not support.
    """
    draft = _Draft(schema=schema, baseline=schema.options)
    for change in changes:
        draft = _apply(draft, change, table)
    explicit = frozenset(change.key for change in changes if isinstance(change, SetOption))
    options = _settled_options(draft, explicit, table, has_snapshots=has_snapshots)
    options, partition_keys = normalised_keys(options, draft.schema.partition_keys, table)
    evolved = replace(draft.schema, options=_in_order(options, schema), partition_keys=partition_keys)
    if not is_legacy_queue(evolved):
        completed = with_bucket_key(options, evolved.fields, partition_keys, table)
        evolved = replace(evolved, options=_in_order(completed, schema))
    if evolved == schema:
        return schema
    # Only version 1 may have a queue without a bucket key. Old defaults were made explicit when the schema was read.
    version = schema.version if is_legacy_queue(evolved) else CURRENT_VERSION
    evolved = replace(evolved, id=schema.id + 1, version=version, time_millis=time_millis)
    check_schema(evolved, table)
    check_new_files(evolved.fields, evolved.option_map, table)
    check_defaults(tuple(field for field in evolved.fields if field not in schema.fields), table)
    check_given_options({key: value for key, value in evolved.options if key in explicit}, table)
    _check_new_refusals(schema, evolved, table)
    return evolved


def _apply(draft: _Draft, change: SchemaChange, table: str) -> _Draft:
    schema = draft.schema
    match change:
        case SetOption():
            return draft.with_schema(_with_options(schema, {**schema.option_map, change.key: change.value}))
        case RemoveOption():
            kept = {key: value for key, value in schema.options if key != change.key}
            return draft.with_schema(_with_options(schema, kept))
        case UpdateComment():
            return draft.with_schema(replace(schema, comment=change.comment))
        case RenameColumn():
            renamed = rename_column(schema, change, table)
            return _Draft(
                schema=_with_options(renamed, rename_options(schema.option_map, change)),
                baseline=tuple(rename_options(dict(draft.baseline), change).items()),
            )
        case _:
            return draft.with_schema(_with_changed_columns(schema, change, table))


def _with_changed_columns(
    schema: TableSchema,
    change: AddColumn
    | DropColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnDefault
    | MoveColumn,
    table: str,
) -> TableSchema:
    match change:
        case AddColumn():
            evolved = add_column(schema, change, table)
        case DropColumn():
            evolved = drop_column(schema, change, table)
        case UpdateColumnType():
            evolved = update_column_type(schema, change, table)
        case UpdateColumnNullability():
            evolved = update_column_nullability(schema, change, table)
        case UpdateColumnComment():
            evolved = update_column_comment(schema, change, table)
        case UpdateColumnDefault():
            evolved = update_column_default(schema, change, table)
        case MoveColumn():
            evolved = move_column(schema, change, table)
        case other:
            assert_never(other)
    return evolved


def _settled_options(draft: _Draft, explicit: frozenset[str], table: str, *, has_snapshots: bool) -> dict[str, str]:
    """Check the changes of options; remove an automatic bucket key that was replaced or is no longer needed."""
    options = dict(draft.schema.options)
    if split_names(options.get("partition")) == draft.schema.partition_keys:
        options.pop("partition", None)
    if BUCKET_KEY in explicit:
        options = {key: value for key, value in options.items() if key != CHOSEN}
    elif is_chosen(options) and options.get(BUCKET) != "1":
        options = without_choice(options)
    baseline = dict(draft.baseline)
    check_option_changes(
        baseline,
        options,
        has_snapshots=has_snapshots,
        key_is_free=is_chosen(baseline) or is_legacy_queue(replace(draft.schema, options=draft.baseline)),
        explicit=explicit,
        table=table,
    )
    return options


def _in_order(options: Mapping[str, str], schema: TableSchema) -> tuple[tuple[str, str], ...]:
    """Keep the stored order of existing options, so that setting an option to its current value changes nothing."""
    known = [key for key, _ in schema.options if key in options]
    added = [key for key in options if key not in schema.option_map]
    return tuple((key, options[key]) for key in (*known, *added))


def _with_options(schema: TableSchema, options: Mapping[str, str]) -> TableSchema:
    return replace(schema, options=tuple(options.items()))


def _check_new_refusals(before: TableSchema, after: TableSchema, table: str) -> None:
    raise_refusals(table, "alter", newer_refusals(before))
    known = create_refusals(before, before.option_map)
    fresh = tuple(reason for reason in create_refusals(after, after.option_map) if reason not in known)
    raise_refusals(table, "alter", fresh)
