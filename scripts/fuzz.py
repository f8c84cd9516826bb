"""Differential fuzzing: random tables through every entry point, compared with plain Python (design/0022)."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from typing import Any

import penstock
from penstock.testing.differential.run import run_case


def main() -> int:
    """Run cases, print what differs, and return 1 where something does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the others count up from it")
    parser.add_argument("--spark", action="store_true", help="read through Spark, too")
    given = parser.parse_args()
    started = time.monotonic()
    findings = 0
    with tempfile.TemporaryDirectory(prefix="penstock-fuzz-") as directory:
        catalog = penstock.Catalog(directory)
        catalog.create_database("fuzz")
        spark = _session() if given.spark else None
        for seed in range(given.seed, given.seed + given.cases):
            for finding in run_case(catalog, seed, spark):
                findings += 1
                print(finding, flush=True)
    print(f"{given.cases} cases, {findings} findings, {time.monotonic() - started:.0f} s")
    return 1 if findings else 0


def _session() -> Any:  # noqa: ANN401 - pyspark is needed with --spark only
    from pyspark.sql import SparkSession  # noqa: PLC0415 - see above

    from penstock.spark.source import PenstockDataSource  # noqa: PLC0415 - see above

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "America/Los_Angeles").getOrCreate()
    spark.dataSource.register(PenstockDataSource)
    spark.sparkContext.setLogLevel("OFF")
    return spark


if __name__ == "__main__":
    sys.exit(main())
