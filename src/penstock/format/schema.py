"""The schema file ``schema/schema-N``: its value, its JSON, and the ids of columns and ROW fields.

Source:
    Paimon ``api:schema/TableSchema.java``, ``api:schema/SchemaSerializer.java``; docs/spec/format.md section 2;
    ``api:types/ReassignFieldId.java``, ``api:table/SpecialFields.java``; docs/spec/format.md section 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from penstock.errors import InvalidSchemaError
from penstock.format.text.json import Json, JsonObject, decode_json, encode_json
from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from penstock.format.types.text import decode_field, encode_field, format_name, format_sql_type
from penstock.printable import mask_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


SYSTEM_FIELD_ID_START: Final = 1_073_741_823
"""First id that is reserved by the format; such ids do not count for ``highest_field_id``."""

SYSTEM_FIELD_IDS: Final = {
    "_SEQUENCE_NUMBER": 2_147_483_646,
    "_VALUE_KIND": 2_147_483_645,
    "_LEVEL": 2_147_483_644,
    "rowkind": 2_147_483_643,
    "_ROW_ID": 2_147_483_642,
}
KEY_FIELD_PREFIX: Final = "_KEY_"


class Column(Protocol):
    """A column without an id; ``ddl.ColumnSpec`` and ``DataField`` implement it."""

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def type(self) -> DataType:
        """The column's type; the ids of ROW fields in it are ignored."""

    @property
    def description(self) -> str | None:
        """The column's comment."""

    @property
    def default_value(self) -> str | None:
        """The text of the default value's literal."""


def is_system_name(name: str) -> bool:
    """Whether a column name is reserved, so that users may not use it."""
    return name in SYSTEM_FIELD_IDS or name.startswith(KEY_FIELD_PREFIX)


def assign_field_ids(columns: Iterable[Column]) -> tuple[tuple[DataField, ...], int]:
    """Assign ids to the columns of a new table, from 0 in order, each column before the ROW fields in its type.

    Returns:
        The fields, and the highest assigned id (-1 without columns).
    """
    fields: list[DataField] = []
    highest = -1
    for column in columns:
        field, highest = next_field(
            column.name,
            column.type,
            highest,
            description=column.description,
            default_value=column.default_value,
        )
        fields.append(field)
    return tuple(fields), highest


def next_field(
    name: str,
    data_type: DataType,
    highest_field_id: int,
    *,
    description: str | None = None,
    default_value: str | None = None,
) -> tuple[DataField, int]:
    """Assign ids to a column that is added to a table, and to the ROW fields in its type.

    Args:
        data_type: the ids of ROW fields in it are ignored.
        highest_field_id: of the table's latest schema; ids of dropped columns are never reused.

    Returns:
        The field, and the new highest id.
    """
    field_id = highest_field_id + 1
    numbered, highest = _renumber(data_type, field_id)
    field = DataField(id=field_id, name=name, type=numbered, description=description, default_value=default_value)
    return field, highest


def _renumber(data_type: DataType, highest: int) -> tuple[DataType, int]:
    """Return the type with its ROW fields numbered from ``highest + 1``, and the highest assigned id."""
    match data_type:
        case AtomicType():
            return data_type, highest
        case ArrayType() | VectorType() | MultisetType():
            element, highest = _renumber(data_type.element, highest)
            return replace(data_type, element=element), highest
        case MapType():
            key, highest = _renumber(data_type.key, highest)
            value, highest = _renumber(data_type.value, highest)
            return replace(data_type, key=key, value=value), highest
        case RowType():
            return _renumber_row(data_type, highest)


def _renumber_row(row: RowType, highest: int) -> tuple[RowType, int]:
    fields: list[DataField] = []
    for field in row.fields:
        # Inside a ROW, nested fields get their ids before the field itself, unlike at the top level.
        data_type, highest = _renumber(field.type, highest)
        highest += 1
        fields.append(replace(field, id=highest, type=data_type))
    return replace(row, fields=tuple(fields)), highest


