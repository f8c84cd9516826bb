"""Refuse column types that the file formats of a table do not support.

Source:
    Paimon ``api:types/VectorType.java``, ``format:avro/AvroSchemaConverter.java``, ``format:orc/OrcTypeUtil.java``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.nested import types_within
from penstock.datafile.avro.schema import to_avro_schema
from penstock.errors import InvalidSchemaError, UnsupportedFeatureError
from penstock.format.file_format import FileFormat
from penstock.format.types.data_types import AtomicType, DataField, DataType, TypeRoot, VectorType
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_VECTOR_ROOTS: Final = frozenset(
    {
        TypeRoot.BOOLEAN,
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INT,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
    }
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
        if not isinstance(element, AtomicType) or element.root not in _VECTOR_ROOTS:
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
