"""Computed columns: the text as Flink's catalog stores it, their types, and Spark expressions of the same values.

A type is known as far as the text determines it. Only expressions that are certain to be equal are converted to
Spark's: times from numbers and texts, casts without loss, arithmetic of integers and of DOUBLE. Other results differ:
Flink prints a BOOLEAN in capitals and a TIMESTAMP with all its digits; for a DECIMAL overflow one engine returns NULL
and the other raises an error.

Source:
    docs/spec/observed.md (options ``schema.<i>.*``): columns in backquotes, functions in capitals, as Flink prints
    them; Flink's system functions TO_TIMESTAMP, TO_TIMESTAMP_LTZ, PROCTIME and CAST.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.reader import StatementReader, read_list
from penstock.dialect.parse.statements import ComputedColumn
from penstock.errors import UnsupportedFeatureError
from penstock.format.lexer import END, NUMBER, QUOTED, TEXT, WORD, TokenReader
from penstock.format.text.names import quoted
from penstock.format.types.data_types import (
    BIGINT,
    INT,
    INTEGERS,
    STRING,
    AtomicType,
    TypeRoot,
    timestamp_type,
    with_nullability,
)
from penstock.format.types.ddl import read_name, read_type
from penstock.format.types.text import format_sql_type, format_string, parse_sql_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.dialect.parse.reader import StatementText
    from penstock.format.lexer import Token
    from penstock.format.types.data_types import DataType

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
    name = read_name(reader, "a column name")
    reader.expect_words("AS")
    first = reader.current
    tokens = _take_expression(reader)
    if not tokens:
        raise reader.error("expected an expression after AS")
    if reader.at_words("COMMENT"):
        raise reader.error("the format cannot store the comment of a computed column; leave it out")
    for token in tokens:
        if token.kind == QUOTED and token.content not in columns:
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
    while reader.current.kind != END:
        if depth == 0 and (reader.at_sign(",") or reader.at_sign(")") or reader.at_words("COMMENT")):
            break
        depth += reader.at_sign("(") - reader.at_sign(")")
        tokens.append(reader.take())
    return tokens


def _type_of(reader: StatementReader, tokens: Sequence[Token], columns: Mapping[str, DataType]) -> DataType | None:
    first = tokens[0]
    if len(tokens) == 1:
        return columns.get(first.content) if first.is_name else None
    if not _is_one_call(tokens):
        return None
    if first.word != "CAST":
        return _RESULTS.get(first.word)
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 1 and token.word == "AS":
            return parse_sql_type(reader.text[token.end : tokens[-1].start])
    return None


def _is_one_call(tokens: Sequence[Token]) -> bool:
    """Whether the whole expression is one call ``word(…)``."""
    if tokens[0].kind != WORD or tokens[1].text != "(":
        return False
    depth = 0
    for index, token in enumerate(tokens[1:], start=1):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return index == len(tokens) - 1
    return False


def _format(tokens: Sequence[Token], columns: Mapping[str, DataType]) -> str:
    text = ""
    glued = True
    for token, following in zip(tokens, (*tokens[1:], None), strict=True):
        is_call = following is not None and following.text == "("
        if not glued and token.text not in {")", ","}:
            text += " "
        text += _token_text(token, columns, is_call=is_call)
        glued = token.text == "(" or (is_call and token.kind == WORD)
    return text


def _token_text(token: Token, columns: Mapping[str, DataType], *, is_call: bool) -> str:
    if token.kind == TEXT:
        return format_string(token.content)
    if token.kind == QUOTED or (token.kind == WORD and token.text in columns and not is_call):
        return quoted(token.content)
    return token.word


# Values

_DIGITS: Final = dict(zip(INTEGERS, (3, 5, 10, 19), strict=True))
_TIMES: Final = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
_MAX_INT: Final = 2**31 - 1
_MAX_BIGINT: Final = 2**63 - 1
_SAME: Final = {
    (TypeRoot.FLOAT, TypeRoot.DOUBLE),
    (TypeRoot.DATE, TypeRoot.TIMESTAMP),
    (TypeRoot.TIMESTAMP, TypeRoot.DATE),
}
# By the precision argument: 0 for seconds, 3 for milliseconds.
_FROM_NUMBER: Final = {"0": "timestamp_seconds", "3": "timestamp_millis"}
_FORMAT: Final = "yyyy-MM-dd HH:mm:ss"
# For other texts Flink returns NULL, or it accepts texts with missing or additional parts.
_FROM_TEXT: Final = (
    "CASE WHEN {text} IS NULL THEN NULL"
    " WHEN {text} RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,3}})?$'"
    " AND try_cast({text} AS TIMESTAMP_NTZ) IS NOT NULL THEN try_cast({text} AS TIMESTAMP_NTZ)"
    " ELSE CAST(raise_error(concat('TO_TIMESTAMP: this is not a time such as 2026-01-31 10:00:00.123: ', {text}))"
    " AS TIMESTAMP_NTZ) END"
)
_NAMES: Final = {
    TypeRoot.VARCHAR: "STRING",
    TypeRoot.TIMESTAMP: "TIMESTAMP_NTZ",
    TypeRoot.TIMESTAMP_LTZ: "TIMESTAMP",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    text: str
    type: DataType

    @property
    def root(self) -> TypeRoot | None:
        return self.type.root if isinstance(self.type, AtomicType) else None

    @property
    def kind(self) -> str:
        return "a nested type" if self.root is None else str(self.root)


def spark_expression(expression: str, columns: Mapping[str, DataType]) -> str:
    """Convert the expression of a computed column to Spark SQL.

    Args:
        expression: the expression as Flink's catalog stores it.
        columns: the physical columns with their types.

    Raises:
        UnsupportedFeatureError: Spark may return other values than Flink; the message ends with the reason.
    """
    reader = _Reader(expression, columns)
    value = reader.read_sum()
    if reader.current.kind != END:
        raise reader.refusal(f"'{reader.current.content}'")
    return value.text


class _Reader(TokenReader):
    """Parses an expression, left to right."""

    def __init__(self, expression: str, columns: Mapping[str, DataType]) -> None:
        super().__init__(expression, "expression")
        self._columns = columns

    def refusal(self, what: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(f"{what} is not evaluated here")

    def read_sum(self) -> _Value:
        value = self._read_product()
        while self.at_sign("+") or self.at_sign("-"):
            sign = self.take().text
            value = self._calculated(value, sign, self._read_product())
        return value

    def _read_product(self) -> _Value:
        value = self._read_one()
        while self.at_sign("*"):
            self.take()
            value = self._calculated(value, "*", self._read_one())
        return value

    def _calculated(self, left: _Value, sign: str, right: _Value) -> _Value:
        text = f"({left.text} {sign} {right.text})"
        roots = {left.root, right.root}
        wider = next((root for root in reversed(INTEGERS) if root in roots), TypeRoot.DOUBLE)
        if not roots <= {*INTEGERS, TypeRoot.DOUBLE}:
            raise self.refusal(f"{left.kind} {sign} {right.kind}")
        return _Value(text=text, type=AtomicType(root=TypeRoot.DOUBLE if TypeRoot.DOUBLE in roots else wider))

    def _read_one(self) -> _Value:
        token = self.current
        if self.take_sign("("):
            value = self.read_sum()
            self._expect(")")
            return _Value(text=f"({value.text})", type=value.type)
        if token.kind == NUMBER and token.text.isdecimal() and int(token.text) <= _MAX_BIGINT:
            self.take()
            return _Value(text=token.text, type=INT if int(token.text) <= _MAX_INT else BIGINT)
        if token.kind == TEXT:
            self.take()
            # In Spark a backslash begins an escape.
            text = token.content.replace("\\", "\\\\").replace("'", "''")
            return _Value(text=f"'{text}'", type=STRING)
        function = _FUNCTIONS.get(token.word)
        if function is not None and self.ahead(1).text == "(":
            self.take()
            self.take()
            value = function(self)
            self._expect(")")
            return value
        return self._read_column()

    def _read_column(self) -> _Value:
        token = self.current
        data_type = self._columns.get(token.content) if token.is_name else None
        if data_type is None or (token.kind == WORD and self.ahead(1).text == "("):
            raise self.refusal(f"'{token.content}'")
        self.take()
        return _Value(text=quoted(token.content), type=data_type)

    def _expect(self, sign: str) -> None:
        if not self.take_sign(sign):
            raise self.refusal(f"'{self.current.content}'")

    def read_cast(self) -> _Value:
        value = self.read_sum()
        if not self.take_words("AS"):
            raise self.refusal(f"'{self.current.content}'")
        target = read_type(self)
        if not isinstance(target, AtomicType) or not _is_same_cast(value.type, target):
            raise self.refusal(f"CAST of {value.kind} as {format_sql_type(target)}")
        name = _NAMES.get(target.root, str(target.root))
        if target.root is TypeRoot.DECIMAL:
            name = f"DECIMAL({target.precision}, {target.scale})"
        return _Value(text=f"CAST({value.text} AS {name})", type=target)

    def read_to_timestamp(self) -> _Value:
        value = self.read_sum()
        if self.take_sign(","):
            given = self.take()
            if given.kind != TEXT or given.content != _FORMAT:
                raise self.refusal(f"TO_TIMESTAMP with another format than '{_FORMAT}'")
        if value.root is not TypeRoot.VARCHAR:
            raise self.refusal(f"TO_TIMESTAMP of {value.kind}")
        return _Value(text=_FROM_TEXT.format(text=value.text), type=timestamp_type(3))

    def read_to_timestamp_ltz(self) -> _Value:
        value = self.read_sum()
        digits = "3"
        if self.take_sign(","):
            digits = self.take().content
        if value.root not in INTEGERS or digits not in _FROM_NUMBER:
            raise self.refusal(f"TO_TIMESTAMP_LTZ of {value.kind} with precision {digits}")
        return _Value(text=f"{_FROM_NUMBER[digits]}({value.text})", type=timestamp_type(3, local_zone=True))

    def read_proctime(self) -> _Value:
        now = "timestamp_millis(unix_millis(current_timestamp()))"
        return _Value(text=now, type=timestamp_type(3, local_zone=True))


def _is_same_cast(source: DataType, target: AtomicType) -> bool:
    """Whether Flink and Spark return the same result for a cast of any value."""
    is_equal = with_nullability(source, nullable=True) == with_nullability(target, nullable=True)
    if is_equal or not isinstance(source, AtomicType):
        return is_equal
    found, wanted = source.root, target.root
    if wanted is TypeRoot.VARCHAR:
        return target.length == STRING.length and (found in INTEGERS or found is TypeRoot.VARCHAR)
    if wanted is TypeRoot.DECIMAL:
        return _fits_decimal(source, target)
    if found in INTEGERS:
        return wanted is TypeRoot.DOUBLE or (wanted in INTEGERS and INTEGERS.index(found) <= INTEGERS.index(wanted))
    if found in _TIMES and wanted in _TIMES:
        return (source.precision or 0) <= (target.precision or 0)
    return (found, wanted) in _SAME


def _fits_decimal(source: AtomicType, target: AtomicType) -> bool:
    whole_digits = (target.precision or 0) - (target.scale or 0)
    if source.root in INTEGERS:
        return whole_digits >= _DIGITS[source.root]
    is_decimal = source.root is TypeRoot.DECIMAL and (target.scale or 0) >= (source.scale or 0)
    return is_decimal and whole_digits >= (source.precision or 0) - (source.scale or 0)


_FUNCTIONS: Final[Mapping[str, Callable[[_Reader], _Value]]] = {
    "CAST": _Reader.read_cast,
    "TO_TIMESTAMP": _Reader.read_to_timestamp,
    "TO_TIMESTAMP_LTZ": _Reader.read_to_timestamp_ltz,
    "PROCTIME": _Reader.read_proctime,
}
