"""Check arguments from users, and convert them to the values that the packages below expect."""

from __future__ import annotations

import functools
import inspect
import numbers
import operator
import os
import reprlib
import sys
from collections.abc import Callable, ItemsView, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import pyarrow as pa
import pyarrow.compute as pc

from penstock.api.lazy import is_connect_object, is_spark_object, lazy_spark
from penstock.catalog.changes import SchemaChange, SetOption
from penstock.datafile.expressions import to_filter
from penstock.datafile.types import from_arrow_schema, widen_decimals
from penstock.errors import InvalidFilterError, InvalidOptionError, InvalidSchemaError, UnsupportedFeatureError
from penstock.format.text.partitions import parse_partition
from penstock.format.types.ddl import ColumnSpec, parse_columns
from penstock.io.object_store.address import SCHEMES, StoreKind, parse_address
from penstock.io.object_store.settings import store_settings
from penstock.options.object_store import store_options
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import NODES, Predicate

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.api.rows import Rows

OptionValue: TypeAlias = str | bool | int | float
Options: TypeAlias = Mapping[str, OptionValue]
Names: TypeAlias = Sequence[str] | str
Filter: TypeAlias = Predicate | str | pc.Expression
SchemaLike: TypeAlias = (
    "str | Mapping[str, str] | Sequence[tuple[str, str]] | pa.Schema | StructType | Sequence[ColumnSpec] | Rows"
)

