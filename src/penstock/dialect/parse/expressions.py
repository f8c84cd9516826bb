"""Conversion of UPDATE and MERGE expressions to Arrow."""

from __future__ import annotations

import math
import reprlib
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.dialect.parse.flink import typed_literal
from penstock.predicate.literals import TYPED_LITERALS
from penstock.predicate.tree import TimestampLiteral
from penstock.table.dml.values import evaluate_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_Convert: TypeAlias = "_Converter"


_NULL: Final[Any] = pa.scalar(None, pa.null())
_UNKNOWN: Final[Any] = pa.scalar(None, pa.bool_())
_TRUE: Final[Any] = pa.scalar(value=True)


def _is_nan(value: Any) -> Any:  # noqa: ANN401 - pyarrow makes its functions at run time
    # Of values of all types, only NaN is not equal to itself in Arrow, which does not compare NULL without a type.
    return pc.scalar(_UNKNOWN) if value.equals(pc.scalar(_NULL)) else value != value  # noqa: PLR0124


def _equal(left: Any, right: Any) -> Any:  # noqa: ANN401 - as above
    """Compare as Spark and WHERE do: NaN equals itself, and is greater than all numbers."""
    return (left == right) | (_is_nan(left) & _is_nan(right))


def _less(left: Any, right: Any) -> Any:  # noqa: ANN401 - as above
    return (left < right) | (~_is_nan(left) & _is_nan(right))


