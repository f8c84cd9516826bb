"""Event times and windows of SQL, where Spark's own words do not reach."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.types import TimestampNTZType

from penstock.spark.names import quoted
from penstock.spark.watermark.wall_clock import as_instant

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Spark's own mark of an event time, in the metadata of a column: ms.
_DELAY: Final = "spark.watermarkDelayMs"
_EVENT_TIME: Final = "__event_time"
_WHOLE: Final = "__whole"
_STEP: Final = "__step"
_END: Final = "__end"


def event_time_frame(frame: DataFrame, column: str, delay_millis: int) -> DataFrame:
    """Return a stream with a watermark: the latest event time less the delay, which windows are told by.

    The column keeps its type. Spark takes watermarks of TIMESTAMP columns only; for a wall clock one beside it, of the
    same time in UTC, tells the watermark, and Spark's mark on the column itself says that it is an event time. Spark
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
    """Return each row once for every window of a CUMULATE that it is in.

    Such windows begin together and end a step after each other, the last of them at the end of the whole one. The end
    of a window of a stream is an event time, as Spark's own windows are, so that its watermark closes it.

    Args:
        column: the time.
        whole: expression for the whole window that a row falls in.
        step: for the step that it falls in.
    """
    mark = frame.schema[column].metadata.get(_DELAY)
    rows = [F.col(quoted(name)) for name in frame.columns]
    # One at a time: Spark computes a single window in a projection.
    placed = frame.select("*", F.expr(whole).alias(_WHOLE)).select("*", F.expr(step).alias(_STEP))
    ends = F.sequence(f"{_STEP}.end", f"{_WHOLE}.end", _interval(step_millis))
    windows = placed.select(*rows, F.col(f"{_WHOLE}.start").alias("window_start"), F.explode(ends).alias(_END))
    end = F.col(_END).alias("window_end", metadata={} if mark is None else {_DELAY: mark})
    return windows.select(*rows, "window_start", end, (F.col(_END) - _interval(1)).alias("window_time"))


def _interval(millis: int) -> Column:
    return F.make_dt_interval(secs=F.lit(Decimal(millis) / 1000))
