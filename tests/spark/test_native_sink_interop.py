"""Java Paimon and pypaimon read what Spark's own writer has written into a table."""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.interop import ours
from tests.interop.canonical import sort_rows, table_of
from tests.interop.conftest import engine, java, location, pypaimon
from tests.interop.engines import Engine, Row
from tests.interop.values import CASES

from penstock.spark.write import native_sink

__all__ = ["engine", "java", "location", "pypaimon"]

pytestmark = pytest.mark.interop

NATIVE: Final = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BYTES", "DATE"),
    *("TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "ARRAY<INT>", "MAP<STRING, INT>", "MAP<INT, STRING>"),
    *("ROW<a INT, b STRING>", "ARRAY<ROW<a INT, b DECIMAL(20, 2)>>", "MAP<STRING, ARRAY<ROW<a INT>>>"),
    "ROW<r ROW<a INT, l ARRAY<INT>>, s STRING>",
)
CHOSEN: Final = [case for case in CASES if case.sql in NATIVE or case.sql.startswith("DECIMAL")]


@pytest.mark.parametrize("nullability", ["", " NOT NULL"])
def test_an_engine_reads_every_type_that_spark_writes(
    spark: SparkSession, engine: Engine, location: Path, monkeypatch: pytest.MonkeyPatch, nullability: str
) -> None:
    """One table with a column of each type: an append by Spark takes long beside a read."""
    taken: list[Any] = []
    original = native_sink.import_parquet_files
    monkeypatch.setattr(native_sink, "import_parquet_files", lambda *a, **k: taken.append(1) or original(*a, **k))
    columns = ", ".join(f"c{at} {case.sql}{nullability}" for at, case in enumerate(CHOSEN))
    table = ours.load(ours.create(location, columns))
    values = [case.values_in("parquet") for case in CHOSEN]
    most = max(map(len, values))
    rows: list[Row] = [
        {f"c{at}": column[place % len(column)] for at, column in enumerate(values)} for place in range(most)
    ]
    if not nullability:
        rows.append(dict.fromkeys(rows[0]))
    given = table_of(rows, table.arrow_schema)
    nullable = pa.schema([field.with_nullable(nullable=True) for field in given.schema])
    wanted = table.to_spark(spark).schema
    frame = spark.createDataFrame(pa.Table.from_arrays(given.columns, schema=nullable), wanted).repartition(2)
    table.append(frame)
    assert taken == [1]
    assert ours.read(location) == sort_rows(rows)
    assert engine.read(location) == sort_rows(rows)
    assert engine.read(location, filter=[["c3", "<", 0]]) == sort_rows(row for row in rows if (row["c3"] or 0) < 0)