_OPERATORS: Final[Mapping[type[exp.Expr], Callable[[Any, Any], Any]]] = {
    exp.Add: lambda left, right: left + right,
    exp.Sub: lambda left, right: left - right,
    exp.Mul: lambda left, right: left * right,
    exp.EQ: _equal,
    exp.NEQ: lambda left, right: ~_equal(left, right),
    exp.LT: _less,
    exp.LTE: lambda left, right: ~_less(right, left),
    exp.GT: lambda left, right: _less(right, left),
    exp.GTE: lambda left, right: ~_less(left, right),
}
_UNITS: Final[tuple[tuple[Literal["s", "ms", "us", "ns"], int], ...]] = (
    ("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1),
)  # fmt: skip
SUPPORTED_EXPRESSIONS: Final = (
    "constants, columns, +, -, *, ||, comparisons, AND, OR, NOT, IS NULL, IN, CASE, COALESCE, CONCAT, UPPER and LOWER"
)


class UnknownExpressionError(ValueError):
    """An unsupported expression; the text is that of the unsupported part."""


def constant_of(node: exp.Expr) -> tuple[object, bool]:
    """Return the value of a constant, and True; for anything else None and False.

    Numbers with a point are ``Decimal``, dates ``date``, timestamps ``TimestampLiteral``, bytes ``bytes``.

    Raises:
        UnknownExpressionError: a date, a time or a timestamp that is none.
    """
    value: object = None
    is_constant = True
    match node:
        case exp.Paren():
            value, is_constant = constant_of(node.this)
        case exp.Null():
            pass
        case exp.Boolean():
            value = bool(node.this)
        case exp.Literal():
            value = _literal(node)
        case exp.Neg():
            inner, is_constant = constant_of(node.this)
            is_constant = is_constant and isinstance(inner, int | Decimal)
            value = -inner if isinstance(inner, int | Decimal) else None
        case _:
            found = typed_literal(node)
            is_constant = found is not None
            value = _typed(*found) if found is not None else None
    return value, is_constant


def _literal(node: exp.Literal) -> object:
    text = str(node.this)
    if node.is_string:
        return text
    return int(text) if text.isdecimal() else Decimal(text)


def _typed(word: str, text: str) -> object:
    try:
        return TYPED_LITERALS[word](text)
    except ValueError:
        raise UnknownExpressionError(f"{word} '{text}'") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """What expressions can have.

    Attributes:
        table: its name.
        schema: the columns; those of the source of a MERGE with the prefix of ``merge``.
        chars: the n of the columns that are CHAR(n).
    """

    table: str
    schema: pa.Schema
    chars: Mapping[str, int] = field(default_factory=dict)


def arrow_expression(node: exp.Expr, name_of: Callable[[exp.Column], str], columns: RowColumns | None) -> pc.Expression:
    """Return an expression for Arrow; arithmetic fails on overflow.

    Args:
        name_of: returns the name of a column in ``columns``.
        columns: None where they are not known yet: then the expression is checked, and cannot be evaluated.

    Raises:
        UnknownExpressionError: it contains anything else than ``SUPPORTED_EXPRESSIONS``.
    """
    found: pc.Expression = _Converter(name_of=name_of, columns=columns).value(node)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Converter:
    name_of: Callable[[exp.Column], str]
    columns: RowColumns | None

    def value(self, node: exp.Expr) -> Any:  # noqa: ANN401 - pyarrow makes its functions at run time
        value, is_constant = constant_of(node)
        if is_constant:
            literals = [] if not isinstance(value, Decimal) else node.find_all(exp.Literal)
            return pc.scalar(_scalar(_double(value) if any("e" in each.name.lower() for each in literals) else value))
        if not isinstance(node, exp.Column):
            return _operation(node, self)
        size = self._char_size(node)
        column = pc.field(self.name_of(node))
        return column if size is None else pc.utf8_rpad(column, size)

    def _char_size(self, node: exp.Expr) -> int | None:
        chars = {} if self.columns is None else self.columns.chars
        return chars.get(self.name_of(node)) if isinstance(node, exp.Column) else None

    def compared(self, nodes: Sequence[exp.Expr]) -> list[Any]:
        """Return values to compare, as one type; as in Spark, CHAR and texts that it is compared with are padded."""
        values = self.values(nodes)
        plain = [node.unnest() for node in nodes]
        sizes = [len(node.name) if node.is_string else self._char_size(node) for node in plain]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes) or all(self._char_size(node) is None for node in plain):
            return values
        return [pc.utf8_rpad(value, max(known)) for value in values]

    def values(self, nodes: Iterable[exp.Expr]) -> list[Any]:
        """Return values as one type: as in Spark, different numbers become DOUBLE if one is FLOAT or DOUBLE."""
        values = [self.value(node) for node in nodes]
        if self.columns is None:
            return values
        rows = pa.RecordBatch.from_pylist([], schema=self.columns.schema)
        names = [str(place) for place in range(len(values))]
        found = evaluate_all(rows, dict(zip(names, values, strict=True)), self.columns.table)
        types = [found[name].type for name in names]
        numbers = {
            each
            for each in types
            if pa.types.is_floating(each) or pa.types.is_integer(each) or pa.types.is_decimal(each)
        }
        if len(numbers) < 2 or not any(map(pa.types.is_floating, numbers)):
            return values
        return [
            _as_double(value, kind) if kind in numbers else value for value, kind in zip(values, types, strict=True)
        ]


def _double(value: Any) -> float:  # noqa: ANN401 - a Decimal
    """Return a number with an exponent, a DOUBLE in Spark. Raises ``UnknownExpressionError`` if it is too large."""
    if math.isinf(number := float(value)):
        raise UnknownExpressionError(reprlib.repr(str(value)))
    return number


