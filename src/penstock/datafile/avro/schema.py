"""Build the Avro schema of a data file.

Source:
    Paimon ``format:avro/AvroSchemaConverter.java``; docs/spec/format.md section 8.3.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.datafile.types import map_parts, timestamp_precision
from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import (
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AvroSchema: TypeAlias = Any

_ROOT: Final = "org.apache.paimon.avro.generated.record"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FINEST_TIMESTAMP: Final = 6
_FINEST_TIME: Final = 3
_TEXT: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_PRIMITIVES: Final = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "int",
    TypeRoot.SMALLINT: "int",
    TypeRoot.INT: "int",
    TypeRoot.BIGINT: "long",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.CHAR: "string",
    TypeRoot.VARCHAR: "string",
    TypeRoot.BINARY: "bytes",
    TypeRoot.VARBINARY: "bytes",
}


def to_avro_schema(fields: Sequence[DataField]) -> AvroSchema:
    """Return the Avro schema of a table's rows."""
    if fields and not any(_takes_bytes(field.type) for field in fields):
        raise _unsupported("rows whose every column is a NOT NULL ROW without fields", f"{_ROOT}_{fields[0].name}")
    schema = _record(_ROOT, fields)
    names = sorted(_record_names(schema))
    for name, following in pairwise(names):
        if name == following:
            raise UnsupportedFeatureError(
                f"column '{name.removeprefix(f'{_ROOT}_')}': Avro files would have two rows of this name, made of the "
                "names of columns and fields; rename one, or set 'file.format' = 'parquet'"
            )
    return schema


def _record_names(schema: AvroSchema) -> Iterator[str]:
    """Yield the names of all records."""
    if isinstance(schema, dict):
        if schema["type"] == "record":
            yield schema["name"]
        parts = [schema.get("items"), schema.get("values"), *(field["type"] for field in schema.get("fields", ()))]
    else:
        parts = schema if isinstance(schema, list) else []
    for part in parts:
        yield from _record_names(part)


def is_avro_map(key: DataType) -> bool:
    """Whether maps with such keys are maps in Avro too, instead of arrays of records."""
    return isinstance(key, AtomicType) and key.root in _TEXT


def without_logical_types(schema: AvroSchema) -> AvroSchema:
    """Return the schema without logical types, so that every value is the stored number, text or bytes."""
    if isinstance(schema, dict):
        return {key: without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [without_logical_types(part) for part in schema]
    return schema


def _record(name: str, fields: Sequence[DataField]) -> AvroSchema:
    return {"type": "record", "name": name, "fields": [_field(name, field) for field in fields]}


def _field(record: str, field: DataField) -> AvroSchema:
    if not _NAME.fullmatch(field.name):
        raise UnsupportedFeatureError(
            f"column '{field.name}': names in Avro files consist of letters, digits and underscores; rename it, or "
            "set 'file.format' = 'parquet'"
        )
    return _member(field.name, field.type, f"{record}_{field.name}")


def _member(name: str, data_type: DataType, path: str) -> AvroSchema:
    member = {"name": name, "type": _nullable(data_type, path)}
    # Null is the first branch, as Java assumes, and therefore the default.
    return {**member, "default": None} if data_type.nullable else member


def _nullable(data_type: DataType, path: str) -> AvroSchema:
    schema = _type(data_type, path)
    return ["null", schema] if data_type.nullable else schema


def _type(data_type: DataType, path: str) -> AvroSchema:
    match data_type:
        case AtomicType():
            return _atomic(data_type, path)
        case ArrayType():
            if not _takes_bytes(data_type.element):
                raise _unsupported("ARRAY of NOT NULL ROWs without fields", path)
            return {"type": "array", "items": _nullable(data_type.element, path)}
        case MapType() | MultisetType():
            return _map(data_type, path)
        case RowType():
            return _record(path, data_type.fields)
        case VectorType():
            raise _unsupported("VECTOR", path)


def _takes_bytes(data_type: DataType) -> bool:
    """Whether a value takes at least one byte in a file."""
    if data_type.nullable or not isinstance(data_type, RowType):
        return True
    return any(_takes_bytes(field.type) for field in data_type.fields)


def _map(data_type: MapType | MultisetType, path: str) -> AvroSchema:
    key, value = map_parts(data_type)
    if isinstance(data_type, MultisetType):
        value = AtomicType(root=TypeRoot.INT)  # Java uses a nullable INT for the count
    if is_avro_map(key):
        return {"type": "map", "values": _nullable(value, path)}
    entry = {
        "type": "record",
        "name": path,
        "fields": [
            {"name": "key", "type": _nullable(key, f"{path}_key")},
            _member("value", value, f"{path}_value"),
        ],
    }
    return {"type": "array", "items": entry, "logicalType": "map"}


def _atomic(data_type: AtomicType, path: str) -> AvroSchema:
    match data_type.root:
        case TypeRoot.DECIMAL:
            precision, scale = data_type.precision or 10, data_type.scale or 0
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case TypeRoot.DATE:
            return {"type": "int", "logicalType": "date"}
        case TypeRoot.TIME if (data_type.precision or 0) <= _FINEST_TIME:
            return {"type": "int", "logicalType": "time-millis"}
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ if timestamp_precision(data_type) <= _FINEST_TIMESTAMP:
            # "local" has the opposite of Avro's own meaning; Java writes it so, and compatibility requires it.
            local = "local-" if data_type.root is TypeRoot.TIMESTAMP_LTZ else ""
            unit = "millis" if timestamp_precision(data_type) <= 3 else "micros"
            return {"type": "long", "logicalType": f"{local}timestamp-{unit}"}
        case root if root in _PRIMITIVES:
            return _PRIMITIVES[root]
        case root:
            digits = "" if data_type.precision is None else f"({data_type.precision})"
            raise _unsupported(f"{root}{digits}", path)


def _unsupported(what: str, path: str) -> UnsupportedFeatureError:
    column = path.removeprefix(f"{_ROOT}_")
    return UnsupportedFeatureError(
        f"column '{column}': Avro files of Paimon hold no {what}; set 'file.format' = 'parquet' for this table"
    )
