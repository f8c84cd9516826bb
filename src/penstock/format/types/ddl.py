"""The grammar of types and column lists: recursive descent over tokens, shared by schema files, DDL and statements.

Where the syntax is wrong, every function raises the error of its reader: the position, and what was expected there.

Source:
    Paimon ``api:types/DataTypeJsonParser.java``; synonyms of Flink's and Spark's SQL. docs/spec/format.md section 2.2.
    Columns: the column clause of Flink's and Spark's ``CREATE TABLE``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from penstock.format.lexer import END, NUMBER, TEXT, WORD, TokenReader
from penstock.format.types.data_types import (
    BIGINT,
    BYTES,
    MAX_LENGTH,
    SMALLINT,
    STRING,
    TINYINT,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    decimal_type,
    time_type,
    timestamp_type,
    with_nullability,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_DEPTH: Final = 64  # more than in any real table, and far below Python's recursion limit

_ALIASES: Final = {
    "INTEGER": "INT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "STRUCT": "ROW",
    # As Arrow, pandas and polars print them.
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INT64": "BIGINT",
    "UINT8": "SMALLINT",
    "UINT16": "INT",
    "UINT32": "BIGINT",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "BOOL": "BOOLEAN",
    "STR": "STRING",
    "UTF8": "STRING",
    "LARGE_STRING": "STRING",
    "DATE32": "DATE",
    "I16": "SMALLINT",
    "I32": "INT",
    "I64": "BIGINT",
    "F32": "FLOAT",
    "F64": "DOUBLE",
}
_HINTS: Final = {
    "INT8": "INT8 has 8 bits or 8 bytes, depending on the system: write TINYINT or BIGINT",
    "INT4": "write INT",
    "INT2": "write SMALLINT",
    "OBJECT": "write the type of its values, such as STRING",
    "DATETIME64": "write TIMESTAMP(9), or TIMESTAMP_LTZ(9) for instants",
    "DATETIME": "write TIMESTAMP(6), or TIMESTAMP_LTZ(6) for instants",
    "TEXT": "write STRING",
    "CATEGORY": "write STRING, or the type of its values",
    "DICTIONARY": "write STRING, or the type of its values",
    "LIST": "write ARRAY<...>",
}
_BRACKETS: Final = (
    "a unit in brackets is how Arrow and pandas print a type: leave it out of DATE; for times write the digits, s is "
    "TIMESTAMP(0), ms TIMESTAMP(3), us TIMESTAMP(6), ns TIMESTAMP(9), and TIMESTAMP_LTZ for instants"
)


def read_type(reader: TokenReader, depth: int = 0) -> DataType:
    """Read one type with its ``NOT NULL``, and the suffixes of ``INT ARRAY`` and ``INT MULTISET``."""
    if depth > _MAX_DEPTH:
        raise reader.error(f"types may be nested {_MAX_DEPTH} deep at most")
    data_type = _read_nullability(reader, _read_bare_type(reader, depth))
    while True:
        if reader.take_words("ARRAY"):
            data_type = _read_nullability(reader, ArrayType(element=data_type))
        elif reader.take_words("MULTISET"):
            data_type = _read_nullability(reader, MultisetType(element=data_type))
        else:
            return data_type


def _read_nullability(reader: TokenReader, data_type: DataType) -> DataType:
    if reader.take_words("NOT", "NULL"):
        return with_nullability(data_type, nullable=False)
    reader.take_words("NULL")
    return data_type


def _read_bare_type(reader: TokenReader, depth: int) -> DataType:
    token = reader.current
    if token.kind != WORD:
        raise reader.error("expected a type such as BIGINT, STRING or DECIMAL(10, 2)")
    keyword = _ALIASES.get(token.word, token.word)
    nested = _NESTED.get(keyword)
    if nested is not None:
        reader.take()
        return nested(reader, depth)
    atomic = _ATOMIC.get(keyword)
    if atomic is None:
        near = get_close_matches(keyword, (*_ATOMIC, *_NESTED, *_ALIASES), n=1)
        hint = f"did you mean {near[0]}?" if near else "expected a type such as BIGINT, STRING or DECIMAL(10, 2)"
        raise reader.error(_HINTS.get(keyword, hint))
    reader.take()
    found = atomic(reader)
    if reader.at_sign("["):
        raise reader.error(_BRACKETS)
    return found


# Atomic types


def _plain(data_type: AtomicType) -> Callable[[TokenReader], AtomicType]:
    return lambda _reader: data_type


def _read_double(reader: TokenReader) -> AtomicType:
    reader.take_words("PRECISION")
    return AtomicType(root=TypeRoot.DOUBLE)


def _sized(root: TypeRoot) -> Callable[[TokenReader], AtomicType]:
    def read(reader: TokenReader) -> AtomicType:
        # Without a length it is 1: the default of the SQL standard, and of the format.
        return AtomicType(root=root, length=_read_parameter(reader, default=1, least=1, most=MAX_LENGTH))

    return read


def _read_decimal(reader: TokenReader) -> AtomicType:
    if not reader.take_sign("("):
        return decimal_type(10, 0)
    precision = _read_number(reader, least=1, most=38)
    scale = _read_number(reader, least=0, most=precision) if reader.take_sign(",") else 0
    reader.expect_sign(")", "after the parameters of DECIMAL")
    return decimal_type(precision, scale)


def _read_time(reader: TokenReader) -> AtomicType:
    precision = _read_parameter(reader, default=0, least=0, most=9)
    reader.take_words("WITHOUT", "TIME", "ZONE")
    return time_type(precision)


def _read_timestamp(reader: TokenReader) -> AtomicType:
    precision = _read_parameter(reader, default=6, least=0, most=9)
    if reader.take_words("WITH", "LOCAL", "TIME", "ZONE"):
        return timestamp_type(precision, local_zone=True)
    if reader.at_words("WITH", "TIME", "ZONE"):
        raise reader.error("a zone per row is not in the format; expected WITH LOCAL TIME ZONE")
    reader.take_words("WITHOUT", "TIME", "ZONE")
    return timestamp_type(precision)


def _read_timestamp_ltz(reader: TokenReader) -> AtomicType:
    return timestamp_type(_read_parameter(reader, default=6, least=0, most=9), local_zone=True)


def _opaque(root: TypeRoot) -> Callable[[TokenReader], AtomicType]:
    """Return a reader that keeps the text between the parentheses unchanged."""

    def read(reader: TokenReader) -> AtomicType:
        opening = reader.current
        if not reader.take_sign("("):
            return AtomicType(root=root)
        while not reader.at_sign(")"):
            if reader.take().kind == END:
                raise reader.error(f"expected ')' after the parameters of {root}")
        parameters = reader.text[opening.start + 1 : reader.take().start].strip()
        return AtomicType(root=root, parameters=parameters)

    return read


_ATOMIC: Final[dict[str, Callable[[TokenReader], AtomicType]]] = {
    **{
        root.value: _plain(AtomicType(root=root))
        for root in (TypeRoot.BOOLEAN, TypeRoot.INT, TypeRoot.FLOAT, TypeRoot.DATE, TypeRoot.VARIANT, TypeRoot.BLOB)
    },
    "TINYINT": _plain(TINYINT),
    "SMALLINT": _plain(SMALLINT),
    "BIGINT": _plain(BIGINT),
    "STRING": _plain(STRING),
    "BYTES": _plain(BYTES),
    "DOUBLE": _read_double,
    "CHAR": _sized(TypeRoot.CHAR),
    "VARCHAR": _sized(TypeRoot.VARCHAR),
    "BINARY": _sized(TypeRoot.BINARY),
    "VARBINARY": _sized(TypeRoot.VARBINARY),
    "DECIMAL": _read_decimal,
    "UINT64": _plain(decimal_type(20, 0)),
    "TIME": _read_time,
    "TIMESTAMP": _read_timestamp,
    "TIMESTAMP_LTZ": _read_timestamp_ltz,
    "GEOMETRY": _opaque(TypeRoot.GEOMETRY),
    "GEOGRAPHY": _opaque(TypeRoot.GEOGRAPHY),
}


def _read_parameter(reader: TokenReader, *, default: int, least: int, most: int) -> int:
    if not reader.take_sign("("):
        return default
    value = _read_number(reader, least=least, most=most)
    reader.expect_sign(")", "after the parameter")
    return value


def _read_number(reader: TokenReader, *, least: int, most: int) -> int:
    token = reader.current
    # Digit strings that are too long are refused before the call of int().
    is_whole = token.kind == NUMBER and token.text.isdecimal() and len(token.text) <= len(str(MAX_LENGTH))
    if not is_whole or not least <= int(token.text) <= most:
        raise reader.error(f"expected a whole number from {least} to {most}")
    return int(reader.take().text)


# Nested types


def _read_array(reader: TokenReader, depth: int) -> DataType:
    reader.expect_sign("<", "after ARRAY")
    element = read_type(reader, depth + 1)
    reader.expect_sign(">", "after the element type of ARRAY")
    return ArrayType(element=element)


def _read_multiset(reader: TokenReader, depth: int) -> DataType:
    reader.expect_sign("<", "after MULTISET")
    element = read_type(reader, depth + 1)
    reader.expect_sign(">", "after the element type of MULTISET")
    return MultisetType(element=element)


def _read_map(reader: TokenReader, depth: int) -> DataType:
    reader.expect_sign("<", "after MAP")
    key = read_type(reader, depth + 1)
    reader.expect_sign(",", "between the key type and the value type of MAP")
    value = read_type(reader, depth + 1)
    reader.expect_sign(">", "after the value type of MAP")
    return MapType(key=key, value=value)


def _read_vector(reader: TokenReader, depth: int) -> DataType:
    reader.expect_sign("<", "after VECTOR")
    element = read_type(reader, depth + 1)
    reader.expect_sign(",", "between the element type and the length of VECTOR")
    length = _read_number(reader, least=1, most=MAX_LENGTH)
    reader.expect_sign(">", "after the length of VECTOR")
    return VectorType(element=element, length=length)


def _read_row(reader: TokenReader, depth: int) -> DataType:
    closing = ")" if reader.at_sign("(") else ">"
    if not reader.take_sign("("):
        reader.expect_sign("<", "after ROW")
    fields: list[DataField] = []
    while not reader.take_sign(closing):
        if fields:
            reader.expect_sign(",", f"or '{closing}' after a field of ROW")
        fields.append(_read_row_field(reader, len(fields), depth))
    return RowType(fields=tuple(fields))


def _read_row_field(reader: TokenReader, place: int, depth: int) -> DataField:
    name = read_name(reader, "a field name")
    reader.take_sign(":")  # STRUCT<a: INT>, Spark's syntax
    field = DataField(id=place, name=name, type=read_type(reader, depth + 1))
    # In Flink's ROW the comment follows without the word COMMENT.
    if reader.take_words("COMMENT") or reader.current.kind == TEXT:
        field = replace(field, description=read_string(reader, "the comment in quotes"))
    return field


_NESTED: Final[dict[str, Callable[[TokenReader, int], DataType]]] = {
    "ARRAY": _read_array,
    "MULTISET": _read_multiset,
    "MAP": _read_map,
    "VECTOR": _read_vector,
    "ROW": _read_row,
}


def read_name(reader: TokenReader, role: str) -> str:
    """Read a name: a word, or text in backquotes."""
    token = reader.current
    if not token.is_name or not token.content.strip():
        raise reader.error(f"expected {role}")
    return reader.take().content


def read_string(reader: TokenReader, role: str) -> str:
    """Read a quoted string."""
    if reader.current.kind != TEXT:
        raise reader.error(f"expected {role}")
    return reader.take().content


# Column lists


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSpec:
    """A column without an id.

    Attributes:
        description: the comment; None if there is none.
        default_value: literal text, cast to the type when a row has null here; None if there is none.
    """

    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None


_OTHER_CLAUSES: Final = (
    (("PRIMARY", "KEY"), "append tables have no primary key; leave it out"),
    (("WATERMARK", "FOR"), "a watermark is declared separately, not among the columns"),
    (("PARTITIONED", "BY"), "partition columns are named separately, not among the columns"),
)


def parse_columns(text: str) -> tuple[ColumnSpec, ...]:
    """Parse a column list such as ``order_id BIGINT NOT NULL COMMENT 'x', `user` STRING``.

    The type of a column may be followed by ``NOT NULL``, ``COMMENT '…'`` and ``DEFAULT literal``, in any order.

    Returns:
        The columns in the order of the text, at least one.
    """
    reader = TokenReader(text, "column list")
    columns = [read_column(reader)]
    while reader.take_sign(","):
        columns.append(read_column(reader))
    reader.expect_end("',', NOT NULL, COMMENT, DEFAULT or the end")
    return tuple(columns)


def read_column(reader: TokenReader) -> ColumnSpec:
    """Read one column: its name, type and clauses."""
    _refuse_clauses(reader)
    name = read_name(reader, "a column name")
    if reader.at_words("AS"):
        raise reader.error("expected a type; a computed column is not stored and cannot be declared here")
    data_type = read_type(reader)
    description: str | None = None
    default_value: str | None = None
    while True:
        _refuse_clauses(reader)
        if description is None and reader.take_words("COMMENT"):
            description = read_string(reader, "the comment in quotes")
        elif default_value is None and reader.take_words("DEFAULT"):
            default_value = _read_literal(reader)
        elif reader.take_words("NOT", "NULL"):
            data_type = with_nullability(data_type, nullable=False)
        else:
            return ColumnSpec(name=name, type=data_type, description=description, default_value=default_value)


def _refuse_clauses(reader: TokenReader) -> None:
    for words, cure in _OTHER_CLAUSES:
        if reader.at_words(*words):
            raise reader.error(cure)


def _read_literal(reader: TokenReader) -> str:
    sign = "-" if reader.take_sign("-") else ""
    kinds = {NUMBER} if sign else {NUMBER, TEXT, WORD}
    if reader.current.kind not in kinds:
        raise reader.error("expected a literal such as 5, 'text' or true")
    return sign + reader.take().content
