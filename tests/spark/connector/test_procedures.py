"""``CALL penstock.sys.*``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors.exceptions.base import PySparkException
from tests.spark.needs import needs

from penstock.spark.versions.facts import PROCEDURES, SHOW_PROCEDURES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock import Catalog

pytestmark = needs(PROCEDURES)


def test_procedures_are_called_by_place_and_by_name(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.called", "id INT")
    for number in range(3):
        table.append(pa.table({"id": pa.array([number], pa.int32())}))
    assert spark.sql("CALL penstock.sys.create_tag('d.called', 'one', 1)").columns == ["result"]
    spark.sql("CALL penstock.sys.create_tag(table => 'penstock.d.called', tag => 'two', snapshot_id => 2)").collect()
    assert spark.sql("SELECT count(*) FROM penstock.d.called VERSION AS OF 'two'").collect() == [(2,)]
    found = spark.sql("CALL penstock.sys.compact(table => 'd.called')").collect()
    assert found[0].table == "d.called"


@needs(SHOW_PROCEDURES)
def test_procedures_are_shown(spark: SparkSession) -> None:
    shown = {row.procedure_name for row in spark.sql("SHOW PROCEDURES IN penstock.sys").collect()}
    assert shown >= {"compact", "compact_database", "create_tag", "rollback"}


def test_procedures_take_named_arguments(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.managed", "id INT, dt STRING", partition_by=["dt"])
    for number in range(3):
        table.append(pa.table({"id": pa.array([number], pa.int32()), "dt": ["2020-01-01"]}))
    calls = {
        "compact": "partitions => 'dt=2020-01-01'",
        "compact_manifest": "",
        "create_tag": "tag => 'kept', snapshot_id => 2, time_retained => '1 d'",
        "replace_tag": "tag => 'kept', snapshot_id => 3",
        "rename_tag": "tagName => 'kept', targetTagName => 'other'",
        "delete_tag": "tag => 'other'",
        "create_tag_from_timestamp": "tag => 'timed', timestamp => 1",
        "create_tag_from_watermark": "tag => 'marked', watermark => 1",
        "rollback_to": "snapshot_id => 3",
        "rollback_to_timestamp": "timestamp => 4102444800000",
        "rollback_to_watermark": "watermark => 1",
        "expire_snapshots": "retain_max => 2, retain_min => 1",
        "expire_tags": "",
        "trigger_tag_automatic_creation": "",
        "mark_partition_done": "partitions => 'dt=2020-01-01'",
        "expire_partitions": "expiration_time => '1 d', timestamp_formatter => 'yyyy-MM-dd'",
        "remove_orphan_files": "older_than => '2020-01-01 00:00:00', dry_run => true",
        "remove_unexisting_files": "dry_run => true",
        "remove_unexisting_manifests": "dry_run => true",
        "reset_consumer": "consumer_id => 'reader', next_snapshot_id => 3",
        "clear_consumers": "including_consumers => 'none'",
    }
    # Some are refused, since the table has no watermark, and no option for tags of its own.
    refused = {"create_tag_from_watermark", "rollback_to_watermark", "trigger_tag_automatic_creation"}
    for name, arguments in calls.items():
        given = ", ".join(filter(None, ["table => 'd.managed'", arguments]))
        call = f"CALL penstock.sys.{name}({given})"
        if name in refused:
            with suppress(PySparkException):
                spark.sql(call)
        else:
            spark.sql(call).collect()
    spark.sql("CALL penstock.sys.compact_database(including_databases => 'd', including_tables => 'managed')").collect()
    if SHOW_PROCEDURES.is_here:
        known = {row.procedure_name for row in spark.sql("SHOW PROCEDURES IN penstock.sys").collect()}
        assert known >= {*calls, "compact_database"}
    assert table.to_arrow().num_rows == 0
    assert table.snapshots().num_rows <= 4
    assert table.inspect.consumers().num_rows == 1


def test_procedures_take_the_names_that_paimon_has_on_spark(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table("d.spoken", "id INT", options={"bucket": "2", "bucket-key": "id"})
    for number in range(4):
        table.append(pa.table({"id": pa.array([number], pa.int32())}))
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    for call in (
        "create_tag(table => 'd.spoken', tag => 'one', snapshot => 2)",
        "replace_tag(table => 'd.spoken', tag => 'one', snapshot => 3)",
        "rename_tag(table => 'd.spoken', tag => 'one', target_tag => 'two')",
        "reset_consumer(table => 'd.spoken', consumerId => 'me', nextSnapshotId => 2)",
        "clear_consumers(table => 'd.spoken', includingConsumers => 'm.*', excludingConsumers => 'you')",
        "create_branch(table => 'd.spoken', branch => 'b')",
        "create_branch(table => 'd.spoken', branch => 'b', ignoreIfExists => 'true')",
        "rollback(table => 'd.spoken', version => 'two')",
        f"migrate_table(source_type => 'hive', table => '{tmp_path}', target_table => 'penstock.d.adopted')",
    ):
        spark.sql(f"CALL penstock.sys.{call}").collect()
    assert table.inspect.tags()["tag_name"].to_pylist() == ["two"]
    assert table.inspect.consumers().num_rows == 0
    assert spark.sql("SELECT count(*), (SELECT count(*) FROM penstock.d.adopted) FROM penstock.d.spoken").first() == (
        3,
        2,
    )
    spark.sql("CALL penstock.sys.rollback('d.spoken', '1')")
    assert spark.sql("SELECT count(*) FROM penstock.d.spoken").first() == (1,)
    with pytest.raises(PySparkException, match=r"no procedure sys\.merge_into: write MERGE INTO"):
        spark.sql("CALL penstock.sys.merge_into('d.spoken')")


def test_wrong_calls_are_refused_in_one_line(spark: SparkSession, catalog: Catalog) -> None:
    with pytest.raises(PySparkException, match="there is no procedure") as caught:
        spark.sql("CALL penstock.sys.no_such()")
    assert "Traceback" not in str(caught.value)
    with pytest.raises(PySparkException, match="needs the argument table"):
        spark.sql("CALL penstock.sys.compact()")


def test_a_catalog_attached_by_its_method_has_the_same_procedures(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.same", "id INT")
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    assert catalog.attach(spark, "same") is catalog
    spark.sql("CALL same.sys.create_tag('same.d.same', 'x')").collect()
    assert table.inspect.tags()["tag_name"].to_pylist() == ["x"]
    with pytest.raises(PySparkException, match="there is no database e in catalog same"):
        spark.sql("CALL same.sys.create_tag('e.same', 'x')")
    without_views = catalog.attach(spark, "same", views=False)
    spark.sql("CALL same.sys.delete_tag('d.same', 'x')").collect()
    assert (without_views is catalog, table.inspect.tags().num_rows) == (False, 0)


@needs(SHOW_PROCEDURES)
def test_spark_describes_procedures(spark: SparkSession, catalog: Catalog) -> None:
    assert catalog is not None
    described = "\n".join(str(row[0]) for row in spark.sql("DESCRIBE PROCEDURE penstock.sys.rename_tag").collect())
    assert "Rename a tag." in described
    assert "targetTagName" in described
