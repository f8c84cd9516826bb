"""Column types as text: the JSON form of schema files, and DDL syntax.

Source:
    Paimon ``api:types/DataTypeJsonParser.java``, ``api:types/DataField.java``; docs/spec/format.md section 2.2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

from penstock.errors import InvalidSchemaError
from penstock.format.lexer import TokenReader
from penstock.format.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    with_nullability,
)
from penstock.format.types.ddl import read_type

if TYPE_CHECKING:
    from collections.abc import Mapping

Json: TypeAlias = Any
"""A parsed JSON value of any type, not checked yet."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NESTED_PREFIXES: Final = ("ARRAY", "VECTOR", "MULTISET", "MAP", "ROW")
_UNLIMITED: Final = {TypeRoot.VARCHAR: "STRING", TypeRoot.VARBINARY: "BYTES"}


def parse_sql_type(text: str) -> DataType:
    """Parse a type in DDL syntax, such as ``ARRAY<ROW<a INT NOT NULL, b STRING>>``.

    Ids of ROW fields are 0, 1, 2, … in the order of the text; ``field_ids`` assigns the real ones.
    """
    reader = TokenReader(text, "type")
    data_type = read_type(reader)
    reader.expect_end("NOT NULL or the end of the type")
    return data_type


def decode_type(value: Json) -> DataType:
    """Decode a type of a schema file: a string if it is atomic, an object if it is nested.

    Of a nested object's ``type`` only the first word and the presence of ``NOT NULL`` are used.

    Source:
        Paimon ``api:types/DataTypeJsonParser.java``.
    """
    if isinstance(value, str):
        return parse_sql_type(value)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise InvalidSchemaError(f"type {value!r}: expected a string, or an object with a string 'type'")
    keyword = value["type"].upper()
    prefix = next((prefix for prefix in _NESTED_PREFIXES if keyword.startswith(prefix)), "")
    return with_nullability(_decode_nested(prefix, value), nullable="NOT NULL" not in keyword)


def _decode_nested(prefix: str, value: Mapping[str, Json]) -> DataType:
    match prefix:
        case "ARRAY":
            return ArrayType(element=_decode_member(value, "element"))
        case "VECTOR":
            length = value.get("length")
            if not isinstance(length, int) or not 1 <= length <= MAX_LENGTH:
                raise InvalidSchemaError(f"type {value!r}: 'length' must be a number from 1 to {MAX_LENGTH}")
            return VectorType(element=_decode_member(value, "element"), length=length)
        case "MULTISET":
            return MultisetType(element=_decode_member(value, "element"))
        case "MAP":
            return MapType(key=_decode_member(value, "key"), value=_decode_member(value, "value"))
        case "ROW":
            fields = value.get("fields")
            if not isinstance(fields, list):
                raise InvalidSchemaError(f"type {value!r}: 'fields' must be a list")
            return RowType(fields=tuple(decode_field(field) for field in fields))
        case _:
            raise InvalidSchemaError(f"type {value!r}: expected one of {', '.join(_NESTED_PREFIXES)}")


def _decode_member(value: Mapping[str, Json], key: str) -> DataType:
    if key not in value:
        raise InvalidSchemaError(f"type {value!r}: '{key}' is missing")
    return decode_type(value[key])


def decode_field(value: Json) -> DataField:
    """Decode one element of ``fields``."""
    if not isinstance(value, dict):
        raise InvalidSchemaError(f"field {value!r}: expected an object")
    field_id, name = value.get("id"), value.get("name")
    description, default_value = value.get("description"), value.get("defaultValue")
    if not isinstance(field_id, int) or isinstance(field_id, bool):
        raise InvalidSchemaError(f"field {value!r}: 'id' must be a whole number")
    if not isinstance(name, str):
        raise InvalidSchemaError(f"field {value!r}: 'name' must be a string")
    if not isinstance(description, str | None) or not isinstance(default_value, str | None):
        raise InvalidSchemaError(f"field {value!r}: 'description' and 'defaultValue' must be strings or absent")
    return DataField(
        id=field_id,
        name=name,
        type=_decode_member(value, "type"),
        description=description,
        default_value=default_value,
    )


def encode_type(data_type: DataType) -> Json:
    """Encode a type for a schema file: a string if it is atomic, a dict if it is nested."""
    suffix = "" if data_type.nullable else " NOT NULL"
    match data_type:
        case AtomicType():
            return format_sql_type(data_type)
        case ArrayType():
            return {"type": "ARRAY" + suffix, "element": encode_type(data_type.element)}
        case VectorType():
            return {"type": "VECTOR" + suffix, "element": encode_type(data_type.element), "length": data_type.length}
        case MultisetType():
            return {"type": "MULTISET" + suffix, "element": encode_type(data_type.element)}
        case MapType():
            return {
                "type": "MAP" + suffix,
                "key": encode_type(data_type.key),
                "value": encode_type(data_type.value),
            }
        case RowType():
            return {"type": "ROW" + suffix, "fields": [encode_field(field) for field in data_type.fields]}
        case other:
            assert_never(other)


def encode_field(field: DataField) -> dict[str, Json]:
    """Encode one element of ``fields``; None values are left out."""
    encoded: dict[str, Json] = {"id": field.id, "name": field.name, "type": encode_type(field.type)}
    if field.description is not None:
        encoded["description"] = field.description
    if field.default_value is not None:
        encoded["defaultValue"] = field.default_value
    return encoded


def format_sql_type(data_type: DataType) -> str:
    """Format a type in DDL syntax; ``parse_sql_type`` returns an equal type, except ids and defaults of ROW fields."""
    return _format_nullable(data_type) + ("" if data_type.nullable else " NOT NULL")


def _format_nullable(data_type: DataType) -> str:
    match data_type:
        case AtomicType():
            return _format_atomic(data_type)
        case ArrayType():
            return f"ARRAY<{format_sql_type(data_type.element)}>"
        case VectorType():
            return f"VECTOR<{format_sql_type(data_type.element)}, {data_type.length}>"
        case MultisetType():
            return f"MULTISET<{format_sql_type(data_type.element)}>"
        case MapType():
            return f"MAP<{format_sql_type(data_type.key)}, {format_sql_type(data_type.value)}>"
        case RowType():
            return f"ROW<{', '.join(_format_field(field) for field in data_type.fields)}>"
        case other:
            assert_never(other)


def _format_field(field: DataField) -> str:
    text = f"{format_name(field.name)} {format_sql_type(field.type)}"
    return text if field.description is None else f"{text} COMMENT {format_string(field.description)}"


def _format_atomic(data_type: AtomicType) -> str:
    root = data_type.root
    if data_type.length == MAX_LENGTH and root in _UNLIMITED:
        return _UNLIMITED[root]
    match root:
        case TypeRoot.CHAR | TypeRoot.VARCHAR | TypeRoot.BINARY | TypeRoot.VARBINARY:
            return f"{root}({data_type.length})"
        case TypeRoot.DECIMAL:
            return f"DECIMAL({data_type.precision}, {data_type.scale})"
        case TypeRoot.TIME | TypeRoot.TIMESTAMP:
            return f"{root}({data_type.precision})"
        case TypeRoot.TIMESTAMP_LTZ:
            return f"TIMESTAMP({data_type.precision}) WITH LOCAL TIME ZONE"
        case _:
            return root.value if data_type.parameters is None else f"{root}({data_type.parameters})"


def format_name(name: str) -> str:
    """Format a column name for DDL: in backquotes unless it is a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def format_string(text: str) -> str:
    """Format a string for DDL: in single quotes."""
    return "'" + text.replace("'", "''") + "'"
