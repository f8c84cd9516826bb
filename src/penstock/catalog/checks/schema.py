"""Check a schema when a table is created, altered or loaded, whichever engine wrote the schema.

Source:
    Paimon ``core:schema/SchemaValidation.java``, ``api:schema/Schema.java``; docs/spec/commit.md section 1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.column_options import DEFAULT_AGGREGATE_KEY, split_names, unknown_columns
from penstock.catalog.checks.nested import rows_within
from penstock.catalog.checks.options import check_options
from penstock.catalog.checks.types import check_types
from penstock.errors import InvalidOptionError, InvalidSchemaError, UnsupportedFeatureError
from penstock.format.types.data_types import AtomicType, DataField, DataType, TypeRoot
from penstock.format.types.field_ids import KEY_FIELD_PREFIX, SYSTEM_FIELD_IDS, is_system_name
from penstock.format.types.text import format_sql_type
from penstock.format.watermark import check_rowtime
from penstock.options.layout import BucketOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.format.schema import TableSchema

UNAWARE_BUCKET: Final = -1
# Schema files without ``version``, written by releases up to 0.7, may be one-bucket queues without a bucket key.
LEGACY_VERSION: Final = 1

_NOT_A_KEY: Final = frozenset({TypeRoot.VARIANT, TypeRoot.BLOB, TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY})
_MOD_KEY_ROOTS: Final = frozenset({TypeRoot.INT, TypeRoot.BIGINT})


def check_schema(schema: TableSchema, table: str, *, is_stored: bool = False) -> None:
    """Check columns, keys and options of a schema, and their combination.

    Args:
        is_stored: the table exists, and may be one of another engine that can be read only.

    Raises:
        InvalidSchemaError: columns, partition keys or the watermark are invalid.
        InvalidOptionError: an option is invalid, or two options exclude each other.
        UnsupportedFeatureError: a key column has a type that cannot be a key.
    """
    options = schema.option_map
    _check_texts(schema, table)
    check_column_names(schema.fields, table)
    _check_partition_keys(schema, table)
    _check_bucket(schema, options, table, is_stored=is_stored)
    check_options(options, table)
    _check_named_columns(schema, options, table)
    check_types(schema.fields, options, table)
    check_rowtime(schema.fields, options, table)


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


def is_key_type(data_type: DataType) -> bool:
    """Whether a column of this type may be a partition key or a bucket key."""
    return isinstance(data_type, AtomicType) and data_type.root not in _NOT_A_KEY


def bucket_count(options: Mapping[str, str], table: str) -> int:
    """Return option ``bucket``; -1 if it is not set. Raises ``InvalidOptionError``."""
    return BucketOptions.parse(options, table=table).bucket


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
