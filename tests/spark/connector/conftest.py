"""A catalog of its own for each module, attached to the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import penstock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from penstock import Catalog


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """Return a warehouse that the session knows as ``penstock``, with the database ``d``."""
    catalog = penstock.attach(spark, tmp_path_factory.mktemp("warehouse"))
    catalog.create_database("d")
    return catalog


@pytest.fixture(params=["vectorised", "row by row"])
def reader(spark: SparkSession, compiled: None, request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of Spark's readers of Parquet in turn; return its name."""
    key = "spark.sql.parquet.enableVectorizedReader"
    spark.conf.set(key, str(request.param == "vectorised").lower())
    yield str(request.param)
    spark.conf.unset(key)
