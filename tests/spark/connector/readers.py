"""The readers that Spark has for Parquet and ORC: those that return columns, and those that return rows."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

VECTORISED = "vectorised"


@contextmanager
def readers_of(spark: SparkSession, *, parquet: bool, orc: bool) -> Iterator[None]:
    """Choose the reader of each format, True for the one that returns columns."""
    chosen = {"parquet": parquet, "orc": orc}
    keys = {f"spark.sql.{name}.enableVectorizedReader": str(is_chosen).lower() for name, is_chosen in chosen.items()}
    for key, value in keys.items():
        spark.conf.set(key, value)
    yield
    for key in keys:
        spark.conf.unset(key)


@pytest.fixture(params=[VECTORISED, "row by row"])
def reader(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of the two readers that Spark has for a format; the one that is the default with compiled queries, too."""
    is_vectorised = request.param == VECTORISED
    if is_vectorised:
        request.getfixturevalue("compiled")
    with readers_of(spark, parquet=is_vectorised, orc=is_vectorised):
        yield str(request.param)
