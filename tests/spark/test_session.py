"""The session that the Spark tests stand on."""

import os
import sys

from pyspark.sql import SparkSession


def test_session_has_a_time_zone_with_daylight_saving_and_two_cores(spark: SparkSession) -> None:
    winter, summer = (
        spark.sql(f"SELECT hour(timestamp_seconds({seconds})) AS h").first()["h"]
        for seconds in (1704110400, 1719835200)
    )  # noon UTC on 2024-01-01 and 2024-07-01
    assert (winter, summer) == (4, 5)
    assert spark.sparkContext.defaultParallelism == 2


def test_python_workers_are_of_this_environment(spark: SparkSession) -> None:
    def report(_: object) -> str:
        return sys.prefix

    assert set(spark.sparkContext.parallelize(range(2), 2).map(report).collect()) == {sys.prefix}
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
