"""Columns of Spark SQL that say where a row is, as Paimon's connector has them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Row
from tests.deletion_vectors import delete_by_vectors
from tests.interop.conftest import java
from tests.spark.needs import needs

import penstock
from penstock.catalog.changes import RenameColumn
from penstock.spark.connector import scan
from penstock.spark.versions.facts import METADATA_COLUMNS
from penstock.spark.versions.python_api import to_arrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.interop.engines import Engine

    from penstock import Catalog, Table

__all__ = ["java"]

pytestmark = needs(METADATA_COLUMNS)
PLACE = "__paimon_file_path, __paimon_row_index, __paimon_bucket"


def append(table: Table, ids: range) -> str:
    """Append a file of these rows; return its path."""
    before = set(table.files()["file_path"].to_pylist())
    table.append(pa.Table.from_pylist([{"id": n, "p": n // 1_000} for n in ids], table.arrow_schema))
    (path,) = set(table.files()["file_path"].to_pylist()) - before
    return str(path)


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(text).collect()]


@pytest.mark.parametrize("reader", ["vectorised", pytest.param("row by row", marks=pytest.mark.slow)], indirect=True)
def test_rows_are_where_they_say(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"d.places_{reader[:3]}"
    options = {"bucket": "2", "bucket-key": "id", "file.block-size": "64 kb"}
    table = catalog.create_table(name, "id BIGINT, p INT", partition_by=["p"], options=options)
    for start in (0, 1_000):
        ids = range(start, start + 800)
        table.append(pa.Table.from_pylist([{"id": n, "p": start // 1_000} for n in ids], table.arrow_schema))
    files = {file["file_path"]: file for file in table.files().to_pylist()}
    assert len(files) == 4
    for condition in ("true", "id = 1234", "p = 1", "id % 100 = 7", "__paimon_row_index = 5", "__paimon_bucket = 1"):
        text = f"SELECT {PLACE}, *, __paimon_bucket + 1 FROM penstock.{name} WHERE {condition}"
        for path, row, bucket, number, _, more in rows(spark, text):
            assert files[path]["bucket"] == bucket == more - 1
            stored = table._ref.file_io.read(path)
            assert pq.read_table(pa.BufferReader(stored))["id"][row].as_py() == number
    counted = rows(spark, f"SELECT __paimon_file_path, count(*) FROM penstock.{name} GROUP BY 1")
    assert dict(counted) == {path: file["record_count"] for path, file in files.items()}
    assert rows(spark, f"SELECT max(__paimon_bucket), count(__paimon_row_index) FROM penstock.{name}") == [(1, 1_600)]
    assert spark.table(f"penstock.{name}").columns == ["id", "p"]
    joined = f"SELECT count(*) FROM penstock.{name} t JOIN penstock.d.`{name[2:]}$files` f "
    assert rows(spark, f"{joined} ON t.__paimon_file_path = f.file_path") == [(1_600,)]


def test_rows_are_numbered_with_those_that_are_deleted(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"d.deleted_places_{reader[:3]}"
    table = catalog.create_table(name, "id BIGINT, p INT")
    first = append(table, range(10))
    table = catalog.alter_table(name, RenameColumn(column="p", new_name="q"))
    table.append([{"id": n, "q": 0} for n in range(10, 20)])
    delete_by_vectors(table, {first.rpartition("/")[2]: [0, 1, 5]})
    left = [n for n in range(20) if n not in {0, 1, 5}]
    for condition in ("true", "id > 2"):
        wanted = [n for n in left if condition == "true" or n > 2]
        text = f"FROM penstock.{name} WHERE {condition} ORDER BY id"
        assert rows(spark, f"SELECT id, __paimon_row_index, q {text}") == [(n, n % 10, 0) for n in wanted]
        found = f"SELECT __paimon_file_path = '{first}', id, __paimon_bucket, q {text}"
        assert rows(spark, found) == [(n < 10, n, 0, 0) for n in wanted]


PARTS = {
    "s": ("STRING", ["a b", "", None, "ü"]),
    "c": ("CHAR(3)", ["abc", None]),
    "boo": ("BOOLEAN", [True, False, None]),
    "tiny": ("TINYINT", [-128, None]),
    "small": ("SMALLINT", [300]),
    "num": ("INT", [-1, None]),
    "big": ("BIGINT", [2**40, 5]),
    "flo": ("FLOAT", [0.5, math.inf, None]),
    "dou": ("DOUBLE", [math.inf, -math.inf, 0.1]),
    "dec": ("DECIMAL(9, 2)", [Decimal("1.25"), None]),
    "wide": ("DECIMAL(30, 4)", [Decimal("-12345678901234567890.5000"), None]),
    "bin": ("BYTES", [b"\x00\xff", None]),
    "day": ("DATE", [dt.date(1500, 1, 1), dt.date(2026, 11, 29), None]),
    "at": ("TIMESTAMP(6)", [dt.datetime(2026, 1, 1, 3, 4, 5, 678901), None]),  # noqa: DTZ001 - a wall clock
    "ltz": ("TIMESTAMP_LTZ(3)", [dt.datetime(1969, 1, 1, 3, 4, 5, 678000, tzinfo=dt.UTC), None]),
}


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_rows_say_their_partitions(spark: SparkSession, catalog: Catalog, reader: str, file_format: str) -> None:
    # An ORC file has no timestamps that Spark reads, and its directory none of the columns that the query reads.
    name = f"d.partitions_{file_format}_{reader[:3]}"
    parts = {name: part for name, part in PARTS.items() if file_format == "parquet" or name != "ltz"}
    columns = ", ".join(f"{column} {kind}" for column, (kind, _) in parts.items())
    options = {"file.format": file_format, "partition.legacy-name": "false"}
    table = catalog.create_table(name, f"id BIGINT, {columns}", partition_by=list(parts), options=options)
    made = [{"id": n, **{column: values[n % len(values)] for column, (_, values) in parts.items()}} for n in range(12)]
    table.append(pa.Table.from_pylist(made, table.arrow_schema))
    text = f"SELECT id, __paimon_partition AS part, __paimon_bucket FROM penstock.{name}"
    found = {row["id"]: row for row in to_arrow(spark.sql(text)).to_pylist()}
    assert found == {row["id"]: {"id": row.pop("id"), "part": row, "__paimon_bucket": 0} for row in made}
    dates = spark.sql(f"SELECT count(DISTINCT __paimon_partition.day) FROM penstock.{name} WHERE id < 9")
    assert f"{file_format} reader of Spark" in str(dates._jdf.queryExecution().executedPlan())
    assert dates.collect() == [(2,)]
    if file_format == "parquet":
        same = [f"__paimon_partition.{column} <=> rtrim({column})" for column in PARTS if column in {"s", "c"}]
        same += [f"__paimon_partition.{column} <=> {column}" for column in PARTS if column not in {"s", "c"}]
        counted = f"SELECT count(*) FROM penstock.{name} WHERE {' AND '.join(same)}"
        assert rows(spark, counted) == [(len(made),)]


def test_rows_of_no_partition_say_so(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"d.no_partitions_{reader[:3]}"
    table = catalog.create_table(name, "id BIGINT, p INT")
    first = append(table, range(5))
    assert rows(spark, f"SELECT __paimon_partition, id FROM penstock.{name} WHERE id = 3") == [(Row(), 3)]
    delete_by_vectors(table, {first.rpartition("/")[2]: [0, 1]})
    found = rows(spark, f"SELECT id, __paimon_partition, __paimon_row_index, __paimon_bucket FROM penstock.{name}")
    assert found == [(n, Row(), n, 0) for n in (2, 3, 4)]


def test_rows_say_their_partitions_next_to_deleted_rows_and_renamed_columns(
    spark: SparkSession, catalog: Catalog, reader: str
) -> None:
    name = f"d.changed_partitions_{reader[:3]}"
    table = catalog.create_table(name, "id BIGINT, p INT, v INT", partition_by=["p"])
    table.append([{"id": n, "p": 0, "v": n} for n in range(10)])
    (first,) = table.files()["file_path"].to_pylist()
    table = catalog.alter_table(name, RenameColumn(column="v", new_name="w"))
    table.append([{"id": n, "p": 1, "w": n} for n in range(10, 20)])
    delete_by_vectors(table, {first.rpartition("/")[2]: [0, 1, 5]})
    left = [n for n in range(20) if n not in {0, 1, 5}]
    for condition in ("true", "id > 2"):
        wanted = [(n, n % 10, (n // 10,), n, 0) for n in left if condition == "true" or n > 2]
        text = "SELECT id, __paimon_row_index, __paimon_partition, w, __paimon_bucket"
        assert rows(spark, f"{text} FROM penstock.{name} WHERE {condition} ORDER BY id") == wanted
    grouped = f"SELECT __paimon_partition.p, count(*) FROM penstock.{name} GROUP BY 1 ORDER BY 1"
    assert rows(spark, grouped) == [(0, 7), (1, 10)]


def test_python_workers_return_what_needs_a_class_where_executors_load_none(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table("d.no_class", "id BIGINT").append([{"id": 1}])
    monkeypatch.setattr(scan, "executors_have_classes", lambda _: False)
    query = spark.sql("SELECT __paimon_partition FROM penstock.d.no_class")
    assert [tuple(row.asDict(recursive=True).values()) for row in query.collect()] == [({},)]
    assert "by Python workers, because executors load no class for this" in query._jdf.queryExecution().toString()
    assert len(rows(spark, "SELECT __paimon_file_path FROM penstock.d.no_class")) == 1


TRACKED = "SELECT _ROW_ID, _SEQUENCE_NUMBER, id"


@pytest.mark.interop
@pytest.mark.parametrize("reader", ["vectorised", pytest.param("row by row", marks=pytest.mark.slow)], indirect=True)
def test_rows_keep_their_ids_in_tables_with_row_tracking(
    spark: SparkSession, java: Engine, reader: str, tmp_path: Path
) -> None:
    location = tmp_path / "d.db" / "t"
    options = {"bucket": "-1", "row-tracking.enabled": "true"}
    java.create(location, [("id", "BIGINT"), ("p", "INT")], options=options, partition=["p"])
    for first in (0, 100, 200):
        java.append(location, [{"id": n, "p": n % 2} for n in range(first, first + 50)])
    penstock.attach(spark, tmp_path, name="tracked")
    for step in ("written", "compacted", "both", "changed"):
        if step == "compacted":
            java.ask("compact", location)
        elif step == "both":
            java.append(location, [{"id": n, "p": n % 2} for n in range(300, 310)])
        elif step == "changed":
            spark.sql("INSERT INTO tracked.d.t SELECT id, 1 FROM range(400, 410)")
            table = penstock.Catalog(tmp_path).load_table("d.t")
            assert table.update({"p": 1}, "id BETWEEN 120 AND 125").rows_updated == 6
            assert table.delete("id < 10").rows_deleted == 10
            spark.sql("UPDATE tracked.d.t SET p = 2 WHERE id + 0 = 130")
            spark.sql(
                "MERGE INTO tracked.d.t t USING (SELECT id FROM range(147, 152)) s ON t.id = s.id "
                "WHEN MATCHED AND t.id = 149 THEN DELETE WHEN MATCHED THEN UPDATE SET p = 0 "
                "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 1)"
            )
        wanted = {row["id"]: row for row in java.read(location.with_name("t$row_tracking"))}
        assert (
            len({row["_ROW_ID"] for row in wanted.values()})
            == len(wanted)
            == {"both": 160, "changed": 161}.get(step, 150)
        )
        for condition in ("true", "p = 1", "id BETWEEN 120 AND 130 OR id = 305", "_ROW_ID % 7 = 3"):
            for more in ("", ", __paimon_row_index, __paimon_partition.p"):
                found = rows(spark, f"{TRACKED}, p{more} FROM tracked.d.t WHERE {condition}")
                assert found, (step, condition)
                for row_id, number, key, p, *others in found:
                    row = wanted[key]
                    assert (row_id, number, p) == (row["_ROW_ID"], row["_SEQUENCE_NUMBER"], row["p"]), (step, key)
                    assert not others or others[1] == p
        only = sorted(row[0] for row in rows(spark, "SELECT _ROW_ID FROM tracked.d.t"))
        assert only == sorted(row["_ROW_ID"] for row in wanted.values())
    assert spark.table("tracked.d.t").columns == ["id", "p"]


def test_tables_without_row_tracking_have_no_row_ids(spark: SparkSession, catalog: Catalog) -> None:
    catalog.create_table("d.untracked", "id BIGINT").append([{"id": 1}])
    with pytest.raises(PySparkException, match="_ROW_ID"):
        rows(spark, "SELECT _ROW_ID FROM penstock.d.untracked")


@pytest.mark.parametrize(
    ("file_format", "partition_by"),
    [
        ("orc", ("p", "q")),
        ("avro", ()),
        pytest.param("orc", (), marks=pytest.mark.slow),
        pytest.param("avro", ("p", "q"), marks=pytest.mark.slow),
    ],
)
def test_python_workers_return_what_readers_of_spark_do_not(
    spark: SparkSession, catalog: Catalog, file_format: str, partition_by: tuple[str, ...]
) -> None:
    """Next to a Parquet table with the same rows."""
    found = {}
    for each in ("parquet", file_format):
        name = f"d.places_{each}_of_{file_format}_{len(partition_by)}"
        options = {"file.format": each, "row-tracking.enabled": "true", "deletion-vectors.enabled": "true"}
        table = catalog.create_table(name, "id BIGINT, p STRING, q DATE", partition_by=partition_by, options=options)
        day = dt.date(2026, 1, 2)
        for first in (0, 10):
            table.append([{"id": n, "p": [None, "é"][n % 2], "q": day} for n in range(first, first + 10)])
        table.delete("id IN (0, 3, 12)")
        files = {row["file_path"].rpartition("/")[2] for row in table.files().to_pylist()}
        places = "__paimon_row_index, __paimon_bucket, __paimon_partition, _ROW_ID, _SEQUENCE_NUMBER"
        found[each] = [
            rows(spark, f"SELECT {columns} FROM penstock.{name} WHERE {condition} ORDER BY id")
            for columns in (places, f"id, {places}, p", "_ROW_ID", "__paimon_bucket", "__paimon_partition")
            for condition in ("true", "p = 'é'", "_ROW_ID > 4", "id > 7 AND p IS NULL")
        ]
        for path, index in rows(spark, f"SELECT __paimon_file_path, __paimon_row_index FROM penstock.{name}"):
            assert path.rpartition("/")[2] in files
            assert 0 <= index < 10
        assert rows(spark, f"SELECT count(DISTINCT __paimon_file_path) FROM penstock.{name}") == [(len(files),)]
    assert found[file_format] == found["parquet"]


ADDED = "__paimon_snapshot_id, __paimon_commit_time"


def added(spark: SparkSession, table: str, key: str = "id") -> dict[int, tuple[int | None, dt.datetime | None]]:
    found = rows(spark, f"SELECT {key}, {ADDED} FROM {table}")
    assert len(found) == len({row[0] for row in found})
    return {number: (snapshot, time) for number, snapshot, time in found}


def commits(spark: SparkSession, name: str) -> dict[int, tuple[int, dt.datetime]]:
    found = rows(spark, f"SELECT snapshot_id, commit_time FROM penstock.d.`{name}$snapshots`")
    return {snapshot: (snapshot, time) for snapshot, time in found}


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_say_which_snapshot_added_their_files(
    spark: SparkSession, catalog: Catalog, reader: str, file_format: str
) -> None:
    name = f"added_{file_format}_{reader[:3]}"
    options = {"write-only": "true", "file.format": file_format}
    table = catalog.create_table(f"d.{name}", "id BIGINT, p INT", partition_by=["p"], options=options)
    for number in range(1, 6):
        table.append([{"id": number, "p": number % 2}])
    known = commits(spark, name)
    full = f"penstock.d.{name}"
    assert added(spark, full) == known
    second = table.snapshots()["commit_time"].cast(pa.int64())[1].as_py()
    assert added(spark, f"{full} VERSION AS OF 3") == {number: known[number] for number in (1, 2, 3)}
    for condition, wanted in (
        ("__paimon_snapshot_id > 2", [3, 4, 5]),
        ("__paimon_snapshot_id IN (1, 4) AND p = 0", [4]),
        (f"__paimon_commit_time = timestamp_millis({second})", [2]),
        ("__paimon_snapshot_id IS NULL", []),
        ("id = __paimon_snapshot_id AND __paimon_bucket = 0 AND __paimon_row_index = 0", [1, 2, 3, 4, 5]),
    ):
        assert rows(spark, f"SELECT id FROM {full} WHERE {condition} ORDER BY id") == [(each,) for each in wanted]
    assert rows(spark, f"SELECT count(*) FROM {full} WHERE __paimon_snapshot_id % 2 = 0") == [(2,)]
    assert rows(spark, f"SELECT max(__paimon_snapshot_id), count(__paimon_commit_time) FROM {full}") == [(5, 5)]
    grouped = rows(spark, f"SELECT __paimon_snapshot_id, count(*) FROM {full} GROUP BY 1 ORDER BY 1")
    assert grouped == [(number, 1) for number in range(1, 6)]
    newest = f"SELECT id FROM {full} ORDER BY __paimon_snapshot_id DESC LIMIT 2"
    assert rows(spark, newest) == [(5,), (4,)]
    joined = f"SELECT t.id FROM {full} t JOIN {full} s ON t.p = s.p AND t.__paimon_snapshot_id < s.__paimon_snapshot_id"
    assert sorted(rows(spark, joined)) == [(1,), (1,), (2,), (3,)]
    assert spark.table(full).columns == ["id", "p"]
    changes = spark.read.option("incremental-between", "2,4").table(full).selectExpr("id", "__paimon_snapshot_id")
    assert sorted(map(tuple, changes.collect())) == [(3, 3), (4, 4)]


def test_rewritten_rows_say_the_snapshot_of_the_rewrite(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"added_again_{reader[:3]}"
    table = catalog.create_table(f"d.{name}", "id BIGINT, v INT", options={"write-only": "true"})
    for number in range(1, 4):
        table.append([{"id": number, "v": 0}])
    delete_by_vectors(table, {table.files()["file_path"].to_pylist()[0].rpartition("/")[2]: [0]})
    left = added(spark, f"penstock.d.{name}")
    known = commits(spark, name)
    assert left == {number: known[number] for number in left}
    assert len(left) == 2
    (merge,) = catalog.load_table(f"d.{name}").compact(strategy="full").snapshots
    latest = merge.id
    table.append([{"id": 9, "v": 0}])
    known = commits(spark, name)
    assert added(spark, f"penstock.d.{name}") == {9: known[latest + 1], **dict.fromkeys(left, known[latest])}


def test_files_of_expired_snapshots_say_null(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"expired_{reader[:3]}"
    table = catalog.create_table(f"d.{name}", "id BIGINT", options={"write-only": "true"})
    for number in range(1, 6):
        table.append([{"id": number}])
        if number == 2:
            table.create_tag("two")
    frame = spark.sql(f"SELECT id, __paimon_snapshot_id FROM penstock.d.{name}")
    known = commits(spark, name)
    table.expire_snapshots(retain_max=2, retain_min=1, older_than=0)
    assert sorted(commits(spark, name)) == [4, 5]
    wanted = {**dict.fromkeys((1, 2, 3), (None, None)), 4: known[4], 5: known[5]}
    assert added(spark, f"penstock.d.{name}") == wanted
    assert added(spark, f"penstock.d.{name} VERSION AS OF 'two'") == {1: (None, None), 2: known[2]}
    counted = f"SELECT count(*), count(__paimon_snapshot_id) FROM penstock.d.{name}"
    assert rows(spark, f"{counted} WHERE id < 5") == [(4, 1)]
    assert len(frame.collect()) == 5


def test_files_of_branches_say_the_snapshots_of_their_branch(spark: SparkSession, catalog: Catalog) -> None:
    options = {"write-only": "true", "partition.legacy-name": "false"}
    table = catalog.create_table("d.branched", "id BIGINT, p INT", partition_by=["p"], options=options)
    table.append([{"id": 1, "p": 1}])
    table.append([{"id": 2, "p": 2}])
    table.create_tag("two")
    table.versions.create_branch("b", tag="two")
    catalog.load_table("d.branched$branch_b").append([{"id": 3, "p": 3}])
    table.append([{"id": 4, "p": 1}])
    there, here = commits(spark, "branched$branch_b"), commits(spark, "branched")
    of_branch = {1: (None, None), 2: there[2], 3: there[3]}
    assert added(spark, "penstock.d.`branched$branch_b`") == of_branch
    spark.sql("ALTER TABLE penstock.d.branched SET TBLPROPERTIES ('scan.fallback-branch' = 'b')")
    found = added(spark, "penstock.d.branched")
    assert found == {1: here[1], 2: here[2], 3: there[3], 4: here[3]}


def test_files_read_by_two_readers_say_their_snapshots(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"added_mixed_{reader[:3]}"
    table = catalog.create_table(f"d.{name}", "id BIGINT, v INT", options={"write-only": "true"})
    table.append([{"id": 1, "v": 1}])
    for number, file_format in ((2, "orc"), (3, "avro"), (4, "parquet")):
        table.with_options({"file.format": file_format}).append([{"id": number, "v": number}])
    assert added(spark, f"penstock.d.{name}") == commits(spark, name)
    for names in (ADDED, f"__paimon_partition, __paimon_row_index, {ADDED}", f"__paimon_file_path, {ADDED}, v"):
        found = spark.sql(f"SELECT {names}, id FROM penstock.d.{name}").collect()
        assert sorted((row["id"], row["__paimon_snapshot_id"]) for row in found) == [(n, n) for n in range(1, 5)]


def test_streams_do_not_return_them(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_table("d.streamed_places", "id BIGINT").append([{"id": 1}])
    stream = spark.readStream.option("scan.mode", "earliest").table("penstock.d.streamed_places")
    place = stream.select("id", "__paimon_file_path")
    for number, frame in enumerate((place, place.union(place), place.where("__paimon_snapshot_id = 1"))):
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / str(number)))
        with pytest.raises(PySparkException, match=r"a stream does not return __paimon_.*: read it in a batch query"):
            writer.trigger(availableNow=True).start().awaitTermination(60)
