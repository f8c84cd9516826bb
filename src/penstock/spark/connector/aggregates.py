"""Compute ``COUNT``, ``MIN`` and ``MAX`` from metadata, also for each partition, if that is exact."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import LongType, StructField, StructType

from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.spark.connector.partition_keys import CELLS
from penstock.spark.read.native_files import TIMESTAMPS
from penstock.spark.read.native_listing import cell_of, value_in_json
from penstock.spark.types import has_nanoseconds, to_spark_type
from penstock.table.read.prune import ColumnStatsReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock.format.manifest.stats import ColumnStats
    from penstock.format.types.data_types import DataField
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.read.query import PinnedRead
    from penstock.table.read.scan import ScanPartition, ScanPlan
    from penstock.table.store import MetadataStore

_CELLS: Final = {**CELLS, TypeRoot.TIME: "int", **dict.fromkeys(TIMESTAMPS, "long")}
# Types whose minimum and maximum in the statistics of files are never truncated.
_ORDERED: Final = frozenset({*_CELLS, TypeRoot.DECIMAL} - {TypeRoot.VARCHAR})


class _UnknownError(Exception):
    """Metadata does not have the value."""


class Answers:
    """The rows of a query: one, or one for each group.

    Attributes:
        schema: the columns of the groups, then one column per aggregate.
        text: text that ``explain`` shows; it is different for different rows.
    """

    def __init__(self, columns: Sequence[tuple[StructField, str]], rows: list[list[object]], groups: int) -> None:
        self.schema = StructType([field for field, _ in columns])
        self._cells = ",".join(cell for _, cell in columns)
        self._rows = json.dumps(rows)
        if groups:
            names = self.schema.fieldNames()
            digest = hashlib.sha256(self._rows.encode()).hexdigest()[:16]
            by = ", ".join(names[:groups])
            self.text = f"{', '.join(names[groups:])} by {by}: {len(rows)} rows ({digest})"
        else:
            self.text = ", ".join(f"{field.name} = {value}" for field, value in zip(self.schema, rows[0], strict=True))

    def to_rows(self, bridge: Bridge) -> JavaObject:
        """Return the rows as an ``InternalRow[]``."""
        return bridge.driver.rows(self._rows, self._cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate function whose value metadata may contain.

    Attributes:
        kind: ``CountStar``, ``Count``, ``Min`` or ``Max``.
        column: its parameter, except for ``CountStar``.
    """

    kind: str
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """The aggregates of a query.

    Attributes:
        groups: columns of ``GROUP BY``.
    """

    groups: tuple[str, ...]
    functions: tuple[Aggregate, ...]


def take_aggregates(bridge: Bridge, aggregation: JavaObject) -> Aggregation | None:
    """Return the functions of an aggregation; None if metadata cannot contain the value of one of them."""
    decoded: dict[str, Any] = json.loads(bridge.driver.aggregation(aggregation))
    functions = [_aggregate(**each) for each in decoded["functions"]]
    groups = [each[0] for each in decoded["groups"] if len(each) == 1]
    taken = tuple(each for each in functions if each is not None)
    if len(taken) < len(functions) or len(groups) < len(decoded["groups"]):
        return None
    return Aggregation(groups=tuple(groups), functions=taken)


def _aggregate(kind: str, distinct: bool, column: Sequence[str] = ()) -> Aggregate | None:  # noqa: FBT001 - of JSON
    if kind == "CountStar":
        return Aggregate(kind=kind, column="")
    is_known = kind in {"Count", "Min", "Max"} and not distinct and len(column) == 1
    return Aggregate(kind=kind, column=column[0]) if is_known else None


