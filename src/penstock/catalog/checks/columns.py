"""Check a schema when a table is created, altered or loaded, whichever engine wrote the schema.

Column types that the file formats of a table do not support are refused, and default values are checked when they are
declared, so that no write finds an invalid one.

Source:
    Paimon ``core:schema/SchemaValidation.java``, ``api:schema/Schema.java``, ``api:types/VectorType.java``,
    ``format:avro/AvroSchemaConverter.java``, ``format:orc/OrcTypeUtil.java``, ``core:utils/DefaultValueUtils.java``;
    docs/spec/commit.md section 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.options import (
    DEFAULT_AGGREGATE_KEY,
    UNAWARE_BUCKET,
    bucket_count,
    check_options,
    is_key_type,
    split_names,
    unknown_columns,
)
from penstock.datafile.avro.schema import to_avro_schema
from penstock.datafile.types import to_arrow_type
from penstock.errors import InvalidOptionError, InvalidSchemaError, NotFoundError, UnsupportedFeatureError
from penstock.format.layout import FileFormat
from penstock.format.schema import KEY_FIELD_PREFIX, SYSTEM_FIELD_IDS, is_system_name, rows_within, types_within
from penstock.format.types.data_types import (
    VECTOR_ELEMENTS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)
from penstock.format.types.text import format_sql_type
from penstock.format.watermark import ROWTIME_KEY, computed_columns, is_within, rowtime_type
from penstock.options.layout import BucketOptions, FileIndexOptions
from penstock.table.write.check_rows import decode_default
from penstock.table.write.file_index import index_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField

# Schema files without ``version``, written by releases up to 0.7, may be one-bucket queues without a bucket key.
LEGACY_VERSION: Final = 1

_MOD_KEY_ROOTS: Final = frozenset({TypeRoot.INT, TypeRoot.BIGINT})


def check_schema(schema: TableSchema, table: str, *, is_stored: bool = False) -> None:
    """Check columns, keys and options of a schema, and their combination.

    Args:
        is_stored: the table exists, and may be one of another engine that can be read only.

    Raises:
        InvalidSchemaError: columns, partition keys or the watermark are invalid.
        InvalidOptionError: an option is invalid, or two options exclude each other.
        UnsupportedFeatureError: a key column has a type that cannot be a key, or one with a file index a type of which
            there is no index.
    """
    options = schema.option_map
    _check_texts(schema, table)
    check_column_names(schema.fields, table)
    _check_partition_keys(schema, table)
    _check_bucket(schema, options, table, is_stored=is_stored)
    check_options(options, table)
    _check_named_columns(schema, options, table)
    if not is_stored:
        index_columns(FileIndexOptions.parse(options, table=table), schema.fields, table)
    check_types(schema.fields, options, table)
    _check_rowtime(schema.fields, options, table)


def _check_rowtime(fields: Sequence[DataField], options: Mapping[str, str], table: str) -> None:
    """Check the declared event time column, unless it is computed or inside a ROW."""
    column = options.get(ROWTIME_KEY)
    if column is None or column in computed_columns(fields, options).values():
        return
    if not any(is_within(column, field.name) and column != field.name for field in fields):
        rowtime_type(fields, column, table)


def check_column_names(fields: Sequence[DataField], table: str) -> None:
    """Check that names are not empty, distinct on each level, and not reserved. Raises ``InvalidSchemaError``."""
    if not fields:
        raise InvalidSchemaError(f"table {table}: a table needs at least one column")
    _check_level(fields, table, "")
    for field in fields:
        if is_system_name(field.name):
            raise InvalidSchemaError(
                f"table {table}: column name '{field.name}' is reserved by the format (so are"
                f" {', '.join(sorted(SYSTEM_FIELD_IDS))} and names beginning with {KEY_FIELD_PREFIX}); choose another"
            )


def is_legacy_queue(schema: TableSchema) -> bool:
    """Whether the table is a one-bucket queue without a bucket key, the default of releases up to 0.7."""
    options = schema.option_map
    is_keyless = not split_names(options.get("bucket-key"))
    return schema.version <= LEGACY_VERSION and options.get("bucket") == "1" and is_keyless


def is_without_key(schema: TableSchema) -> bool:
    """Whether the table has buckets but no bucket key, so that nothing decides which bucket gets a row.

    pypaimon creates such tables; Java refuses to load them.
    """
    options = BucketOptions.parse(schema.option_map)
    return options.bucket > 0 and not options.bucket_key and not is_legacy_queue(schema)


def _check_texts(schema: TableSchema, table: str) -> None:
    """Refuse lone surrogates: Python accepts them in file names and arguments, but no encoding can write them."""
    texts = [schema.comment, *(text for pair in schema.options for text in pair)]
    for field in schema.fields:
        texts += field.name, field.description, field.default_value, format_sql_type(field.type)
    for text in texts:
        try:
            (text or "").encode()
        except UnicodeEncodeError as error:
            raise InvalidSchemaError(
                f"table {table}: {ascii(text)[:60]} is not valid Unicode: {error.object[error.start]!a} has no "
                "counterpart"
            ) from error


def _check_level(fields: Sequence[DataField], table: str, parent: str) -> None:
    counts = Counter(field.name for field in fields)
    doubled = [name for name, count in counts.items() if count > 1]
    if doubled:
        raise InvalidSchemaError(f"table {table}: column '{parent}{doubled[0]}' is duplicated; rename one of them")
    for field in fields:
        if not field.name.strip():
            raise InvalidSchemaError(f"table {table}: a column has an empty name (number {fields.index(field) + 1})")
        for nested in rows_within(field.type):
            _check_level(nested.fields, table, f"{parent}{field.name}.")


def _check_partition_keys(schema: TableSchema, table: str) -> None:
    types = {field.name: field.type for field in schema.fields}
    for name in schema.partition_keys:
        if name not in types:
            raise InvalidSchemaError(
                f"table {table}: partition key '{name}' is not one of its columns: {', '.join(types)}"
            )
        if not is_key_type(types[name]):
            raise UnsupportedFeatureError(
                f"table {table}: partition key '{name}' has type {format_sql_type(types[name])}, which cannot be one;"
                " partition by a number, text, date or time"
            )
    if len(set(schema.partition_keys)) < len(schema.partition_keys):
        raise InvalidSchemaError(
            f"table {table}: partition keys {', '.join(schema.partition_keys)} name a column twice"
        )


def _check_bucket(schema: TableSchema, options: Mapping[str, str], table: str, *, is_stored: bool) -> None:
    bucket = bucket_count(options, table)
    # Blanks are not removed: every engine treats a blank after the comma as part of the name.
    keys = BucketOptions.parse(options, table=table).bucket_key
    if bucket == UNAWARE_BUCKET:
        _check_unaware(options, table)
        return
    if bucket < 1:
        raise InvalidOptionError(
            f"table {table}: option 'bucket' = '{bucket}': use -1 (no buckets, no order), or 1 and more with"
            " 'bucket-key'"
        )
    if is_without_key(schema) and not is_stored:
        raise InvalidOptionError(
            f"table {table}: 'bucket' = '{bucket}' needs 'bucket-key': name the columns whose rows are to stay in"
            " order, or leave 'bucket' out"
        )
    _check_bucket_keys(schema, keys, table)
    if keys and options.get("bucket-function.type", "default").lower() == "mod":
        _check_mod_key(schema, keys, table)


def _check_unaware(options: Mapping[str, str], table: str) -> None:
    if "bucket-key" in options:
        raise InvalidOptionError(
            f"table {table}: 'bucket-key' = '{options['bucket-key']}' has no meaning with 'bucket' = '-1';"
            " set 'bucket' to the number of buckets, or leave 'bucket-key' out"
        )
    if "full-compaction.delta-commits" in options:
        raise InvalidOptionError(
            f"table {table}: 'full-compaction.delta-commits' works on tables with buckets only, this one has"
            " 'bucket' = '-1'; leave it out"
        )


def _check_bucket_keys(schema: TableSchema, keys: tuple[str, ...], table: str) -> None:
    types = {field.name: field.type for field in schema.fields}
    for name in keys:
        if name not in types:
            raise InvalidOptionError(
                f"table {table}: 'bucket-key' names '{name}', which is not one of its columns: {', '.join(types)}"
            )
        if name in schema.partition_keys:
            raise InvalidOptionError(
                f"table {table}: 'bucket-key' names '{name}', which is a partition key and so the same for every row"
                " of a partition; name another column"
            )
        if not is_key_type(types[name]):
            raise InvalidOptionError(
                f"table {table}: 'bucket-key' names '{name}' of type {format_sql_type(types[name])}, which cannot be"
                " hashed; name a column of a plain type"
            )


def _check_mod_key(schema: TableSchema, keys: tuple[str, ...], table: str) -> None:
    types = [field.type for field in schema.fields if field.name in keys]
    if len(types) != 1 or not isinstance(types[0], AtomicType) or types[0].root not in _MOD_KEY_ROOTS:
        raise InvalidOptionError(
            f"table {table}: 'bucket-function.type' = 'mod' takes one 'bucket-key' column of type INT or BIGINT,"
            f" not '{','.join(keys)}'"
        )


def _check_named_columns(schema: TableSchema, options: Mapping[str, str], table: str) -> None:
    for key, column in unknown_columns(options, frozenset(schema.field_names)):
        if key not in ("bucket-key", DEFAULT_AGGREGATE_KEY):
            raise InvalidOptionError(
                f"table {table}: option '{key}' names column '{column}', which is not there; remove the option or"
                f" name one of {', '.join(schema.field_names)}"
            )


_AVRO_MAX_PRECISION: Final = {TypeRoot.TIMESTAMP: 6, TypeRoot.TIMESTAMP_LTZ: 6, TypeRoot.TIME: 3}


def check_types(fields: Sequence[DataField], options: Mapping[str, str], table: str) -> None:
    """Check every column against each file format that the options name. Raises ``InvalidSchemaError``."""
    formats = tuple(_formats(options))
    for field in fields:
        for inner in types_within(field.type):
            _check_vector(inner, f"table {table}: column '{field.name}'")
            for file_format in formats:
                _check_format(inner, file_format, f"table {table}: column '{field.name}'")


def check_new_files(fields: Sequence[DataField], options: Mapping[str, str], table: str) -> None:
    """Check that new files of each format can hold columns of these names.

    Only for a schema that is made now: a table with older files of other formats remains readable.

    Raises:
        InvalidSchemaError: Avro files cannot.
    """
    if FileFormat.AVRO in _formats(options):
        try:
            to_avro_schema(fields)
        except UnsupportedFeatureError as error:
            raise InvalidSchemaError(f"table {table}: {error}") from error


def _formats(options: Mapping[str, str]) -> Iterator[str]:
    yield options.get("file.format", FileFormat.PARQUET).lower()
    for entry in options.get("file.format.per.level", "").lower().split(","):
        yield entry.partition(":")[2].strip()


def _check_vector(data_type: DataType, where: str) -> None:
    if isinstance(data_type, VectorType):
        element = data_type.element
        if not isinstance(element, AtomicType) or element.root not in VECTOR_ELEMENTS:
            raise InvalidSchemaError(
                f"{where} is a VECTOR of {format_sql_type(element)}; its elements must be BOOLEAN or a number other"
                " than DECIMAL, or use ARRAY"
            )


def _check_format(data_type: DataType, file_format: str, where: str) -> None:
    if file_format not in (FileFormat.AVRO, FileFormat.ORC):
        return
    is_variant = isinstance(data_type, AtomicType) and data_type.root is TypeRoot.VARIANT
    if is_variant or isinstance(data_type, VectorType):
        raise InvalidSchemaError(
            f"{where} has type {format_sql_type(data_type)}, which '{file_format}' files cannot hold;"
            " use 'file.format' = 'parquet'"
        )
    if file_format == FileFormat.AVRO and isinstance(data_type, AtomicType):
        limit = _AVRO_MAX_PRECISION.get(data_type.root)
        if limit is not None and data_type.precision is not None and data_type.precision > limit:
            raise InvalidSchemaError(
                f"{where} has type {format_sql_type(data_type)}, but 'avro' files keep at most {limit} digits of a"
                " second; use a lower precision or 'file.format' = 'parquet'"
            )


ELEMENT: Final = "element"
VALUE: Final = "value"


def edit_type(
    fields: tuple[DataField, ...], path: tuple[str, ...], edit: Callable[[DataType], DataType], table: str
) -> tuple[DataField, ...]:
    """Replace the type at ``path`` by the result of ``edit``.

    Raises:
        NotFoundError: there is no column at the path.
        InvalidSchemaError: the path is empty.
    """
    if not path:
        raise InvalidSchemaError(f"table {table}: an empty column path names no column")
    return _edit_fields(fields, path, 0, edit, table)


def edit_siblings(
    fields: tuple[DataField, ...],
    path: tuple[str, ...],
    edit: Callable[[tuple[DataField, ...]], tuple[DataField, ...]],
    table: str,
) -> tuple[DataField, ...]:
    """Replace the list of fields that contains, or will contain, the last name of ``path``.

    Raises:
        NotFoundError: there is no column at the path without its last name.
        InvalidSchemaError: the column at that path is not a ROW.
    """
    if len(path) == 1:
        return edit(fields)

    def edit_row(data_type: DataType) -> DataType:
        if not isinstance(data_type, RowType):
            raise InvalidSchemaError(
                f"table {table}: '{_dotted(path[:-1])}' is not a ROW, so it has no field '{path[-1]}'"
                f" (inside an ARRAY say '{ELEMENT}', inside a MAP '{VALUE}')"
            )
        return replace(data_type, fields=edit(data_type.fields))

    return edit_type(fields, path[:-1], edit_row, table)


def index_of(fields: tuple[DataField, ...], path: tuple[str, ...], table: str) -> int:
    """Return the index of the field with the last name in ``path``. Raises ``NotFoundError``."""
    for index, field in enumerate(fields):
        if field.name == path[-1]:
            return index
    raise _missing(path, fields, table)


def _edit_fields(
    fields: tuple[DataField, ...], path: tuple[str, ...], depth: int, edit: Callable[[DataType], DataType], table: str
) -> tuple[DataField, ...]:
    index = index_of(fields, path[: depth + 1], table)
    changed = replace(fields[index], type=_edit_inner(fields[index].type, path, depth + 1, edit, table))
    return (*fields[:index], changed, *fields[index + 1 :])


def _edit_inner(
    data_type: DataType, path: tuple[str, ...], depth: int, edit: Callable[[DataType], DataType], table: str
) -> DataType:
    if depth == len(path):
        return edit(data_type)
    match data_type:
        case RowType():
            return replace(data_type, fields=_edit_fields(data_type.fields, path, depth, edit, table))
        case ArrayType() | VectorType() | MultisetType() if path[depth] == ELEMENT:
            return replace(data_type, element=_edit_inner(data_type.element, path, depth + 1, edit, table))
        case MapType() if path[depth] == VALUE:
            return replace(data_type, value=_edit_inner(data_type.value, path, depth + 1, edit, table))
        case _:
            raise _missing(path[: depth + 1], (), table)


def _missing(path: tuple[str, ...], siblings: tuple[DataField, ...], table: str) -> NotFoundError:
    names = ", ".join(field.name for field in siblings)
    hint = f"; there are: {names}" if names else ""
    return NotFoundError(f"table {table}: there is no column '{_dotted(path)}'{hint}")


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path)


def check_defaults(fields: Iterable[DataField], table: str) -> None:
    """Check that each default value is valid text for its column's type. Raises ``InvalidSchemaError``."""
    for field in fields:
        if field.default_value is not None:
            decode_default(field, to_arrow_type(field.type), table)
