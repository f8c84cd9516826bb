"""``CALL penstock.sys.*``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors.exceptions.base import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock import Catalog


def test_procedures_are_called_by_place_and_by_name(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.called", "id INT")
    for number in range(3):
        table.append(pa.table({"id": pa.array([number], pa.int32())}))
    assert spark.sql("CALL penstock.sys.create_tag('d.called', 'one', 1)").columns == ["result"]
    spark.sql("CALL penstock.sys.create_tag(table => 'penstock.d.called', tag => 'two', snapshot_id => 2)").collect()
    assert spark.sql("SELECT count(*) FROM penstock.d.called VERSION AS OF 'two'").collect() == [(2,)]
    found = spark.sql("CALL penstock.sys.compact(table => 'd.called')").collect()
    assert found[0].table == "d.called"
    assert "create_tag" in [row.procedure_name for row in spark.sql("SHOW PROCEDURES IN penstock.sys").collect()]


def test_wrong_calls_are_refused_in_one_line(spark: SparkSession, catalog: Catalog) -> None:
    with pytest.raises(PySparkException, match="there is no procedure") as caught:
        spark.sql("CALL penstock.sys.no_such()")
    assert "Traceback" not in str(caught.value)
    with pytest.raises(PySparkException, match="needs the argument table"):
        spark.sql("CALL penstock.sys.compact()")
