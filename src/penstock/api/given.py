"""Convert arguments from users to the values that the packages below expect."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from penstock.api.deferred import is_spark_object
from penstock.catalog.changes import SchemaChange, SetOption
from penstock.errors import InvalidFilterError, InvalidOptionError, InvalidSchemaError, UnsupportedFeatureError
from penstock.format.text.partitions import parse_partition
from penstock.predicate.tree import And, Compare, Constant, In, IsNull, Not, Or, Predicate, StartsWith

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


OptionValue: TypeAlias = "str | bool | int | float"
Options: TypeAlias = "Mapping[str, OptionValue]"
Names: TypeAlias = "Sequence[str] | str"

_TRIGGERS: Final = "{'processingTime': '10 seconds'}, {'availableNow': True}, {'once': True}, or None for no pause"
_CHANGES: Final = get_args(SchemaChange)
_NODES: Final = (And, Compare, Constant, In, IsNull, Not, Or, StartsWith)

Progress: TypeAlias = "Callable[[int, int | None], None]"
"""Called with how many files are done so far, and bytes where they are known."""


def texts_of(options: Options | None) -> dict[str, str]:
    """Return options with their values as strings, as they are stored: ``true`` for True, ``4`` for 4.

    Raises:
        InvalidOptionError: the options are not a mapping, or a value is not a string, a number or a boolean.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise InvalidOptionError(
            f"options: expected a mapping such as {{'target-file-size': '128 mb'}}, not a {type(options).__name__}"
        )
    return {key: text_of(key, value) for key, value in options.items()}


def text_of(key: str, value: object) -> str:
    """Return the value of an option as a string, as it is stored. Raises ``InvalidOptionError``."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # Convert a subclass of str, such as a StrEnum, to a plain string.
            return str(value)
        case int() | float():
            return str(value)
        case os.PathLike():
            return str(os.fspath(value))
        case _:
            raise InvalidOptionError(
                f"option '{key}': expected a string, a number or a boolean, not a {type(value).__name__}"
            )


def names_of(names: Names | None) -> tuple[str, ...] | None:
    """Return column names as a tuple; a string is a single name, and None stays None."""
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)


def location_of(location: str | os.PathLike[str]) -> str:
    """Return a path or URI as a string."""
    return os.fspath(location)


def filter_of(given: Predicate | str | None, table: str) -> Predicate | str | None:
    """Return a filter after checking its type.

    Raises:
        InvalidFilterError: the value is not a filter but, for example, a pyarrow or PySpark expression, or a function.
    """
    if given is None or isinstance(given, (str, *_NODES)):
        return given
    raise InvalidFilterError(
        f"table {table}: filter: expected text such as \"dt = '2026-01-01' AND price > 10\", or penstock.col('price') "
        f"> 10, not a {type(given).__module__}.{type(given).__name__}"
    )


def limit_of(limit: int | None, table: str) -> int | None:
    """Return the greatest number of rows after checking it. Raises ``InvalidOptionError``."""
    try:
        count = None if limit is None else operator.index(limit)
    except TypeError:
        count = -1
    if count is not None and count < 0:
        raise InvalidOptionError(f"table {table}: limit {limit!r}: expected a number of rows, or None for all")
    return count


def partition_of(given: object, table: str) -> Mapping[str, object]:
    """Return the values of a partition, given as a mapping or as text such as ``dt=2026-01-01/hour=3``.

    Raises:
        InvalidOptionError: the value has another form.
    """
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str) and "=" in given:
        return parse_partition(given)
    raise InvalidOptionError(f"table {table}: partition {given!r}: expected {{'dt': '2026-01-01'}} or 'dt=2026-01-01'")


def check_spark(spark: object, table: str, instead: str | None = None) -> None:
    """Check that the argument is a Spark session.

    Args:
        instead: the alternative for Spark Connect sessions; None if they are accepted.

    Raises:
        InvalidOptionError: it is not a session.
        UnsupportedFeatureError: it is a Spark Connect session.
    """
    if not is_spark_object(spark):
        given = "None" if spark is None else f"a {type(spark).__name__}"
        raise InvalidOptionError(
            f"table {table}: expected a SparkSession, not {given}: SparkSession.builder.getOrCreate() creates one, and "
            "to_arrow, to_batches and follow read without Spark"
        )
    if instead is not None:
        check_classic(spark, table, instead)


def check_classic(value: object, table: str, instead: str) -> None:
    """Refuse a session or a DataFrame of Spark Connect, which has no JVM in this process.

    Args:
        instead: the alternative for Spark Connect.

    Raises:
        UnsupportedFeatureError: it is one of Spark Connect.
    """
    if type(value).__module__.startswith("pyspark.sql.connect."):
        raise UnsupportedFeatureError(f"table {table}: this does not work with Spark Connect; use {instead}")


def check_trigger(trigger: object, table: str) -> None:
    """Check that a trigger is a mapping or None. Raises ``InvalidOptionError``."""
    if trigger is not None and not isinstance(trigger, Mapping):
        raise InvalidOptionError(f"table {table}: trigger {trigger!r}: expected one of {_TRIGGERS}")


def changes_of(changes: Sequence[SchemaChange], table: str) -> tuple[SchemaChange, ...]:
    """Return schema changes, with option values as strings.

    Raises:
        InvalidSchemaError: an item is not a schema change but, for example, SQL.
    """
    for change in changes:
        if not isinstance(change, _CHANGES):
            raise InvalidSchemaError(
                f"table {table}: cannot apply a {type(change).__name__}: expected changes such as "
                "penstock.AddColumn(column=('note',), type='STRING'); SQL goes through penstock.sql"
            )
    return tuple(
        replace(each, value=text_of(each.key, each.value)) if isinstance(each, SetOption) else each for each in changes
    )


def no_progress(_files: int, _bytes: int | None) -> None:
    """Report no progress."""
