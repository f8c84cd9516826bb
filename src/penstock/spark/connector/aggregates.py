"""Compute ``COUNT``, ``MIN`` and ``MAX`` from metadata, if that is exact."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import LongType, StructField, StructType

from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.spark.types import to_spark_type
from penstock.table.read.prune import ColumnStatsReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.manifest.stats import ColumnStats
    from penstock.format.types.data_types import DataField
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.read.query import PinnedRead
    from penstock.table.read.scan import ScanPlan
    from penstock.table.store import MetadataStore

# Types whose minimum and maximum are never truncated, and that have no unordered value such as NaN, each with the
# setter of Spark's row.
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
        return bridge.array(bridge.private("InternalRow"), [row])

    @property
    def text(self) -> str:
        """Text that ``explain`` shows."""
        return ", ".join(f"{field.name} = {value}" for field, _, value in self._cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate function whose value metadata may contain.

    Attributes:
        kind: ``CountStar``, ``Count``, ``Min`` or ``Max``.
        column: its parameter, except for ``CountStar``.
    """

    kind: str
    column: str


def take_aggregates(bridge: Bridge, aggregation: JavaObject) -> tuple[Aggregate, ...]:
    """Return the functions of an aggregation; none if metadata cannot contain the value of one of them."""
    decoded: dict[str, Any] = json.loads(bridge.driver.aggregation(aggregation))
    found = [_aggregate(**each) for each in decoded["functions"]]
    if decoded["groups"]:
        return ()
    taken = tuple(each for each in found if each is not None)
    return taken if len(taken) == len(found) else ()


def _aggregate(kind: str, distinct: bool, column: Sequence[str] = ()) -> Aggregate | None:  # noqa: FBT001 - of JSON
    if kind == "CountStar":
        return Aggregate(kind=kind, column="")
    is_known = kind in {"Count", "Min", "Max"} and not distinct and len(column) == 1
    return Aggregate(kind=kind, column=column[0]) if is_known else None


def answer(read: PinnedRead, store: MetadataStore, plan: ScanPlan, aggregates: Sequence[Aggregate]) -> Answers | None:
    """Return the values of all aggregates; None if metadata does not have one of them.

    Args:
        plan: plan of the scan; the result is None if some rows of its files have to be filtered out.
    """
    if plan.vectors or any(not part.rest.is_always_true for part in plan.partitions):
        return None
    fields = {field.name: field for field in read.ref.schema.fields}
    try:
        cells = [_cell(place, each, fields, store, plan) for place, each in enumerate(aggregates)]
    except _UnknownError:
        return None
    return Answers(cells)


def _cell(
    place: int, aggregate: Aggregate, fields: dict[str, DataField], store: MetadataStore, plan: ScanPlan
) -> tuple[StructField, str, int | None]:
    kind = aggregate.kind
    name = f"{kind.lower()}_{place}"
    if kind == "CountStar":
        return StructField(name, LongType()), "setLong", plan.row_count
    if aggregate.column not in fields:
        raise _UnknownError
    field = fields[aggregate.column]
    stats = _stats(field, store, plan)
    if kind == "Count":
        return StructField(name, LongType()), "setLong", sum(rows - _nulls(each) for rows, each in stats)
    setter = _ORDERED.get(field.type.root) if isinstance(field.type, AtomicType) else None
    if setter is None:
        raise _UnknownError
    bounds = [_bound(each, kind) for rows, each in stats if _nulls(each) < rows]
    choose: Callable[[list[int]], int] = min if kind == "Min" else max
    return StructField(name, to_spark_type(field.type)), setter, choose(bounds) if bounds else None


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
