"""Event times and CUMULATE windows of SQL, for which Spark has no function."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import TimestampNTZType

from penstock.format.text.names import quoted
from penstock.spark.watermark.wall_clock import as_instant

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Spark's mark of an event time in the metadata of a column: the delay in ms.
_DELAY: Final = "spark.watermarkDelayMs"
_EVENT_TIME: Final = "__event_time"
_WHOLE: Final = "__whole"
_STEP: Final = "__step"
_END: Final = "__end"


def event_time_frame(frame: DataFrame, column: str, delay_millis: int) -> DataFrame:
    """Return a stream with a watermark: the latest event time minus the delay; it closes windows.

    The column keeps its type. Spark takes watermarks of TIMESTAMP columns only. So for TIMESTAMP_NTZ, a helper column
    with the same time in UTC gets the watermark, and the column itself gets Spark's mark of an event time. Spark
    compares both as microseconds since 1970.

    Args:
        column: TIMESTAMP_NTZ or TIMESTAMP.
    """
    field = frame.schema[column]
    if _DELAY in field.metadata:
        return frame
    delay = f"{delay_millis} milliseconds"
    if not isinstance(field.dataType, TimestampNTZType):
        return frame.withWatermark(column, delay)
    timed = frame.withColumn(_EVENT_TIME, as_instant(F.col(quoted(column)))).withWatermark(_EVENT_TIME, delay)
    marked = F.col(quoted(column)).alias(column, metadata={**field.metadata, _DELAY: delay_millis})
    return timed.select(*(marked if name == column else F.col(quoted(name)) for name in frame.columns))


def cumulate_frame(frame: DataFrame, column: str, *, whole: str, step: str, step_millis: int) -> DataFrame:
    """Return each row once for every CUMULATE window that contains it.

    Such windows have the same start; each ends one step after the previous one, and the last one at the end of the
    whole window. In a stream, the end of a window is an event time, as in Spark's own windows, so that the watermark
    closes it.

    Args:
        column: the time column.
        whole: expression for the whole window that contains a row.
        step: expression for the step that contains a row.
    """
    mark = frame.schema[column].metadata.get(_DELAY)
    rows = [F.col(quoted(name)) for name in frame.columns]
    # Two projections, because Spark allows only one window in each.
    placed = frame.select("*", F.expr(whole).alias(_WHOLE)).select("*", F.expr(step).alias(_STEP))
    ends = F.sequence(f"{_STEP}.end", f"{_WHOLE}.end", _interval(step_millis))
    windows = placed.select(*rows, F.col(f"{_WHOLE}.start").alias("window_start"), F.explode(ends).alias(_END))
    end = F.col(_END).alias("window_end", metadata={} if mark is None else {_DELAY: mark})
    return windows.select(*rows, "window_start", end, (F.col(_END) - _interval(1)).alias("window_time"))


def _interval(millis: int) -> Column:
    return F.make_dt_interval(secs=F.lit(Decimal(millis) / 1000))
