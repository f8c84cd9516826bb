"""``format("penstock")`` in sessions whose driver runs streams itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from penstock import Catalog, UnsupportedFeatureError
from penstock.spark.data_source.source import BatchDataSource

if TYPE_CHECKING:
    from pathlib import Path

    from penstock import Table

SCHEMA = StructType([StructField("n", LongType())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    return catalog.create_table("d.t", "n BIGINT")


def test_its_streams_are_refused_with_the_calls_that_work(table: Table) -> None:
    source = BatchDataSource({"path": table.location})
    with pytest.raises(UnsupportedFeatureError) as read:
        source.streamReader(SCHEMA)
    for words in (f"Table.at('{table.location}').read_stream(spark)", "spark.readStream.table('penstock.", "Connect"):
        assert words in str(read.value)
    with pytest.raises(UnsupportedFeatureError) as written:
        source.streamWriter(SCHEMA, overwrite=False)
    for words in (f"Table.at('{table.location}').write_stream(df, ", "writeStream.toTable('penstock.", "Connect"):
        assert words in str(written.value)
