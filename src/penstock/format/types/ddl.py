"""Parse column lists in DDL syntax.

Source:
    The column clause of Flink's and Spark's ``CREATE TABLE``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.format.types.data_types import with_nullability
from penstock.format.types.sql import read_name, read_string, read_type
from penstock.format.types.tokens import TokenKind, TokenReader

if TYPE_CHECKING:
    from penstock.format.types.data_types import DataType


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


_CLAUSES: Final = (
    (("PRIMARY", "KEY"), "append tables have no primary key; leave it out"),
    (("WATERMARK", "FOR"), "a watermark is declared separately, not among the columns"),
    (("PARTITIONED", "BY"), "partition columns are named separately, not among the columns"),
)


def parse_columns(text: str) -> tuple[ColumnSpec, ...]:
    """Parse a column list such as ``order_id BIGINT NOT NULL COMMENT 'x', `user` STRING``.

    The type of a column may be followed by ``NOT NULL``, ``COMMENT '…'`` and ``DEFAULT literal``, in any order.

    Returns:
        The columns in the order of the text, at least one.

    Raises:
        InvalidSchemaError: invalid syntax; the message has the position and what was expected there.
    """
    reader = TokenReader(text, "column list")
    columns = [read_column(reader)]
    while reader.take_sign(","):
        columns.append(read_column(reader))
    reader.expect_end("',', NOT NULL, COMMENT, DEFAULT or the end")
    return tuple(columns)


def read_column(reader: TokenReader) -> ColumnSpec:
    """Read one column: its name, type and clauses.

    Raises:
        InvalidSchemaError: invalid syntax; the message has the position and what was expected there.
    """
    _refuse_clauses(reader)
    name = read_name(reader, "a column name").text
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
    for words, cure in _CLAUSES:
        if reader.at_words(*words):
            raise reader.error(cure)


def _read_literal(reader: TokenReader) -> str:
    sign = "-" if reader.take_sign("-") else ""
    kinds = {TokenKind.NUMBER} if sign else {TokenKind.NUMBER, TokenKind.STRING, TokenKind.WORD}
    if reader.current.kind not in kinds:
        raise reader.error("expected a literal such as 5, 'text' or true")
    return sign + reader.take().text