def _as_double(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - as above
    # By its text, since Arrow's conversion of decimals is not the nearest double: 12.7000 becomes 12.700000000000001.
    return (value.cast(pa.string()) if pa.types.is_decimal(kind) else value).cast(pa.float64(), safe=False)


def _scalar(value: Any) -> Any:  # noqa: ANN401 - the stubs of pyarrow have no type of all scalars
    if isinstance(value, TimestampLiteral):
        # The coarsest unit that holds it: nanoseconds end in the year 2262.
        unit, step = next(each for each in _UNITS if value.nanos % each[1] == 0)
        return pa.scalar(value.nanos // step, pa.timestamp(unit, "UTC" if value.has_zone else None))
    # As decimals, numbers fit to columns of all kinds of numbers.
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    try:
        return pa.scalar(Decimal(value) if is_whole else value)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise UnknownExpressionError(reprlib.repr(str(value))) from error


def _operation(node: exp.Expr, convert: _Convert) -> Any:  # noqa: ANN401 - pyarrow makes its functions at run time
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        return operator(*convert.compared((node.this, node.expression)))
    function = _FUNCTIONS.get(type(node))
    if function is None:
        raise UnknownExpressionError(node.sql())
    return function(node, convert)


def _is(node: exp.Expr, convert: _Convert) -> Any:  # noqa: ANN401 - as above
    if not isinstance(node.expression, exp.Null):
        raise UnknownExpressionError(node.sql())
    return convert.value(node.this).is_null()


def _in(node: exp.Expr, convert: _Convert) -> Any:  # noqa: ANN401 - as above
    if not node.expressions:
        raise UnknownExpressionError(node.sql())
    value, *choices = convert.compared((node.this, *node.expressions))
    return reduce(lambda left, right: left | right, [_equal(value, each) for each in choices])


def _case(node: exp.Expr, convert: _Convert) -> Any:  # noqa: ANN401 - as above
    if node.this is not None:
        raise UnknownExpressionError(node.sql())
    branches, default = node.args["ifs"], node.args.get("default")
    # A condition that is NULL without a type ends the process in Arrow; an AND refuses it, as Spark does.
    conditions = pc.make_struct(*[convert.value(each.this) & pc.scalar(_TRUE) for each in branches])
    # Arrow has no CASE of a text and a NULL without a type; without ELSE it is NULL anyway.
    otherwise = [] if default is None or isinstance(default, exp.Null) else [default]
    return pc.case_when(conditions, *convert.values([*(each.args["true"] for each in branches), *otherwise]))


def _function_of_text(name: str, function: Callable[[str], str]) -> Callable[[Any, _Convert], Any]:
    """Return a conversion to a function of Python: Arrow's have one character for each, so none for ``UPPER('ß')``."""

    def apply(_context: object, texts: Any) -> Any:  # noqa: ANN401 - as above
        return pa.array([None if text is None else function(text) for text in texts.to_pylist()], pa.string())

    documentation: Any = {"summary": f"SQL's {name}", "description": ""}
    with suppress(pa.ArrowKeyError):  # the module is imported again, as notebooks do
        pc.register_scalar_function(apply, f"penstock_{name}", documentation, {"text": pa.string()}, pa.string())
    expression: Any = pc.Expression
    return lambda node, convert: expression._call(f"penstock_{name}", [convert.value(node.this)])  # noqa: SLF001 - no other way


def _joined(parts: Iterable[Any]) -> Any:  # noqa: ANN401 - as above
    return pc.binary_join_element_wise(*parts, pc.scalar(""))


_FUNCTIONS: Final[Mapping[type[exp.Expr], Callable[[Any, _Convert], Any]]] = {
    exp.Paren: lambda node, convert: convert.value(node.this),
    exp.Not: lambda node, convert: ~convert.value(node.this),
    exp.And: lambda node, convert: convert.value(node.this) & convert.value(node.expression),
    exp.Or: lambda node, convert: convert.value(node.this) | convert.value(node.expression),
    exp.DPipe: lambda node, convert: _joined(map(convert.value, (node.this, node.expression))),
    exp.Is: _is,
    exp.In: _in,
    exp.Case: _case,
    exp.Coalesce: lambda node, convert: pc.coalesce(*convert.values((node.this, *node.expressions))),
    exp.Concat: lambda node, convert: _joined(map(convert.value, node.expressions)),
    exp.Upper: _function_of_text("upper", str.upper),
    exp.Lower: _function_of_text("lower", str.lower),
}