_TRIGGERS: Final = "{'processingTime': '10 seconds'}, {'availableNow': True}, {'once': True}, or None for no pause"
_CHANGES: Final = get_args(SchemaChange)

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with how many files are done so far, and bytes where they are known."""

# Options that give no access: the catalog has none of its own with them.
_NO_ACCESS: Final = ("penstock.object-store.", "penstock.azure.account")

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """What an argument may be.

    Attributes:
        name: for messages.
        accepts: whether a value is one.
    """

    name: str
    accepts: Callable[[object], bool]

    def __or__(self, other: ArgumentType) -> ArgumentType:
        return ArgumentType(f"{self.name} or {other.name}", lambda value: self.accepts(value) or other.accepts(value))


def instance_of(kind: type) -> ArgumentType:
    """Return the type of the instances of a class."""
    return ArgumentType(f"a {kind.__name__}", lambda value: isinstance(value, kind))


def one_of(*texts: str) -> ArgumentType:
    """Return the type of some texts."""
    return ArgumentType(" or ".join(map(repr, texts)), lambda value: isinstance(value, str) and value in texts)


def _is_texts(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, bytes | Mapping) and _all(value, str)


def _all(value: Iterable[object], kind: type) -> bool:
    """Whether all items are of a type; other iterables than collections are not read, because they end with that."""
    return not isinstance(value, Sequence | set | frozenset) or all(isinstance(each, kind) for each in value)


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


NONE: Final = ArgumentType("None", lambda value: value is None)
TEXT: Final = ArgumentType("text", lambda value: isinstance(value, str))
FLAG: Final = ArgumentType(
    "True or False", lambda value: isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}
)
INTEGER: Final = ArgumentType("a whole number", lambda value: _is_number(value, numbers.Integral))
NUMBER: Final = ArgumentType("a number", lambda value: _is_number(value, numbers.Real))
TIME: Final = ArgumentType("a datetime", lambda value: isinstance(value, datetime)) | INTEGER
LOCATION: Final = TEXT | ArgumentType("a path", lambda value: isinstance(value, os.PathLike))
NAMES: Final = ArgumentType("a name or a list of names", _is_texts)
DTYPE_BACKEND: Final = ArgumentType(
    "'numpy_nullable' or 'pyarrow'", lambda value: value in ("numpy_nullable", "pyarrow")
)
TEXTS: Final = ArgumentType("a list of texts", lambda value: _is_texts(value) and not isinstance(value, str))
MAPPING: Final = ArgumentType("a mapping by names", lambda value: isinstance(value, Mapping) and _all(list(value), str))
TEXT_MAPPING: Final = ArgumentType(
    "a mapping of texts", lambda value: isinstance(value, Mapping) and _all([*value, *value.values()], str)
)
MAPPINGS: Final = ArgumentType(
    "a list of mappings", lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
)
PARTITION: Final = MAPPING | TEXT
FUNCTION: Final = ArgumentType("a function", callable)
FILTER: Final = ArgumentType("a condition", lambda value: isinstance(value, (str, pc.Expression, *NODES)))
# Checked by ``encode_options``, whose messages name the key.
OPTIONS: Final = ArgumentType("a mapping of options", lambda _: True)
POSITION: Final = INTEGER | one_of("earliest", "latest")

# By annotations, without None.
_TYPES: Final[Mapping[object, ArgumentType]] = {
    bool: FLAG,
    int: INTEGER,
    str: TEXT,
    Filter: FILTER,
    datetime | int: TIME,
    int | Literal["earliest", "latest"]: POSITION,
    str | os.PathLike[str]: LOCATION,
    Names: NAMES,
    Options: OPTIONS,
    Mapping[str, str]: TEXT_MAPPING,
    Mapping[str, object]: MAPPING,
    Sequence[Mapping[str, object]]: MAPPINGS,
}


def type_of(annotation: object) -> tuple[ArgumentType, bool]:
    """Return the type of an argument with an annotation, and whether it may also be None.

    Raises:
        TypeError: there is no such type.
    """
    members = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
    plain = functools.reduce(operator.or_, [each for each in members if each is not NoneType])
    found = FUNCTION if get_origin(plain) is Callable else _TYPES.get(plain)
    if found is None:
        raise TypeError(f"{annotation} is not the annotation of an argument")
    return found, NoneType in members


def accepts(**types: ArgumentType) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that checks arguments of a function before anything else.

    A wrong argument raises ``InvalidOptionError`` with what was expected, and nothing has been changed.

    Args:
        types: of each argument, by name; of each item of a ``*`` parameter.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(function)
        unknown = types.keys() - signature.parameters.keys()
        if unknown:
            raise TypeError(f"{function.__qualname__} has no parameter {unknown.pop()}")

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                arguments = signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                # Python's own words would name the class of an operation, or that of a base.
                owner = f"{type(args[0]).__name__}." if args and "." in function.__qualname__ else ""
                reason = _unknown_keyword(signature, kwargs) or error
                raise TypeError(f"{owner}{function.__name__}() {reason}") from None
            for name, argument in arguments.items():
                if name not in types:
                    continue
                is_several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
                for value in argument if is_several else (argument,):
                    if not types[name].accepts(value):
                        raise InvalidOptionError(
                            f"{_call_name(function, args)}: argument {name} = {reprlib.repr(value)}: expected "
                            f"{types[name].name}, not a {type(value).__name__}"
                        )
            return function(*args, **kwargs)

        return call

    return decorate


def _unknown_keyword(signature: inspect.Signature, keywords: Mapping[str, object]) -> str | None:
    known = [each.name for each in signature.parameters.values() if each.kind is not inspect.Parameter.POSITIONAL_ONLY]
    unknown = next((name for name in keywords if name not in known), None)
    if unknown is None:
        return None
    near = get_close_matches(unknown, known, n=1)
    return f"got an unexpected keyword argument '{unknown}'{f'; did you mean {near[0]}?' if near else ''}"


def _call_name(function: Callable[..., object], args: tuple[Any, ...]) -> str:
    """Return the function's name for messages, with that of its table."""
    owner = args[0] if args and "." in function.__qualname__ else None
    table = getattr(owner, "name", None) or getattr(getattr(owner, "_handle", None), "name", None)
    return f"table {table}: {function.__name__}" if isinstance(table, str) else function.__qualname__


def encode_options(options: Options | None) -> dict[str, str]:
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
    wrong = next((key for key in cast("Mapping[object, object]", options) if not isinstance(key, str)), None)
    if wrong is not None:
        raise InvalidOptionError(
            f"option {wrong!r}: expected text such as 'target-file-size' as the key, not a {type(wrong).__name__}"
        )
    return {key: encode_option(key, value) for key, value in options.items()}


