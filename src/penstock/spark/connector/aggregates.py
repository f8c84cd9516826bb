"""Compute ``COUNT``, ``MIN`` and ``MAX`` from metadata, if that is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import LongType, StructField, StructType

from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.spark.types import to_spark_type
from penstock.table.read.column_stats import ColumnStatsReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.manifest.stats import ColumnStats
    from penstock.format.types.data_types import DataField
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.read.query import PinnedRead
    from penstock.table.read.scan import ScanPlan
    from penstock.table.store import MetadataStore

# Types whose minimum and maximum are never truncated, and that have no value outside of the order (such as NaN); with
# the setter of Spark's row for each.
_ORDERED: Final = {
    TypeRoot.TINYINT: "setByte",
    TypeRoot.SMALLINT: "setShort",
    TypeRoot.INT: "setInt",
    TypeRoot.BIGINT: "setLong",
    TypeRoot.DATE: "setInt",
}


class _UnknownError(Exception):
    """Metadata does not have the value."""


class Answers:
    """The single result row of a query without GROUP BY.

    Attributes:
        schema: one column per aggregate.
    """

    def __init__(self, cells: Sequence[tuple[StructField, str, int | None]]) -> None:
        self.schema = StructType([field for field, _, _ in cells])
        self._cells = cells

    def to_rows(self, bridge: Bridge) -> JavaObject:
        """Return the row as an ``InternalRow[]``."""
        row = bridge.private("SpecificInternalRow")(bridge.schema(self.schema))
        for place, (_, setter, value) in enumerate(self._cells):
            if value is None:
                row.setNullAt(place)
            else:
                getattr(row, setter)(place, value)
        return bridge.array(bridge.jvm.org.apache.spark.sql.catalyst.InternalRow, [row])

    @property
    def text(self) -> str:
        """Text that ``explain`` shows."""
        return ", ".join(f"{field.name} = {value}" for field, _, value in self._cells)


def answer(read: PinnedRead, store: MetadataStore, plan: ScanPlan, aggregation: JavaObject) -> Answers | None:
    """Return the values of all aggregates; None if metadata does not have one of them.

    Args:
        plan: plan of the scan; None is returned if single rows of its files have to be left out.
    """
    if plan.vectors or any(not part.rest.is_always_true for part in plan.partitions):
        return None
    if len(aggregation.groupByExpressions()):
        return None
    fields = {field.name: field for field in read.ref.schema.fields}
    try:
        cells = [
            _cell(place, function, fields, store, plan)
            for place, function in enumerate(aggregation.aggregateExpressions())
        ]
    except _UnknownError:
        return None
    return Answers(cells)


def _cell(
    place: int, function: JavaObject, fields: dict[str, DataField], store: MetadataStore, plan: ScanPlan
) -> tuple[StructField, str, int | None]:
    kind = function.getClass().getSimpleName()
    name = f"{kind.lower()}_{place}"
    if kind == "CountStar":
        return StructField(name, LongType()), "setLong", plan.row_count
    if kind not in {"Count", "Min", "Max"} or (kind == "Count" and function.isDistinct()):
        raise _UnknownError
    field = _field(function, fields)
    stats = _stats(field, store, plan)
    if kind == "Count":
        return StructField(name, LongType()), "setLong", sum(rows - _nulls(each) for rows, each in stats)
    setter = _ORDERED.get(field.type.root) if isinstance(field.type, AtomicType) else None
    if setter is None:
        raise _UnknownError
    bounds = [_bound(each, kind) for rows, each in stats if _nulls(each) < rows]
    choose: Callable[[list[int]], int] = min if kind == "Min" else max
    return StructField(name, to_spark_type(field.type)), setter, choose(bounds) if bounds else None


def _field(function: JavaObject, fields: dict[str, DataField]) -> DataField:
    column = function.column()
    if column.getClass().getSimpleName() != "FieldReference":
        raise _UnknownError
    names = list(column.fieldNames())
    if len(names) != 1 or names[0] not in fields:
        raise _UnknownError
    return fields[names[0]]


def _stats(field: DataField, store: MetadataStore, plan: ScanPlan) -> list[tuple[int, ColumnStats]]:
    """Return row count and column statistics of every file."""
    reader = ColumnStatsReader(store.load_schema, (field,))
    found = []
    for entry in plan.entries:
        stats = reader.read(entry.file).get(field.name)
        if stats is None:
            raise _UnknownError
        found.append((entry.file.row_count, stats))
    return found


def _nulls(stats: ColumnStats) -> int:
    if stats.null_count is None:
        raise _UnknownError
    return stats.null_count


def _bound(stats: ColumnStats, kind: str) -> int:
    value = stats.min if kind == "Min" else stats.max
    if not isinstance(value, int):
        raise _UnknownError
    return value
