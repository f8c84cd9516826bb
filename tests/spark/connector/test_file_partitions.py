"""Partitions of files, which become objects of Spark when a task is sent: as Spark's own source has them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.spark.plans import as_sent

from penstock.spark.connector import gateway
from penstock.spark.connector.gateway import open_bridge
from penstock.spark.versions.python_api import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from penstock import Catalog

_FILES: Final = "spark.sql.files."
_SETTINGS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"maxPartitionBytes": "1000", "openCostInBytes": "0"},
    {"maxPartitionBytes": "999", "openCostInBytes": "50"},
    {"maxPartitionBytes": "7000", "openCostInBytes": "3000"},
    {"maxPartitionBytes": "1000", "openCostInBytes": "10", "maxPartitionNum": "7"},
    {"maxPartitionBytes": "5000", "openCostInBytes": "1", "minPartitionNum": "40"},
)
_RANDOM: Final = random.Random(7)  # noqa: S311 - not for cryptography
_SIZES: Final = {
    "random": [_RANDOM.randrange(1, 5_000) for _ in range(100)],
    "few sizes": [_RANDOM.choice((1, 999, 1_000, 1_001, 2_000)) for _ in range(100)],
    "one": [12_345],
    "beyond 32 bits": [_RANDOM.randrange(1 << 31, 1 << 34) for _ in range(20)],
}


@pytest.fixture
def settings(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    for name, value in request.param.items():
        spark.conf.set(_FILES + name, value)
    yield request.param
    for name in request.param:
        spark.conf.unset(_FILES + name)


def _sent(spark: SparkSession, partition: Any) -> list[tuple[str, int, int, int]]:
    """Return the files of a partition as an executor gets them: name, start, length and size."""
    return [
        (each.filePath().urlEncoded().rpartition("/")[2], each.start(), each.length(), each.fileSize())
        for each in as_sent(spark, partition).files()
    ]


def _lengths(partitions: list[list[tuple[str, int, int, int]]]) -> list[list[int]]:
    return [[length for _, _, length, _ in files] for files in partitions]


@pytest.mark.parametrize("sizes", _SIZES.values(), ids=_SIZES)
@pytest.mark.parametrize("settings", _SETTINGS, indirect=True, ids=lambda each: " ".join(each) or "defaults")
def test_files_are_packed_as_by_sparks_own_source(
    spark: SparkSession, tmp_path: Path, settings: Mapping[str, str], sizes: list[int]
) -> None:
    if max(sizes) > 1 << 31:
        spark.conf.set(f"{_FILES}maxPartitionBytes", str(5 << 31))
        settings = {"maxPartitionBytes": ""}
    for number, size in enumerate(sizes):
        with (tmp_path / f"part-{number:05}.parquet").open("wb") as file:
            file.truncate(size)
    plan = spark.read.schema("id LONG").parquet(str(tmp_path))._jdf.queryExecution().executedPlan()
    own = [_sent(spark, each) for each in plan.execute().partitions()]
    lines = [f"file://{tmp_path}", *(f"part-{number:05}.parquet\t{size}\t\t" for number, size in enumerate(sizes))]
    driver = open_bridge(spark).driver
    found = [_sent(spark, each) for each in driver.packed(spark._jsparkSession, "\n".join(lines))]
    for name in settings:
        spark.conf.unset(_FILES + name)
    assert _lengths(found) == _lengths(own)
    # Which of the files with one size comes first depends on the order in which Spark has listed them.
    assert sorted(file for files in found for file in files) == sorted(file for files in own for file in files)


def test_each_run_of_files_is_a_partition_in_order(spark: SparkSession) -> None:
    text = "file:///a\nb\t7\t\t\nfile:///c\nd\t9\t\t\n\nfile:///a\ne%20f\t8\t\t"
    partitions = open_bridge(spark).driver.ordered(text)
    assert [_sent(spark, each) for each in partitions] == [[("b", 0, 7, 7), ("d", 0, 9, 9)], [("e%20f", 0, 8, 8)]]
    assert not list(open_bridge(spark).driver.ordered(""))


def test_a_size_that_is_no_number_is_refused(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="size of b\t-7"):
        open_bridge(spark).driver.ordered("file:///a\nb\t-7\t\t")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Any list of files is long; return the files that are written for the JVM."""
    found: list[Path] = []
    write = Path.write_bytes

    def noted(path: Path, data: bytes) -> int:
        found.append(path)
        return write(path, data)

    monkeypatch.setattr(gateway, "_MAX_CHARACTERS", 0)
    monkeypatch.setattr(Path, "write_bytes", noted)
    return found


@pytest.fixture
def days(catalog: Catalog) -> Iterator[str]:
    table = catalog.create_table("d.days", "id INT, day STRING", partition_by=["day"])
    for number in range(3):
        table.append(pa.table({"id": [number], "day": [f"ä {number}"]}, table.arrow_schema))
    yield "penstock.d.days"
    catalog.drop_table("d.days")


def _days(spark: SparkSession, name: str) -> dict[str, list[Any]]:
    return to_arrow(spark.table(name).orderBy("id")).to_pydict()


_DAYS: Final = {"id": [0, 1, 2], "day": ["ä 0", "ä 1", "ä 2"]}


def test_a_long_list_of_files_goes_through_a_file_that_is_removed(
    spark: SparkSession, days: str, written: list[Path]
) -> None:
    assert _days(spark, days) == _DAYS
    context: Any = spark.sparkContext
    assert [path.parent for path in written] == [Path(context._temp_dir)]
    assert not written[0].exists()


def test_where_spark_encrypts_its_files_the_list_is_passed_in_a_call(
    spark: SparkSession, days: str, written: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "_encryption_enabled", True)
    assert _days(spark, days) == _DAYS
    assert not written


def test_where_the_file_cannot_be_written_the_list_is_passed_in_a_call(
    spark: SparkSession, days: str, written: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark.sparkContext, "_temp_dir", str(tmp_path / "missing"))
    assert _days(spark, days) == _DAYS
    assert len(written) == 1