def encode_option(key: str, value: object) -> str:
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


def add_session_store_options(location: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return a catalog's options, with the Spark session's for S3 or Azure if the catalog has none.

    This does not import PySpark: a process that has not imported it has no session.
    """
    kind = SCHEMES.get(location.partition(":")[0].lower())
    has_own = any(not key.startswith(_NO_ACCESS) for key in store_options(options))
    if kind not in {StoreKind.S3, StoreKind.AZURE} or has_own or "pyspark" not in sys.modules:
        return dict(options)
    address, _ = parse_address(location)
    return {**lazy_spark.hadoop_store_options(store_settings(address, options)), **options}


def to_names(names: Names | None) -> tuple[str, ...] | None:
    """Return column names as a tuple; a string is a single name, and None stays None."""
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)


def to_location(location: str | os.PathLike[str]) -> str:
    """Return a path or URI as a string."""
    return os.fspath(location)


def to_predicate(filter: Filter | None, table: str) -> Predicate | None:
    """Return a condition, in whichever form it was given.

    Raises:
        InvalidFilterError: the text cannot be parsed, an Arrow expression is not a condition, or the value is, for
            example, a PySpark column or a function.
    """
    match filter:
        case None:
            return None
        case str():
            return parse_filter(filter)
        case pc.Expression():
            return to_filter(filter, table)
        case _ if isinstance(filter, NODES):
            return filter
    raise InvalidFilterError(
        f"table {table}: filter: expected text such as \"dt = '2026-01-01' AND price > 10\", penstock.col('price') > "
        f"10, or pyarrow.compute.field('price') > 10, not a {type(filter).__module__}.{type(filter).__name__}"
    )


def check_limit(limit: int | None, table: str) -> int | None:
    """Return the greatest number of rows after checking it. Raises ``InvalidOptionError``."""
    try:
        count = None if limit is None else operator.index(limit)
    except TypeError:
        count = -1
    if count is not None and count < 0:
        raise InvalidOptionError(f"table {table}: limit {limit!r}: expected a number of rows, or None for all")
    return count


def to_partition(partition: object, table: str) -> Mapping[str, object]:
    """Return the values of a partition, a mapping or as text such as ``dt=2026-01-01/hour=3``.

    Raises:
        InvalidOptionError: the value has another form.
    """
    if isinstance(partition, Mapping):
        return partition
    if isinstance(partition, str) and "=" in partition:
        return parse_partition(partition)
    raise InvalidOptionError(
        f"table {table}: partition {partition!r}: expected {{'dt': '2026-01-01'}} or 'dt=2026-01-01'"
    )


def check_spark(spark: object, table: str | None) -> None:
    """Check that the argument is a Spark session.

    Args:
        table: its name, for the message; None if there is none.

    Raises:
        InvalidOptionError: it is not a session.
    """
    if not is_spark_object(spark) and not hasattr(spark, "dataSource"):
        got = "None" if spark is None else f"a {type(spark).__name__}"
        where = "" if table is None else f"table {table}: "
        raise InvalidOptionError(
            f"{where}expected a SparkSession, not {got}: SparkSession.builder.getOrCreate() creates one, and "
            "to_arrow, to_batches and follow read without Spark"
        )


def check_classic(value: object, table: str, instead: str) -> None:
    """Refuse a session or a DataFrame of Spark Connect, which has no JVM in this process.

    Args:
        instead: the alternative for Spark Connect.

    Raises:
        UnsupportedFeatureError: it is one of Spark Connect.
    """
    if is_connect_object(value):
        raise UnsupportedFeatureError(f"table {table}: this does not work with Spark Connect; use {instead}")


def check_stream(sdf: object, table: str) -> None:
    """Check that the argument is a DataFrame of Spark. Raises ``InvalidOptionError``."""
    if not is_spark_object(sdf):
        raise InvalidOptionError(
            f"table {table}: expected a streaming DataFrame of Spark, such as read_stream returns, not a "
            f"{type(sdf).__name__}"
        )


def check_trigger(trigger: object, table: str) -> None:
    """Check that a trigger is a mapping or None. Raises ``InvalidOptionError``."""
    if trigger is not None and not isinstance(trigger, Mapping):
        raise InvalidOptionError(f"table {table}: trigger {trigger!r}: expected one of {_TRIGGERS}")


def to_changes(changes: Sequence[SchemaChange], table: str) -> tuple[SchemaChange, ...]:
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
        replace(each, value=encode_option(each.key, each.value)) if isinstance(each, SetOption) else each
        for each in changes
    )


def no_progress(_files: int, _bytes: int | None) -> None:
    """Report no progress."""


def to_columns(schema: SchemaLike) -> tuple[ColumnSpec, ...]:
    """Return the columns of a schema.

    Args:
        schema: text such as ``id BIGINT NOT NULL, name STRING``; names and types as a mapping or pairs; a pyarrow or
            Spark schema, or rows with one; or column definitions.

    Raises:
        InvalidSchemaError: the text cannot be parsed, or the schema has another form.
        UnsupportedFeatureError: the format does not have a type.
    """
    if isinstance(schema, str):
        return parse_columns(schema)
    found = arrow_schema_of(schema)
    if found is not None:
        return tuple(
            ColumnSpec(name=column.name, type=column.type, description=column.description)
            for column in from_arrow_schema(found)
        )
    if is_spark_object(schema):
        return lazy_spark.from_spark_schema(cast("StructType", getattr(schema, "schema", schema)))
    pairs = schema.items() if isinstance(schema, Mapping) else schema
    columns = tuple(pairs) if isinstance(pairs, list | tuple | ItemsView) else ()
    if columns and all(isinstance(column, ColumnSpec) for column in columns):
        return cast("tuple[ColumnSpec, ...]", columns)
    if columns and all(_is_pair_of_texts(column) for column in columns):
        return parse_columns(", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in columns))
    for column in columns:
        if isinstance(column, list | tuple) and len(column) == 2 and isinstance(column[0], str):
            name, kind = column
            if not isinstance(kind, str):
                given = kind.__name__ if isinstance(kind, type) else repr(kind)
                raise InvalidSchemaError(
                    f"column '{name}': {given} is no type: give its name, such as 'BIGINT' or 'STRING'"
                )
    raise InvalidSchemaError(
        f"cannot derive columns from a {type(schema).__name__}: give text such as 'id BIGINT, name STRING', a "
        "pyarrow or Spark schema, a mapping of names to types, or a DataFrame"
    )


def _is_pair_of_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(each, str) for each in value)


def arrow_schema_of(value: object) -> pa.Schema | None:
    """Return a pyarrow schema, or that of rows that are Arrow data or have columns of Arrow; None for other objects.

    Raises:
        InvalidSchemaError: a column of a DataFrame has no Arrow type.
    """
    if isinstance(value, pa.Schema):
        return value
    if isinstance(value, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return value.schema
    kind = type(value)
    if kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame":
        return _schema_of_pandas(value)
    if hasattr(value, "__arrow_c_stream__"):
        stream: Any = value
        try:
            return pa.RecordBatchReader.from_stream(stream).schema
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidSchemaError(f"the columns of a {kind.__name__} have no Arrow types: {error}") from error
    return None


def _schema_of_pandas(frame: Any) -> pa.Schema:  # noqa: ANN401 - pandas is imported by its users
    fields = []
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        try:
            field = pa.Schema.from_pandas(column.to_frame(str(name)), preserve_index=False).field(0)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidSchemaError(
                f"column '{name}' of the DataFrame ({column.dtype}) has no Arrow type: {error}; convert it, such as to "
                "strings"
            ) from error
        if pa.types.is_null(field.type):
            raise InvalidSchemaError(
                f"column '{name}' of the DataFrame has no values, from which its type would follow: give it a dtype, "
                "or give the columns as text"
            )
        # Only columns of Python objects have types that follow from their values.
        fields.append(field.with_type(widen_decimals(field.type)) if column.dtype == object else field)
    return pa.schema(fields)
