"""Filters as values, and ``col`` to build them in Python.

``col("dt").isin(["2024-01-01"]) & (col("price") > 5)`` is a tree of the nodes below. Literals are Python values until
``bind`` converts them to internal values of the columns' types. The logic is SQL's: a comparison with null is unknown,
and a row passes only if the whole filter is true.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from math import copysign
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from penstock.errors import InvalidFilterError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from penstock.format.types.data_types import DataField


class Operator(StrEnum):
    """Comparison operators; the value is the SQL text."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


NEGATED: Final = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.LE: Operator.GT,
    Operator.GT: Operator.LE,
    Operator.GE: Operator.LT,
}
"""The negation of each comparison; also correct for null (unknown stays unknown), and for NaN in our order."""

MIRRORED: Final = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""The same comparison with its operands exchanged."""


class _Connectives:
    """The operators ``&``, ``|`` and ``~`` for all nodes."""

    __slots__ = ()

    def __and__(self, other: Predicate) -> And:
        return And(operands=(_checked(self), _checked(other)))

    def __or__(self, other: Predicate) -> Or:
        return Or(operands=(_checked(self), _checked(other)))

    def __invert__(self) -> Not:
        return Not(operand=_checked(self))

    def __bool__(self) -> NoReturn:
        raise InvalidFilterError(
            "a filter has no boolean value: combine filters with &, | and ~, not with and, or, not"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(_Connectives):
    """True, false or unknown (None), for every row."""

    value: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(_Connectives):
    """``column operator value``; unknown if the value is null."""

    column: str
    operator: Operator
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class In(_Connectives):
    """``column IN (values)``, or with ``negated`` NOT IN; without a match, a null among the values gives unknown."""

    column: str
    values: tuple[object, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull(_Connectives):
    """``column IS NULL``, or with ``negated`` IS NOT NULL; never unknown."""

    column: str
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsWith(_Connectives):
    """``column LIKE 'prefix%'``, or with ``negated`` NOT LIKE."""

    column: str
    prefix: object
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class And(_Connectives):
    """AND of the operands; true without operands."""

    operands: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Or(_Connectives):
    """OR of the operands; false without operands."""

    operands: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(_Connectives):
    """NOT of the operand; unknown stays unknown."""

    operand: Predicate


Leaf: TypeAlias = Compare | In | IsNull | StartsWith
Predicate: TypeAlias = Constant | Leaf | And | Or | Not

NODES: Final = (Constant, Compare, In, IsNull, StartsWith, And, Or, Not)
"""The classes of ``Predicate``."""
TRUE: Final = Constant(value=True)
FALSE: Final = Constant(value=False)
UNKNOWN: Final = Constant(value=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampLiteral:
    """A timestamp with more digits than ``datetime`` can hold.

    Attributes:
        nanos: ns since 1970-01-01; without a zone, the wall clock taken as UTC.
        has_zone: whether a zone was given, so that ``nanos`` is an instant.
    """

    nanos: int
    has_zone: bool

    def __repr__(self) -> str:
        """Return it as SQL, as error messages show it."""
        seconds, fraction = divmod(self.nanos, 1_000_000_000)
        second = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)  # noqa: DTZ001 - a wall clock
        digits = f".{fraction:09d}".rstrip("0") if fraction else ""
        return f"TIMESTAMP '{second.isoformat(sep=' ')}{digits}{'Z' if self.has_zone else ''}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowNumber:
    """A number of an Arrow expression, which floating-point columns are compared with as Arrow does it.

    NaN is not equal to, less or greater than any number, and a FLOAT has its exact value: 0.1 is not the FLOAT 0.1.
    """

    value: float | Decimal

    def __repr__(self) -> str:
        """Return the number, as error messages show it."""
        return repr(self.value)


class SignedZero(float):
    """The zero of a partition that is named: 0.0 and -0.0 are two partitions, though equal numbers."""

    __slots__ = ()
    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        """Whether it is a zero of the same sign."""
        return isinstance(other, float) and float(self) == float(other) and copysign(1, self) == copysign(1, other)

    def __ne__(self, other: object) -> bool:
        """Whether it is another number; a method of float's would say no for the other zero."""
        return not self == other


class UnpaddedText(str):
    """A text in a place where Spark compares CHAR with it as it is, and not padded with blanks."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPredicate:
    """A filter bound to a schema: names exist, literals are internal values, NOT is pushed into the leaves.

    Attributes:
        root: contains no ``Not``.
        fields: the columns that it reads, in schema order.
    """

    root: Predicate
    fields: tuple[DataField, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it reads, in schema order."""
        return tuple(field.name for field in self.fields)

    @property
    def is_always_true(self) -> bool:
        """Whether every row passes."""
        return self.root == TRUE


class Column:
    """A column to build a filter with; ``col`` returns it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    # Comparisons build a filter instead of returning a bool, as in PySpark; hence no hash, and the ignores.
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, value: object) -> Compare:  # type: ignore[override]
        return self._compare(Operator.EQ, value)

    def __ne__(self, value: object) -> Compare:  # type: ignore[override]
        return self._compare(Operator.NE, value)

    def __lt__(self, value: object) -> Compare:
        return self._compare(Operator.LT, value)

    def __le__(self, value: object) -> Compare:
        return self._compare(Operator.LE, value)

    def __gt__(self, value: object) -> Compare:
        return self._compare(Operator.GT, value)

    def __ge__(self, value: object) -> Compare:
        return self._compare(Operator.GE, value)

    def __bool__(self) -> NoReturn:
        raise InvalidFilterError(
            f"column '{self.name}' alone is not a filter: compare it, for example col('{self.name}') == True"
        )

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    def isin(self, values: Iterable[object]) -> In:
        """Return the filter ``column IN (values)``."""
        if isinstance(values, str | bytes):
            raise InvalidFilterError(f"col('{self.name}').isin: expected a list of values, found one text")
        return In(column=self.name, values=tuple(values))

    def between(self, low: object, high: object) -> And:
        """Return the filter ``low <= column AND column <= high``."""
        return And(operands=(self >= low, self <= high))

    def startswith(self, prefix: str) -> StartsWith:
        """Return the filter ``column LIKE 'prefix%'``; ``%`` and ``_`` in the prefix are plain characters."""
        return StartsWith(column=self.name, prefix=prefix)

    def is_null(self) -> IsNull:
        """Return the filter ``column IS NULL``."""
        return IsNull(column=self.name)

    def is_not_null(self) -> IsNull:
        """Return the filter ``column IS NOT NULL``."""
        return IsNull(column=self.name, negated=True)

    def _compare(self, operator: Operator, value: object) -> Compare:
        if value is None:
            raise InvalidFilterError(
                f"col('{self.name}') {operator} None is never true: use col('{self.name}').is_null() or .is_not_null()"
            )
        if isinstance(value, Column):
            raise InvalidFilterError(
                f"col('{self.name}') {operator} col('{value.name}'): columns compare with values only, not with columns"
            )
        return Compare(column=self.name, operator=operator, value=value)


def col(name: str) -> Column:
    """Return the column of that name, to be compared: ``col("price") > 5``, ``col("dt").isin(["2024-01-01"])``."""
    return Column(name)


def _checked(node: object) -> Predicate:
    """Return a node unchanged; reject other values, as from the precedence error ``col("a") > 1 & col("b") < 2``."""
    if isinstance(node, NODES):
        return node
    raise InvalidFilterError(
        f"& and | combine filters, found {node!r}: put each comparison in parentheses, (col('a') > 1) & (col('b') < 2)"
    )
