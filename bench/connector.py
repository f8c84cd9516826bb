"""Compare the ways to read a table in Spark: ``python -m bench.connector``.

Rows are generated from a seed. Medians of rounds in which all ways take turns; the first rounds are not counted. Raw
times are stored in ``bench/results/connector/``.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

RESULTS: Final = Path(__file__).parent / "results" / "connector"
_WARM_UP: Final = 2
_ROUNDS: Final = 6
_PARTITIONS: Final = 100
_APPENDS: Final = 5
_ROWS: Final = 400_000
_MANY_PARTITIONS: Final = 1000
_MANY_APPENDS: Final = 10


def main() -> int:
    """Run all, print medians in seconds, store the raw times."""
    with tempfile.TemporaryDirectory() as root:
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        catalog = penstock.attach(spark, root)
        penstock.register(spark)
        catalog.create_database("d")
        measured = {**_selective(spark, catalog, root), **_many_files(spark, catalog, root)}
        spark.stop()
    for case, ways in measured.items():
        print(case, {way: round(statistics.median(times), 3) for way, times in ways.items()})
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}.json"
    target.write_text(json.dumps(measured, indent=1) + "\n")
    return 0


def _selective(spark: SparkSession, catalog: penstock.Catalog, root: str) -> dict[str, dict[str, list[float]]]:
    columns = "id BIGINT, k BIGINT, v DOUBLE, s STRING, p INT"
    table = catalog.create_table("d.p", columns, partition_by="p", options={"write-only": True})
    random = np.random.default_rng(7)
    for number in range(_APPENDS):
        table.append(
            pa.table(
                {
                    "id": np.arange(_ROWS) + number * _ROWS,
                    "k": random.integers(0, 1000, _ROWS),
                    "v": random.random(_ROWS),
                    "s": [f"text {each % 977}" for each in range(_ROWS)],
                    "p": pa.array(np.arange(_ROWS) % _PARTITIONS, pa.int32()),
                }
            )
        )
    plain = f"{root}/plain"
    table.to_spark(spark).write.partitionBy("p").parquet(plain)
    sums = ("sum(v)", "count(s)")
    whole = ("sum(v)", "max(k)", "sum(id)")
    return {
        "one partition of 100": _in_turns(
            {
                "attach": lambda: spark.table("penstock.d.p").where("p = 42").selectExpr(*sums).collect(),
                "to_spark(filter)": lambda: table.to_spark(spark, filter="p = 42").selectExpr(*sums).collect(),
                "to_spark().where": lambda: table.to_spark(spark).where("p = 42").selectExpr(*sums).collect(),
                "format": lambda: _load(spark, f"{root}/d.db/p").where("p = 42").selectExpr(*sums).collect(),
                "plain Parquet": lambda: spark.read.parquet(plain).where("p = 42").selectExpr(*sums).collect(),
            }
        ),
        "whole table": _in_turns(
            {
                "attach": lambda: spark.table("penstock.d.p").selectExpr(*whole).collect(),
                "to_spark": lambda: table.to_spark(spark).selectExpr(*whole).collect(),
                "plain Parquet": lambda: spark.read.parquet(plain).selectExpr(*whole).collect(),
            }
        ),
    }


def _many_files(spark: SparkSession, catalog: penstock.Catalog, root: str) -> dict[str, dict[str, list[float]]]:
    table = catalog.create_table("d.m", "id BIGINT, p INT", partition_by="p", options={"write-only": True})
    for _ in range(_MANY_APPENDS):
        numbers = np.arange(_MANY_PARTITIONS)
        table.append(pa.table({"id": numbers, "p": pa.array(numbers, pa.int32())}))
    return {
        f"first row of {table.files().num_rows} files": _in_turns(
            {
                "attach": lambda: spark.table("penstock.d.m").limit(1).collect(),
                "to_spark": lambda: table.to_spark(spark).limit(1).collect(),
                "format": lambda: _load(spark, f"{root}/d.db/m").limit(1).collect(),
            }
        )
    }


def _load(spark: SparkSession, location: str) -> DataFrame:
    return spark.read.format("penstock").load(location)


def _in_turns(ways: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(_WARM_UP + _ROUNDS):
        for way, run in ways.items():
            begun = time.perf_counter()
            run()
            if number >= _WARM_UP:
                times[way].append(round(time.perf_counter() - begun, 4))
    return times


if __name__ == "__main__":
    sys.exit(main())