def _parts_of(data_type: DataType) -> tuple[DataType, ...]:
    """Return the types directly in a type; the count of a MULTISET is none of them."""
    match data_type:
        case AtomicType():
            return ()
        case MapType():
            return data_type.key, data_type.value
        case RowType():
            return tuple(field.type for field in data_type.fields)
        case _:
            return (data_type.element,)


def types_within(data_type: DataType) -> Iterator[DataType]:
    """Yield a type and every type inside it, from the outside in."""
    yield data_type
    for part in _parts_of(data_type):
        yield from types_within(part)


def rows_within(data_type: DataType) -> Iterator[RowType]:
    """Yield the outermost ROWs of a type."""
    if isinstance(data_type, RowType):
        yield data_type
        return
    for part in _parts_of(data_type):
        yield from rows_within(part)


def iter_fields(fields: Iterable[DataField]) -> Iterator[DataField]:
    """Yield the fields and every ROW field in their types, each before those in its type."""
    for field in fields:
        yield field
        for row in rows_within(field.type):
            yield from iter_fields(row.fields)


def highest_field_id(fields: Iterable[DataField]) -> int:
    """Return the highest id in use, with nested ids and without reserved ones; -1 if there is none."""
    return max((field.id for field in iter_fields(fields) if field.id < SYSTEM_FIELD_ID_START), default=-1)


