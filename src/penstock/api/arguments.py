"""Check arguments from users, and convert them to the values that the packages below expect."""

from __future__ import annotations

import functools
import inspect
import numbers
import operator
import os
import reprlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast, get_args

from penstock.api.lazy import lazy_spark
from penstock.catalog.changes import SchemaChange, SetOption
from penstock.errors import InvalidFilterError, InvalidOptionError, InvalidSchemaError, UnsupportedFeatureError
from penstock.format.text.partitions import parse_partition
from penstock.io.object_store.address import SCHEMES, StoreKind, parse_address
from penstock.io.object_store.settings import store_settings
from penstock.options.object_store import store_options
from penstock.predicate.tree import And, Compare, Constant, In, IsNull, Not, Or, Predicate, StartsWith

if TYPE_CHECKING:
    from collections.abc import Callable

OptionValue: TypeAlias = "str | bool | int | float"
Options: TypeAlias = "Mapping[str, OptionValue]"
Names: TypeAlias = "Sequence[str] | str"

_TRIGGERS: Final = "{'processingTime': '10 seconds'}, {'availableNow': True}, {'once': True}, or None for no pause"
_CHANGES: Final = get_args(SchemaChange)
_NODES: Final = (And, Compare, Constant, In, IsNull, Not, Or, StartsWith)

Progress: TypeAlias = "Callable[[int, int | None], None]"
"""Called with how many files are done so far, and bytes where they are known."""

# Options that give no access: the catalog has none of its own with them.
_NO_ACCESS: Final = ("penstock.object-store.", "penstock.azure.account")

_EXPLAINED: Final = frozenset({"trigger"})
"""Arguments whose own check shows what they look like."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C")


class _Kind(NamedTuple):
    """A type in annotations of the public API: its name in messages, and a test."""

    name: str
    accepts: Callable[[object], bool]


def _is_texts(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, bytes | Mapping) and _all(value, str)


def _all(value: Iterable[object], kind: type) -> bool:
    """Whether all items are of a type; other iterables than collections are not read, because they end with that."""
    return not isinstance(value, Sequence | set | frozenset) or all(isinstance(each, kind) for each in value)


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


_KINDS: Final[Mapping[str, _Kind]] = {
    "None": _Kind("None", lambda value: value is None),
    "str": _Kind("text", lambda value: isinstance(value, str)),
    "bool": _Kind("True or False", lambda value: isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}),
    "int": _Kind("a whole number", lambda value: _is_number(value, numbers.Integral)),
    "float": _Kind("a number", lambda value: _is_number(value, numbers.Real)),
    "datetime": _Kind("a datetime", lambda value: isinstance(value, datetime)),
    "os.PathLike[str]": _Kind("a path", lambda value: isinstance(value, os.PathLike)),
    "Names": _Kind("a name or a list of names", _is_texts),
    "Sequence[str]": _Kind("a list of texts", lambda value: _is_texts(value) and not isinstance(value, str)),
    "Mapping[str, object]": _Kind(
        "a mapping by names", lambda value: isinstance(value, Mapping) and _all(list(value), str)
    ),
    "Mapping[str, str]": _Kind(
        "a mapping of texts",
        lambda value: isinstance(value, Mapping) and _all([*value, *value.values()], str),
    ),
    "tuple[str, str | None]": _Kind(
        "a pair of a column and a delay",
        lambda value: isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, str | None) for v in value),
    ),
    "Literal['earliest', 'latest']": _Kind(
        "'earliest' or 'latest'", lambda value: isinstance(value, str) and value in {"earliest", "latest"}
    ),
    "Sequence[Mapping[str, object]]": _Kind(
        "a list of mappings",
        lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping),
    ),
    "Progress": _Kind("a function", callable),
    "CollectorRegistry": _Kind("a CollectorRegistry", lambda value: _is_called(value, "CollectorRegistry")),
    "Table": _Kind("a Table", lambda value: _is_called(value, "Table")),
    "Catalog": _Kind("a Catalog", lambda value: _is_called(value, "Catalog")),
}


def _is_called(value: object, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(value).__mro__)


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return the function with a check of the types of its arguments, by its annotations.

    Arguments of other types than those of ``_KINDS`` are left to the function. The check is made before anything else,
    so that a wrong argument raises ``InvalidOptionError`` with what was expected, and nothing has been changed.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        _check_arguments(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def with_checks(kind: type[_C]) -> type[_C]:
    """Return the class with ``checked`` methods, as far as they are public."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, staticmethod):
            setattr(kind, name, staticmethod(checked(member.__func__)))
        elif inspect.isfunction(member):
            setattr(kind, name, checked(member))
    return kind


