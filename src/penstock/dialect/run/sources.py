"""Read the tables of a query as DataFrames, one snapshot or a stream, with the filters that they can evaluate."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from penstock.api.arguments import check_classic
from penstock.api.lazy import lazy_spark
from penstock.dialect.run.connectors import KAFKA, connector_of, connector_table, fields_of, is_endless
from penstock.dialect.settings import read_settings
from penstock.errors import InvalidFilterError, InvalidOptionError, NotFoundError, UnsupportedFeatureError
from penstock.format.types.data_types import INTEGERS, AtomicType, DataField, TypeRoot
from penstock.format.watermark import declared_watermark, watermark_options
from penstock.options import WatermarkOptions
from penstock.options.connectors import DatagenTable, FilesystemTable
from penstock.predicate.bind import bind
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import And, Compare, In, IsNull, Not, Or, StartsWith
from penstock.table.inspect.system import AUDIT_LOG, INSERTION, ROW_KIND, ROW_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.dialect.parse.statements import CreateTable
    from penstock.dialect.parse.tables import TableUse
    from penstock.dialect.state import SqlState
    from penstock.format.watermark import DeclaredWatermark
    from penstock.predicate.tree import Predicate

_END_NOW: Final = "scan.bounded"
_BOUNDS: Final = frozenset(
    {
        _END_NOW,
        "scan.bounded.watermark",
        "penstock.scan.bounded.snapshot-id",
        "penstock.scan.bounded.timestamp-millis",
    }
)
_CONNECTORS_INSTEAD: Final = "spark.read and spark.readStream for data outside of the catalog"
# Options that only streams support.
_STREAM_OPTIONS: Final = _BOUNDS | {"consumer-id"}


def is_stream(state: SqlState, use: TableUse) -> bool:
    """Whether a table is read as a stream: by the session mode, by an option of the hint, or as an unbounded topic."""
    is_metadata = use.system is not None and use.system not in ROW_TABLES
    if is_metadata or state.is_catalog_table(use.name):
        return False
    own = state.session_table(use.name)
    if own is not None and connector_of(own) != KAFKA:
        return is_endless(own, use.options)
    if read_settings(state.settings).is_streaming or any(key in _STREAM_OPTIONS for key, _ in use.options):
        return True
    return own is not None and is_endless(own, use.options)


def ends_where_it_began(use: TableUse) -> bool:
    """Whether a stream ends at the data that exists when it starts; with any other bound it may run for long."""
    return any(key == _END_NOW and value.lower() == "true" for key, value in use.options)


def table_frame(state: SqlState, spark: SparkSession, use: TableUse, conditions: tuple[str, ...]) -> DataFrame:
    """Return the rows of a table, or of a system table.

    Args:
        conditions: conditions that every row of the query's result meets; rows that fail one may be skipped.
    """
    own = state.session_table(use.name)
    if own is not None:
        return connector_frame(state, spark, own, use, is_stream=is_stream(state, use))
    if use.system not in ROW_TABLES:
        found = system_rows(state, use)
        if found is not None:
            return lazy_spark.from_arrow(spark, found)
    table = state.load(use.name)
    early = safe_filter(conditions, table.schema.fields)
    if is_stream(state, use):
        # The query adds the watermark itself (``frames``), after the time column has got its annotated type.
        frame = table.read_stream(spark, {**dict(use.options), "penstock.read.watermark": "false"}, filter=early)
    else:
        frame = table.to_spark(spark, options=dict(use.options), filter=early)
    return frame.selectExpr(f"'{INSERTION}' AS {ROW_KIND}", "*") if use.system == AUDIT_LOG else frame


def system_rows(state: SqlState, use: TableUse) -> pa.Table | None:
    """Return the rows of a system table of a table or of the catalog; None for other tables."""
    if use.system is not None:
        return state.load(use.name).with_options(dict(use.options)).inspect.system_table(use.system)
    if not state.is_catalog_table(use.name):
        return None
    if use.options:
        raise UnsupportedFeatureError(
            f"{use.title} shows the catalog as it is: leave '{use.options[0][0]}' out, or its time travel"
        )
    return state.catalog_table(use.name)


def connector_frame(
    state: SqlState, spark: SparkSession, own: CreateTable, use: TableUse, *, is_stream: bool
) -> DataFrame:
    """Return the rows of a table of a session.

    Raises:
        InvalidOptionError: the table is only a sink, or an option is invalid.
        UnsupportedFeatureError: a session of Spark Connect.
    """
    name, fields = ".".join(own.name), fields_of(own)
    check_classic(spark, name, _CONNECTORS_INSTEAD)
    if connector_of(own) == KAFKA:
        return lazy_spark.read_kafka(
            spark,
            {**dict(own.options), **dict(use.options)},
            fields,
            is_stream=is_stream,
            table=name,
            watermark=event_time_of(state, use),
            metadata={column.name: column.key for column in own.metadata},
        )
    match connector_table(own, use.options):
        case FilesystemTable() as files:
            return lazy_spark.read_files(spark, files, fields, own.partition_by, table=name)
        case DatagenTable() as generated:
            return lazy_spark.read_generated(spark, generated, fields, table=name)
        case _:
            raise InvalidOptionError(
                f"table {name}: its connector, {connector_of(own)}, takes rows only: INSERT INTO it, and read another"
            )


def event_time_of(state: SqlState, use: TableUse) -> DeclaredWatermark | None:
    """Return the watermark that a table declares; None if there is none or the options disable it."""
    own = state.session_table(use.name)
    if own is None:
        options = {**state.load(use.name).options, **dict(use.options)}
        is_wanted = WatermarkOptions.parse(options, table=".".join(use.name)).read_watermark
        return declared_watermark(options) if is_wanted else None
    clause = own.watermark
    if clause is None:
        return None
    fields = [DataField(id=place, name=each.name, type=each.type) for place, each in enumerate(own.columns)]
    return declared_watermark(dict(watermark_options(fields, clause.column, clause.interval, ".".join(own.name))))


_LITERALS: Final[Mapping[TypeRoot, type]] = {
    TypeRoot.VARCHAR: str,
    TypeRoot.BOOLEAN: bool,
    TypeRoot.DATE: dt.date,
    TypeRoot.DECIMAL: Decimal,
    **dict.fromkeys(INTEGERS, int),
}


def safe_filter(conditions: Iterable[str], fields: Sequence[DataField]) -> Predicate | None:
    """Return the part of AND-ed conditions that can be pushed down; None if there is no such part."""
    types = {field.name: field.type for field in fields}
    found: list[Predicate] = []
    for text in conditions:
        try:
            predicate = parse_filter(text)
            bind(predicate, fields, "")
        except (InvalidFilterError, NotFoundError):
            continue  # the condition is not valid filter syntax, but Spark can evaluate it
        if _is_safe(predicate, {name: each.root for name, each in types.items() if isinstance(each, AtomicType)}):
            found.append(predicate)
    return And(operands=tuple(found)) if found else None


def _is_safe(predicate: Predicate, roots: Mapping[str, TypeRoot]) -> bool:
    match predicate:
        case And(operands=operands) | Or(operands=operands):
            return all(_is_safe(operand, roots) for operand in operands)
        case Not(operand=operand):
            return _is_safe(operand, roots)
        case Compare(column=column, value=value):
            return _agrees(roots.get(column), (value,))
        case In(column=column, values=values):
            return _agrees(roots.get(column), values)
        case IsNull(column=column):
            return column in roots
        case _:
            return isinstance(predicate, StartsWith) and roots.get(predicate.column) is TypeRoot.VARCHAR


def _agrees(root: TypeRoot | None, values: Iterable[object]) -> bool:
    if root is None:
        return False
    # Compare exact types: a datetime is also a date, and True is also an int.
    return all(type(value) is _LITERALS.get(root) for value in values)
