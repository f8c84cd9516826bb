"""Files of several partitions that one task writes: later ones try no dictionaries that the first one did without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.spark.needs import needs

import penstock
from penstock.spark.connector import executor_classes
from penstock.spark.versions.facts import PYTHON_WRITES
from penstock.spark.write import native_sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table

COLUMNS = "id BIGINT, kind STRING, mixed BIGINT, late STRING, nested ROW<id BIGINT>, p INT"
WAYS = [
    pytest.param(lambda rows: rows.writeTo("penstock.d.t").append(), id="append"),
    pytest.param(
        lambda rows: rows.writeTo("penstock.d.t").overwritePartitions(), id="overwrite", marks=needs(PYTHON_WRITES)
    ),
]


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setattr(executor_classes, "_LARGE_BYTES", 0)
    catalog = penstock.attach(spark, tmp_path / "warehouse")
    catalog.create_database("d")
    return catalog


def sample(spark: SparkSession, rows_of_part: int, parts: int) -> DataFrame:
    """Rows of one task. Values of some columns repeat in all partitions but the first, which lacks one of them."""
    return spark.range(0, rows_of_part * parts, 1, 1).selectExpr(
        "id",
        f"CAST(id DIV {parts} % 3 AS STRING) AS kind",
        f"IF(id % {parts} = 0, id, 1) AS mixed",
        f"IF(id % {parts} = 0, NULL, 'x') AS late",
        f"named_struct('id', IF(id % {parts} = 0, id, 1)) AS nested",
        f"CAST(id % {parts} AS INT) AS p",
    )


def dictionaries(table: Table) -> list[str]:
    """The columns with a dictionary in the file of each partition, as the first letters of their names."""
    found = {}
    for path in Path(table.location).rglob("data-*.parquet"):
        group = pq.read_metadata(path).row_group(0)
        columns = [group.column(place) for place in range(group.num_columns)]
        names = "".join(each.path_in_schema[0] for each in columns if each.has_dictionary_page)
        assert path.parts[-3] not in found
        found[path.parts[-3]] = names
    return [found[f"p={part}"] for part in range(len(found))]


@pytest.mark.parametrize("write", WAYS)
def test_files_of_a_task_try_no_dictionaries_that_the_first_one_did_without(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, write: Callable[[DataFrame], None]
) -> None:
    table = catalog.create_table("d.t", COLUMNS, partition_by=["p"])
    rows = sample(spark, 20_000, 12)
    write(rows)
    # The twelfth file tries all again.
    assert dictionaries(table) == ["kp", *["klnp"] * 10, "kmlnp"]
    rows.write.parquet(f"{tmp_path}/plain")
    plain = pq.read_table(f"{tmp_path}/plain").sort_by("id")
    assert table.to_arrow().sort_by("id").cast(plain.schema) == plain


@pytest.mark.parametrize(("rows_of_part", "has_class"), [(19_999, True), (20_000, False)], ids=["small", "no class"])
@pytest.mark.parametrize("write", WAYS)
def test_small_files_tell_nothing_and_without_the_class_all_files_try_all(
    spark: SparkSession,
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[DataFrame], None],
    rows_of_part: int,
    *,
    has_class: bool,
) -> None:
    table = catalog.create_table("d.t", COLUMNS, partition_by=["p"])
    if not has_class:
        monkeypatch.setattr(executor_classes, "executors_have_classes", lambda _: False)
    write(sample(spark, rows_of_part, 3))
    assert dictionaries(table) == ["kp", "kmlnp", "kmlnp"]


def test_a_file_whose_footer_cannot_be_read_yet_tells_nothing(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_files = {"spark.sql.maxConcurrentOutputFileWriters": "40"}
    monkeypatch.setattr(native_sink, "WRITE_SETTINGS", native_sink.WRITE_SETTINGS | open_files)
    table = catalog.create_table("d.t", COLUMNS, partition_by=["p"])
    sample(spark, 20_000, 3).writeTo("penstock.d.t").append()
    assert dictionaries(table) == ["kp", "kmlnp", "kmlnp"]


def test_executors_get_the_class_only_for_writes_of_statements_that_are_known_to_read_much(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(executor_classes, "executors_have_classes", lambda _: asked.append(True))
    monkeypatch.setattr(executor_classes, "_LARGE_BYTES", 8 * 100)
    catalog.create_table("d.t", "id BIGINT, p INT", partition_by=["p"])
    for rows in (spark.range(99), spark.createDataFrame([(n,) for n in range(100)], "id BIGINT"), spark.range(100)):
        assert not asked
        rows.selectExpr("id", "1 AS p").writeTo("penstock.d.t").append()
    assert asked == [True]
    assert spark.table("penstock.d.t").count() == 299
