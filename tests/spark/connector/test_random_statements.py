"""Partitioned tables after random row changes and overwrites, compared with Spark's own Parquet tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.connector.random_statements import RandomTable
from tests.spark.needs import needs

from penstock.spark.versions.facts import ROW_DELTAS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock import Catalog

pytestmark = needs(ROW_DELTAS)


@pytest.mark.parametrize(
    ("seeds", "changes"), [(range(2), 4), pytest.param(range(100, 124), 9, marks=pytest.mark.slow)]
)
def test_random_statements_leave_the_rows_that_parquet_tables_of_spark_have(
    spark: SparkSession, catalog: Catalog, seeds: range, changes: int
) -> None:
    for seed in seeds:
        table = RandomTable(spark, catalog, seed)
        for _ in range(changes):
            table.change()
            findings = table.check()
            assert findings == [], "\n".join((f"seed {seed}", *table.log))
        table.drop()
