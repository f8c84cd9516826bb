"""Event time in Spark's own plans."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.plan import analyzed_plan, each_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.spec.watermark import DeclaredWatermark

_WATERMARK: Final = "EventTimeWatermark"
# What brings rows of several tasks together, or changes their order.
_SHUFFLES: Final = re.compile(
    r"^[\s:+\-|~*]*(?:Aggregate|Distinct|Deduplicate\w*|Join|\w*WithState\w*|Repartition\w*|RebalancePartitions|Sort"
    r"|GlobalLimit|Window|\w*Group\w*)\b",
    re.MULTILINE,
)
# What keeps rows, or makes others of them, until the watermark has passed.
_KEEPS_ROWS: Final = re.compile(
    r"^[\s:+\-|~*]*(?:Aggregate|Distinct|Deduplicate\w*|Join|\w*WithState\w*)\b", re.MULTILINE
)


def with_watermark(sdf: DataFrame, watermark: DeclaredWatermark) -> DataFrame:
    """Let Spark keep the watermark of a column of instants, whose delay is known."""
    name = watermark.column.replace("`", "``")
    return sdf.withWatermark(f"`{name}`", f"{watermark.delay_millis} milliseconds")


def keeps_rows_for_watermark(sdf: DataFrame) -> bool:
    """Whether a streaming query may deliver rows in later micro-batches than those that it read them in."""
    plan = str(analyzed_plan(sdf).toString())
    return _WATERMARK in plan and _KEEPS_ROWS.search(plan) is not None


def shuffles(sdf: DataFrame) -> bool:
    """Whether rows of one task may be rows of several where they were read."""
    return _SHUFFLES.search(str(analyzed_plan(sdf).toString())) is not None


def redefines_watermark(sdf: DataFrame) -> bool:
    """Whether rows of one source have two watermarks, one after the other."""
    return _watermarks_in_a_row(analyzed_plan(sdf)) > 1


def _watermarks_in_a_row(plan: Any) -> int:  # noqa: ANN401 - of the JVM
    below = max((_watermarks_in_a_row(child) for child in each_of(plan.children())), default=0)
    return below + int(plan.nodeName() == _WATERMARK)
