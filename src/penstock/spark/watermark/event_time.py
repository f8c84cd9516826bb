"""Event time and watermarks in Spark's plans."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from penstock.format.text.names import quoted
from penstock.spark.plan import analyzed_plan, each_node, each_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.format.watermark import DeclaredWatermark

_WATERMARK: Final = "EventTimeWatermark"
# Operators that mix rows of several tasks, or change their order.
_SHUFFLES: Final = re.compile(
    r"^[\s:+\-|~*]*(?:Aggregate|Distinct|Deduplicate\w*|Join|\w*WithState\w*|Repartition\w*|RebalancePartitions|Sort"
    r"|GlobalLimit|Window|\w*Group\w*)\b",
    re.MULTILINE,
)
# Operators that hold rows, or state computed from them, until the watermark has passed.
_KEEPS_ROWS: Final = re.compile(r"Aggregate|Distinct|Deduplicate\w*|Join|\w*WithState\w*")


def with_watermark(sdf: DataFrame, watermark: DeclaredWatermark) -> DataFrame:
    """Add Spark's watermark on a TIMESTAMP column whose delay is known."""
    return sdf.withWatermark(quoted(watermark.column), f"{watermark.delay_millis} milliseconds")


def keeps_rows_for_watermark(sdf: DataFrame) -> bool:
    """Whether a streaming query may emit rows in a later micro-batch than the one that read them."""
    return plan_keeps_rows(analyzed_plan(sdf))


def plan_keeps_rows(plan: Any) -> bool:  # noqa: ANN401 - of the JVM
    """Whether a query with this analysed plan may emit rows in a later micro-batch than the one that read them."""
    return _WATERMARK in str(plan.toString()) and any(map(_keeps_rows, each_node(plan)))


def has_watermark_of_all(sdf: DataFrame) -> bool:
    """Whether every source of a streaming query has a watermark in Spark."""
    return _is_timed(analyzed_plan(sdf))


def shuffles(sdf: DataFrame) -> bool:
    """Whether one task may have rows that several tasks have read."""
    return _SHUFFLES.search(str(analyzed_plan(sdf).toString())) is not None


def redefines_watermark(sdf: DataFrame) -> bool:
    """Whether rows of one source have two watermarks, one after the other."""
    return _watermarks_in_a_row(analyzed_plan(sdf)) > 1


def _keeps_rows(node: Any) -> bool:  # noqa: ANN401 - of the JVM
    """Whether a plan node keeps rows of a stream; a join of a stream with a static table keeps none."""
    if _KEEPS_ROWS.fullmatch(str(node.nodeName())) is None:
        return False
    return all(child.isStreaming() for child in each_of(node.children()))


def _is_timed(plan: Any) -> bool:  # noqa: ANN401 - of the JVM
    if plan.nodeName() == _WATERMARK or not plan.isStreaming():
        return True
    children = list(each_of(plan.children()))
    return bool(children) and all(map(_is_timed, children))


def _watermarks_in_a_row(plan: Any) -> int:  # noqa: ANN401 - of the JVM
    below = max((_watermarks_in_a_row(child) for child in each_of(plan.children())), default=0)
    return below + int(plan.nodeName() == _WATERMARK)
