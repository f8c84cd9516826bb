"""Event time in Spark's own plans."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WATERMARK: Final = "EventTimeWatermark"
# What keeps rows, or makes others of them, until the watermark has passed.
_KEEPS_ROWS: Final = re.compile(
    r"^[\s:+\-|~*]*(?:Aggregate|Distinct|Deduplicate\w*|Join|\w*WithState\w*)\b", re.MULTILINE
)


def keeps_rows_for_watermark(sdf: DataFrame) -> bool:
    """Whether a streaming query may deliver rows in later micro-batches than those that it read them in."""
    given: Any = sdf._jdf  # noqa: SLF001 - Python does not see plans
    plan = str(given.queryExecution().analyzed().toString())
    return _WATERMARK in plan and _KEEPS_ROWS.search(plan) is not None