def answer(read: PinnedRead, store: MetadataStore, plan: ScanPlan, aggregation: Aggregation) -> Answers | None:
    """Return the values of all aggregates; None if metadata does not have one of them.

    Args:
        plan: plan of the scan; the result is None if some rows of its files have to be filtered out.
    """
    if plan.vectors or any(not part.rest.is_always_true for part in plan.partitions):
        return None
    partition_fields = read.ref.schema.partition_fields
    places = {field.name: place for place, field in enumerate(partition_fields) if _cell_of(field) is not None}
    if not places.keys() >= set(aggregation.groups):
        return None
    fields = {field.name: field for field in read.ref.schema.fields}
    groups: dict[tuple[object, ...], list[ScanPartition]] = {}
    for part in filter(lambda part: part.row_count, plan.partitions):
        groups.setdefault(tuple(part.values[places[name]] for name in aggregation.groups), []).append(part)
    if not aggregation.groups:
        groups.setdefault((), [])
    columns = [(fields[name], _cell_of(fields[name])) for name in aggregation.groups]
    made = [(StructField(field.name, to_spark_type(field.type)), str(cell)) for field, cell in columns]
    try:
        made += [_column(place, each, fields) for place, each in enumerate(aggregation.functions)]
        rows = [
            [
                *(value_in_json(field.type, value) for (field, _), value in zip(columns, group, strict=True)),
                *(_value(each, fields, places, store, parts) for each in aggregation.functions),
            ]
            for group, parts in groups.items()
        ]
    except _UnknownError:
        return None
    return Answers(made, rows, len(aggregation.groups))


def _cell_of(field: DataField) -> str | None:
    kind = field.type
    if not isinstance(kind, AtomicType) or has_nanoseconds(kind):
        return None
    return cell_of(kind) if kind.root is TypeRoot.DECIMAL else _CELLS.get(kind.root)


def _column(place: int, aggregate: Aggregate, fields: dict[str, DataField]) -> tuple[StructField, str]:
    name = f"{aggregate.kind.lower()}_{place}"
    if aggregate.kind in {"CountStar", "Count"}:
        return StructField(name, LongType()), "long"
    field = fields.get(aggregate.column)
    cell = None if field is None else _cell_of(field)
    if field is None or cell is None:
        raise _UnknownError
    return StructField(name, to_spark_type(field.type)), cell


def _value(
    aggregate: Aggregate,
    fields: dict[str, DataField],
    places: dict[str, int],
    store: MetadataStore,
    parts: Sequence[ScanPartition],
) -> object:
    kind, name = aggregate.kind, aggregate.column
    if kind == "CountStar":
        return sum(part.row_count for part in parts)
    if name not in fields:
        raise _UnknownError
    field = fields[name]
    values: list[Any]
    if name in places:
        # Exact also for text, of which statistics have a prefix.
        found = [(part.values[places[name]], part.row_count) for part in parts]
        if kind == "Count":
            return sum(rows for value, rows in found if value is not None)
        values = [value for value, _ in found if value is not None]
    else:
        stats = list(_stats(field, store, parts))
        if kind == "Count":
            return sum(rows - _nulls(each) for rows, each in stats)
        if not isinstance(field.type, AtomicType) or field.type.root not in _ORDERED:
            raise _UnknownError
        values = [_bound(each, kind) for rows, each in stats if _nulls(each) < rows]
    choose: Callable[[list[Any]], object] = min if kind == "Min" else max
    return value_in_json(field.type, choose(values)) if values else None


def _stats(field: DataField, store: MetadataStore, parts: Sequence[ScanPartition]) -> Iterator[tuple[int, ColumnStats]]:
    """Yield row count and column statistics of every file."""
    reader = ColumnStatsReader(store.load_schema, (field,))
    for part in parts:
        for entry in part.entries:
            stats = reader.read(entry.file).get(field.name)
            if stats is None:
                raise _UnknownError
            yield entry.file.row_count, stats


def _nulls(stats: ColumnStats) -> int:
    if stats.null_count is None:
        raise _UnknownError
    return stats.null_count


def _bound(stats: ColumnStats, kind: str) -> object:
    value = stats.min if kind == "Min" else stats.max
    if value is None:
        raise _UnknownError
    return value
