"""Convert event times without a zone to Spark's TIMESTAMP and back, interpreting the wall clock as UTC.

Spark supports watermarks only for TIMESTAMP (an instant), but an event time in Flink is TIMESTAMP(3), without a zone.
Taken as UTC, it is also the number that a snapshot's watermark is compared with. A converted column carries a mark, so
its values, and values computed from them, can be converted back exactly in any zone of the session.

Source:
    Spark refuses TIMESTAMP_NTZ in ``withWatermark`` (EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE) and casts between the two in
    the session's zone, which loses an hour of each year where there is daylight saving.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as spark_types

from penstock.format.text.names import quoted
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.spark.logical_plan import PlanNode, each_node, each_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.format.types.data_types import DataField

_MARK: Final = "penstock.wall-clock"
_ZONE: Final = "UTC"
_COMMENT: Final = "event time; its wall clock is taken as UTC"
_EPOCH: Final = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_DAY_MICROS: Final = 86_400_000_000


def wall_clock_field(field: spark_types.StructField) -> spark_types.StructField:
    """Return a TIMESTAMP_NTZ column as a TIMESTAMP column, with the mark of a converted column."""
    comment = field.metadata.get("comment")
    metadata = {**field.metadata, "comment": f"{comment}; {_COMMENT}" if comment else _COMMENT, _MARK: _ZONE}
    return spark_types.StructField(field.name, spark_types.TimestampType(), field.nullable, metadata)


def as_instant(column: Column) -> Column:
    """Convert TIMESTAMP_NTZ to TIMESTAMP."""
    # Days and time of day separately: no step may use the session's zone.
    days = column.cast("date")
    return F.timestamp_micros(F.unix_date(days) * F.lit(_DAY_MICROS)) + (column - days.cast("timestamp_ntz"))


def with_wall_clocks(frame: DataFrame, columns: Collection[str]) -> DataFrame:
    """Return the DataFrame with these TIMESTAMP columns converted to TIMESTAMP_NTZ."""
    if not columns:
        return frame
    return frame.select(*(_to_wall_clock(name) if name in columns else quoted(name) for name in frame.columns))


def wall_clocks_for(plan: PlanNode, schema: spark_types.StructType, fields: Iterable[DataField]) -> tuple[str, ...]:
    """Return the TIMESTAMP columns to convert back, because the table's column of that name has no zone.

    These are columns that were converted when they were read, or that were computed from such columns only.

    Args:
        plan: of the query.
        schema: of its rows.
        fields: of the table.
    """
    wanted = {field.name for field in fields if _is_wall_clock(field)}
    instants = {field.name for field in schema.fields if isinstance(field.dataType, spark_types.TimestampType)}
    if not wanted & instants:
        return ()
    lineage = _Lineage(plan)
    return tuple(
        name
        for attribute in each_of(plan.java.output())
        if (name := str(attribute.name())) in wanted & instants and lineage.is_marked(attribute)
    )


class _Lineage:
    """Determines from which attributes the attributes of a plan were computed."""

    def __init__(self, plan: PlanNode) -> None:
        self._nodes = list(each_node(plan))
        self._known: dict[int, bool] = {}
        # A union has the attributes of its first child; the other children's attributes may have no mark.
        self._united: dict[int, list[Any]] = {}
        for node in self._nodes:
            if node.name == "Union":
                self._unite(node)

    def is_marked(self, attribute: Any) -> bool:  # noqa: ANN401 - of the JVM
        """Whether an attribute was converted: it has the mark, or all times that it was computed from do."""
        number = attribute.exprId().id()
        if number not in self._known:
            self._known[number] = False
            is_marked = _has_mark(attribute) or self._is_computed(number)
            self._known[number] = is_marked and all(map(self.is_marked, self._united.get(number, ())))
        return self._known[number]

    def _is_computed(self, number: int) -> bool:
        sources = [each for each in self._sources.get(number, ()) if _holds_instants(each)]
        return bool(sources) and all(map(self.is_marked, sources))

    @cached_property
    def _sources(self) -> Mapping[int, Sequence[Any]]:
        """The attributes that others were computed from; thousands of calls to the JVM in a long plan."""
        return {
            expression.exprId().id(): tuple(each_of(expression.references().toSeq()))
            for node in self._nodes
            for expression in each_of(node.java.expressions())
            if expression.getClass().getSimpleName() == "Alias"
        }

    def _unite(self, union: PlanNode) -> None:
        outputs = [list(each_of(child.java.output())) for child in union.children[1:]]
        for place, attribute in enumerate(each_of(union.java.output())):
            self._united.setdefault(attribute.exprId().id(), []).extend(output[place] for output in outputs)


def _has_mark(expression: Any) -> bool:  # noqa: ANN401 - of the JVM
    return bool(expression.metadata().contains(_MARK))


def _holds_instants(attribute: Any) -> bool:  # noqa: ANN401 - of the JVM
    """Whether the type is TIMESTAMP, or contains one, as a window does."""
    return "timestamp" in str(attribute.dataType().catalogString()).replace("timestamp_ntz", "")


def _is_wall_clock(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root is TypeRoot.TIMESTAMP


def _to_wall_clock(column: str) -> Column:
    micros = f"unix_micros({quoted(column)})"
    # Not timestampadd: its number is an INT in Spark 3.5, and other digits are cut off without an error.
    days = f"CAST({micros} DIV {_DAY_MICROS} AS INT)"
    seconds = f"CAST({micros} % {_DAY_MICROS} * 0.000001BD AS DECIMAL(18, 6))"
    return F.expr(f"{_EPOCH} + make_dt_interval({days}, 0, 0, {seconds})").alias(column)
