"""A few cases of ``make fuzz``, with Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import Catalog
from penstock.testing.differential.run import run_case

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param((167,), id="nan"),  # `x >= 5` over a NaN that the footer left out
        pytest.param((0, 9, 11, 30), id="calendars", marks=pytest.mark.slow),
    ],
)
def test_random_tables_read_alike_through_spark(spark: SparkSession, tmp_path: Path, seeds: tuple[int, ...]) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("fuzz")
    assert [finding for seed in seeds for finding in run_case(catalog, seed, spark)] == []
