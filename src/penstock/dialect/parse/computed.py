"""Read computed columns: the text as Flink's catalog stores it, and the type as far as the text determines it.

Source:
    docs/spec/observed.md (options ``schema.<i>.*``): columns in backquotes, functions in capitals, as
    Flink prints them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.reader import StatementReader, read_list
from penstock.dialect.parse.statements import ComputedColumn
from penstock.format.types.data_types import timestamp_type, with_nullability
from penstock.format.types.sql import read_name
from penstock.format.types.text import parse_sql_type
from penstock.format.types.tokens import TokenKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.dialect.parse.script import StatementText
    from penstock.format.types.data_types import DataType
    from penstock.format.types.tokens import Token

# Functions whose result type does not depend on their arguments.
_RESULTS: Final[Mapping[str, DataType]] = {
    "TO_TIMESTAMP": timestamp_type(3),
    "TO_TIMESTAMP_LTZ": timestamp_type(3, local_zone=True),
    "PROCTIME": with_nullability(timestamp_type(3, local_zone=True), nullable=False),
}


def read_computed_column(reader: StatementReader, place: int, columns: Mapping[str, DataType]) -> ComputedColumn:
    """Read ``name AS expression``.

    Args:
        place: position among all columns of the statement.
        columns: the physical columns that the expression may use, with their types.

    Raises:
        InvalidSqlError: there is no such column, or the text of the expression does not determine its type.
    """
    name = read_name(reader, "a column name").text
    reader.expect_words("AS")
    first = reader.current
    tokens = _take_expression(reader)
    if not tokens:
        raise reader.error("expected an expression after AS")
    if reader.at_words("COMMENT"):
        raise reader.error("the format cannot store the comment of a computed column; leave it out")
    for token in tokens:
        if token.kind is TokenKind.QUOTED and token.text not in columns:
            raise reader.error(f"a computed column can use the columns before it: {', '.join(columns)}", at=token)
    data_type = _type_of(reader, tokens, columns)
    if data_type is None:
        raise reader.error(
            f"the type of this expression is not known here; write CAST(… AS type), or one of {', '.join(_RESULTS)}",
            at=first,
        )
    return ComputedColumn(place=place, name=name, expression=_format(tokens, columns), type=data_type)


def read_computed_columns(
    source: StatementText, place: int, columns: Mapping[str, DataType]
) -> tuple[ComputedColumn, ...]:
    """Read one computed column, or several in parentheses.

    Args:
        place: position of the first one among all columns of the table.
        columns: as for ``read_computed_column``.

    Raises:
        InvalidSqlError: as ``read_computed_column``.
    """
    reader, found = StatementReader(source), list[ComputedColumn]()

    def read_one(reader: StatementReader) -> None:
        found.append(read_computed_column(reader, place + len(found), columns))

    if reader.at_sign("("):
        read_list(reader, read_one, "the columns")
    else:
        read_one(reader)
    reader.done()
    return tuple(found)


def _take_expression(reader: StatementReader) -> list[Token]:
    """Take the tokens up to the comma or parenthesis that ends the column."""
    tokens: list[Token] = []
    depth = 0
    while reader.current.kind is not TokenKind.END:
        if depth == 0 and (reader.at_sign(",") or reader.at_sign(")") or reader.at_words("COMMENT")):
            break
        depth += reader.at_sign("(") - reader.at_sign(")")
        tokens.append(reader.take())
    return tokens


def _type_of(reader: StatementReader, tokens: Sequence[Token], columns: Mapping[str, DataType]) -> DataType | None:
    first = tokens[0]
    if len(tokens) == 1:
        return columns.get(first.text) if first.kind in {TokenKind.WORD, TokenKind.QUOTED} else None
    if not _is_one_call(tokens):
        return None
    if first.text.upper() != "CAST":
        return _RESULTS.get(first.text.upper())
    depth = 0
    for token in tokens:
        depth += _is_sign(token, "(") - _is_sign(token, ")")
        if depth == 1 and token.kind is TokenKind.WORD and token.text.upper() == "AS":
            return parse_sql_type(reader.text[token.start + len("AS") : tokens[-1].start])
    return None


def _is_one_call(tokens: Sequence[Token]) -> bool:
    """Whether the whole expression is one call ``word(…)``."""
    if tokens[0].kind is not TokenKind.WORD or not _is_sign(tokens[1], "("):
        return False
    depth = 0
    for index, token in enumerate(tokens[1:], start=1):
        depth += _is_sign(token, "(") - _is_sign(token, ")")
        if depth == 0:
            return index == len(tokens) - 1
    return False


def _format(tokens: Sequence[Token], columns: Mapping[str, DataType]) -> str:
    text = ""
    glued = True
    for token, following in zip(tokens, (*tokens[1:], None), strict=True):
        is_call = following is not None and _is_sign(following, "(")
        if not glued and not _is_sign(token, ")") and not _is_sign(token, ","):
            text += " "
        text += _token_text(token, columns, is_call=is_call)
        glued = _is_sign(token, "(") or (is_call and token.kind is TokenKind.WORD)
    return text


def _token_text(token: Token, columns: Mapping[str, DataType], *, is_call: bool) -> str:
    if token.kind is TokenKind.STRING:
        return "'" + token.text.replace("'", "''") + "'"
    if token.kind is TokenKind.QUOTED or (token.kind is TokenKind.WORD and token.text in columns and not is_call):
        return "`" + token.text.replace("`", "``") + "`"
    return token.text.upper() if token.kind is TokenKind.WORD else token.text


def _is_sign(token: Token, sign: str) -> bool:
    return token.kind is TokenKind.SIGN and token.text == sign
