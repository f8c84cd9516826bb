"""``readStream.format("penstock")`` says at the end of a bounded stream what it cannot deliver."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from penstock import Catalog
from penstock.spark.data_source.stream_reader import PenstockStreamReader
from penstock.spark.types import to_spark_schema

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("options", "ends"), [({"scan.bounded": "true"}, True), ({}, False)])
def test_the_end_of_a_bounded_stream_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, options: dict[str, str], ends: bool
) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "n INT")
    table.append(pa.table({"n": pa.array([1], pa.int32())}))
    ref = table.with_options({"scan.mode": "earliest", **options})._ref
    reader = PenstockStreamReader(ref, to_spark_schema(table.schema.fields), None)
    offset = reader.initialOffset()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            offset = reader.latestOffset(offset, ReadAllAvailable())
    said = [record.getMessage() for record in caplog.records if "last windows" in record.getMessage()]
    assert len(said) == ends
    assert all("d.t" in each and "Table.read_stream" in each for each in said)