_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """One version of a table's schema.

    Attributes:
        id: equals N of the file's name.
        highest_field_id: the highest id ever given out, nested and dropped fields included; -1 for no fields.
        options: pairs as stored, in file order; use ``option_map`` for look-ups.
        time_millis: creation time of this version, ms since 1970-01-01 UTC.
        version: 3 in what we write; 1 and 2 change defaults on read (``bucket``, ``file.format``).
        unknown_keys: keys of newer releases, which a file that we write would lack; those of a column as
            ``column.key``.
    """

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    time_millis: int = 0
    version: int = 3
    unknown_keys: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show the columns as DDL has them, and options without secrets."""
        shown = [f"{format_name(field.name)} {format_sql_type(field.type)}" for field in self.fields[:_SHOWN]]
        more = len(self.fields) - len(shown)
        parts = [f"id={self.id}", f"columns={', '.join(shown) + (f', … {more} more' if more else '')!r}"]
        parts += [f"partition_keys={self.partition_keys!r}"] if self.partition_keys else []
        parts += [f"primary_keys={self.primary_keys!r}"] if self.primary_keys else []
        parts += [f"options={mask_options(self.options)!r}"] if self.options else []
        parts += [f"comment={self.comment!r}"] if self.comment else []
        return f"TableSchema({', '.join(parts)})"

    @property
    def option_map(self) -> Mapping[str, str]:
        """Options for look-up; a new dict each time."""
        return dict(self.options)

    @property
    def field_names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(field.name for field in self.fields)

    @property
    def partition_fields(self) -> tuple[DataField, ...]:
        """Partition columns, in ``partition_keys`` order."""
        by_name = {field.name: field for field in self.fields}
        return tuple(by_name[name] for name in self.partition_keys)


_MOST_ID: Final = 2**31 - 1

_VERSION_WHEN_ABSENT: Final = 1  # the key was introduced with 0.8
_NEWEST_VERSION: Final = 3
_KEYS: Final = frozenset(
    ("version", "id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options", "comment", "timeMillis")
)
_FIELD_KEYS: Final = frozenset(("id", "name", "type", "description", "defaultValue"))
_DEFAULTS_BY_VERSION: Final = ((1, "bucket", "1"), (2, "file.format", "orc"))
"""(version, key, value): up to that schema version, the value is the default of an option that is not stored."""


def decode_schema(data: bytes, path: str) -> TableSchema:
    """Decode a schema file of any version up to today's; unknown keys are listed in ``unknown_keys``.

    Options that an old ``version`` implies are added after the stored ones (``bucket = 1`` up to version 1,
    ``file.format = orc`` up to version 2), so that other code does not depend on the version.

    Files that were decoded just before are not decoded again: each use of a table reads its schema's file, to see that
    it is still the same table.

    Args:
        data: the whole file.
        path: only for messages.

    Raises:
        FormatError: empty, truncated, not JSON, a required key is missing or of the wrong type, or the ids of columns
            are invalid, so that data would be read into other columns.
        UnsupportedFeatureError: a newer version of the format.

    Source:
        Paimon ``api:schema/SchemaSerializer.java``, ``api:schema/TableSchema.java``.
    """
    return _decode(data, path)


@lru_cache(maxsize=64)
def _decode(data: bytes, path: str) -> TableSchema:
    json = decode_json(data, "schema file", path)
    version = json.version(absent=_VERSION_WHEN_ABSENT, newest=_NEWEST_VERSION)
    try:
        fields = tuple(decode_field(field) for field in json.items("fields"))
    except (InvalidSchemaError, RecursionError) as error:
        raise json.error(f"has a column that cannot be read ({error})") from error
    _check_ids(json, fields)
    return TableSchema(
        version=version,
        id=json.integer("id"),
        fields=fields,
        highest_field_id=json.integer("highestFieldId"),
        partition_keys=json.texts("partitionKeys"),
        primary_keys=json.texts("primaryKeys"),
        options=_with_defaults(_stored_options(json), version),
        comment=json.optional_text("comment"),
        time_millis=json.optional_integer("timeMillis") or 0,
        unknown_keys=tuple(_unknown_keys(json)),
    )


def _unknown_keys(json: JsonObject) -> Iterator[str]:
    yield from (key for key in json.values if key not in _KEYS)
    for field in json.items("fields"):
        yield from (f"{field['name']}.{key}" for key in field if key not in _FIELD_KEYS)


def _check_ids(json: JsonObject, fields: Sequence[DataField]) -> None:
    highest = json.integer("highestFieldId")
    for siblings in _rows(fields):
        ids = [field.id for field in siblings]
        wrong = [field for field in siblings if not 0 <= field.id <= _MOST_ID]
        if wrong:
            raise json.error(f"gives the column '{wrong[0].name}' the id {wrong[0].id}, which no column can have")
        if len(set(ids)) < len(ids):
            twice = next(field for field in siblings if ids.count(field.id) > 1)
            raise json.error(f"gives the id {twice.id} of the column '{twice.name}' to another column too")
    above = [field for field in fields if highest < field.id < SYSTEM_FIELD_ID_START]
    if above:
        raise json.error(f"has the highestFieldId {highest}, but the column '{above[0].name}' has the id {above[0].id}")


def _rows(fields: Sequence[DataField]) -> Iterator[Sequence[DataField]]:
    """Yield the columns, then the fields of each ROW in their types; ids must be unique within one such group."""
    yield fields
    for field in iter_fields(fields):
        if isinstance(field.type, RowType):
            yield field.type.fields


def _stored_options(json: JsonObject) -> tuple[tuple[str, str], ...]:
    if json.values.get("options") is None:
        raise json.error("lacks the key 'options'")
    return json.text_pairs("options")


def _with_defaults(options: tuple[tuple[str, str], ...], version: int) -> tuple[tuple[str, str], ...]:
    stored = {key for key, _ in options}
    implied = ((key, value) for last, key, value in _DEFAULTS_BY_VERSION if version <= last and key not in stored)
    return (*options, *implied)


def encode_schema(schema: TableSchema) -> bytes:
    """Encode a schema file; ``decode_schema`` returns an equal value."""
    values: dict[str, Json] = {
        "version": schema.version,
        "id": schema.id,
        "fields": [encode_field(field) for field in schema.fields],
        "highestFieldId": schema.highest_field_id,
        "partitionKeys": schema.partition_keys,
        "primaryKeys": schema.primary_keys,
        "options": dict(schema.options),
    }
    if schema.comment is not None:
        values["comment"] = schema.comment
    values["timeMillis"] = schema.time_millis
    return encode_json(values)
