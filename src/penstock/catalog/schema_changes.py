"""Apply a list of changes to a schema, and return the next schema.

Snapshots and earlier schemas of a stored table restrict the changes. A new type of a nested column is expressed as
changes of its fields, elements and values: fields of a ROW are matched by name, and the order of the remaining fields
does not change.

Source:
    Paimon ``core:schema/SchemaManager.java`` (``generateTableSchema``), ``flink:FlinkCatalog.java``
    (``generateNestedColumnUpdates``); docs/spec/commit.md section 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, assert_never

from penstock.catalog.changes import (
    FIRST,
    AddColumn,
    DropColumn,
    MoveColumn,
    Place,
    Position,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
    after,
    path_of,
)
from penstock.catalog.checks.columns import (
    ELEMENT,
    VALUE,
    check_defaults,
    check_new_files,
    check_schema,
    edit_siblings,
    edit_type,
    index_of,
    is_legacy_queue,
)
from penstock.catalog.checks.features import create_refusals, newer_refusals, raise_refusals
from penstock.catalog.checks.options import (
    BUCKET,
    BUCKET_KEY,
    CHOSEN,
    bucket_count,
    check_fallback_branch,
    check_given_options,
    check_option_changes,
    is_chosen,
    is_true,
    normalised_keys,
    rename_in_options,
    split_names,
    with_bucket_key,
    without_choice,
)
from penstock.clocks import utc_millis
from penstock.datafile.conform import make_batch, null_array
from penstock.datafile.evolve import can_cast, plan_evolution
from penstock.datafile.types import to_arrow_schema
from penstock.datafile.widening import is_widening
from penstock.errors import (
    AlreadyExistsError,
    InvalidSchemaError,
    NotFoundError,
    OptionWarning,
    UnsupportedFeatureError,
    warn,
)
from penstock.format.schema import highest_field_id, next_field
from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
    with_nullability,
)
from penstock.format.types.text import format_sql_type, parse_sql_type
from penstock.format.watermark import (
    computed_columns,
    expressions_using,
    rename_in_expressions,
    renumber_after_drop,
)
from penstock.table.assumptions import check_schema_exists
from penstock.table.location import TableLocation
from penstock.table.read.query import KEY as FALLBACK
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from penstock.catalog.changes import SchemaChange
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataType
    from penstock.io.file_io import FileIO

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


def change_stored_schema(
    schema: TableSchema,
    changes: Sequence[SchemaChange],
    *,
    table: str,
    file_io: FileIO,
    location: str,
    is_rescale: bool = False,
) -> TableSchema:
    """Return the schema after the changes, or the same object if they have no effect. Nothing is written.

    Warns with ``OptionWarning`` if existing rows keep another number of buckets.

    Args:
        is_rescale: the existing rows are rewritten next.

    Raises:
        InvalidSchemaError: existing rows could no longer be read; and as ``apply_changes``.
        InvalidOptionError: a fallback branch that does not exist; and as ``apply_changes``.
        FormatError: the schema file of the latest snapshot is lost, so that its id may not be used again.
    """
    store = MetadataStore(TableLocation(file_io=file_io.confined(location), location=location, name=table))
    latest = store.load_latest_snapshot()
    if latest is not None and latest.schema_id != schema.id:
        check_schema_exists(store, latest, store.list_schema_ids())
    sets_options = any(isinstance(change, SetOption | RemoveOption) for change in changes)
    evolved = apply_changes(
        schema,
        changes,
        table=table,
        has_snapshots=sets_options and latest is not None,
        time_millis=utc_millis(),
    )
    if latest is not None and latest.total_record_count != 0 and not is_rescale:
        _warn_of_old_buckets(schema, evolved, table)
    if any(isinstance(change, SetOption) and change.key == FALLBACK for change in changes):
        check_fallback_branch(evolved.option_map, file_io=file_io, location=location, table=table)
    if evolved is not schema and any(isinstance(change, UpdateColumnType) for change in changes):
        earlier = (number for number in store.list_schema_ids() if number <= schema.id)
        _check_history(map(store.load_schema, earlier), evolved, table)
    return evolved


def _warn_of_old_buckets(before: TableSchema, after: TableSchema, table: str) -> None:
    old, new = (bucket_count(schema.option_map, table) for schema in (before, after))
    if old != new:
        warn(
            f"table {table}: 'bucket' = '{new}' holds for new partitions; existing ones keep {old} buckets, and "
            "appends to them are refused, until table.maintenance.rescale(), CALL sys.rescale or an overwrite rewrites "
            "them",
            OptionWarning,
        )


def _check_history(schemas: Iterable[TableSchema], evolved: TableSchema, table: str) -> None:
    """Check that files of each of these schemas can be read with the new one.

    Files keep the schema that they were written with, and a read casts from that schema in one step. So INT to STRING
    and then STRING to DATE, each allowed by itself, would leave files whose INT column cannot be read as a DATE.

    Raises:
        InvalidSchemaError: a column cannot be read; the message names the schema and the column.
    """
    for schema in schemas:
        plan = plan_evolution(schema.fields, evolved.fields)
        written = to_arrow_schema(plan.file_fields)
        try:
            plan.apply(make_batch([null_array(0, each.type) for each in written], written, 0))
        except UnsupportedFeatureError as error:
            raise InvalidSchemaError(
                f"table {table}: rows written with schema-{schema.id} could not be read any more: {error}"
            ) from error


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


_CONTAINERS: Final = (RowType, ArrayType, MapType)


def inner_changes(change: UpdateColumnType, old: DataType, new: DataType, table: str) -> tuple[SchemaChange, ...]:
    """Return the changes that turn one type into another if both are ROW, ARRAY or MAP; else the change itself.

    Args:
        change: of the column, whose settings apply to the nested changes.

    Raises:
        InvalidSchemaError: the order of remaining fields, or the key type of a MAP, would change.
    """
    path = (change.column,) if isinstance(change.column, str) else change.column
    if not isinstance(old, _CONTAINERS) or type(old) is not type(new):
        return (change,)
    found = tuple(_changes(change, path, old, new, table))
    if old.nullable != new.nullable and not change.keep_nullability:
        return (*found, UpdateColumnNullability(column=path, nullable=new.nullable))
    return found


def _changes(
    change: UpdateColumnType, path: tuple[str, ...], old: DataType, new: DataType, table: str
) -> Iterator[SchemaChange]:
    if isinstance(old, RowType) and isinstance(new, RowType):
        yield from _row_changes(change, path, (old, new), table)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _part(change, (*path, ELEMENT), old.element, new.element, table)
    elif isinstance(old, MapType) and isinstance(new, MapType):
        if with_nullability(old.key, nullable=True) != with_nullability(new.key, nullable=True):
            raise InvalidSchemaError(
                f"table {table}: the keys of '{'.'.join(path)}' are {format_sql_type(old.key)}, and the keys of a MAP "
                "keep their type; add a column"
            )
        yield from _part(change, (*path, VALUE), old.value, new.value, table)


def _row_changes(
    change: UpdateColumnType, path: tuple[str, ...], types: tuple[RowType, RowType], table: str
) -> Iterator[SchemaChange]:
    old, new = ({field.name: field for field in each.fields} for each in types)
    kept = [name for name in old if name in new]
    if kept != [name for name in new if name in old]:
        raise InvalidSchemaError(
            f"table {table}: the fields of '{'.'.join(path)}' that remain must keep their order: {', '.join(kept)}"
        )
    yield from (DropColumn(column=(*path, name)) for name in old if name not in new)
    previous = None
    for name, field in new.items():
        inner = (*path, name)
        if name in old:
            yield from _part(change, inner, old[name].type, field.type, table)
            if field.description is not None and field.description != old[name].description:
                yield UpdateColumnComment(column=inner, comment=field.description)
        else:
            position = FIRST if previous is None else after(previous)
            yield AddColumn(column=inner, type=field.type, description=field.description, position=position)
        previous = name


def _part(
    change: UpdateColumnType, path: tuple[str, ...], old: DataType, new: DataType, table: str
) -> Iterator[SchemaChange]:
    if old != new:
        yield from inner_changes(replace(change, column=path, type=new), old, new, table)


EXPLICIT_CASTING_DISABLED: Final = "disable-explicit-type-casting"


def hashes_alike(source: DataType, target: DataType) -> bool:
    """Whether a value has the same bucket hash in both types: both are text, or both are bytes, of any length."""
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        return False
    return source.root is target.root and source.root in (TypeRoot.VARCHAR, TypeRoot.VARBINARY)


def check_type_change(
    change: tuple[DataType, DataType], *, options: Mapping[str, str], allow_explicit: bool, where: str
) -> None:
    """Check that the type of a column may change.

    Widening is always allowed. Other casts are allowed with ``allow_explicit``, or with the option
    ``disable-explicit-type-casting`` = 'false'; the value 'true' forbids them.

    Args:
        change: the old and the new type.
        where: table and column for messages.

    Raises:
        InvalidSchemaError: there is no such cast, or it is not allowed; the message says which, and what to do.
    """
    source, target = change
    if is_widening(source, target):
        return
    what = f"{where} of type {format_sql_type(source)} cannot become {format_sql_type(target)}"
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        raise InvalidSchemaError(f"{what}: change the fields, elements or values inside it one by one, or add a column")
    if not can_cast(source, target):
        raise InvalidSchemaError(f"{what}: there is no such cast; add a column of the new type")
    setting = options.get(EXPLICIT_CASTING_DISABLED, "").strip().lower()
    if setting == "true":
        raise InvalidSchemaError(f"{what}: values could change, and '{EXPLICIT_CASTING_DISABLED}' = 'true' forbids it")
    if not allow_explicit and setting != "false":
        raise InvalidSchemaError(
            f"{what} implicitly, because values could change; set the table's option '{EXPLICIT_CASTING_DISABLED}' = "
            "'false' (in Python: allow_explicit=True), or add a column of the new type"
        )
