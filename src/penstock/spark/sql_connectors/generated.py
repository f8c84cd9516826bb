"""Tables of generated rows, over Spark's rate source or a range of numbers.

Source:
    Flink's connector ``datagen``: kinds, defaults and limits of the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.format.types.text import format_sql_type
from penstock.options.connectors import FieldKind, FieldOptions
from penstock.spark.types import to_spark_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from penstock.format.types.data_types import DataField
    from penstock.options.connectors import DatagenTable

_ID: Final = "value"
_WHOLE: Final = {
    TypeRoot.TINYINT: 2**7 - 1,
    TypeRoot.SMALLINT: 2**15 - 1,
    TypeRoot.INT: 2**31 - 1,
    TypeRoot.BIGINT: 2**63 - 1,
}
_FRACTIONAL: Final = {TypeRoot.FLOAT: 3.4028234663852886e38, TypeRoot.DOUBLE: 1.7976931348623157e308}
_TEXTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_BYTES: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})
_MOMENTS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
_HEX_OF_HASH: Final = 32
# Longer strings are repetitions.
_MAX_HASHES: Final = 16


def read_generated(
    spark: SparkSession, connector: DatagenTable, fields: Sequence[DataField], *, table: str
) -> DataFrame:
    """Return generated rows: a batch if their number is known, otherwise a stream.

    Args:
        table: name of the table, for messages.
    """
    columns = [_column(field, connector.fields.get(field.name, FieldOptions()), table) for field in fields]
    if connector.row_count is not None:
        ids = spark.range(connector.row_count).withColumnRenamed("id", _ID)
    else:
        ids = spark.readStream.format("rate").option("rowsPerSecond", connector.options.rows_per_second).load()
    return ids.select(*columns)


def _column(field: DataField, how: FieldOptions, table: str) -> Column:
    where = f"table {table}, column '{field.name}'"
    if not isinstance(field.type, AtomicType):
        raise _not_generated(where, format_sql_type(field.type))
    value = _sequence(field.type, how, where) if how.kind is FieldKind.SEQUENCE else _random(field.type, how, where)
    typed = value.cast(to_spark_type(field.type))
    if how.null_rate:
        typed = F.when(F.rand() >= F.lit(how.null_rate), typed)
    return typed.alias(field.name)


def _sequence(data_type: AtomicType, how: FieldOptions, where: str) -> Column:
    if data_type.root not in {*_WHOLE, *_FRACTIONAL, TypeRoot.DECIMAL} | _TEXTS:
        raise InvalidOptionError(
            f"{where}: a sequence consists of numbers, and {format_sql_type(data_type)} has none: leave 'kind' out"
        )
    limit = _WHOLE.get(data_type.root)
    if (
        limit is not None
        and not -limit - 1 <= min(how.start or 0, how.end or 0) <= max(how.start or 0, how.end or 0) <= limit
    ):
        raise InvalidOptionError(f"{where}: the sequence leaves the range of {format_sql_type(data_type)}")
    return F.col(_ID) + F.lit(how.start)


def _random(data_type: AtomicType, how: FieldOptions, where: str) -> Column:
    root = data_type.root
    if root in _WHOLE:
        return _random_whole(root, how, where)
    if root in _FRACTIONAL or root is TypeRoot.DECIMAL:
        return _random_fraction(data_type, how, where)
    if root is TypeRoot.BOOLEAN:
        return F.rand() < F.lit(0.5)
    if root in _TEXTS | _BYTES:
        return _random_text(data_type, how)
    if root is TypeRoot.DATE:
        return F.current_date()
    if root in _MOMENTS:
        return F.current_timestamp() - F.make_dt_interval(
            secs=(F.rand() * F.lit(how.max_past_ms / 1000)).cast("decimal(18, 6)")
        )
    raise _not_generated(where, format_sql_type(data_type))


def _random_whole(root: TypeRoot, how: FieldOptions, where: str) -> Column:
    limit = _WHOLE[root]
    least, most = _bound(how.least, -limit - 1, int, where), _bound(how.most, limit, int, where)
    if not -limit - 1 <= least <= most <= limit:
        raise InvalidOptionError(f"{where}: 'min' and 'max' are not a range of {root.value}")
    bits = F.xxhash64(F.rand())
    count = most - least + 1
    return F.lit(least) + F.pmod(bits, F.lit(count)) if count < 2**63 else bits


def _random_fraction(data_type: AtomicType, how: FieldOptions, where: str) -> Column:
    if data_type.root is TypeRoot.DECIMAL:
        limit = float(10 ** ((data_type.precision or 10) - (data_type.scale or 0)) - 1)
    else:
        limit = _FRACTIONAL[data_type.root]
    least, most = _bound(how.least, -limit, float, where), _bound(how.most, limit, float, where)
    if not -limit <= least <= most <= limit:
        raise InvalidOptionError(f"{where}: 'min' and 'max' are not a range of {format_sql_type(data_type)}")
    # The difference of the limits of DOUBLE is infinite, that of their halves is not.
    return (F.lit(least / 2) + F.rand() * F.lit(most / 2 - least / 2)) * F.lit(2.0)


def _random_text(data_type: AtomicType, how: FieldOptions) -> Column:
    length = how.length if data_type.length is None else min(how.length, data_type.length)
    is_text = data_type.root in _TEXTS
    characters = length if is_text else 2 * length
    blocks = -(-characters // _HEX_OF_HASH)
    hashes = [F.md5(F.rand().cast("string")) for _ in range(min(blocks, _MAX_HASHES))]
    count = F.floor(F.rand() * F.lit(length)) + F.lit(1) if how.varies else F.lit(length)
    digits = F.repeat(F.concat(*hashes), F.lit(-(-blocks // len(hashes))))
    text = F.substring(digits, F.lit(1), (count if is_text else count * F.lit(2)).cast("int"))
    return text if is_text else F.unhex(text)


def _bound(text: str | None, default: float, kind: type[int | float], where: str) -> int | float:
    if text is None:
        return default
    try:
        return kind(text)
    except ValueError:
        raise InvalidOptionError(f"{where}: '{text}' is not a number of the column's type") from None


def _not_generated(where: str, kind: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{where}: values of type {kind} are not generated: leave the column out, and compute it in the query"
    )
