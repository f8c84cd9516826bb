"""Filters that Spark pushes down to a Python data source, as predicates that prune the files of a read.

Source:
    ``pyspark.sql.datasource.DataSourceReader.pushFilters``: the conditions of a query, joined by AND.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidFilterError
from penstock.format.types.data_types import AtomicType
from penstock.predicate.bind import bind
from penstock.predicate.tree import And, Compare, In, IsNull, Not, Operator, Predicate, StartsWith
from penstock.printable import open_log
from penstock.spark.read.filters import COMPARED_ALIKE
from penstock.spark.versions.python_api import datasource as source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.table.ref import TableRef

FILTER_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""Setting of Spark with which it offers filters to data sources in Python."""

_LOG: Final = open_log(__name__)
# With fewer files a filter saves little.
_MANY_FILES: Final = 32
_WARNED: Final[set[str]] = set()
# Spark passes literals through java.sql.Date, whose calendar lacks the ten days before: another day arrives.
_FIRST_GREGORIAN: Final = dt.date(1582, 10, 15)
_COMPARISONS: Final[Mapping[type[source.Filter], Operator]] = {
    source.EqualTo: Operator.EQ,
    source.GreaterThan: Operator.GT,
    source.GreaterThanOrEqual: Operator.GE,
    source.LessThan: Operator.LT,
    source.LessThanOrEqual: Operator.LE,
}


def take_filters(ref: TableRef, filters: Iterable[source.Filter]) -> Predicate | None:
    """Return the filters that have equivalent predicates, joined by AND; None if there are none.

    Spark applies all filters to the rows, so omitting one only costs time.
    """
    alike = {
        field.name
        for field in ref.schema.fields
        if isinstance(field.type, AtomicType) and field.type.root in COMPARED_ALIKE
    }
    found = [predicate for each in filters if (predicate := _translate(each, alike)) is not None]
    taken = tuple(predicate for predicate in found if _fits(ref, predicate))
    return And(operands=taken) if taken else None


def warn_of_all_files(table: str, files: int) -> None:
    """Warn, once per table and process, that a query opens all of many files, since Spark pushed down no filter.

    Spark does not reveal whether the query has one.
    """
    if files < _MANY_FILES or table in _WARNED:
        return
    _WARNED.add(table)
    _LOG.warning(
        "table %s: all %d files are opened. If the query has a WHERE, it skips files after "
        "spark.conf.set('%s', 'true'), which penstock.attach does, or with the option 'filter'",
        table,
        files,
        FILTER_PUSHDOWN,
    )


def _fits(ref: TableRef, predicate: Predicate) -> bool:
    try:
        bind(predicate, ref.schema.fields, ref.name)
    except InvalidFilterError:
        return False
    return True


def _translate(spark_filter: source.Filter, alike: set[str]) -> Predicate | None:
    if isinstance(spark_filter, source.Not):
        operand = _translate(spark_filter.child, alike)
        return None if operand is None else Not(operand=operand)
    path: tuple[str, ...] = getattr(spark_filter, "attribute", ())
    if len(path) != 1 or path[0] not in alike:
        return None
    value = getattr(spark_filter, "value", None)
    values = value if isinstance(value, list | tuple) else (value,)
    is_changed = any(isinstance(each, dt.date) and each <= _FIRST_GREGORIAN for each in values)
    return None if is_changed else _leaf(path[0], spark_filter)


def _leaf(column: str, spark_filter: source.Filter) -> Predicate | None:
    match spark_filter:
        case source.In(value=values):
            return In(column=column, values=tuple(values))
        case source.IsNull() | source.IsNotNull():
            return IsNull(column=column, negated=isinstance(spark_filter, source.IsNotNull))
        case source.StringStartsWith(value=prefix):
            return StartsWith(column=column, prefix=prefix)
        case _ if (sign := _COMPARISONS.get(type(spark_filter))) is not None:
            value: object = getattr(spark_filter, "value", None)
            return Compare(column=column, operator=sign, value=value)
        case _:
            return None
