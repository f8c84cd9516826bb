"""Convert computed columns to Spark expressions, where Spark returns exactly the values of Flink.

Only expressions that are certain to be equal are converted: times from numbers and texts, casts without loss,
arithmetic of integers and of DOUBLE. Other results differ: Flink prints a BOOLEAN in capitals and a TIMESTAMP with all
its digits; for a DECIMAL overflow one engine returns NULL and the other raises an error.

Source:
    Flink's system functions TO_TIMESTAMP, TO_TIMESTAMP_LTZ, PROCTIME and CAST;
    docs/spec/observed.md (options ``schema.*``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.format.types.data_types import BIGINT, INT, STRING, AtomicType, TypeRoot, timestamp_type, with_nullability
from penstock.format.types.sql import read_type
from penstock.format.types.text import format_sql_type
from penstock.format.types.tokens import TokenKind, TokenReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.format.types.data_types import DataType

_WHOLE: Final = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT)
_DIGITS: Final = dict(zip(_WHOLE, (3, 5, 10, 19), strict=True))
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
    if reader.current.kind is not TokenKind.END:
        raise reader.refusal(f"'{reader.current.text}'")
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
        wider = next((root for root in reversed(_WHOLE) if root in roots), TypeRoot.DOUBLE)
        if not roots <= {*_WHOLE, TypeRoot.DOUBLE}:
            raise self.refusal(f"{left.kind} {sign} {right.kind}")
        return _Value(text=text, type=AtomicType(root=TypeRoot.DOUBLE if TypeRoot.DOUBLE in roots else wider))

    def _read_one(self) -> _Value:
        token = self.current
        if self.take_sign("("):
            value = self.read_sum()
            self._expect(")")
            return _Value(text=f"({value.text})", type=value.type)
        if token.kind is TokenKind.NUMBER and token.text.isdecimal() and int(token.text) <= _MAX_BIGINT:
            self.take()
            return _Value(text=token.text, type=INT if int(token.text) <= _MAX_INT else BIGINT)
        if token.kind is TokenKind.STRING:
            self.take()
            # In Spark a backslash begins an escape.
            text = token.text.replace("\\", "\\\\").replace("'", "''")
            return _Value(text=f"'{text}'", type=STRING)
        function = _FUNCTIONS.get(token.text.upper()) if token.kind is TokenKind.WORD else None
        if function is not None and self.ahead(1).text == "(":
            self.take()
            self.take()
            value = function(self)
            self._expect(")")
            return value
        return self._read_column()

    def _read_column(self) -> _Value:
        token = self.current
        data_type = self._columns.get(token.text) if token.kind in {TokenKind.QUOTED, TokenKind.WORD} else None
        if data_type is None or (token.kind is TokenKind.WORD and self.ahead(1).text == "("):
            raise self.refusal(f"'{token.text}'")
        self.take()
        return _Value(text=quoted(token.text), type=data_type)

    def _expect(self, sign: str) -> None:
        if not self.take_sign(sign):
            raise self.refusal(f"'{self.current.text}'")

    def read_cast(self) -> _Value:
        value = self.read_sum()
        if not self.take_words("AS"):
            raise self.refusal(f"'{self.current.text}'")
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
            if given.kind is not TokenKind.STRING or given.text != _FORMAT:
                raise self.refusal(f"TO_TIMESTAMP with another format than '{_FORMAT}'")
        if value.root is not TypeRoot.VARCHAR:
            raise self.refusal(f"TO_TIMESTAMP of {value.kind}")
        return _Value(text=_FROM_TEXT.format(text=value.text), type=timestamp_type(3))

    def read_to_timestamp_ltz(self) -> _Value:
        value = self.read_sum()
        digits = "3"
        if self.take_sign(","):
            digits = self.take().text
        if value.root not in _WHOLE or digits not in _FROM_NUMBER:
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
        return target.length == STRING.length and (found in _WHOLE or found is TypeRoot.VARCHAR)
    if wanted is TypeRoot.DECIMAL:
        return _fits_decimal(source, target)
    if found in _WHOLE:
        return wanted is TypeRoot.DOUBLE or (wanted in _WHOLE and _WHOLE.index(found) <= _WHOLE.index(wanted))
    if found in _TIMES and wanted in _TIMES:
        return (source.precision or 0) <= (target.precision or 0)
    return (found, wanted) in _SAME


def _fits_decimal(source: AtomicType, target: AtomicType) -> bool:
    whole_digits = (target.precision or 0) - (target.scale or 0)
    if source.root in _WHOLE:
        return whole_digits >= _DIGITS[source.root]
    is_decimal = source.root is TypeRoot.DECIMAL and (target.scale or 0) >= (source.scale or 0)
    return is_decimal and whole_digits >= (source.precision or 0) - (source.scale or 0)


_FUNCTIONS: Final[Mapping[str, Callable[[_Reader], _Value]]] = {
    "CAST": _Reader.read_cast,
    "TO_TIMESTAMP": _Reader.read_to_timestamp,
    "TO_TIMESTAMP_LTZ": _Reader.read_to_timestamp_ltz,
    "PROCTIME": _Reader.read_proctime,
}
