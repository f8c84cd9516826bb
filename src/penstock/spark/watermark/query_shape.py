"""What the plan of a streaming query says of its rows and their event times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from penstock.spark.logical_plan import PlanNode, analyzed_plan, each_node, read_plan
from penstock.spark.watermark.observed_times import ObservedTimes, observes_rows
from penstock.spark.watermark.wall_clock import wall_clocks_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from penstock.format.types.data_types import DataField

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