def _check_arguments(function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
    signature, kinds = _kinds_of(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return  # the call itself raises it, with Python's words
    for name, value in given.items():
        wanted = kinds.get(name)
        if wanted is None:
            continue
        is_several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        for each in cast("tuple[object, ...]", value) if is_several else (value,):
            if not any(kind.accepts(each) for kind in wanted):
                expected = " or ".join(kind.name for kind in wanted)
                raise InvalidOptionError(
                    f"{_place_of(function, args)}: argument {name} = {reprlib.repr(each)}: expected {expected}, not a "
                    f"{type(each).__name__}"
                )


@functools.cache
def _kinds_of(function: Callable[..., object]) -> tuple[inspect.Signature, Mapping[str, tuple[_Kind, ...]]]:
    """Return the signature, and the kinds that each parameter accepts; only parameters of which all are known."""
    signature = inspect.signature(function)
    kinds = {}
    for name, parameter in signature.parameters.items():
        if name in _EXPLAINED:
            continue
        parts = _parts_of(str(parameter.annotation))
        if all(part in _KINDS or part.startswith("Callable[") for part in parts):
            kinds[name] = tuple(_KINDS["Progress" if part.startswith("Callable[") else part] for part in parts)
    return signature, kinds


def _parts_of(annotation: str) -> list[str]:
    """Return the alternatives of an annotation."""
    parts, depth = [""], 0
    for piece in annotation.split(" "):
        if piece == "|" and depth == 0:
            parts.append("")
            continue
        depth += piece.count("[") - piece.count("]")
        parts[-1] += f" {piece}" if parts[-1] else piece
    return parts


def _place_of(function: Callable[..., object], args: tuple[Any, ...]) -> str:
    """Return the function's name for messages, with that of its table."""
    owner = args[0] if args and "." in function.__qualname__ else None
    table = getattr(owner, "name", None) or getattr(getattr(owner, "_table", None), "name", None)
    return f"table {table}: {function.__name__}" if isinstance(table, str) else function.__qualname__


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
    wrong = next((key for key in cast("Mapping[object, object]", options) if not isinstance(key, str)), None)
    if wrong is not None:
        raise InvalidOptionError(
            f"option {wrong!r}: expected text such as 'target-file-size' as the key, not a {type(wrong).__name__}"
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


def with_store_options(location: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return a catalog's options, with the Spark session's for S3 or Azure if the catalog has none.

    This does not import PySpark: a process that has not imported it has no session.
    """
    kind = SCHEMES.get(location.partition(":")[0].lower())
    has_own = any(not key.startswith(_NO_ACCESS) for key in store_options(options))
    if kind not in {StoreKind.S3, StoreKind.AZURE} or has_own or "pyspark" not in sys.modules:
        return dict(options)
    address, _ = parse_address(location)
    return {**lazy_spark.hadoop_store_options(store_settings(address, options)), **options}


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


def is_spark_object(value: object) -> bool:
    """Whether a value is a PySpark object, without importing PySpark."""
    return type(value).__module__.partition(".")[0] == "pyspark"


def check_spark(spark: object, table: str | None, instead: str | None = None) -> None:
    """Check that the argument is a Spark session.

    Args:
        table: its name, for the message; None if there is none.
        instead: the alternative for Spark Connect sessions; None if they are accepted.

    Raises:
        InvalidOptionError: it is not a session.
        UnsupportedFeatureError: it is a Spark Connect session.
    """
    if not is_spark_object(spark) and not hasattr(spark, "dataSource"):
        given = "None" if spark is None else f"a {type(spark).__name__}"
        where = "" if table is None else f"table {table}: "
        raise InvalidOptionError(
            f"{where}expected a SparkSession, not {given}: SparkSession.builder.getOrCreate() creates one, and "
            "to_arrow, to_batches and follow read without Spark"
        )
    if instead is not None:
        check_classic(spark, table or "", instead)


def check_classic(value: object, table: str, instead: str) -> None:
    """Refuse a session or a DataFrame of Spark Connect, which has no JVM in this process.

    Args:
        instead: the alternative for Spark Connect.

    Raises:
        UnsupportedFeatureError: it is one of Spark Connect.
    """
    if type(value).__module__.startswith("pyspark.sql.connect."):
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
