"""Format filters as text that ``parse`` reads."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Final, assert_never

from penstock.errors import InvalidFilterError
from penstock.predicate.tree import (
    And,
    Compare,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    SignedZero,
    StartsWith,
    TimestampLiteral,
)

if TYPE_CHECKING:
    from penstock.predicate.tree import Predicate

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND_NANOS: Final = 10**9


def format_filter(predicate: Predicate) -> str:
    """Return the text of a WHERE clause that is equivalent to the filter."""
    match predicate:
        case Constant(value=bool(value)):
            return "TRUE" if value else "FALSE"
        case Constant():
            raise InvalidFilterError("a filter that is unknown for every row has no text: leave it out")
        case And(operands=operands):
            return " AND ".join(_nested(operand) for operand in operands) or "TRUE"
        case Or(operands=operands):
            return " OR ".join(_nested(operand) for operand in operands) or "FALSE"
        case Not(operand=operand):
            return f"NOT {_nested(operand)}"
        case _:
            return _leaf(predicate)


def _nested(predicate: Predicate) -> str:
    return f"({format_filter(predicate)})"


def _leaf(leaf: Compare | In | IsNull | StartsWith) -> str:
    name = "`" + leaf.column.replace("`", "``") + "`"
    match leaf:
        case Compare(operator=operator, value=value):
            return f"{name} {operator.value} {_literal(value)}"
        case In(values=(), negated=negated):
            return "TRUE" if negated else "FALSE"
        case In(values=values, negated=negated):
            return f"{name} {'NOT ' * negated}IN ({', '.join(map(_literal, values))})"
        case IsNull(negated=negated):
            return f"{name} IS {'NOT ' * negated}NULL"
        case StartsWith(prefix=str(prefix), negated=negated):
            plain = "".join(f"\\{character}" if character in "\\%_" else character for character in prefix)
            return f"{name} {'NOT ' * negated}LIKE {_quoted(plain + '%')}"
        case StartsWith(prefix=prefix):
            raise _no_text(prefix)
        case _:
            assert_never(leaf)


def _literal(value: object) -> str:  # noqa: PLR0911 - a case a type
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float() if math.isfinite(value) and not isinstance(value, SignedZero):
            text = repr(value)
            # Without an exponent it would be parsed as a decimal.
            return text if "e" in text else f"{text}e0"
        case float():
            return f"DOUBLE '{float(value)}'"
        case Decimal() if value.is_finite():
            return format(value, "f")
        case str():
            return _quoted(value)
        case bytes() | bytearray() | memoryview():
            return f"X'{bytes(value).hex()}'"
        case _:
            return _time_literal(value)


def _time_literal(value: object) -> str:
    match value:
        case TimestampLiteral(nanos=nanos, has_zone=has_zone):
            seconds, fraction = divmod(nanos, _SECOND_NANOS)
            second = (_EPOCH + dt.timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(sep=" ")
            return f"TIMESTAMP '{second}.{fraction:09d}{'Z' if has_zone else ''}'"
        case dt.datetime():
            # UTC, because offsets may have seconds, which the text cannot express.
            known = value if value.tzinfo is None else value.astimezone(dt.UTC)
            return f"TIMESTAMP '{known.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case dt.time(tzinfo=None):
            return f"TIME '{value.isoformat()}'"
        case _:
            raise _no_text(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _no_text(value: object) -> InvalidFilterError:
    return InvalidFilterError(
        f"the value {value!r} of a filter cannot be written as text: use a plain Python value, or filter the DataFrame"
    )
