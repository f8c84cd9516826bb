"""What the plan of a streaming query says of its rows and their event times; the latest event times, observed.

The latest event time in each partition of a source is observed where its rows are read, before any shuffle.

Source:
    Spark's ``observe``: a metric of all rows that pass, kept with the execution of each micro-batch. It cannot
    group, so each partition has its own metric; since these are maximums, rows that are read twice do not change
    them.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as spark_types

from penstock.format.text.names import quoted
from penstock.spark.logical_plan import PlanNode, analyzed_plan, each_node, each_of, read_plan
from penstock.spark.watermark.wall_clock import as_instant, wall_clocks_for
from penstock.table.stream_sink.watermark import Observed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.format.types.data_types import DataField
    from penstock.format.watermark import DeclaredWatermark


METRIC_PREFIX: Final = "penstock-times-"

_OTHER_METRICS: Final = re.compile(rf"\bCollectMetrics (?!{METRIC_PREFIX})")
_METRIC: Final = re.compile(re.escape(METRIC_PREFIX) + r"(?P<delay>\d+)-.*", re.DOTALL)
_NULL: Final = "null"
_BETWEEN: Final = "\n"


def observe_times(frame: DataFrame, watermark: DeclaredWatermark, partitions: Mapping[str, Column]) -> DataFrame:
    """Return the DataFrame with a metric that observes the latest event time of each partition.

    Args:
        watermark: a column of the frame, TIMESTAMP or TIMESTAMP_NTZ, and its delay.
        partitions: condition that selects the rows of a partition, by a name that does not change across restarts.
    """
    column = F.col(quoted(watermark.column))
    is_instant = isinstance(frame.schema[watermark.column].dataType, spark_types.TimestampType)
    latest = [
        _millis(F.max(F.when(is_in, column)), is_instant=is_instant).alias(name) for name, is_in in partitions.items()
    ]
    is_known = reduce(or_, partitions.values(), F.lit(False))  # noqa: FBT003 - SQL's FALSE
    others = F.max(F.when(~is_known, F.lit(0))).alias("")
    return frame.observe(f"{METRIC_PREFIX}{watermark.delay_millis}-{uuid.uuid4().hex}", others, *latest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTimes:
    """Reads the event times that a query observes.

    Attributes:
        metrics: names of the partitions that each metric covers, by the name of the metric.
    """

    metrics: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, plan: PlanNode) -> Self:
        """Return the metrics of a query.

        Two sources may read the same partition at different positions, so they are distinguished by their order in the
        query.
        """
        found: dict[str, tuple[str, ...]] = {}
        readers: Counter[str] = Counter()
        for node in each_node(plan):
            metric = node.java.name() if node.name == "CollectMetrics" else ""
            if _METRIC.fullmatch(metric) and metric not in found:
                names = tuple(each.name() for each in each_of(node.java.metrics()))[1:]
                found[metric] = tuple(f"{name}#{readers[name]}" if readers[name] else name for name in names)
                readers.update(names)
        return cls(metrics=found)

    def read(self, query: StreamingQuery) -> Observed:
        """Return the event times of the running micro-batch, from the rows that were read so far."""
        if not self.metrics:
            return Observed()
        java_query: Any = query._jsq  # noqa: SLF001 - Python gets metrics only after the micro-batch
        rows = java_query.streamingQuery().lastExecution().observedMetrics()
        times: dict[str, int | None] = {}
        is_complete = True
        for metric, names in self.metrics.items():
            match = _METRIC.fullmatch(metric)
            delay = int(match["delay"]) if match is not None else 0
            # One call to the JVM for all values.
            values = rows.apply(metric).mkString(_BETWEEN).split(_BETWEEN) if rows.contains(metric) else []
            is_complete &= not values or values[0] == _NULL
            for name, value in zip(names, values[1:] or [_NULL] * len(names), strict=True):
                times[name] = None if value == _NULL else int(value) - delay
        return Observed(sources=len(self.metrics), times=times, is_complete=is_complete)


def observes_rows(plan: str) -> bool:
    """Whether a query observes metrics of its rows, which reach only the DataFrame's own session.

    Penstock's own metrics do not count: they are read from the query, and rows that are read twice do not change
    them.

    Args:
        plan: the text of its analyzed plan.
    """
    return _OTHER_METRICS.search(plan) is not None


def partition_name(table: str, topic: str, partition: int) -> str:
    """Return the name of a partition of a topic."""
    return json.dumps([table, topic, partition], separators=(",", ":"))


def _millis(latest: Column, *, is_instant: bool) -> Column:
    return F.unix_millis(latest if is_instant else as_instant(latest))


_WATERMARK: Final = "EventTimeWatermark"
# Operators that mix rows of several tasks, or change their order.
_SHUFFLES: Final = re.compile(
    r"^[\s:+\-|~*]*(?:Aggregate|Distinct|Deduplicate\w*|Join|\w*WithState\w*|Repartition\w*|RebalancePartitions|Sort"
    r"|GlobalLimit|Window|\w*Group\w*)\b",
    re.MULTILINE,
)
# Operators that hold rows, or state computed from them, until the watermark has passed.
_KEEPS_ROWS: Final = re.compile(r"Aggregate|Distinct|Deduplicate\w*|Join|\w*WithState\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """The shape of a streaming query that writes to a table, read once from its plan.

    Attributes:
        keeps_rows: it may emit rows in a later micro-batch than the one that read them.
        redefines_watermark: rows of one source have two watermarks, one after the other.
        has_watermark_of_all: every source has a watermark in Spark.
        shuffles: one task may have rows that several tasks have read.
        is_observed: the query observes metrics of the rows, so that no row may be read twice.
        times: the event times that Penstock observes in it.
        wall_clocks: TIMESTAMP columns to convert back, because the table's column of that name has no zone.
    """

    keeps_rows: bool
    redefines_watermark: bool
    has_watermark_of_all: bool
    shuffles: bool
    is_observed: bool
    times: ObservedTimes
    wall_clocks: tuple[str, ...]

    @classmethod
    def of(cls, sdf: DataFrame, fields: Iterable[DataField] = ()) -> Self:
        """Return the shape of a query.

        Args:
            fields: of the table.
        """
        java_plan = analyzed_plan(sdf)
        plan, text = read_plan(java_plan), str(java_plan.toString())
        return cls(
            keeps_rows=_plan_keeps_rows(plan),
            redefines_watermark=_watermarks_in_a_row(plan) > 1,
            has_watermark_of_all=_is_timed(plan),
            shuffles=_SHUFFLES.search(text) is not None,
            is_observed=observes_rows(text),
            times=ObservedTimes.of(plan),
            wall_clocks=wall_clocks_for(plan, sdf.schema, fields),
        )


def plan_keeps_rows(plan: Any) -> bool:  # noqa: ANN401 - of the JVM
    """Whether a query with this analysed plan may emit rows in a later micro-batch than the one that read them."""
    return _plan_keeps_rows(read_plan(plan))


def _plan_keeps_rows(plan: PlanNode) -> bool:
    nodes = tuple(each_node(plan))
    return any(node.name == _WATERMARK for node in nodes) and any(map(_keeps_rows, nodes))


def _keeps_rows(node: PlanNode) -> bool:
    """Whether a plan node keeps rows of a stream; a join of a stream with a static table keeps none."""
    return _KEEPS_ROWS.fullmatch(node.name) is not None and all(child.is_streaming for child in node.children)


def _is_timed(plan: PlanNode) -> bool:
    if plan.name == _WATERMARK or not plan.is_streaming:
        return True
    return bool(plan.children) and all(map(_is_timed, plan.children))


def _watermarks_in_a_row(plan: PlanNode) -> int:
    below = max(map(_watermarks_in_a_row, plan.children), default=0)
    return below + int(plan.name == _WATERMARK)
