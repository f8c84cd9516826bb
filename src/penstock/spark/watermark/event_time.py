"""Event time in Spark's own plans."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.names import quoted
from penstock.spark.plan import analyzed_plan, each_node, each_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.format.watermark import DeclaredWatermark

_WATERMARK: Final = "EventTimeWatermark"
# What brings rows of several tasks together, or changes their order.
_SHUFFLES: Final = re.compile(
    r"^[\s:+\-|~*]*(?:Aggregate|Distinct|Deduplicate\w*|Join|\w*WithState\w*|Repartition\w*|RebalancePartitions|Sort"
    r"|GlobalLimit|Window|\w*Group\w*)\b",
    re.MULTILINE,
)
# What keeps rows, or makes others of them, until the watermark has passed.
_KEEPS_ROWS: Final = re.compile(r"Aggregate|Distinct|Deduplicate\w*|Join|\w*WithState\w*")


def with_watermark(sdf: DataFrame, watermark: DeclaredWatermark) -> DataFrame:
    """Let Spark keep the watermark of a column of instants, whose delay is known."""
    return sdf.withWatermark(quoted(watermark.column), f"{watermark.delay_millis} milliseconds")


def keeps_rows_for_watermark(sdf: DataFrame) -> bool:
    """Whether a streaming query may deliver rows in later micro-batches than those that it read them in."""
    plan = analyzed_plan(sdf)
    return _WATERMARK in str(plan.toString()) and any(map(_keeps_rows, each_node(plan)))


def has_watermark_of_all(sdf: DataFrame) -> bool:
    """Whether Spark tells a watermark from each of the sources of a streaming query."""
    return _is_timed(analyzed_plan(sdf))


def shuffles(sdf: DataFrame) -> bool:
    """Whether rows of one task may be rows of several where they were read."""
    return _SHUFFLES.search(str(analyzed_plan(sdf).toString())) is not None


def redefines_watermark(sdf: DataFrame) -> bool:
    """Whether rows of one source have two watermarks, one after the other."""
    return _watermarks_in_a_row(analyzed_plan(sdf)) > 1


def _keeps_rows(node: Any) -> bool:  # noqa: ANN401 - of the JVM
    """Whether it is a step that does, of rows of a stream; beside a table that is none, a join keeps nothing."""
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
