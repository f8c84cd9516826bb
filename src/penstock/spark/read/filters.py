"""Convert bound filters to Spark columns."""

from __future__ import annotations

import datetime as dt
import operator
from functools import reduce
from typing import TYPE_CHECKING, Final, assert_never

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.format.text.names import quoted
from penstock.format.types.data_types import INTEGERS, AtomicType, RowType, TypeRoot
from penstock.predicate.tree import And, Compare, Constant, In, IsNull, Not, Operator, Or, StartsWith
from penstock.spark.read.native_files import FIRST_GREGORIAN_DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column

    from penstock.format.types.data_types import DataType
    from penstock.predicate.tree import BoundPredicate, Predicate

COMPARED_ALIKE: Final = frozenset({TypeRoot.BOOLEAN, *INTEGERS, TypeRoot.DATE, TypeRoot.VARCHAR})
"""Types whose values compare here exactly as they do in Spark."""
_COMPARE: Final[Mapping[Operator, Callable[[Column, Column], Column]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}
# 1900-01-01: before, zones had local mean times, which Spark uses when it converts between calendars.
_FIRST_PLAIN_NANOS: Final = -2_208_988_800 * 10**9
_EPOCH_TIME: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a time without a zone


def to_column(predicate: BoundPredicate) -> Column:
    """Return the filter as a Spark column over columns of the same names; its value is null for unknown."""
    return _Translator({field.name: field.type for field in predicate.fields}).column(predicate.root)


def without_float_pushdown(column: Column, data_type: DataType) -> Column:
    """Wrap a column of a Parquet file so that Spark does not compare its floating-point numbers with footers.

    In Spark NaN is greater than all numbers, but many writers (including Arrow) omit it from the ranges in a footer. So
    a pushed-down ``f > 5`` would skip row groups with NaN. Spark pushes down comparisons of columns and ROW fields, but
    not of expressions, and never elements of ARRAY and MAP.
    """
    match data_type:
        case AtomicType(root=TypeRoot.FLOAT | TypeRoot.DOUBLE):
            return F.nanvl(column, column)
        case RowType(fields=fields):
            guarded = column
            for field in fields:
                stored = column.getField(field.name)
                value = without_float_pushdown(stored, field.type)
                if value is not stored:
                    guarded = guarded.withField(quoted(field.name), value)
            return guarded
        case _:
            return column


class _Translator:
    def __init__(self, types: Mapping[str, DataType]) -> None:
        self._types = types

    def column(self, node: Predicate) -> Column:
        match node:
            case Constant(value=value):
                return F.lit(value).cast("boolean")
            case And(operands=operands):
                return reduce(operator.and_, map(self.column, operands), F.lit(True))  # noqa: FBT003 - a literal
            case Or(operands=operands):
                return reduce(operator.or_, map(self.column, operands), F.lit(False))  # noqa: FBT003 - a literal
            case Not(operand=operand):
                return ~self.column(operand)
            case _:
                return self._leaf(node)

    def _leaf(self, node: Compare | In | IsNull | StartsWith) -> Column:
        column = F.col(quoted(node.column))
        match node:
            case Compare(operator=comparison, value=value):
                column, literals = self._operands(node.column, [value])
                return _COMPARE[comparison](column, *literals)
            case In():
                return self._in(node)
            case IsNull(negated=negated):
                answer = column.isNull()
            case StartsWith(prefix=prefix, negated=negated):
                answer = column.startswith(self._literal(node.column, prefix))
            case _:
                assert_never(node)
        return ~answer if negated else answer

    def _in(self, node: In) -> Column:
        values = [value for value in node.values if value is not None]
        column, literals = self._operands(node.column, values)
        answer = ~column.isin(literals) if node.negated else column.isin(literals)
        if len(values) == len(node.values):
            return answer
        # Spark would push the null down to ORC, whose reader fails on it.
        unknown = F.lit(None).cast("boolean")
        return answer & unknown if node.negated else answer | unknown

    def _operands(self, name: str, values: Sequence[object]) -> tuple[Column, list[Column]]:
        """Return the column and the non-null values as expressions that Spark compares correctly.

        Pushed-down values may pass through the Julian calendar. That changes the days from 1582-10-05 to 1582-10-14,
        which it does not have. So old dates and times are compared as numbers, which Spark does not push down.
        """
        column = F.col(quoted(name))
        data_type = self._types[name]
        root = data_type.root if isinstance(data_type, AtomicType) else None
        numbers = [value for value in values if isinstance(value, int)]
        if root is TypeRoot.DATE and min(numbers, default=0) < FIRST_GREGORIAN_DAY:
            return F.unix_date(column), [F.lit(number) for number in numbers]
        if root is TypeRoot.TIMESTAMP_LTZ and min(numbers, default=0) < _FIRST_PLAIN_NANOS:
            return F.unix_micros(column), [F.lit(number // 1000) for number in numbers]
        return column, [self._literal(name, value) for value in values]

    def _literal(self, name: str, value: object) -> Column:
        data_type = self._types[name]
        root = data_type.root if isinstance(data_type, AtomicType) else None
        if value is None:
            return F.lit(None)
        if root is TypeRoot.DATE and isinstance(value, int):
            # A Python date passes through the Julian calendar on its way to the JVM, and fails before the year 1000.
            return F.date_from_unix_date(F.lit(value))
        if root is TypeRoot.TIMESTAMP_LTZ and isinstance(value, int):
            return F.timestamp_micros(F.lit(value // 1000))
        if root is TypeRoot.TIMESTAMP and isinstance(value, int):
            text = (_EPOCH_TIME + dt.timedelta(microseconds=value // 1000)).isoformat(sep=" ")
            return F.lit(text).cast("timestamp_ntz")
        if isinstance(value, bytes):
            return F.lit(bytearray(value))
        return F.lit(value)
