"""A plan by key through an attached catalog, for a fresh process with a Spark session that runs already."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import penstock
from bench.cpu import PROC, CpuClock
from bench.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

_WARM_UPS: Final = 5


def plan(location: str, small: str, filter: str, directory: str = "") -> dict[str, Any]:
    """Plan a query twice; ``small`` is a table of few files, whose plans before it warm up the JVM.

    Args:
        directory: then also plan twice how Spark's own Parquet source reads the files in it.
    """
    spark = _session()
    large, little = (_attached(spark, name, Path(each)) for name, each in (("large", location), ("little", small)))
    for number in range(_WARM_UPS):
        _plan(_select(spark, little, f"order_id = {number}"))
    answer = _timed(("cold", "warm"), lambda: _select(spark, large, filter))
    if directory:
        schema = spark.table(large).schema
        answer |= _timed(("parquet", "parquet again"), lambda: spark.read.schema(schema).parquet(directory))
    jvm = spark.sparkContext._gateway.proc.pid  # noqa: SLF001 - nothing public returns it
    answer["peak_bytes"] = peak_bytes("self") + peak_bytes(str(jvm))
    spark.stop()
    return answer


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", Settings().driver_memory).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _attached(spark: SparkSession, name: str, location: Path) -> str:
    """Attach the warehouse of a table, and return the table's name."""
    penstock.attach(spark, location.parent.parent, name=name)
    return f"{name}.{location.parent.stem}.{location.name}"


def _select(spark: SparkSession, table: str, filter: str) -> DataFrame:
    return spark.sql(f"SELECT * FROM {table} WHERE {filter}")  # noqa: S608 - our own names


def _timed(names: Sequence[str], query: Callable[[], DataFrame]) -> dict[str, Any]:
    """Plan a query once for each name."""
    answer: dict[str, Any] = {}
    for name in names:
        clock, started, python = CpuClock(), time.perf_counter(), time.process_time()
        if not _plan(query()):
            raise AssertionError("the plan has no file")
        seconds, python = time.perf_counter() - started, time.process_time() - python
        answer[name] = {"seconds": seconds, "python": python, "jvm": clock.seconds() - python}
    return answer


def _plan(query: DataFrame) -> int:
    """Return the number of input partitions."""
    # Nothing public returns the physical plan, with whose partitions Spark gets the list of files.
    plan = query._jdf.queryExecution().executedPlan()  # noqa: SLF001
    return plan.execute().getNumPartitions()


def peak_bytes(process: str) -> int:
    """Return the peak of resident memory. ``getrusage`` would include the parent's, from before the exec."""
    found = re.search(r"VmHWM:\s*(\d+)", (PROC / process / "status").read_text())
    return int(found[1]) * 1024 if found else 0
