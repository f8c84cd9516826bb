"""Names of partition directories: the text of a value, and its escaping.

Source:
    Paimon ``core:utils/PartitionPathUtils.java``, ``common:utils/InternalRowPartitionComputer.java``;
    docs/spec/format.md section 1.2.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.errors import InvalidOptionError, InvalidSchemaError, UnsupportedFeatureError
from penstock.format.text.java_floats import format_double, format_float
from penstock.format.text.java_times import format_date, format_iso_timestamp, format_time, format_timestamp
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.types.data_types import DataField


class PathText(str):
    """Text of a value in a partition's path or label, where ``partition.default-name`` stands for NULL.

    In any other text that name is a value like each other, which has the same directory as NULL.
    """

    __slots__ = ()


Internal: TypeAlias = Any
"""An internal value; its Python type depends on the column's type."""

DEFAULT_PARTITION_NAME: Final = "__DEFAULT_PARTITION__"

_ESCAPED: Final = {
    code: f"%{code:02X}" for code in (*range(0x20), 0x7F, *(ord(character) for character in "\"#%'*/:=?\\{}[]^"))
}

# Java's definition of white space: unlike Python's, without the no-break spaces and U+0085.
_WHITE_SPACE: Final = "".join(
    chr(code)
    for code in (
        *range(0x09, 0x0E),
        *range(0x1C, 0x21),
        0x1680,
        *range(0x2000, 0x2007),
        *range(0x2008, 0x200B),
        0x2028,
        0x2029,
        0x205F,
        0x3000,
    )
)
_SEPARATOR: Final = re.compile(r"[,/](?=[^,/=]+=)")


def escape_path_name(name: str) -> str:
    """Escape characters that are not allowed in a partition directory, as ``%`` and two upper-case hex digits."""
    if not name:
        raise InvalidSchemaError("a partition path cannot have an empty name in it; give the column a name")
    return name.translate(_ESCAPED)


def partition_dir(
    fields: Sequence[DataField],
    values: Sequence[object],
    *,
    default_name: str = DEFAULT_PARTITION_NAME,
    legacy_name: bool = True,
) -> str:
    """Return the directory of a partition, relative to the table's data, such as ``dt=2024-01-01/hr=5``.

    The values cannot be derived from it: null, ``''`` and blanks share one directory.

    Args:
        fields: the partition columns, in ``partition_keys`` order.
        values: their internal values.
        default_name: option ``partition.default-name``; used for null and for text without a visible character.
        legacy_name: option ``partition.legacy-name``.

    Returns:
        Components joined by ``/``, without leading or trailing ``/``; "" for an unpartitioned table.
    """
    components = []
    for field, value in zip(fields, values, strict=True):
        text = "" if value is None else partition_text(field, value, legacy_name=legacy_name)
        shown = text if text.strip(_WHITE_SPACE) else default_name
        components.append(f"{escape_path_name(field.name)}={escape_path_name(shown)}")
    return "/".join(components)


def partition_text(field: DataField, value: object, *, legacy_name: bool) -> str:
    """Return the text of a non-null value, before escaping.

    TIMESTAMP_LTZ with ``legacy_name`` false is the time in the writer's zone; here the zone is UTC.
    """
    data_type = field.type
    if not isinstance(data_type, AtomicType) or data_type.root not in _FORMATTERS:
        raise UnsupportedFeatureError(
            f"column '{field.name}' of type {format_sql_type(data_type)} cannot be a partition column; "
            "partition by a number, string, date or timestamp"
        )
    legacy, cast = _FORMATTERS[data_type.root]
    formatter = legacy if legacy_name else cast
    if formatter is None:
        raise UnsupportedFeatureError(
            f"partition column '{field.name}' of type {format_sql_type(data_type)} has no lasting directory name "
            "with 'partition.legacy-name' = 'true'; partition by a string instead"
        )
    return formatter(value, data_type)


def _plain(value: Internal, _type: AtomicType) -> str:
    return str(value)


def _boolean(value: Internal, _type: AtomicType) -> str:
    return "true" if value else "false"


def _decimal(value: Internal, data_type: AtomicType) -> str:
    # Java's BigDecimal has no negative zero.
    return f"{value or Decimal(0):.{data_type.scale or 0}f}"


def _float(value: Internal, _type: AtomicType) -> str:
    return format_float(value)


def _double(value: Internal, _type: AtomicType) -> str:
    return format_double(value)


def _date(value: Internal, _type: AtomicType) -> str:
    return format_date(value)


def _time(value: Internal, data_type: AtomicType) -> str:
    return format_time(value, data_type.precision or 0)


def _iso_timestamp(value: Internal, _type: AtomicType) -> str:
    return format_iso_timestamp(value)


def _timestamp(value: Internal, data_type: AtomicType) -> str:
    return format_timestamp(value, data_type.precision or 0)


def _bytes(value: Internal, _type: AtomicType) -> str:
    return bytes(value).decode("utf-8", "replace")


_Formatter: TypeAlias = "Callable[[Internal, AtomicType], str]"
_FORMATTERS: Final[dict[TypeRoot, tuple[_Formatter | None, _Formatter]]] = {
    **dict.fromkeys(
        (TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT),
        (_plain, _plain),
    ),
    TypeRoot.BOOLEAN: (_boolean, _boolean),
    TypeRoot.DECIMAL: (_decimal, _decimal),
    TypeRoot.FLOAT: (_float, _float),
    TypeRoot.DOUBLE: (_double, _double),
    TypeRoot.DATE: (_plain, _date),
    TypeRoot.TIME: (_plain, _time),
    TypeRoot.TIMESTAMP: (_iso_timestamp, _timestamp),
    TypeRoot.TIMESTAMP_LTZ: (_iso_timestamp, _timestamp),
    # In legacy mode Java prints an array's identity, which differs in every run.
    TypeRoot.BINARY: (None, _bytes),
    TypeRoot.VARBINARY: (None, _bytes),
}
"""Type to (formatter with ``partition.legacy-name`` true, formatter with it false)."""


def value_text(field: DataField, value: object) -> str:
    """Text of an internal value as SQL casts it; ``null`` for null."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    try:
        return partition_text(field, value, legacy_name=False)
    except UnsupportedFeatureError:
        return str(value)


def parse_partition(text: str) -> dict[str, PathText]:
    """Parse the text of a partition, ``dt=2026-01-01/hour=3`` or with a comma, into columns and values."""
    spec: dict[str, PathText] = {}
    for part in _SEPARATOR.split(text.rstrip("/")):
        name, equals, value = part.partition("=")
        if not name or not equals or name in spec:
            raise InvalidOptionError(
                f"partition '{text}': expected column=value for each column once, such as dt=2026-01-01/hour=3"
            )
        spec[name] = PathText(value)
    return spec
